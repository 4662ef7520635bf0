"""What the page of spreads measures of all of them: kept until a spread's own rows change."""

from __future__ import annotations

import polars as pl

from toolkit.dashboard.reading import Held, StreamVersion, measure_each, read_polls
from toolkit.intervals import Interval
from toolkit.market import Family
from toolkit.statistics.fees import FeeModel, Style
from toolkit.statistics.level import Level
from toolkit.statistics.polls import by_polls, poll_count
from toolkit.statistics.screening import spread_figures, with_q_values
from toolkit.statistics.spread import net_summary
from toolkit.workspace.passes import known_steps


def measure_figures(
    held: Held, kind: str, window: Interval, versions: dict[str, StreamVersion] | None = None
) -> pl.DataFrame:
    """Measure `toolkit.statistics.screening.spread_figures` of every spread, with the q-values.

    ``kind`` is spread or snapshot-spread. Of the latter the coverage is by polls, as in `rail
    screen`. ``versions`` are as for `toolkit.dashboard.reading.measure_each`: of some alone.
    """
    streams = held.streams.filter(pl.col("rows") > 0, kind=kind)
    steps = known_steps(streams)
    (found,) = measure_each(
        held,
        kind,
        window,
        f"figures of {sorted(versions or ())}",
        lambda rows: spread_figures(rows, *window, step_s=steps),
        versions=versions,
    )
    if kind != Family.SPREAD and not streams.is_empty():
        polls = read_polls(held.path, streams["stream"][0], *window, version=held.version)
        if polls is not None:
            found = by_polls(found, poll_count(polls, *window))
    return with_q_values(found)


def measure_level(held: Held, kind: str, window: Interval, level: Level) -> pl.DataFrame:
    """Measure `toolkit.statistics.level.Level.measure` of every spread."""
    steps = known_steps(held.streams)
    fees = level.fees and level.fees.hash
    (found,) = measure_each(
        held,
        kind,
        window,
        f"beyond {level.bps} {level.absolute} {fees} {level.style} {level.notional}",
        lambda rows: level.measure(rows, *window, step_s=steps),
    )
    return found


def measure_net(
    held: Held,
    kind: str,
    window: Interval,
    fees: FeeModel,
    style: Style,
    *,
    versions: dict[str, StreamVersion] | None = None,
) -> pl.DataFrame:
    """Measure `toolkit.statistics.spread.net_summary` of every spread, at the usual notional.

    With the q-values over all of them.
    """
    steps = known_steps(held.streams)
    (found,) = measure_each(
        held,
        kind,
        window,
        f"net {fees.hash} {style} of {sorted(versions or ())}",
        lambda rows: net_summary(rows, *window, fees=fees, style=style, step_s=steps),
        versions=versions,
    )
    return with_q_values(found)
