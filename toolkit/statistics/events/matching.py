"""Matching of the events of a log with the episodes of their trajectories."""

from __future__ import annotations

import numpy as np
import polars as pl

from toolkit.statistics.core.conditions import Schema
from toolkit.statistics.events.paths import Flags, Integers, KnownValues
from toolkit.statistics.numeric.life_curve import numbered

_BPS_A_PERCENT = 100
_WHY_ALONE = ("no_rows", "gap", "below")

FOUND_IN = pl.Enum(["both", "log", "rows"])
WHY = pl.Enum([*_WHY_ALONE, "missed", "began_before", "log_ended", "log_gap", "still_open"])
"""Why one side has no match."""

ROWS: Schema = {
    "trajectory": pl.Categorical(),
    "found_in": FOUND_IN,
    "event": pl.String(),
    **dict.fromkeys(("t_open", "t_close"), pl.Int64()),
    "event_peak_pct": pl.Float64(),
    **dict.fromkeys(("episode_start", "episode_end"), pl.Int64()),
    "episode_peak_pct": pl.Float64(),
    "delay_s": pl.Int64(),
    **dict.fromkeys(("judged", "episode_judged"), pl.Boolean()),
    "audit_reason": WHY,
}
"""The columns of an audit's rows, with words as numbers to save memory."""


def matched_rows(
    lives: pl.DataFrame, found: pl.DataFrame, known: KnownValues, after_s: int, slack_s: int
) -> pl.DataFrame:
    """Return the events, then the episodes without an event, each by trajectory and time.

    ``lives`` are events sorted by trajectory and opening, and ``found`` the episodes, known
    ``after_s`` later. Both match if at most ``slack_s`` apart. An event without a close is matched
    by its opening. What counts is decided later.
    """
    shared = pl.concat([lives.select("trajectory"), found.select("trajectory")])
    names, numbers = numbered(shared, ["trajectory"])
    opened = lives["t_open"].to_numpy()
    ended = lives.select(pl.coalesce("t_close", "t_open")).to_series().to_numpy()
    starts, ends = (found[name].to_numpy() + after_s for name in ("start_ts", "end_ts"))
    place, alone = np.full(lives.height, -1), np.zeros(lives.height, np.int64)
    first, used = np.zeros(lives.height, bool), np.zeros(found.height, bool)
    edges = [
        np.searchsorted(each.to_numpy(), np.arange(names.height + 1))
        for each in (numbers.head(lives.height), numbers.tail(found.height))
    ]
    for at, name in names.iter_rows():
        mine, own = (slice(each[at], each[at + 1]) for each in edges)
        spans = opened[mine] - slack_s, ended[mine] + slack_s
        nearest, first[mine], used[own] = _overlaps(*spans, starts[own], ends[own])
        place[mine] = np.where(nearest < 0, -1, nearest + own.start)
        alone[mine] = _why_alone(name, opened[mine], ended[mine], known)
    shown = np.bincount(place[place >= 0], minlength=found.height) > 0
    return _rows(
        lives.with_columns(
            first=pl.Series(first), alone=pl.Series(_WHY_ALONE, dtype=WHY).gather(alone)
        ),
        pl.Series(place),
        found.select(
            "trajectory",
            episode_judged=~pl.col("censored_left"),
            episode_start=pl.col("start_ts") + after_s,
            episode_end=pl.col("end_ts") + after_s,
            episode_peak_pct=pl.col("peak_bps") / _BPS_A_PERCENT,
            used=pl.Series(used, dtype=pl.Boolean),
            shown=pl.Series(shown, dtype=pl.Boolean),
        ),
    )


def _overlaps(
    opened: Integers, until: Integers, starts: Integers, ends: Integers
) -> tuple[Integers, Flags, Flags]:
    """Match the events of a trajectory, sorted by opening, with its episodes.

    Return the first episode of each event or -1, whether no earlier event has it, and which
    episodes have an event.
    """
    place, beyond = np.searchsorted(ends, opened), np.searchsorted(starts, until, side="right")
    matched = place < beyond
    furthest = np.maximum.accumulate(np.where(matched, beyond, 0))
    first = matched & (np.concatenate([[0], furthest])[:-1] <= place)
    begin, end = (np.bincount(each[matched], minlength=starts.size + 1) for each in (place, beyond))
    return np.where(matched, place, -1), first, np.cumsum(begin - end)[:-1] > 0


def _why_alone(name: str, opened: Integers, until: Integers, known: KnownValues) -> Integers:
    """Return for each event the place in `_WHY_ALONE` of why no episode matches it."""
    number = known.numbers.get(name, -1)
    if number < 0:
        return np.zeros(opened.size, np.int64)
    times = known.known_ts[known.first[number] : known.first[number + 1]]
    last = np.searchsorted(times, until + known.step_s, side="right")
    return np.where(last > np.searchsorted(times, opened), 2, 1)


def _rows(lives: pl.DataFrame, place: pl.Series, known: pl.DataFrame) -> pl.DataFrame:
    both = pl.col("episode_start").is_not_null()
    beside = pl.exclude("trajectory", "used", "shown").gather(place.set(place < 0, None))
    seen = known.select(beside)
    whole = pl.col("first") & pl.col("episode_judged")
    of_log = (
        lives.rename({"peak": "event_peak_pct"})
        .hstack(seen)
        .with_columns(
            pl.when(both)
            .then(pl.lit("both", FOUND_IN))
            .otherwise(pl.lit("log", FOUND_IN))
            .alias("found_in"),
            pl.when(whole).then(pl.col("t_open") - pl.col("episode_start")).alias("delay_s"),
            pl.when(~both).then("alone").alias("audit_reason"),
        )
    )
    why = (
        pl.when("episode_judged").then(pl.lit("missed", WHY)).otherwise(pl.lit("began_before", WHY))
    )
    rest = known.filter(~pl.col("shown")).with_columns(
        pl.when("used")
        .then(pl.lit("both", FOUND_IN))
        .otherwise(pl.lit("rows", FOUND_IN))
        .alias("found_in"),
        pl.when(~pl.col("used")).then(why).alias("audit_reason"),
    )
    parts = [each.select(set(ROWS) & set(each.columns)) for each in (of_log, rest)]
    return pl.concat([pl.DataFrame(schema=ROWS), *parts], how="diagonal")
