"""Stationarity of a spread: unit root, variance ratios and autocorrelation.

Runs are observations exactly one step apart. A gap ends a run, so that no difference spans one.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.market import Step, When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, Question, first_reason, whole_number
from toolkit.statistics.core.kernel import Statistic, measure
from toolkit.statistics.core.windows import window_of
from toolkit.statistics.numeric.arrays import Floats, Integers
from toolkit.statistics.numeric.lags import MIN_PAIRS, Observations, parts
from toolkit.statistics.numeric.unit_root import CRITICAL, run_edges, unit_root_test, why_no_test

ACF_STEPS = (1, 10, 60, 1440)
"""The lags of the autocorrelation, in steps."""
VARIANCE_RATIO_STEPS = (2, 10, 60, 240, 1440)
"""The horizons of the variance ratios, in steps."""

_LEAST_HORIZONS = 5
_FEW_STEPS = 10
_NO_PRODUCT = 1e-13


@analysis(
    "spread.stationarity",
    """
        rejects_unit_root_5pct adf_t adf_critical_5pct adf_lags variance_ratio_10 variance_ratio_60
        variance_ratio_60_z variance_ratio_1440 acf_1 acf_60 acf_1440""",
    title="Whether spreads return to a level,",
    order="adf_t",
    about="""
        The test of Dickey and Fuller rejects a unit root (no return) if t is below its
        critical value. A variance ratio is below 1 if the spread returns, 1 for a random
        walk. No difference spans a gap.""",
    example="--where rejects_unit_root_5pct",
    adf_lags=Parameter("Lags of the unit root test. Default: by the number of rows."),
)
def stationarity(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    adf_lags: int | None = None,
    column: str = "spread_log_bps",
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Test whether a spread has a unit root, and measure how its variance grows with the horizon.

    The test of Dickey and Fuller with an intercept uses the longest run without a gap, the first of
    equal ones: dx(t) = a + b x(t - 1) + c1 dx(t - 1) + ... + cp dx(t - p). A unit root (no return
    to a level) is rejected if the t-statistic of b is below MacKinnon's critical value. The number
    p of lags is ``adf_lags``, or floor(12 (n / 100)^(1/4)) for the n observations of the run, of
    which at least 10 (p + 2) are needed.

    The variance ratio of Lo and MacKinlay is the variance of changes over q steps by q times that
    of one step: 1 for a random walk, below 1 if the spread returns, above 1 if it trends. Changes
    overlap, the bias is corrected, and z allows for changing volatility. Runs of at least q steps
    need 5 q steps together and at least 100.

    The autocorrelation at a lag is that of at least 100 pairs exactly so many steps apart.

    One row per trajectory, with the columns of `coverage` before these. The q are 2, 10, 60, 240
    and 1,440 steps, the lags 1, 10, 60 and 1,440 steps:

    {columns}

    Raises `InputError`: As `coverage`. ``adf_lags`` is not a whole number from 0.

    Source: MacKinnon, J. G. (1994), Journal of Business and Economic Statistics 12. MacKinnon, J.
    G. (2010), Queen's Economics Department Working Paper 1227. Lo, A. W. and MacKinlay, A. C.
    (1988), Review of Financial Studies 1.

    >>> import random
    >>> draw, level, values = random.Random(1), 0.0, []
    >>> for _ in range(2_000):
    ...     level = 0.9 * level + draw.gauss(0, 1)
    ...     values.append(level)
    >>> ts = [60 * minute for minute in range(2_000)]
    >>> frame = pl.DataFrame({"trajectory": ["a"] * 2_000, "ts": ts, "spread_log_bps": values})
    >>> row = stationarity(frame, 0, 120_000).row(0, named=True)
    >>> row["rejects_unit_root_5pct"], row["adf_lags"], round(row["variance_ratio_60"], 2)
    (True, 25, 0.17)
    """
    lags = None if adf_lags is None else whole_number("adf_lags", adf_lags, 0)
    window, asked = window_of(frame, start, end), (("adf_lags", lags),)
    question = Question("spread.stationarity/2", *window, column, step_s, max_stale_s, asked)
    ratios = Statistic(
        lambda _column: [],
        lambda _column: [
            *(each for steps in VARIANCE_RATIO_STEPS for each in _ratio(steps)),
            *(each for steps in ACF_STEPS for each in _acf(steps)),
        ],
        lambda rows: pl.concat(map(_fitted, parts(rows))),
    )
    return measure(frame, question, unit_root_test(_unit_root, lags), ratios)


def _unit_root(_column: str) -> list[pl.Expr]:
    t, reason = pl.col("adf_t"), why_no_test()
    tested = reason.is_null()
    shown = {"adf_t": "adf_t", "adf_p_value": "adf_chance"}
    shown |= {name: name for name in (f"adf_critical_{level}" for level in CRITICAL)}
    return [
        pl.col("adf_n").fill_null(0),
        pl.col("adf_lags"),
        *(pl.when(tested).then(column).alias(name) for name, column in shown.items()),
        pl.when(tested).then(t < pl.col("adf_critical_5pct")).alias("rejects_unit_root_5pct"),
        reason.alias("adf_reason"),
    ]


def _fitted(rows: pl.DataFrame) -> pl.DataFrame:
    """Compute the figures of each trajectory of a chunk, NaN where there is none."""
    held = Observations.of(rows)
    found: dict[str, list[float]] = {name: [] for name in _SCHEMA}
    for step_s, first, last in zip(held.step_s, held.begins, held.begins[1:], strict=False):
        values, edges = held.value[first:last], run_edges(held.since_s[first:last] / step_s)
        for steps in VARIANCE_RATIO_STEPS:
            ratio, z = _variance_ratio(values, edges, steps)
            found[f"variance_ratio_{steps}"].append(ratio)
            found[f"variance_ratio_{steps}_z"].append(z)
    for steps in ACF_STEPS:
        pairs = held.pairs(held.later(steps))
        flat = pairs.constant | ~(pairs.earlier_squares > 0) | ~(pairs.later_squares > 0)
        found[f"acf_{steps}_pairs"] = pairs.pairs.tolist()
        found[f"acf_{steps}"] = np.where(flat, math.nan, pairs.correlation).tolist()
    return pl.DataFrame({"number": held.numbers, **found}, schema_overrides=_SCHEMA)


_RATIOS = [f"variance_ratio_{steps}{z}" for steps in VARIANCE_RATIO_STEPS for z in ("", "_z")]
_SCHEMA = (
    dict.fromkeys(_RATIOS, pl.Float64)
    | {f"acf_{steps}_pairs": pl.Int64 for steps in ACF_STEPS}
    | {f"acf_{steps}": pl.Float64 for steps in ACF_STEPS}
)


def _variance_ratio(values: Floats, edges: Integers, steps: int) -> tuple[float, float]:
    """Compute the ratio and its z over all runs of at least so many steps, which begin at edges.

    Infinite if there are too few, NaN if nothing varies. The error of one run is that of Lo and
    MacKinlay. Several runs have fewer overlapping changes: their error is larger by the root of
    `_unevenness`.
    """
    every = np.diff(edges) - 1
    counts = every[every >= steps]
    total = int(counts.sum())
    if total < max(_LEAST_HORIZONS * steps, MIN_PAIRS):
        return math.inf, math.inf
    # changes between the last value of a run and the first of the next are of no run
    within = np.ones(len(values) - 1, dtype=bool)
    within[edges[1:-1] - 1] = False
    change = np.diff(values)[within][np.repeat(every >= steps, every)]
    change = change - change.mean()
    squares = float(change @ change)
    if squares <= total * (float(np.abs(values).max()) * 1e-13) ** 2:
        return math.nan, math.nan
    run = np.repeat(np.arange(len(counts)), counts)
    sums = np.concatenate([[0.0], np.cumsum(change)])
    whole = run[steps - 1 :] == run[: total - steps + 1]
    windows = int(whole.sum())
    far = float(np.square((sums[steps:] - sums[:-steps])[whole]).sum())
    ratio = far / (steps * windows * (1 - steps / total)) / (squares / (total - 1))
    weights = 4 * (1 - np.arange(1, steps) / steps) ** 2
    products = np.maximum(_products(np.square(change), run, steps), 0)
    if (together := float(weights @ products)) <= _NO_PRODUCT * squares**2:
        return math.nan, math.nan  # changes so rare that no two are within the steps
    theta = total * together / squares**2
    uneven = _unevenness(counts, steps) / _unevenness(np.array([total]), steps)
    error = math.sqrt(theta / total * uneven)
    return ratio, (ratio - 1) / error


def _unevenness(counts: Integers, steps: int) -> float:
    """Divide the variance of the sum over windows by that implied by weights by lag alone.

    Both are for independent steps of one size. Near the ends of a run a pair of steps is in fewer
    windows than its lag allows.
    """
    lag = np.arange(1, steps)
    by_lag = (counts.sum() - len(counts) * lag) @ np.square(steps - lag)
    windows = (counts - steps + 1).sum()
    return float(_pairs_in_windows(counts, steps) / windows**2 / (by_lag / counts.sum() ** 2))


def _products(values: Floats, run: Integers, steps: int) -> Floats:
    spaced = np.arange(len(values)) + run * (steps - 1)  # no product reaches the next run
    size = 1 << int(spaced[-1] + steps).bit_length()
    line = np.zeros(size)
    line[spaced] = values
    if steps <= _FEW_STEPS:
        used = line[: spaced[-1] + 1]
        return np.array([(used[:-lag] * used[lag:]).sum() for lag in range(1, steps)])
    found = np.fft.irfft(np.abs(np.fft.rfft(line)) ** 2, size)
    return np.asarray(found[1:steps])


def _pairs_in_windows(counts: Integers, steps: int) -> float:
    """Sum over pairs of changes the squared number of windows of ``steps`` that contain both."""
    offset = np.arange(steps)
    shared = (steps - offset) * (steps - offset - 1) / 2
    number = np.append(0.0, np.cumsum(shared))
    moment = np.append(0.0, np.cumsum(offset * shared))
    windows = counts - steps + 1
    at = np.minimum(windows, steps)
    both_sides = 2 * (windows * number[at] - moment[at]) - windows * shared[0]
    return float(both_sides.sum())


def _why(figure: pl.Expr, too_few: pl.Expr | None = None) -> pl.Expr:
    few = figure.is_infinite() if too_few is None else too_few
    return first_reason(
        {
            Reason.EMPTY: pl.col("n") == 0,
            Reason.TOO_FEW: few | figure.is_null(),
            Reason.DEGENERATE: figure.is_nan(),
        }
    )


def _ratio(steps: int) -> list[pl.Expr]:
    name = f"variance_ratio_{steps}"
    reason = _why(pl.col(name))
    return [
        *(pl.when(reason.is_null()).then(each).alias(each) for each in (name, f"{name}_z")),
        reason.alias(f"{name}_reason"),
    ]


def _acf(steps: int) -> list[pl.Expr]:
    name = f"acf_{steps}"
    pairs = pl.col(f"{name}_pairs").fill_null(0)
    reason = _why(pl.col(name), pairs < MIN_PAIRS)
    return [
        pairs.alias(f"{name}_pairs"),
        pl.when(reason.is_null()).then(name).alias(name),
        reason.alias(f"{name}_reason"),
    ]
