"""Alerts of a store: the rules of its ``rail.toml``, where they are sent, and their history."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from toolkit.alerts import AlertRule, read_alerts
from toolkit.alerts.channels import Channel, read_channels
from toolkit.alerts.watch import AlertPlan, Rulebook
from toolkit.errors import InputError
from toolkit.market import Stream
from toolkit.workspace.fee_choice import find_fees
from toolkit.workspace.rules import read_settings, settings_file

_SET_UP = {"webhook": "RAIL_ALERT_WEBHOOK", "chat": "RAIL_ALERT_CHAT"}


def find_alerts(store: Path) -> Rulebook:
    """Return the rules ``[[alert]]`` of the ``rail.toml`` beside the store or where one works.

    None where there is no such file or it has none. Raises `InputError` for what is no rule, and
    for a net rule without a fee table.

    >>> find_alerts(Path("none/rail.duckdb")).rules
    ()
    """
    found = settings_file(store)
    if found is None:
        return Rulebook()
    rules = read_alerts(read_settings(found, "alerts").get("alert", []), f"{found} alert")
    net = next((rule for rule in rules if rule.net), None)
    fees = find_fees(store) if net is not None else None
    if net is not None and fees is None:
        advice = '`fees = "fees.toml"` at the head of the file names one'
        raise InputError(f"{found} alert {net.name} net", True, "false without fees", advice=advice)
    return Rulebook(rules, fees)


def alert_plan(store: Path) -> AlertPlan:
    """Return what a follow of a store needs for its alerts. The rules are read anew as they change.

    Raises `InputError` as `find_alerts`, for a channel that is set up wrongly, and for a rule that
    names one that is not set up.
    """
    channels = read_channels()
    check_channels(find_alerts(store).rules, channels, settings_file(store))
    return AlertPlan(lambda: find_alerts(store), channels)


def check_channels(
    rules: tuple[AlertRule, ...], channels: Mapping[str, Channel], path: Path | None
) -> None:
    """Raise `InputError` for a rule that names a channel which is not set up."""
    for rule in rules:
        for name in rule.send or ():
            if name not in channels:
                allowed = [*channels] or "nothing: the environment sets up no channel"
                advice = f"set {_SET_UP[name]}"
                raise InputError(f"{path} alert {rule.name} send", name, allowed, advice=advice)


def matched_streams(rules: tuple[AlertRule, ...], streams: list[Stream]) -> pl.DataFrame:
    """Return which of some streams each rule watches: one row per rule, in their order.

    Columns: rule, kind, condition (in words), streams (count) and first (the key of the first one,
    null where there is none).

    >>> rule = AlertRule.of({"name": "a", "kind": "loss", "within": "1d"})
    >>> matched_streams((rule,), [Stream.parse("events/splash")]).row(0)
    ('a', 'loss', 'dropped by the archive within 1 d', 1, 'events/splash')
    """
    rows = []
    for rule in rules:
        found = [stream.key for stream in streams if rule.matches(stream)]
        rows.append((rule.name, rule.kind.value, str(rule), len(found), next(iter(found), None)))
    schema = {
        "rule": pl.String,
        "kind": pl.String,
        "condition": pl.String,
        "streams": pl.Int64,
        "first": pl.String,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def named_rule(store: Path, name: str) -> AlertRule:
    """Return the rule of a name. Raises `InputError` where there is none."""
    rules = {rule.name: rule for rule in find_alerts(store).rules}
    if name not in rules:
        raise InputError("rule", name, list(rules) or "none: rail.toml has no [[alert]]")
    return rules[name]
