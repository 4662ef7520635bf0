"""The vocabulary of the field: names, streams, units and times.

A `Stream` is anything that can be loaded, with one text key everywhere. A `Trajectory` is one time
series: of a price (one leg), of a spread or of a funding differential (two legs, buy first, never
flipped or sorted).
"""

from toolkit.market.names import (
    LIFECYCLE_ROLES,
    TYPE_ROLES,
    UNIT_FACTORS,
    EventFamily,
    EventRole,
    Family,
    Leg,
    Market,
    Plan,
    Source,
    Symbol,
    unit_factor,
)
from toolkit.market.streams import (
    EventLog,
    Pair,
    SnapshotKind,
    SnapshotLog,
    SnapshotTrajectory,
    Stream,
    Trajectory,
    swapped,
)
from toolkit.market.times import (
    Step,
    When,
    Window,
    asked_window,
    format_ts,
    named_window,
    parse_length,
    parse_ts,
    window_ends,
)

__all__ = [
    "LIFECYCLE_ROLES",
    "TYPE_ROLES",
    "UNIT_FACTORS",
    "EventFamily",
    "EventLog",
    "EventRole",
    "Family",
    "Leg",
    "Market",
    "Pair",
    "Plan",
    "SnapshotKind",
    "SnapshotLog",
    "SnapshotTrajectory",
    "Source",
    "Step",
    "Stream",
    "Symbol",
    "Trajectory",
    "When",
    "Window",
    "asked_window",
    "format_ts",
    "named_window",
    "parse_length",
    "parse_ts",
    "swapped",
    "unit_factor",
    "window_ends",
]
