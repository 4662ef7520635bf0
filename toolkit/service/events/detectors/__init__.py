"""Detectors: pure functions from a market to the events of a day.

`rows` (bars, each when it is over) -> `lives` (when a series of values is an event) -> `spreads`,
`splashes`, `funding` (which values, and the documents of a day). Thresholds: `DetectorSettings`.

A detector runs from some hours before the day; `lives` shows why what it finds in the day does not
depend on where it began.
"""

from toolkit.service.events.detectors.funding import funding_lives
from toolkit.service.events.detectors.lives import Life, Rule
from toolkit.service.events.detectors.settings import DEFAULT, DetectorSettings
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
