"""What the page of spreads measures of all of them: kept until a spread's own rows change."""

from __future__ import annotations

import polars as pl

from toolkit.dashboard.reading import Held, StreamVersion, measure_each, read_polls
from toolkit.intervals import Interval
from toolkit.market import Family
from toolkit.statistics.fees import FeeModel, Style
from toolkit.statistics.polls import by_polls, poll_count
from toolkit.statistics.screening import spread_figures
from toolkit.statistics.spread import episodes, net_summary, time_above


def measure_figures(
    held: Held, kind: str, window: Interval, versions: dict[str, StreamVersion] | None = None
) -> pl.DataFrame:
    """Measure `toolkit.statistics.screening.spread_figures` of every spread.

    ``kind`` is spread or snapshot-spread. Of the latter the coverage is by polls, as in `rail
    screen`. ``versions`` are as for `toolkit.dashboard.reading.measure_each`: of some alone.
    """
    streams = held.streams.filter(pl.col("rows") > 0, kind=kind)
    step_s = None if kind == Family.SPREAD or streams.is_empty() else streams["step_s"][0]
    (found,) = measure_each(
        held,
        kind,
        window,
        f"figures of {sorted(versions or ())}",
        lambda rows: spread_figures(rows, *window, step_s=step_s),
        versions=versions,
    )
    if kind != Family.SPREAD and streams.height:
        polls = read_polls(held.path, streams["stream"][0], *window, version=held.version)
        if polls is not None:
            found = by_polls(found, poll_count(polls, *window))
    return found


def measure_beyond(held: Held, kind: str, window: Interval, above_bps: float) -> pl.DataFrame:
    """Measure the time at or beyond a level of every spread, and how often it gets there.

    The columns are those of `toolkit.statistics.spread.time_above`, and ``episodes_per_day``: the
    `toolkit.statistics.spread.episodes` of which the begin was seen, by the days observed. It is
    null where the step is not known.
    """
    shares, found = measure_each(
        held,
        kind,
        window,
        f"beyond {above_bps}",
        lambda rows: time_above(rows, *window, threshold_bps=above_bps),
        lambda rows: episodes(rows, *window, enter_bps=above_bps).select(
            "trajectory", "censored_left"
        ),
    )
    begun = found.filter(~pl.col("censored_left")).group_by("trajectory").len("begun")
    days = pl.col("observed_share") * (window.end - window.start) / 86_400
    return (
        shares.join(begun, on="trajectory", how="left", maintain_order="left")
        .with_columns(episodes_per_day=pl.when(days > 0).then(pl.col("begun").fill_null(0) / days))
        .drop("begun")
    )


def measure_net(
    held: Held,
    kind: str,
    window: Interval,
    fees: FeeModel,
    style: Style,
    *,
    versions: dict[str, StreamVersion] | None = None,
) -> pl.DataFrame:
    """Measure `toolkit.statistics.spread.net_summary` of every spread, at the usual notional."""
    (found,) = measure_each(
        held,
        kind,
        window,
        f"net {fees.hash} {style} of {sorted(versions or ())}",
        lambda rows: net_summary(rows, *window, fees=fees, style=style),
        versions=versions,
    )
    return found
