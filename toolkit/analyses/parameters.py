"""Parameters of analyses: what each means, once, for functions, commands, tools and widgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from toolkit.market import parse_length

Kind = Literal["flag", "whole", "number", "text", "length", "python"]
"""What is typed for a parameter: a length of time is a number of seconds or text such as ``5m``.

What only Python can give has the kind ``python``.
"""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an analysis.

    ``help`` is a sentence. ``unit`` is that of a number. ``example`` is a value for one without a
    default. ``option`` is its name on the command line if that is not its name with dashes. An
    ``advanced`` one is for Python alone. A flag with ``across`` makes the analysis compare series,
    see `toolkit.analyses.Analysis`. The rest is read from the function's signature.

    >>> Parameter("How near the level it is at a close.", "bps", 1.0).unit
    'bps'
    """

    help: str
    unit: str = ""
    example: Any = None
    option: str = ""
    choices: tuple[str, ...] = ()
    advanced: bool = False
    across: Callable[..., Any] | None = None
    name: str = ""
    kind: Kind = "python"
    many: bool = False
    required: bool = False
    default: Any = None

    @property
    def is_asked(self) -> bool:
        """Whether it can be typed, so that faces other than Python ask for it."""
        return not self.advanced and self.kind != "python"

    def read(self, typed: Any, named: str = "") -> Any:
        """Return the function's argument for a value that was typed: lengths in seconds.

        ``named`` is its name in an error. Raises `InputError` for an invalid length.

        >>> gap = Parameter("How long.", name="merge_gap_s", kind="length")
        >>> gap.read("10m"), gap.read("90"), gap.read("0s")
        (600, 90, 0)
        """
        if self.kind != "length" or not self.name.endswith("_s"):
            return typed
        if self.many:
            return [replace(self, many=False).read(each, named) for each in typed]
        if typed in (0, "0", "0s"):
            return 0
        whole = isinstance(typed, str) and typed.isdecimal()
        return parse_length(int(typed) if whole else typed, parameter=named or self.name)


GROUPS = {
    **{name: name for name in ("symbol", "legs", "exchange")},
    "size": "size_from",
    "hour": "hour",
}
"""What tells groups of events apart, each with its column of `with_groups`."""

GIVEN = frozenset(
    (
        *("frame", "lives", "events", "values", "rows", "start", "end", "figures"),
        *("step_s", "held", "logs", "prices", "fees", "notional", "style", "known_after_s"),
        *("all_groups", "arrivals", "family", "spreads", "rates"),
    )
)
"""What a face knows by itself or asks for in one way for all analyses: rows, window, costs."""

SHARED = {
    "column": Parameter("The column of the rows to measure.", advanced=True),
    "max_stale_s": Parameter(
        "How long a value is valid without a new one. Default: three steps.", "s", advanced=True
    ),
    "min_coverage": Parameter(
        "The share of the window, 0 to 1, that both legs must cover for a figure."
    ),
    "funding_only": Parameter(
        "Leave prices out: only what settlements pay, under names that say so."
    ),
    "by": Parameter("One row per group: symbol, legs, exchange, size or hour."),
    "before_s": Parameter(
        "The time before events. Default: 1h, for funding 1d.", "s", option="--before"
    ),
    "after_s": Parameter(
        "The time after events. Default: 1h, for funding 1d.", "s", option="--after"
    ),
    "quiet_s": Parameter("How long before an event to ignore its trend.", "s", option="--quiet"),
    "horizons_s": Parameter("The time after the start of the path.", "s", option="--horizon"),
    "cluster": Parameter("Which events may depend on each other."),
    "of": Parameter("What to compare: the venues of each symbol, or all pairs."),
    "bucket": Parameter("The time to average over: 1h, 8h, 1d."),
    "enter_bps": Parameter("How far it is at an entry.", "bps", 10.0),
    "exit_bps": Parameter("How near the level it is at a close.", "bps", 0.0),
    "leave_bps": Parameter(
        "The size below which it ends. Default: that at which it begins.", "bps"
    ),
    "toward": Parameter("The level.", "bps"),
    "absolute": Parameter("Use the size of the spread, on either side of zero."),
    "max_lag_steps": Parameter("The longest lag, in steps."),
    "from_detection": Parameter(
        "Start at the value known at the event, so that its own move counts as what followed."
    ),
}
"""Parameters of several analyses."""
