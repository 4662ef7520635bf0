"""The age of data, counted by the browser: it grows and changes colour in a tab left open."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from toolkit.dashboard.formatting import dated, newest_end
from toolkit.dashboard.parts.rows import RowColumn
from toolkit.dashboard.reading import Held
from toolkit.dashboard.screen import component
from toolkit.foreign import Markdown

_LATE_S, _OLD_S = 300, 900
_AGE = component("age", "ages")
AGE_HELP = Markdown(
    "From the end of the newest row to now by the service's clock. Amber from five minutes above "
    "the plan's delay on, red from fifteen."
)


def show_age(facts: Mapping[str, object], key: str = "age") -> None:
    """Show how long ago the newest row ended, beside a dot.

    ``facts`` are of `age_facts`, or a row of `stream_ages`. The dot is green until 5 min above the
    plan's delay, amber until 15, then red; grey without a dated row.
    """
    _AGE(data=dict(facts), key=key, width="content")


def age_facts(held: Held, now: int) -> dict[str, int | None]:
    """Return what the browser counts from: the age ``now``, and where it turns amber and red.

    ``now`` is the service's clock (s). Where that stands, so does the age, without a limit.
    """
    delays = dated(held.streams)["delay_s"].sort()
    delay_s = int(delays[-1]) if delays.len() else 0
    ended = newest_end(held.streams)
    age_s = None if ended is None else max(0, now - ended)
    return {
        "age_s": age_s,
        "late_s": None if held.clock_stands else delay_s + _LATE_S,
        "old_s": None if held.clock_stands else delay_s + _OLD_S,
        "stands": int(held.clock_stands),
    }


def stream_ages(streams: pl.DataFrame, now: int, *, stands: bool = False) -> pl.DataFrame:
    """Return of each stream how old its newest row is, and where that turns amber and red.

    ``streams`` are of `toolkit.dashboard.reading.Held`, ``now`` is the service's clock (s), and
    ``stands`` whether it stands still: then no age grows or is late. Columns: stream, age_s (from
    the newest row's end, null without a row), late_s and old_s (s), stands. A log has rows at no
    regular times: its late_s and old_s are null. Rates of a pair end where the next ones are due.

    >>> streams = pl.DataFrame({"stream": ["A_B:X.spot", "events/spread"], "delay_s": [0, 0],
    ...     "kind": ["price", "events"], "last_ts": [60, 0], "step_s": [60, None]})
    >>> stream_ages(streams, 420).rows()
    [('A_B:X.spot', 300, 300, 900, False), ('events/spread', 420, None, None, False)]
    """
    ended = pl.col("last_ts") + pl.col("step_s").fill_null(0)
    steady = ~pl.col("kind").is_in(["events", "snapshot"])
    steady &= not stands
    delay_s = pl.when(steady).then(pl.col("delay_s").fill_null(0))
    return streams.select(
        "stream",
        age_s=(now - ended).clip(lower_bound=0),
        late_s=delay_s + _LATE_S,
        old_s=delay_s + _OLD_S,
        stands=stands,
    )


def age_column(ages: pl.DataFrame) -> RowColumn:
    """Build the column of ages, of the columns of `stream_ages`."""
    limits = list(ages.select("late_s", "old_s", "stands").iter_rows())
    return RowColumn("age_s", "age", ages["age_s"].to_list(), help=AGE_HELP, limits=limits)
