"""Spreads whose half-lives, means and tails are known, and the intervals of these."""

from __future__ import annotations

import math
from functools import cache, partial

import numpy as np
import polars as pl
from scipy.signal import lfilter
from scipy.special import ndtr

from toolkit.statistics.fees import Fee, FeeModel
from toolkit.statistics.numeric.long_run import WAVES
from toolkit.statistics.numeric.tails import two_sided_95
from toolkit.statistics.spread import (
    cross_correlation,
    half_life,
    hour_of_week,
    lead_lag,
    net_summary,
    tail_index,
    time_to_close,
)
from toolkit.statistics.survival import life_quantiles

from .form import FEWER_RUNS, Ends, Process, Rng, ends_of, fewer, frame_of

COST = FeeModel(
    "none", tuple(Fee(name, None, 0, taker_bps=0.0, slippage_bps=0.0) for name in ("X", "Y"))
)
MONDAY, WEEK = 4 * 86_400, 604_800
MINUTES = WEEK // 60
HALF_LIFE = "spread.half_life half_life_lower_s"
OF_WEEK = "spread.hour_of_week spread_{}_lower_log_bps"
CASES = {
    "plain": "normal shocks",
    "bursts": "bursts",
    "gaps": "bursts, 20 % of the rows absent",
    "noise": "bursts, 1 % of the variance noise",
    "mixed": "bursts, 84 h of hourly rows before the minutes",
}
WEEK_CASES = {
    "season": "a daily season of one deviation",
    "shift": "a shift of level by 3 deviations",
    "moving_average": "noise of 20 % with an MA(1) of 0.5",
    "ticks": "rounded to one deviation",
    "two_speeds": "and as much of phi 0.998",
    "spikes": "and 14 spikes of 45 deviations gone in minutes, kurtosis 500",
}
CLOSING = 0.98
ENTER, LEAVE = (part / math.sqrt(1 - CLOSING**2) for part in (2, 0.5))


def reverting(phi: float, shocks: np.ndarray, rng: Rng) -> np.ndarray:
    """Return x_t = phi x_(t-1) + shock, one path a row, stationary below 1 and from 0 at 1."""
    deviation = shocks.std() / math.sqrt(1 - phi**2) if phi < 1 else 0.0
    before = phi * deviation * rng.standard_normal((len(shocks), 1))
    return lfilter([1.0], [1.0, -phi], shocks, axis=1, zi=before)[0]


def loudness(rng: Rng, shape: tuple[int, int], calm: int) -> np.ndarray:
    """Draw the size of shocks: its log goes back half of its way to the mean in ``calm`` steps."""
    phi = 0.5 ** (1 / calm)
    log = reverting(phi, 0.5 * math.sqrt(1 - phi**2) * rng.standard_normal(shape), rng)
    return np.exp(log - 0.25)


def bursts(rng: Rng, shape: tuple[int, int], calm: int) -> np.ndarray:
    """Draw shocks of variance 1, of Student's t of 5, that are louder at some times."""
    return loudness(rng, shape, calm) * rng.standard_t(5, shape) * math.sqrt(0.6)


def long_memory(order: float, rng: Rng, shape: tuple[int, int]) -> np.ndarray:
    """Draw a fractional difference of an order below 0.5, of variance 1 (Davies and Harte 1987)."""
    lags = np.arange(1, shape[1])
    correlation = np.concatenate([[1.0], np.cumprod((lags - 1 + order) / (lags - order))])
    powers = np.fft.rfft(np.concatenate([correlation, correlation[-2:0:-1]])).real
    size = 2 * (shape[1] - 1)
    draws = rng.standard_normal((2, shape[0], powers.size))
    draws[:, :, [0, -1]] *= math.sqrt(2)
    waves = (draws[0] + 1j * draws[1]) * np.sqrt(powers.clip(0) * size / 2)
    return np.fft.irfft(waves, size, axis=1)[:, : shape[1]]


def half_lives(case: str, phi: float, rng: Rng, runs: int) -> dict[str, Ends]:
    """A week of minutes."""
    length = MINUTES + 5040 if case == "mixed" else MINUTES
    shape, minute, kept = (runs, length), np.arange(length), None
    shocks = rng.standard_normal(shape) if case == "plain" else bursts(rng, shape, 240)
    paths = reverting(phi, shocks, rng)
    if case == "noise":  # of the process, or of the path where it has none
        variance = paths.var(axis=1, keepdims=True) if phi == 1 else 1 / (1 - phi**2)
        paths = paths + np.sqrt(0.01 * variance) * rng.standard_normal(shape)
    elif case == "gaps":
        kept = rng.random(shape) >= 0.2
    elif case == "mixed":
        kept = (minute >= 5040) | (minute % 60 == 0)
    found = half_life(frame_of(60 * minute, kept, spread_log_bps=paths), 0, 60 * length)
    true_s = math.inf if phi == 1 else -60 * math.log(2) / math.log(phi)
    ends = ends_of(found, HALF_LIFE, true_s)
    if phi == 1:
        upper = ends[HALF_LIFE]._replace(lower=np.zeros(runs))
        ends["spread.half_life half_life_upper_s"] = upper
    return ends


def unfit(case: str, phi: float, rng: Rng, runs: int) -> dict[str, Ends]:
    """A week of minutes in which no one speed beneath noise is true: the deviation is 1."""
    shape, minute = (runs, MINUTES), np.arange(MINUTES)
    paths = reverting(phi, bursts(rng, shape, 240), rng) * math.sqrt(1 - phi**2)
    if case == "season":
        paths += math.sqrt(2) * np.sin(2 * np.pi * (minute / 1440 + rng.random((runs, 1))))
    elif case == "shift":
        paths += 3 * (minute >= MINUTES * rng.uniform(0.25, 0.75, (runs, 1)))
    elif case == "moving_average":
        noise = lfilter([1, 0.5], [math.sqrt(1.25)], rng.standard_normal(shape), axis=1)
        paths += 0.5 * noise
    elif case == "ticks":
        paths = np.round(paths + rng.random((runs, 1)))
    elif case == "two_speeds":
        paths += reverting(0.998, bursts(rng, shape, 240), rng) * math.sqrt(1 - 0.998**2)
    elif case == "spikes":
        sizes = 45 * rng.exponential(1, shape) * rng.choice([-1, 1], shape)
        paths += lfilter([1], [1, -0.8], sizes * (rng.random(shape) < 14 / MINUTES), axis=1)
    return _without_truth(paths)


def fractional(order: float, rng: Rng, runs: int) -> dict[str, Ends]:
    """A week of minutes of a fractional difference."""
    return _without_truth(long_memory(order, rng, (runs, MINUTES)))


def _without_truth(paths: np.ndarray) -> dict[str, Ends]:
    found = half_life(frame_of(60 * np.arange(MINUTES), spread_log_bps=paths), 0, WEEK)
    return ends_of(found, HALF_LIFE, math.nan)


def edges(phi: float, rng: Rng, runs: int) -> dict[str, Ends]:
    """A week of minutes whose mean edge is 0: p-values below p as often as p."""
    paths = reverting(phi, bursts(rng, (runs, MINUTES), 240), rng) * math.sqrt(1 - phi**2)
    frame = frame_of(60 * np.arange(MINUTES), spread_bps=paths + 1000.0).with_columns(
        pl.format("A{}_B:X.spot:Y.spot", "trajectory").alias("trajectory")
    )
    found = net_summary(frame, 0, WEEK, fees=COST, style="taker")
    mean, reach = (found[f"edge_{name}_bps"].to_numpy() for name in ("mean", "error"))
    reach = two_sided_95(WAVES) * reach
    return {"spread.net_summary edge_error_bps": Ends(mean - reach, mean + reach, 1000.0)}


def weekly(half_life_h: int, rng: Rng, runs: int) -> dict[str, Ends]:
    """Eight weeks of 10 minutes, of which every tenth row is absent."""
    shape = runs, 8 * 1008
    noise = reverting(0.5 ** (1 / (6 * half_life_h)), bursts(rng, shape, 60), rng)
    season = 5 * np.sin(np.arange(168) / 24 * 2 * np.pi) + 3 * (np.arange(168) >= 120)
    values = noise + np.tile(np.repeat(season, 6), 8)
    ts, kept = MONDAY + 600 * np.arange(shape[1]), rng.random(shape) >= 0.1
    found = hour_of_week(frame_of(ts, kept, spread_log_bps=values), MONDAY, MONDAY + 8 * WEEK)
    return ends_of(found, OF_WEEK.format("mean"), season, runs) | ends_of(
        found, OF_WEEK.format("deviation"), season - season.mean(), runs
    )


def in_hours(hours: np.ndarray, truth: float, *names: str) -> dict[str, Ends]:
    """Whole weeks of hourly rows without a season: the mean of each hour, its deviation."""
    runs, weeks = hours.shape[0], hours.shape[1] // 168
    frame = frame_of(MONDAY + 3600 * np.arange(hours.shape[1]), spread_log_bps=hours)
    found = hour_of_week(frame, MONDAY, MONDAY + weeks * WEEK)
    ends = {}
    for name in names:
        ends |= ends_of(found, OF_WEEK.format(name), truth if name == "mean" else 0.0, runs)
    return ends


def weekly_skewed(half_life_h: int, rng: Rng, runs: int) -> dict[str, Ends]:
    """Eight weeks of hours whose logs are an AR(1)."""
    phi = 0.5 ** (1 / half_life_h)
    logs = reverting(phi, math.sqrt(1 - phi**2) * rng.standard_normal((runs, 8 * 168)), rng)
    return in_hours(np.exp(logs), math.exp(0.5), "mean", "deviation")


def weekly_steady(half_life_h: int, weeks: int, rng: Rng, runs: int) -> dict[str, Ends]:
    phi = 0.5 ** (1 / half_life_h)
    paths = reverting(phi, bursts(rng, (runs, weeks * 168), 10), rng)
    return in_hours(paths, 0.0, "mean", "deviation")


def weekly_long(order: float, name: str, rng: Rng, runs: int) -> dict[str, Ends]:
    return in_hours(long_memory(order, rng, (runs, 8 * 168)), 0.0, name)


def lives(count: int, rng: Rng, runs: int) -> dict[str, Ends]:
    """Lognormal lives with a median of 600 s, each watched for at most 4,000 s."""
    durations = 600 * np.exp(rng.standard_normal((runs, count)))
    watched = rng.uniform(0, 4000, durations.shape)
    frame = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), count),
            "duration_s": np.minimum(durations, watched).ravel(),
            "observed": (durations <= watched).ravel().astype(np.int64),
        }
    )
    return ends_of(life_quantiles(frame, ["run"]), "survival.life_quantiles life_lower_s", 600.0)


@cache
def median_close_s() -> int:
    """Measure, minute by minute over 2,000 paths, when half of the entries have closed."""
    rng, count, minutes = np.random.default_rng(7), 2000, 20_000
    level, since = np.zeros(count), np.full(count, -1)
    taken = np.zeros(minutes, dtype=np.int64)
    for minute in range(minutes):
        level = CLOSING * level + rng.standard_normal(count)
        closes = (since >= 0) & (np.abs(level) <= LEAVE)
        np.add.at(taken, minute - since[closes], 1)
        since[closes] = -1
        since[(since < 0) & (np.abs(level) >= ENTER)] = minute
    return 60 * int(np.searchsorted(np.cumsum(taken), taken.sum() / 2))


def closes(rng: Rng, runs: int) -> dict[str, Ends]:
    """A week of minutes, of which one in 500 is absent."""
    paths = reverting(CLOSING, rng.standard_normal((runs, MINUTES)), rng)
    frame = frame_of(
        60 * np.arange(MINUTES), rng.random(paths.shape) >= 0.002, spread_log_bps=paths
    )
    found = time_to_close(frame, 0, WEEK, enter_bps=ENTER, exit_bps=LEAVE)
    return ends_of(found, "spread.time_to_close close_lower_s", median_close_s())


def tails(half_life_h: int, rng: Rng, runs: int) -> dict[str, Ends]:
    """Sizes of index 3 over 60 days of 15 minutes. Hill's error is for those without memory."""
    shape = runs, 60 * 96
    ranks = rng.standard_normal(shape)
    if half_life_h:
        phi = 0.5 ** (1 / (4 * half_life_h))
        ranks = reverting(phi, ranks * math.sqrt(1 - phi**2), rng)
    return ends_of_tails(ndtr(ranks) ** (-1 / 3), 3.0, errors=not half_life_h)


def ends_of_tails(sizes: np.ndarray, index: float, *, errors: bool = False) -> dict[str, Ends]:
    """Return the intervals of the index at each depth, of days of 15 minutes, one run a row."""
    ts = 900 * np.arange(sizes.shape[1])
    found = tail_index(frame_of(ts, spread_log_bps=sizes), 0, 900 * sizes.shape[1])
    ends = {}
    for name in (f"tail_{percent}pct" for percent in (1, 2, 5, 10)):
        ends |= ends_of(found, f"spread.tail_index {name}_lower", index)
        if errors:
            middle, reach = (found[f"{name}_{part}"].to_numpy() for part in ("index", "error"))
            reach = 1.96 * reach
            ends[f"spread.tail_index {name}_error"] = Ends(middle - reach, middle + reach, index)
    return ends


def unrelated(calm: int | None, rng: Rng, runs: int) -> dict[str, Ends]:
    """1,500 minutes of two walks: correlations, and the largest of them with either sign."""
    shape = runs, 1500
    common = loudness(rng, shape, calm) if calm else np.ones(shape)
    shocks = [
        common * (bursts(rng, shape, 30) if calm else rng.standard_normal(shape)) for _ in range(2)
    ]
    buy, sell = (np.exp(np.cumsum(1e-4 * each, axis=1)) for each in shocks)
    return bands_of(frame_of(60 * np.arange(shape[1]), buy_price=buy, sell_price=sell))


def bands_of(frame: pl.DataFrame) -> dict[str, Ends]:
    """Return the null bands of two legs without any relation."""
    lags = cross_correlation(frame)
    one, band = (lags[name].to_numpy() for name in ("correlation", "null_band"))
    # a sell leg turned over has the largest of the other sign as its peak
    signs = [lead_lag(frame), lead_lag(frame.with_columns(sell_price=1 / pl.col("sell_price")))]
    peaks, bands = (
        np.stack([each[name].to_numpy() for each in signs])
        for name in ("peak_correlation", "null_band")
    )
    furthest = (peaks / bands).argmax(axis=0), np.arange(peaks.shape[1])
    peak, reach = peaks[furthest], bands[furthest]
    return {
        "spread.cross_correlation null_band": Ends(one - band, one + band, 0.0),
        "spread.lead_lag null_band": Ends(peak - reach, peak + reach, 0.0),
    }


def unfit_process(case: str, phi: float) -> Process:
    words = f"AR(1), phi {phi:g}, {WEEK_CASES[case]}"
    return fewer(words, partial(unfit, case, phi), fails=True)


def half_life_process(case: str, phi: float) -> Process:
    outside = {"spread.half_life half_life_upper_s": (0.96, 0.99)}  # one end alone has 97.5 %
    words = f"AR(1), phi {phi:g}, {CASES[case]}"
    # one in 40 is rejected by chance, and some of bursts have a few that make up most of them
    return Process(words, partial(half_lives, case, phi), outside, FEWER_RUNS, given=0.9)


PROCESSES = [
    *(half_life_process(case, phi) for case in CASES for phi in (0.9, 0.97, 0.99, 0.999, 1.0)),
    *(unfit_process(case, 0.97) for case in ("season", "shift", "moving_average", "spikes")),
    unfit_process("two_speeds", 0.9),
    *(unfit_process(case, 0.99) for case in ("season", "moving_average", "ticks")),
    *(
        fewer(f"fractional noise of order {d:g}", partial(fractional, d), fails=True)
        for d in (0.3, 0.49)
    ),
    *(
        fewer(f"a mean beneath bursts, phi {phi:g}", partial(edges, phi), given=0.9)
        for phi in (0.0, 0.97, 0.99)
    ),
    Process("8 weeks with a season and bursts, half-life 5 h", partial(weekly, 5)),
    Process("8 weeks with a season and bursts, half-life 24 h", partial(weekly, 24), given=0.9),
    fewer(
        "26 weeks of hours with bursts, half-life 72 h", partial(weekly_steady, 72, 26), given=0.9
    ),
    Process("8 weeks of lognormal hours, half-life 12 h", partial(weekly_skewed, 12), given=0.9),
    Process("8 weeks with long memory of order 0.3", partial(weekly_long, 0.3, "mean"), fails=True),
    Process(
        "8 weeks with long memory of order 0.45", partial(weekly_long, 0.45, "mean"), fails=True
    ),
    Process(
        "8 weeks with long memory of order 0.45, each less its mean",
        partial(weekly_long, 0.45, "deviation"),
    ),
    Process("25 lognormal lives, some cut off", partial(lives, 25)),
    Process("100 lognormal lives, some cut off", partial(lives, 100)),
    Process("AR(1), phi 0.98, from 2 deviations to 0.5", closes),
    # else not_pareto by chance, or days_depend
    fewer("Pareto sizes without memory", partial(tails, 0), given=0.9),
    fewer("Pareto sizes, half-life 1 h", partial(tails, 1), given=0.9),
    fewer("Pareto sizes, half-life 4 h", partial(tails, 4), given=0.9),
    Process("two walks, normal shocks", partial(unrelated, None)),
    Process("two walks, bursts of each and of both", partial(unrelated, 120)),
]
