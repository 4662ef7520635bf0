"""Alerts on incoming rows: rules, their evaluation, delivery."""

from toolkit.alerts.rules import CHANNELS, AlertKind, AlertRule, read_alerts

__all__ = ["CHANNELS", "AlertKind", "AlertRule", "read_alerts"]
