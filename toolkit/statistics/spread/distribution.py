"""Level, dispersion, tails and half-life of a spread, and its scores against its recent mean."""

from __future__ import annotations

import math
from dataclasses import replace

import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.columns import described
from toolkit.market import Step, When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_column,
    checked_columns,
    collected,
    first_reason,
    real_number,
    whole_number,
)
from toolkit.statistics.core.definition import holding
from toolkit.statistics.core.kernel import (
    MOMENTS,
    QUANTILES,
    ROBUST,
    asked_columns,
    measure,
)
from toolkit.statistics.core.observations import checked_keys, observed, observed_chunks
from toolkit.statistics.core.windows import window_of
from toolkit.statistics.quality.plausibility import plausibility
from toolkit.statistics.spread.half_life import HALF_LIFE


@analysis(
    "spread.half_life",
    ("half_life_s", "half_life_lower_s", "half_life_upper_s", "noise_share", "acf_half_lag_s"),
    title="Half-life of spreads,",
    order="half_life_s",
    about="""
        If noise, spikes or several speeds reject the model, the half-life is missing, with
        the reason. --format explain has the formula.""",
)
def half_life(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    column: str = "spread_log_bps",
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Estimate the time in which a deviation from the mean halves, from the autocorrelation.

    The model is an AR(1) with independent noise on each observation. Noise adds to the variance but
    not to the covariances, so phi, the part left after a step, follows from how these decay: phi^k
    = g(1 + k) / g(1), with k = 9 if at least half is left after that, else k = 1. Half-life = -ln 2
    step / ln phi. The bounds are the half-lives that a test at 5 % does not reject, and the
    estimate is the one at which the test's statistic is at its median (see
    `toolkit.statistics.spread.half_life`), as often too long as too short. Near phi = 1, without
    reversion, 97.5 % of intervals have no upper bound. The interval is wider with few rows, or with
    noise of more than 5 % of the variance at a half-life near the length of the window.
    docs/calibration.md has how often it covers.

    The interval is null if the model is rejected. ``several_speeds``: a test at 2.5 % of lags up to
    1,440 steps and more rejects one speed with noise. ``spikes_dominate``: more than half of the
    variance is of spikes, values beyond 6 MAD of the median. If the model is rejected, the estimate
    is that of the nearest model, and two figures need no model: the lag at which the
    autocorrelation halves, and the half-life without the spikes. If the data do not bound the
    half-life, though the test of `stationarity` finds that the spread returns, the reason of the
    bound is ``tests_disagree``.

    Beside it is the AR(1) by least squares with an intercept, which any noise shortens: noise of 5
    % of the variance turns 69 minutes into 12. Gaps do not change either.

    {columns}

    Source: Stock, J. H. (1991), Journal of Monetary Economics 28. Hall, A. (1989), Biometrika 76.

    A week of minutes whose deviations halve in 23 minutes, read with some noise.

    >>> import random
    >>> draw, level, values = random.Random(1), 0.0, []
    >>> for _ in range(10_080):
    ...     level = 0.97 * level + draw.gauss(0, 1)
    ...     values.append(level + draw.gauss(0, 1))
    >>> frame = pl.DataFrame({"trajectory": ["a"] * 10_080,
    ...     "ts": [60 * minute for minute in range(10_080)], "spread_log_bps": values})
    >>> row = half_life(frame, 0, 604_800).row(0, named=True)
    >>> names = ("lower_s", "s", "upper_s", "ar1_s")
    >>> [round(row[f"half_life_{name}"] / 60, 1) for name in names], row["half_lives_differ"]
    ([21.8, 26.3, 31.7, 9.1], True)
    """
    window = window_of(frame, start, end)
    question = Question("spread.half_life/5", *window, column, step_s, max_stale_s)
    return measure(frame, question, HALF_LIFE)


@analysis(
    "spread.summary",
    """
        spread_std_log_bps spread_mean_log_bps half_life_s coverage n longest_gap_s
        spread_median_log_bps spread_q05_log_bps spread_q95_log_bps noise_share half_life_lower_s
        half_life_upper_s acf_half_lag_s half_life_without_spikes_s spread_basis""",
    figures="""
        n spread_basis coverage observed_share step_s n_segments longest_gap_s implausible
        spread_mean_log_bps spread_time_weighted_mean_log_bps spread_std_log_bps
        spread_median_log_bps spread_mad_log_bps spread_q01_log_bps spread_q05_log_bps
        spread_q95_log_bps spread_q99_log_bps spread_expected_shortfall_95_log_bps noise_share
        half_life_s half_life_lower_s half_life_upper_s fit_p_value acf_half_lag_s
        half_life_without_spikes_s spike_share half_life_acf_error ar1_phi half_life_ar1_s
        half_life_ar1_acf_error half_lives_differ""",
    order="-spread_std_log_bps",
    title="Spread 1e4 ln(sell / buy)",
    command="spread",
    net="spread.net_summary",
    about="""
        The spread is 1e4 ln(sell / buy) in bps. Positive: long the buy leg and short the
        sell leg earns it. Without keys it takes every spread in the store, the largest
        standard deviation first, and without a window all stored rows. One spread alone is
        shown with every figure. Spreads from snapshots have coverage by polls: an answer
        without a pair is not a gap. Keys that begin with pair/ join any two prices, as
        `rail.pair` does.

        With a fee table net figures follow: what a round trip leaves of the spread, on
        either side of zero, and for how much of the time. `rail fees --example` prints a
        table to edit.""",
    example='--where "half_life_s < 3600" --top 20',
    report=1,
)
def summary(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    column: str = "spread_log_bps",
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Compute the level, dispersion, tails and half-life of a spread in one pass.

    The columns of `coverage` and `half_life` are described there. ``implausible`` is that of
    `toolkit.statistics.quality.plausibility`, and leaves nothing out. Quantiles are by linear
    interpolation (type 7).

    {columns}

    >>> frame = pl.DataFrame({"trajectory": ["BTC_USD:COINBASE.spot:KRAKEN.spot"] * 3,
    ...     "ts": [0, 60, 120], "buy_price": [100.0, 100.0, None],
    ...     "sell_price": [101.0, 99.0, 100.0]})
    >>> row = summary(frame, 0, 180).row(0, named=True)
    >>> row["n"], row["n_null"], row["half_life_s"], row["half_life_reason"]
    (2, 1, None, 'too_few')
    """
    window = window_of(frame, start, end)
    question = Question("spread.summary/5", *window, column, step_s, max_stale_s)
    odd = plausibility(column)
    return measure(frame, question, MOMENTS, ROBUST, QUANTILES, HALF_LIFE, odd)


@described("spread.rolling_z")
def rolling_z(
    frame: Frame,
    *,
    window_s: int = 86_400,
    step_s: int = 60,
    min_samples: int | None = None,
    column: str = "spread_log_bps",
) -> pl.DataFrame:
    """Add to every row, in the order given, its distance from the window before it.

    The window of a row at t is ``[t - window_s, t)`` of its trajectory, without the row itself, so
    the score could have been known at t, and later rows change nothing. ``min_samples`` is by
    default half of the observations of a window at one every ``step_s``. A LazyFrame is collected.

    {columns}

    Raises `InputError`: As `coverage`. ``window_s`` or ``step_s`` is not a whole number from 1, or
    ``min_samples`` none from 2.

    >>> frame = pl.DataFrame({"trajectory": ["a"] * 4, "ts": [0, 60, 120, 180],
    ...     "spread_log_bps": [1.0, 3.0, 4.0, None]})
    >>> scored = rolling_z(frame, window_s=120, min_samples=2)
    >>> scored.select("rolling_n", pl.col("rolling_z").round(3), "rolling_z_reason").rows()
    [(0, None, 'too_few'), (1, None, 'too_few'), (2, 1.414, None), (2, None, 'empty')]
    """
    window_s, least_n = _checked(window_s, step_s, min_samples)
    frame = holding(frame, column)
    checked_column(frame, column)
    checked_columns(frame, column)
    rows = collected(frame)
    checked_keys(rows)
    value = observed(column)
    scored = rows.select(value.alias("value"), *_of_windows(value, "trajectory", window_s))
    return pl.concat(
        [rows, scored.select(pl.col("n").alias("rolling_n"), *_scores(least_n))], how="horizontal"
    )


@analysis(
    "spread.rolling_z_summary",
    """
        rolling_z_last rolling_z_last_ts beyond_share n_beyond rolling_z_extreme
        rolling_z_extreme_ts n_scored n""",
    title="Spreads against their own recent mean,",
    order="-rolling_z_last",
    command="rolling-z",
    example="--window 12h --beyond 2.5",
    window_s=Parameter("The time over which a score takes mean and deviation.", "s"),
    min_samples=Parameter("The fewest observations for a score. Default: half of the window."),
    beyond=Parameter("The size from which a score is beyond."),
)
def rolling_z_summary(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    window_s: int = 86_400,
    step_s: Step = None,
    min_samples: int | None = None,
    beyond: float = 3.0,
    column: str = "spread_log_bps",
) -> pl.DataFrame:
    """Measure how far a spread is from its own recent mean, in standard deviations.

    The scores are those of `rolling_z`, for the observations in ``[start, end)``. Include the rows
    of the ``window_s`` before ``start``: they are history and not scored. A LazyFrame is read in
    chunks. A trajectory without an observation has a row with n = 0. ``step_s`` is as in
    `coverage`.

    {columns}

    Raises `InputError`: As `coverage`. ``window_s`` is not a whole number from 1, ``min_samples``
    none from 2, or ``beyond`` not a number above 0.

    >>> frame = pl.DataFrame({"trajectory": ["a"] * 4, "ts": [0, 60, 120, 180],
    ...     "spread_log_bps": [1.0, 3.0, 4.0, 3.5]})
    >>> found = rolling_z_summary(frame, 120, 240, window_s=120, min_samples=2, beyond=1)
    >>> found.select("n", "n_beyond", pl.col("rolling_z_extreme").round(3), "rolling_z_last").row(0)
    (2, 1, 1.414, 0.0)
    """
    window_s = whole_number("window_s", window_s, 1)
    if min_samples is not None:
        min_samples = whole_number("min_samples", min_samples, 2)
    limit = real_number("beyond", beyond, "a number above 0", above=0)
    asked = (("window_s", window_s), ("min_samples", min_samples), ("beyond", limit))
    window = window_of(frame, start, end)
    question = Question("spread.rolling_z_summary/2", *window, column, step_s, options=asked)
    half = (window_s / pl.col("step_s") / 2).ceil().clip(2).fill_null(2)
    least_n = half if min_samples is None else min_samples
    read = replace(question, start=question.start - window_s)

    def scored(rows: pl.LazyFrame) -> pl.LazyFrame:
        known = rows.with_columns(_of_windows(pl.col("value"), "number", window_s))
        return known.select("number", "ts", *_scores(least_n))

    return (
        pl.concat(
            part.join(_summed_up(scored(rows), question.start, limit), on="number", how="left")
            for part, rows in observed_chunks(frame, read)
        )
        .select(
            "trajectory",
            *(pl.col(name).fill_null(0) for name in ("n", "n_scored", "n_beyond")),
            (pl.col("n_beyond") / pl.col("n_scored")).fill_nan(None).alias("beyond_share"),
            pl.col("^rolling_z_(last|extreme).*$"),
            first_reason({Reason.EMPTY: pl.col("n").fill_null(0) == 0})
            .fill_null(pl.when(pl.col("n_scored") == 0).then("reason"))
            .alias("rolling_z_reason"),
            *asked_columns(question),
        )
        .sort("trajectory")
    )


def _summed_up(scores: pl.LazyFrame, start: int, limit: float) -> pl.DataFrame:
    z, ts = pl.col("rolling_z"), pl.col("ts")
    scored = z.is_not_null()
    return collected(
        scores.filter(ts >= start)
        .group_by("number", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("n"),
            scored.sum().cast(pl.Int64).alias("n_scored"),
            (z.abs() >= limit).sum().cast(pl.Int64).alias("n_beyond"),
            z.drop_nulls().last().alias("rolling_z_last"),
            ts.filter(scored).last().alias("rolling_z_last_ts"),
            z.get(z.abs().arg_max()).alias("rolling_z_extreme"),
            ts.get(z.abs().arg_max()).alias("rolling_z_extreme_ts"),
            pl.col("rolling_z_reason").last().alias("reason"),
        )
    )


def _checked(window_s: int, step_s: int, min_samples: int | None) -> tuple[int, int]:
    window_s, step_s = whole_number("window_s", window_s, 1), whole_number("step_s", step_s, 1)
    if min_samples is None:
        return window_s, max(2, math.ceil(window_s / step_s / 2))
    return window_s, whole_number("min_samples", min_samples, 2)


def _of_windows(value: pl.Expr, key: str, window_s: int) -> list[pl.Expr]:
    size = f"{window_s}i"
    figures = {
        "n": value.is_not_null()
        .cast(pl.Int64)
        .rolling_sum_by("ts", size, min_samples=0, closed="left"),
        "mean": value.rolling_mean_by("ts", size, closed="left"),
        "std": value.rolling_std_by("ts", size, min_samples=2, closed="left"),
    }
    return [figure.over(key).alias(name) for name, figure in figures.items()]


def _scores(least_n: int | pl.Expr) -> list[pl.Expr]:
    """Build the score and its reason, from value, n, mean and std."""
    reason = first_reason(
        {
            Reason.EMPTY: pl.col("value").is_null(),
            Reason.TOO_FEW: pl.col("n") < least_n,
            Reason.DEGENERATE: pl.col("std") == 0,
        }
    )
    z = (pl.col("value") - pl.col("mean")) / pl.col("std")
    return [pl.when(reason.is_null()).then(z).alias("rolling_z"), reason.alias("rolling_z_reason")]
