"""Timing of events: bursts, and hours of the week; and how large events become."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.errors import InputError
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    checked_types,
    collected,
    first_reason,
    whole_number,
)
from toolkit.statistics.core.observations import observed
from toolkit.statistics.events.exposure import BY_ALL, BY_OPENING, GROUP_COLUMNS, Watched
from toolkit.statistics.numeric.arrays import Floats, Integers, Waves
from toolkit.statistics.numeric.tails import poisson_interval
from toolkit.statistics.spread.hour_of_week import hour_of_week
from toolkit.statistics.spread.tail_index import fitted_tails, tail_columns

FINEST_S = 60
"""The width of the shortest bucket (s)."""

_WIDTHS = (1, 2, 5, 10, 20, 30, 60, 120, 180)
_DAY = 1_440
_FEWEST_DAYS, _FEWEST_CELLS = 3, 30
_SWEEPS = 20
_ERRORS = 3.0
"""Without bursts no factor is above 1 by so many errors."""
_LEAST_SEEN = 0.3
"""The share of the rise that the widest bucket must show."""


def triggering(times: Integers, minutes: Integers) -> tuple[float, float] | None:
    """Estimate the triggered share n, and the time 1 / a in seconds over which bursts die out.

    ``times`` are those of openings (s), and ``minutes`` the numbers since 1970 of the fully covered
    minutes, sorted. Without bursts returns 0 and NaN. Returns None for fewer than 3 days, and if
    bursts last so long that buckets of 3 hours show less than a third of the rise.

    Source: Hawkes, A. G. (1971), Biometrika 58.
    """
    minute = times // FINEST_S
    minute = minute[np.isin(minute, minutes)]
    if not minute.size:
        return None
    first = int(minutes[0]) // _DAY
    days = int(minutes[-1]) // _DAY - first + 1
    if days < _FEWEST_DAYS:
        return None
    counts = np.bincount(minute - first * _DAY, minlength=days * _DAY)
    held = np.bincount(minutes - first * _DAY, minlength=days * _DAY)
    found = [_factor(counts, held, width, days) for width in _WIDTHS]
    known = [(width, *each) for width, each in zip(_WIDTHS, found, strict=True) if each]
    if not known or known[-1][0] < _WIDTHS[-1] / 3:
        return None
    widths, factors, freedom = (np.array(each) for each in zip(*known, strict=True))
    chance = np.sqrt(2 / freedom + 1 / minute.size)
    if ((factors - 1) / chance).max() < _ERRORS:
        return 0.0, math.nan
    return _fitted(widths, factors, freedom)


def _factor(counts: Integers, held: Integers, width: int, days: int) -> tuple[float, float] | None:
    slots = _DAY // width
    table, whole = (each.reshape(days, slots, width).sum(axis=2) for each in (counts, held))
    there = whole == width
    there = there[there.any(axis=1)]
    table = np.where(whole == width, table, 0)[(whole == width).any(axis=1)].astype(np.float64)
    there = there[:, (used := there.any(axis=0))]
    table = table[:, used]
    freedom = there.sum() - sum(there.shape) + 1
    if len(there) < _FEWEST_DAYS or freedom < _FEWEST_CELLS or not table.any():
        return None
    rest, weight = table.copy(), there.astype(np.float64)
    for _ in range(1 if there.all() else _SWEEPS):
        for axis in (0, 1):
            mean = rest.sum(axis=axis, keepdims=True) / weight.sum(axis=axis, keepdims=True)
            rest -= mean * weight
    squares = float(np.square(rest).sum())
    return squares / table.sum() * there.sum() / freedom, float(freedom)


def _fitted(widths: Floats, factors: Floats, freedom: Floats) -> tuple[float, float] | None:
    """Fit the rise of the factor: its rate on a grid, and its height by least squares."""
    burst_s = np.geomspace(5, 50_000, 160)
    scaled = FINEST_S * widths / burst_s[:, None]
    rise = 1 + np.expm1(-scaled) / scaled
    weight = freedom / np.square(np.maximum(factors, 1))
    for _ in range(3):
        height = (weight * rise * (factors - 1)).sum(axis=1) / (weight * rise**2).sum(axis=1)
        height = np.maximum(height, 0.0)
        missed = (weight * np.square(factors - 1 - height[:, None] * rise)).sum(axis=1)
        best = int(missed.argmin())
        weight = freedom / np.square(1 + height[best] * rise[best])
    if rise[best, -1] < _LEAST_SEEN:
        return None
    return float(1 - 1 / np.sqrt(1 + height[best])), float(burst_s[best])


_SEED = 20_261_123
_CELLS = 1_000_000
_MOST_TABLED = 256
_MOST_A_BUCKET = 8  # of more events a bucket it is sooner done to draw the count of each bucket
_ROWS = 16


def drawn_squares(events: Integers, places: Integers, draws: int) -> Integers:
    """Put the events of each hour into its buckets at random, and sum the squares of their counts.

    ``events`` and ``places`` are the numbers of events and buckets of each hour. One sum per draw.
    An hour of at most 256 events and eight per bucket is drawn from the chances of its sums. The
    seed depends on the events, so groups are drawn independently.
    """
    rng = np.random.default_rng([_SEED, *events.tolist()])
    alone = (events < 2) | (places < 2)
    drawn = np.full(draws, (events[alone] ** 2).sum())
    tabled = ~alone & (events <= np.minimum(_MOST_TABLED, _MOST_A_BUCKET * places))
    hours = np.stack([events[tabled], places[tabled]])
    hours, times = np.unique(hours, axis=1, return_counts=True)
    for count, each, like in zip(*hours.tolist(), times.tolist(), strict=True):
        chance = pairs_chance(count // _ROWS, each)[count % _ROWS]
        pairs = np.searchsorted(chance, rng.random((like, draws)), side="right")
        drawn += like * count + 2 * pairs.sum(axis=0)
    others = ~alone & ~tabled
    for count, each in zip(events[others].tolist(), places[others].tolist(), strict=True):
        drawn += _squares(rng, count, each, draws)
    return drawn


@lru_cache(maxsize=32)
def pairs_chance(sixteen: int, places: int) -> Floats:
    """Return the chance that at most so many pairs of events share a bucket.

    One row for each of 16 numbers of events, from 16 times ``sixteen`` on, and one column per
    number of pairs, right to 1e-12. The last column is 1 for any random number.

    With a Poisson number of events buckets are independent, so the generating function of events
    and pairs is that of one bucket to the power of their number, and its values on a circle give
    the chances (Flajolet and Sedgewick, Analytic Combinatorics, VIII).
    """
    number = np.arange(sixteen * _ROWS, (sixteen + 1) * _ROWS)
    rate, most = float(number[0] + _ROWS / 2), int(number[-1])
    mean = most * (most - 1) / 2 / places
    size = 64 + 64 * round((mean + 20 * mean**0.5 + 64) / 64)
    held = np.arange(most + 1)
    logarithms = np.cumsum(np.log(np.maximum(held, 1)))  # of factorials
    chance = np.exp(held * np.log(rate / places) - rate / places - logarithms)
    held, chance = held[chance > 1e-20], chance[chance > 1e-20]
    events = _waves(held, 2 * most + 64)
    pairs = _waves(held * (held - 1) // 2, size)[: size // 2 + 1]
    found = np.fft.ifft(((events * chance) @ pairs.T) ** places, axis=0)[number]
    found /= np.exp(number * np.log(rate) - rate - logarithms[number])[:, None]
    return np.asarray(np.fft.irfft(found, size, axis=1).cumsum(axis=1))


def _waves(number: Integers, size: int) -> Waves:
    turns = np.outer(np.arange(size), number) % size
    return np.asarray(np.exp(-2j * np.pi * turns / size))


def _squares(rng: np.random.Generator, count: int, places: int, draws: int) -> Integers:
    """Put events into equally likely buckets, and sum the squares of the counts of each draw."""
    # an event takes about an eighth of the time of a bucket
    if count > min(8 * places, max(places, _CELLS // draws)):
        held = rng.multinomial(count, np.full(places, 1 / places), size=draws)
    else:
        at = rng.integers(0, places, (draws, count)) + places * np.arange(draws)[:, None]
        held = np.bincount(at.ravel(), minlength=places * draws).reshape(draws, places)
    return np.asarray((held * held).sum(axis=1), np.int64)


MIN_EVENTS = 20
"""The fewest events for a measure of bursts."""

_HOUR_S, _WEEK_HOURS = 3_600, 168
_FEW = 10
"""With fewer events in an hour the weeks alone show too little."""

_FIGURES = ("fano", "fano_apart", "p_value")
_TRIGGERED = ("triggered_share", "burst_s")


@analysis(
    "events.clustering",
    """
        fano fano_apart p_value triggered_share burst_s n n_buckets coverage""",
    title="Whether events open in bursts,",
    about="""
        Drawing the same events anew, each in its own hour of the week, shows the effect of
        busy hours alone.""",
    example="spread --by symbol",
    by=BY_OPENING,
    bucket_s=Parameter(
        "The length of the buckets in which openings are counted.", "s", option="--bucket"
    ),
    draws=Parameter("The number of draws to compare the factor with.", advanced=True),
)
def clustering(
    lives: Frame,
    by: Sequence[str] = (),
    *,
    held: pl.DataFrame | None = None,
    bucket_s: int = 300,
    draws: int = 499,
) -> pl.DataFrame:
    """Measure whether events open in bursts, beyond what the hours of the week explain.

    ``lives``, ``by`` and ``held`` are those of `survival`. Openings are counted in fully covered
    buckets of ``bucket_s`` (s, a divisor of an hour). The Fano factor is the variance of the counts
    over their mean: 1 for independent events at a constant rate, more with bursts or busy hours. It
    is compared with ``draws`` in which each event keeps its hour of the week and its bucket is
    drawn anew among those of all weeks: in a window of one week only bursts within an hour are
    seen. The seed is fixed.

    The triggered share is that of a process in which events trigger others after exponential times
    (`toolkit.statistics.events.timing`). One row per family and group that has an event, sorted:

    {columns}

    Raises `InputError`: As `survival`. ``bucket_s`` does not divide an hour. ``draws`` is not a
    whole number from 99.

    Source: Hardiman, S. J. and Bouchaud, J.-P. (2014), Physical Review E 90: the triggered share.

    Thirty events at the beginning of hours, three at a time.

    >>> opened = [3_600 * (k // 3) + k % 3 for k in range(30)]
    >>> lives = pl.DataFrame({"family": "spread", "t_open": opened, "duration_s": 30.0,
    ...     "entry_s": 0.0, "observed": [1] * 30, "kind": "closed", "known_until": [36_000] * 30,
    ...     "window_start": [0] * 30, "window_end": [36_000] * 30})
    >>> row = clustering(lives).row(0, named=True)
    >>> row["n_buckets"], round(row["fano"], 2), row["p_value"]
    (120, 2.77, 0.002)
    """
    bucket_s = whole_number("bucket_s", bucket_s, 1, "seconds that divide an hour")
    if _HOUR_S % bucket_s:
        raise InputError("bucket_s", bucket_s, "seconds that divide an hour: 60, 300, 900")
    draws = whole_number("draws", draws, 99)
    watched = Watched.of(lives, by, held)
    names = watched.names
    inside = watched.inside().partition_by("family", as_dict=True)
    whole, minutes = (
        {family: _whole(part, length_s) for (family,), part in inside.items()}
        for length_s in (bucket_s, FINEST_S)
    )
    opened = watched.openings().group_by("_number", maintain_order=True).agg(pl.col("t_open"))
    rows = watched.groups.join(opened, on="_number", how="left", maintain_order="left")
    none = np.empty(0, np.int64)
    opened_at = [none if times is None else times.to_numpy() for times in rows["t_open"]]
    found = []
    for family, times in zip(rows["family"], opened_at, strict=True):
        own = _bursts(times, whole.get(family, none), bucket_s, draws)
        share = None if own[-1] is None else triggering(times, minutes.get(family, none))
        found.append((*own, *(share or (None, None))))
    fractions = dict.fromkeys((*_FIGURES, *_TRIGGERED), pl.Float64())
    schema = {"n": pl.Int64(), "n_buckets": pl.Int64(), **fractions}
    figures = pl.DataFrame(found, schema=schema, orient="row").with_columns(
        pl.col("burst_s").fill_nan(None)
    )
    why: dict[Reason, pl.Expr] = {
        Reason.EMPTY: pl.col("n") == 0,
        Reason.TOO_FEW: pl.col("n") < MIN_EVENTS,
        Reason.DEGENERATE: pl.col("fano").is_null(),
    }
    unknown = {Reason.TOO_SHORT: pl.col("triggered_share").is_null()}
    no_burst = {Reason.DEGENERATE: pl.col("burst_s").is_null()}
    of_share = pl.coalesce(*map(first_reason, (why, unknown, no_burst)))
    return (
        pl.concat([rows.select(names), figures], how="horizontal")
        .join(watched.held_s(), on="family", how="left", maintain_order="left")
        .select(
            *names,
            *("n", "n_buckets", "coverage", *_FIGURES),
            first_reason(why).alias("clustering_reason"),
            *_TRIGGERED,
            of_share.alias("triggered_reason"),
            *watched.question("events.clustering/4", bucket_s=bucket_s, draws=draws).columns,
        )
    )


def _whole(stretches: pl.DataFrame, length_s: int) -> Integers:
    parts = [
        np.arange(-(-start // length_s), end // length_s, dtype=np.int64)
        for start, end in stretches.select("start_ts", "end_ts").iter_rows()
    ]
    return np.concatenate([np.empty(0, np.int64), *parts])


def _bursts(
    times: Integers, whole: Integers, bucket_s: int, draws: int
) -> tuple[int, int, float | None, float | None, float | None]:
    bucket = times // bucket_s
    bucket = bucket[np.isin(bucket, whole)]
    at = np.searchsorted(whole, bucket)
    nothing = (at.size, whole.size, None, None, None)
    if at.size < MIN_EVENTS:
        return nothing
    hour = whole * bucket_s // _HOUR_S % _WEEK_HOURS
    events, buckets = (np.bincount(each, minlength=_WEEK_HOURS) for each in (hour[at], hour))
    if not ((events > 0) & (buckets > 1)).any():
        return nothing
    drawn = drawn_squares(events, buckets, draws)
    squares = int((np.bincount(at, minlength=whole.size) ** 2).sum())
    fano, apart = (_fano(each, at.size, whole.size) for each in (squares, float(drawn.mean())))
    p_value = (1 + int((drawn >= squares).sum())) / (1 + draws)
    return at.size, whole.size, fano, apart, p_value


def _fano(squares: float, count: int, buckets: int) -> float:
    return float((squares - count * count / buckets) / (buckets - 1) * buckets / count)


@analysis(
    "events.rates_by_hour",
    """
        events_per_h_mean events_per_h_mean_lower events_per_h_mean_upper differs
        events_per_h_deviation weeks n coverage""",
    key=("family", *GROUP_COLUMNS[:-1], "weekday", "hour"),
    title="How many events open by the hour of the week, UTC,",
    example="spread --sort -events_per_h_mean --top 10",
    chart="event_hours_chart",
    by=BY_OPENING,
)
def rates_by_hour(
    lives: Frame, by: Sequence[str] = (), *, held: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Compute how many events open in each hour of the week, in UTC, with errors between weeks.

    ``lives``, ``by`` and ``held`` are those of `survival`. Only fully covered hours count, one
    without an opening as 0. Hours are compared from week to week as in
    `toolkit.statistics.spread.hour_of_week`: errors allow for bursts, and without a season one hour
    in twenty ``differs``. Bounds of hours with fewer than 10 openings per Fano factor (the variance
    between weeks of all hours over their mean) reach at least as far as the exact ones of such
    counts: they cover in more than 95 of 100 cases, and fewer such hours differ. 168 rows per
    family and group that has an event, sorted by group and hour:

    {columns}

    Raises `InputError`: As `survival`.

    Five weeks with two events at noon on each Monday.

    >>> noon = [604_800 * week + 4 * 86_400 + 43_200 + k for week in range(5) for k in range(2)]
    >>> lives = pl.DataFrame({"family": "spread", "t_open": noon, "duration_s": 30.0,
    ...     "entry_s": 0.0, "observed": [1] * 10, "kind": "closed", "known_until": [3_024_000] * 10,
    ...     "window_start": [0] * 10, "window_end": [3_024_000] * 10})
    >>> found = rates_by_hour(lives)
    >>> found.height, found.filter(weekday=1, hour=12)["events_per_h_mean"].item()
    (168, 2.0)
    """
    watched = Watched.of(lives, by, held)
    names, keys = watched.names, ["trajectory", "ts"]
    groups = watched.groups.rename({"_number": "trajectory"})
    hours = [
        pl.DataFrame({"ts": _whole(part, _HOUR_S) * _HOUR_S}).with_columns(family=pl.lit(family))
        for (family,), part in watched.inside().partition_by("family", as_dict=True).items()
    ]
    grid = pl.concat([pl.DataFrame(schema={"ts": pl.Int64, "family": pl.String}), *hours])
    opened = (
        watched.openings()
        .group_by(trajectory="_number", ts=pl.col("t_open") // _HOUR_S * _HOUR_S)
        .agg(pl.len().cast(pl.Float64).alias("events_per_h"))
    )
    some = pl.col("ts").is_not_null()  # a group whose log is never held has its rows as well
    counted = (
        groups.join(grid, on="family", how="left", maintain_order="left_right")
        .join(opened, on=keys, how="left", maintain_order="left")
        .select(
            "trajectory",
            pl.col("ts").fill_null(watched.window.start),
            pl.when(some).then(pl.col("events_per_h").fill_null(0.0)).alias("events_per_h"),
        )
    )
    found = hour_of_week(counted, *watched.window, column="events_per_h", step_s=_HOUR_S)
    first, last = found.columns.index("weekday"), found.columns.index("window_start")
    return (
        groups.join(_wide_enough(found), on="trajectory", maintain_order="left_right")
        .select(
            *names, "n", "coverage", pl.lit("week").alias("cluster"), *found.columns[first:last]
        )
        .drop("hour_n")
        .with_columns(watched.question("events.rates_by_hour/3").columns)
    )


def _wide_enough(found: pl.DataFrame) -> pl.DataFrame:
    """Widen the bounds of hours with few events to those of a count that is nearly Poisson."""
    mean, weeks = pl.col("events_per_h_mean"), pl.col("weeks")
    counts = found.select((mean * weeks).fill_null(0.0).round()).to_series().to_numpy()
    squares = pl.col("events_per_h_std").pow(2).sum() / mean.filter(weeks > 1).sum()
    fano = squares.over("trajectory").fill_nan(1.0).fill_null(1.0).clip(1.0)
    factor = found.select(fano).to_series().to_numpy()
    ends = (end * factor for end in poisson_interval(counts / factor))
    least, most = (pl.lit(pl.Series(end)) / weeks for end in ends)
    of_all = mean - pl.col("events_per_h_deviation")
    bounds: dict[str, pl.Expr] = {}
    for name, low, high in (
        ("events_per_h_mean", least, most),
        ("events_per_h_deviation", least - of_all, most - of_all),
    ):
        lower, upper = pl.col(f"{name}_lower"), pl.col(f"{name}_upper")
        few = lower.is_not_null() & pl.lit(pl.Series(counts / factor < _FEW))
        bounds |= {
            f"{name}_lower": pl.when(few).then(pl.min_horizontal(lower, low)).otherwise(lower),
            f"{name}_upper": pl.when(few).then(pl.max_horizontal(upper, high)).otherwise(upper),
        }
    lower, upper = (pl.col(f"events_per_h_deviation_{end}") for end in ("lower", "upper"))
    return found.with_columns(**bounds).with_columns(((lower > 0) | (upper < 0)).alias("differs"))


_QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95, "q99": 0.99}


@analysis(
    "events.magnitudes",
    """
        size_median_pct size_q25_pct size_q75_pct size_q95_pct size_q99_pct size_largest_pct n
        coverage tail_10pct_index tail_10pct_lower tail_10pct_upper n_open n_opened_before
        tail_5pct_index size_mean_pct n_without""",
    title="How large events become,",
    about="""
        Sizes are the largest of events that opened in the window, so far for those not
        closed. With a tail index of 3, sizes twice as large are 8 times as rare. It uses
        the largest 10 %, at least 50 events.""",
    example="splash --by symbol",
    by=BY_ALL,
)
def magnitudes(
    lives: pl.DataFrame, by: Sequence[str] = (), *, held: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Compute how large events become, by family and group, and how fast large ones become rare.

    ``lives`` are rows of `event_lifecycles` of one window, ``held`` is as in `survival`. The size
    is the ``peak`` without its sign, so far for open events. It is known only after the close:
    conditioning on it looks ahead. Events that opened before the window are left out, as long and
    large ones would be too many. The tail index is that of `toolkit.statistics.spread.tail_index`,
    and needs 50 events in the tail. One row per family and group, sorted:

    {columns}

    ``window_start``, ``window_end``, ``method`` and ``params_hash`` are last.

    Raises `InputError`: Lifecycles are of several windows.

    Source: Hill, B. M. (1975), Annals of Statistics 3.

    >>> lives = pl.DataFrame({"family": "spread", "t_open": [0, 600, 1200, 1800],
    ...     "duration_s": 30.0, "entry_s": 0.0, "observed": [1] * 4, "kind": "closed",
    ...     "known_until": [3600] * 4, "window_start": [0] * 4, "window_end": [3600] * 4,
    ...     "peak": [0.6, 0.5, 1.1, None]})
    >>> row = magnitudes(lives).row(0, named=True)
    >>> row["n"], row["n_without"], row["size_median_pct"], row["tail_10pct_reason"]
    (3, 1, 0.6, 'too_few')
    """
    checked_types(lives, {"peak": "Float64"}, parameter="lives")
    watched, size = Watched.of(lives, by, held), pl.col("value")
    groups = watched.groups.rename({"_number": "number"})
    inside = pl.col("t_open").is_between(*watched.window, closed="left").fill_null(value=False)
    sizes = collected(lives.lazy().select(observed("peak").abs().alias("value")))
    rows = watched.lives.rename({"_number": "number"}).with_columns(sizes["value"], inside=inside)
    sized = rows.filter(pl.col("inside"), size.is_not_null())
    counts = rows.group_by("number").agg(
        (pl.col("inside") & size.is_not_null()).sum().cast(pl.Int64).alias("n"),
        (pl.col("inside") & size.is_null()).sum().cast(pl.Int64).alias("n_without"),
        (~pl.col("inside")).sum().cast(pl.Int64).alias("n_opened_before"),
    )
    figures = sized.group_by("number").agg(
        (pl.col("kind") != "closed").sum().cast(pl.Int64).alias("n_open"),
        size.mean().alias("size_mean_pct"),
        *(size.quantile(at, "linear").alias(f"size_{q}_pct") for q, at in _QUANTILES.items()),
        size.max().alias("size_largest_pct"),
    )
    tails = fitted_tails(sized.select("number", ts="t_open", value="value"))
    found = groups.join(watched.held_s(), on="family", how="left", maintain_order="left")
    for part in (counts, figures, tails):
        found = found.join(part, on="number", how="left", maintain_order="left")
    return found.select(
        *(*watched.names, "n", "n_without", "n_opened_before"),
        pl.col("n_open").fill_null(0),
        *("coverage", "size_mean_pct", *(f"size_{name}_pct" for name in _QUANTILES)),
        "size_largest_pct",
        first_reason({Reason.EMPTY: pl.col("n") == 0}).alias("size_reason"),
        *tail_columns("size_pct"),
        *watched.question("events.magnitudes/3").columns,
    )
