"""Thresholds of events, and how often they are updated."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.errors import InputError
from toolkit.service.events.detectors.lives import Rule

_HOUR_S, _DAY_S = 3_600, 86_400
_SPREAD = Rule(1.0, 0.5, step=0.25, every_s=300, max_age_s=2 * _HOUR_S, lost_after_s=600)
_SPLASH = Rule(2.0, 1.0, step=None, every_s=0, max_age_s=2 * _HOUR_S, lost_after_s=2 * _HOUR_S)
_FUNDING = Rule(0.1, 0.05, step=0.02, every_s=300, max_age_s=3 * _DAY_S, lost_after_s=2 * _DAY_S)


@dataclass(frozen=True, slots=True)
class DetectorSettings:
    """The rule of each family, and the window of a splash (s).

    ``spread`` is in percent of the buy price, ``splash`` in percent of the price that the move
    began at, ``funding`` in percent per 8 h. A funding rate is known for hours, so that rule gives
    a leg two days before it is lost.
    """

    spread: Rule = _SPREAD
    splash: Rule = _SPLASH
    splash_window_s: int = 300
    funding: Rule = _FUNDING

    def __post_init__(self) -> None:
        if self.splash_window_s < 1:
            raise InputError("splash_window_s", self.splash_window_s, "1 or more")


DEFAULT = DetectorSettings()
"""The settings of the local service."""
