"""Detectors: pure functions from a market to the events of a day.

`lives` (when a series of values is an event, and thresholds) -> `spreads`, `splashes`, `funding`
(which values, and the documents of a day).

A detector runs from some hours before the day; `lives` shows why what it finds in the day does not
depend on where it began.
"""

from toolkit.service.events.detectors.funding import funding_lives
from toolkit.service.events.detectors.lives import DEFAULT, DetectorSettings, Life, Rule
from toolkit.service.events.detectors.splashes import splash_lives
from toolkit.service.events.detectors.spreads import spread_lives

__all__ = [
    "DEFAULT",
    "DetectorSettings",
    "Life",
    "Rule",
    "funding_lives",
    "splash_lives",
    "spread_lives",
]
