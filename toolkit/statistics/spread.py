"""How a spread lies and moves: its distribution, and how fast it returns to its mean.

Sign: positive is what a position that is long the buy leg and short the sell leg earns. Legs stay
ordered as asked.

Every function but `with_spread`, `z_scores`, `rolling_z` and `episodes`, which say what their rows
are, reads ``trajectory`` (String or integer), ``ts`` (Int64, Unix seconds UTC) and ``column``
(Float64), and gives one row per trajectory, sorted by it: the columns of `coverage`, and before
``window_start`` those in its own table. Where ``column`` is a spread that the frame does not hold,
it is computed by `with_spread`. Then ``spread_basis`` (String) precedes ``coverage_reason``: legs
(computed from both prices), service (the service's own ``spread_pct``) or legs and service. In
detail:

- The window is ``[start, end)``. Rows outside are not used, and a trajectory that has none inside
  keeps its row with n = 0.
- A value that is null, NaN or beyond 1e150 is no observation. It is counted in ``n_null``.
- Rows may come in any order. Two rows of the window with the same trajectory and ts are refused.
- A null has its reason in the first ``*_reason`` column to its right: ``empty`` (no observation),
  ``too_few``, ``degenerate`` (the values do not vary), ``no_reversion``, ``below_step``,
  ``no_memory``.
- A statistic's name carries the unit of ``column``: of ``spread_log_bps`` the mean is
  ``spread_mean_log_bps``, of ``buy_price`` it is ``buy_price_mean``.
- ``step_s`` and ``max_stale_s`` are as in `coverage`.
- Equal rows give equal results to the last bit, whatever else is in the frame.

They raise `InputError` as `coverage` does.
"""

from __future__ import annotations

import polars as pl

from toolkit.statistics.contract import Frame, Question
from toolkit.statistics.definition import holding, with_spread
from toolkit.statistics.episodes import episodes, time_above
from toolkit.statistics.estimators import HALF_LIFE, MOMENTS, QUANTILES, ROBUST
from toolkit.statistics.kernel import Statistic, measure
from toolkit.statistics.noise import NOISE_ROBUST
from toolkit.statistics.quality import coverage
from toolkit.statistics.scores import rolling_z, z_scores

__all__ = [
    "coverage",
    "episodes",
    "half_life",
    "moments",
    "noise_robust_half_life",
    "quantiles",
    "robust",
    "rolling_z",
    "summary",
    "time_above",
    "with_spread",
    "z_scores",
]


def moments(
    frame: Frame,
    start: int,
    end: int,
    *,
    column: str = "spread_log_bps",
    step_s: int | None = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Compute mean, standard deviation, and the mean over time instead of over observations.

    =================================  =======  ====  =========================================
    column                             type     unit  meaning
    =================================  =======  ====  =========================================
    spread_mean_log_bps                Float64  bps   mean of the observations
    spread_std_log_bps                 Float64  bps   standard deviation (ddof 1), n >= 2
    spread_time_weighted_mean_log_bps  Float64  bps   sum(w x) / sum(w), w = the seconds that an
                                                      observation holds (see `coverage`)
    moments_reason                     String   none  empty, too_few
    =================================  =======  ====  =========================================

    Examples
    --------
    Two blocks of ten minutes, an hour apart: the first counts for 12 of 22 observed minutes.

    >>> ts = [60 * minute for minute in [*range(10), *range(70, 80)]]
    >>> values = [50.0] * 10 + [5.0] * 10
    >>> frame = pl.DataFrame({"trajectory": ["a"] * 20, "ts": ts, "spread_log_bps": values})
    >>> row = moments(frame, 0, 4800).row(0, named=True)
    >>> row["spread_mean_log_bps"], round(row["spread_time_weighted_mean_log_bps"], 3)
    (27.5, 29.545)
    """
    question = Question("spread.moments/1", start, end, column, step_s, max_stale_s)
    return _measured(frame, question, MOMENTS)


def robust(
    frame: Frame,
    start: int,
    end: int,
    *,
    column: str = "spread_log_bps",
    step_s: int | None = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Compute the median and the median absolute deviation, which outliers do not move.

    =====================  =======  ====  =======================================================
    column                 type     unit  meaning
    =====================  =======  ====  =======================================================
    spread_median_log_bps  Float64  bps   median
    spread_mad_log_bps     Float64  bps   median of abs(x - median), times 1.4826, which makes it
                                          a normal's standard deviation. 0 where more than half
                                          of the observations are equal (a pegged or frozen quote)
    robust_reason          String   none  empty
    =====================  =======  ====  =======================================================

    Examples
    --------
    >>> frame = pl.DataFrame(
    ...     {
    ...         "trajectory": ["a"] * 5,
    ...         "ts": [0, 60, 120, 180, 240],
    ...         "spread_log_bps": [1.0, 2.0, 3.0, 4.0, 100.0],
    ...     }
    ... )
    >>> robust(frame, 0, 300).select("spread_median_log_bps", "spread_mad_log_bps").row(0)
    (3.0, 1.482602218505602)
    """
    question = Question("spread.robust/1", start, end, column, step_s, max_stale_s)
    return _measured(frame, question, ROBUST)


def quantiles(
    frame: Frame,
    start: int,
    end: int,
    *,
    column: str = "spread_log_bps",
    step_s: int | None = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Compute quantiles by linear interpolation (type 7), and the mean of the upper tail.

    ====================================  =======  ====  ========================================
    column                                type     unit  meaning
    ====================================  =======  ====  ========================================
    spread_q01_log_bps                    Float64  bps   1 % of the observations are below
    spread_q05_log_bps                    Float64  bps   5 % quantile
    spread_q25_log_bps                    Float64  bps   25 % quantile
    spread_q50_log_bps                    Float64  bps   50 % quantile, the median
    spread_q75_log_bps                    Float64  bps   75 % quantile
    spread_q95_log_bps                    Float64  bps   95 % quantile
    spread_q99_log_bps                    Float64  bps   99 % quantile
    spread_expected_shortfall_95_log_bps  Float64  bps   mean of the observations at or above q95
    quantiles_reason                      String   none  empty
    ====================================  =======  ====  ========================================

    Examples
    --------
    >>> frame = pl.DataFrame(
    ...     {
    ...         "trajectory": ["a"] * 4,
    ...         "ts": [0, 60, 120, 180],
    ...         "spread_log_bps": [1.0, 2.0, 3.0, 4.0],
    ...     }
    ... )
    >>> quantiles(frame, 0, 240).select("spread_q25_log_bps", "spread_q50_log_bps").row(0)
    (1.75, 2.5)
    """
    question = Question("spread.quantiles/1", start, end, column, step_s, max_stale_s)
    return _measured(frame, question, QUANTILES)


def half_life(
    frame: Frame,
    start: int,
    end: int,
    *,
    column: str = "spread_log_bps",
    step_s: int | None = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Estimate the time in which a deviation from the mean halves, by an AR(1) with an intercept.

    ``phi`` is the least-squares slope of a value on the one a step before, over the pairs inside
    segments, so that gaps do not shorten it. Half-life = -ln 2 step / ln phi. Noise in the quotes
    shortens it: noise of 5 % of the variance turns 69 minutes into 12.

    ==========================  =======  =====  ================================================
    column                      type     unit   meaning
    ==========================  =======  =====  ================================================
    ar1_pairs                   Int64    count  pairs of neighbours inside segments, 0 for none
    ar1_phi                     Float64  none   slope, at least 100 pairs
    ar1_phi_standard_error      Float64  none   sqrt((1 - phi^2) / pairs), where abs(phi) < 1
    ar1_phi_corrected           Float64  none   phi + (1 + 3 phi) / pairs: Kendall's correction
    ar1_reason                  String   none   empty, too_few, degenerate, no_reversion where
                                                abs(phi) >= 1
    half_life_s                 Float64  s      of phi
    half_life_reason            String   none   as ar1_reason, below_step where phi <= 0
    half_life_lower_s           Float64  s      of phi - 1.96 standard errors
    half_life_lower_reason      String   none   as ar1_reason, below_step: no lower bound above 0
    half_life_upper_s           Float64  s      of phi + 1.96 standard errors
    half_life_upper_reason      String   none   as ar1_reason, no_reversion: no finite upper bound
    half_life_corrected_s       Float64  s      of the corrected phi
    half_life_corrected_reason  String   none   as ar1_reason, no_reversion, below_step
    ==========================  =======  =====  ================================================

    References
    ----------
    Kendall, M. G. (1954), Note on bias in the estimation of autocorrelation, Biometrika 41.

    Examples
    --------
    Twenty runs of seven minutes, ten minutes apart; within each, the value halves every minute.

    >>> at = [(run, minute) for run in range(20) for minute in range(7)]
    >>> frame = pl.DataFrame(
    ...     {
    ...         "trajectory": ["a"] * 140,
    ...         "ts": [60 * (17 * run + minute) for run, minute in at],
    ...         "spread_log_bps": [2.0**-minute for _, minute in at],
    ...     }
    ... )
    >>> half_life(frame, 0, 20400).select("ar1_pairs", "ar1_phi", "half_life_s").row(0)
    (120, 0.5, 60.0)
    """
    question = Question("spread.half_life/1", start, end, column, step_s, max_stale_s)
    return _measured(frame, question, HALF_LIFE)


def noise_robust_half_life(
    frame: Frame,
    start: int,
    end: int,
    *,
    column: str = "spread_log_bps",
    step_s: int | None = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Estimate the half-life without the noise of the quotes, beside that of `half_life`.

    Noise that is drawn anew at every observation adds to the variance and to no
    autocovariance g, so phi is taken from two of those: phi = (g(10) / g(1))^(1/9), over pairs
    inside segments. The variance without noise is g(1) / phi. The columns of `half_life` come
    first, then these:

    ============================  =======  ========  ===========================================
    column                        type     unit      meaning
    ============================  =======  ========  ===========================================
    noise_robust_pairs            Int64    count     pairs ten observations apart, 0 for none
    noise_robust_phi              Float64  none      from a step to the next, at least 100 pairs
    noise_share                   Float64  fraction  1 - g(1) / (phi g(0)): part of the variance
                                                     that is noise. Below 0 where none shows
    noise_robust_reason           String   none      empty, too_few, degenerate, no_memory where
                                                     g(1) or g(10) is not above 0
    half_life_noise_robust_s      Float64  s         of this phi
    half_life_noise_robust_reason String   none      as before, no_reversion where phi >= 1
    ============================  =======  ========  ===========================================

    Examples
    --------
    A slow wave, of which every other reading is 0.1 too high and the rest as much too low.

    >>> import math
    >>> frame = pl.DataFrame(
    ...     {
    ...         "trajectory": ["a"] * 3000,
    ...         "ts": [60 * k for k in range(3000)],
    ...         "spread_log_bps": [math.cos(k / 60) + 0.1 * (-1) ** k for k in range(3000)],
    ...     }
    ... )
    >>> row = noise_robust_half_life(frame, 0, 180000).row(0, named=True)
    >>> row["noise_robust_pairs"], round(row["ar1_phi"], 2), round(row["noise_robust_phi"], 2)
    (2990, 0.96, 1.0)
    """
    question = Question("spread.noise_robust_half_life/1", start, end, column, step_s, max_stale_s)
    return _measured(frame, question, HALF_LIFE, NOISE_ROBUST)


def summary(
    frame: Frame,
    start: int,
    end: int,
    *,
    column: str = "spread_log_bps",
    step_s: int | None = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Compute `coverage`, `moments`, `robust`, `quantiles` and `half_life` in one pass.

    The columns are those of the five, each described there in full. ``quantiles_reason`` follows on
    ``robust_reason``, and so on: a null's reason is in the first ``*_reason`` to its right.

    ====================================  =======  ========
    column                                type     unit
    ====================================  =======  ========
    trajectory                            given    none
    n                                     Int64    count
    n_null                                Int64    count
    coverage                              Float64  fraction
    step_s                                Int64    s
    max_stale_s                           Int64    s
    t_first                               Int64    s
    t_last                                Int64    s
    n_segments                            Int64    count
    longest_gap_s                         Int64    s
    spread_basis                          String   none
    coverage_reason                       String   none
    spread_mean_log_bps                   Float64  bps
    spread_std_log_bps                    Float64  bps
    spread_time_weighted_mean_log_bps     Float64  bps
    moments_reason                        String   none
    spread_median_log_bps                 Float64  bps
    spread_mad_log_bps                    Float64  bps
    robust_reason                         String   none
    spread_q01_log_bps                    Float64  bps
    spread_q05_log_bps                    Float64  bps
    spread_q25_log_bps                    Float64  bps
    spread_q50_log_bps                    Float64  bps
    spread_q75_log_bps                    Float64  bps
    spread_q95_log_bps                    Float64  bps
    spread_q99_log_bps                    Float64  bps
    spread_expected_shortfall_95_log_bps  Float64  bps
    quantiles_reason                      String   none
    ar1_pairs                             Int64    count
    ar1_phi                               Float64  none
    ar1_phi_standard_error                Float64  none
    ar1_phi_corrected                     Float64  none
    ar1_reason                            String   none
    half_life_s                           Float64  s
    half_life_reason                      String   none
    half_life_lower_s                     Float64  s
    half_life_lower_reason                String   none
    half_life_upper_s                     Float64  s
    half_life_upper_reason                String   none
    half_life_corrected_s                 Float64  s
    half_life_corrected_reason            String   none
    window_start                          Int64    s
    window_end                            Int64    s
    method                                String   none
    params_hash                           String   none
    ====================================  =======  ========

    Examples
    --------
    >>> frame = pl.DataFrame(
    ...     {
    ...         "trajectory": ["BTC_USD:COINBASE.spot:KRAKEN.spot"] * 3,
    ...         "ts": [0, 60, 120],
    ...         "buy_price": [100.0, 100.0, None],
    ...         "sell_price": [101.0, 99.0, 100.0],
    ...     }
    ... )
    >>> row = summary(frame, 0, 180).row(0, named=True)
    >>> row["n"], row["n_null"], row["half_life_s"], row["half_life_reason"]
    (2, 1, None, 'too_few')
    """
    question = Question("spread.summary/1", start, end, column, step_s, max_stale_s)
    return _measured(frame, question, MOMENTS, ROBUST, QUANTILES, HALF_LIFE)


def _measured(frame: Frame, question: Question, *statistics: Statistic) -> pl.DataFrame:
    return measure(holding(frame, question.column or ""), question, *statistics)
