"""The age of data, counted by the browser."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from toolkit.dashboard.parts.rows import RowColumn
from toolkit.dashboard.reading import StoreState
from toolkit.dashboard.widgets import component
from toolkit.foreign import Markdown
from toolkit.market import Family


def newest_end(streams: pl.DataFrame) -> int | None:
    """Return the end (s UTC) of the newest row's interval, None without a dated row.

    Snapshots and series from them do not count. A settlement is a moment.

    >>> streams = pl.DataFrame(
    ...     {"kind": ["price", "funding"], "last_ts": [880, 600], "step_s": [60, 28800]}
    ... )
    >>> newest_end(streams), newest_end(streams.clear())
    (940, None)
    """
    lasts_s = pl.when(kind=Family.FUNDING.value).then(0).otherwise(pl.col("step_s").fill_null(0))
    ends = dated(streams).select(pl.col("last_ts") + lasts_s).to_series()
    known = ends.drop_nulls().sort()
    return int(known[-1]) if known.len() else None


def dated(streams: pl.DataFrame) -> pl.DataFrame:
    """Select the streams other than snapshots and series kept from them."""
    return streams.filter(~pl.col("kind").str.starts_with("snapshot"))


_LATE_S, _OLD_S = 300, 900
_AGE = component("age", "ages")
AGE_HELP = Markdown(
    "From the end of the newest row to now by the service's clock. Amber from five minutes above "
    "the plan's delay, red from fifteen."
)


def show_age(facts: Mapping[str, object], key: str = "age") -> None:
    """Show how long ago the newest row ended, with a green, amber, red or (unknown) grey dot.

    ``facts`` are of `age_facts`, or a row of `stream_ages`.
    """
    _AGE(data=dict(facts), key=key, width="content")


def age_facts(held: StoreState, now: int) -> dict[str, int | None]:
    """Return the age at ``now``, the service's clock (s), and where it turns amber and red.

    If that clock is stopped so is the age, without limits.
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
    """Return the age of each stream's newest row, and where it turns amber and red.

    ``now`` is the service's clock (s). If it is stopped (``stands``), no age grows or is late.
    Columns: stream, age_s (from the newest row's end, null without a row), late_s and old_s (s,
    null for logs), stands.

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
    """Build the column of `stream_ages`."""
    limits = list(ages.select("late_s", "old_s", "stands").iter_rows())
    return RowColumn("age_s", "age", ages["age_s"].to_list(), help=AGE_HELP, limits=limits)
