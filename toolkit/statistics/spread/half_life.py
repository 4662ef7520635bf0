"""The half-life of a spread, by the decay of its correlation, beside an AR(1), with their fit.

The interval rests on a model of one speed with noise, which is tested. With x the deviations, u(t)
= x(t) - phi x(t - 1) has no covariance with an observation before t - 1, nor with a wave of fixed
period. So the sums over t of u(t) times a window of earlier observations, and times a cosine, are
zero on average. The windows end 1, 2, 5, 20, 80, 320, 1,440 steps back and so on by four, up to a
seventh of the span. The waves are the first three half waves of the span, and that of the day, if
the span has three.

The sums of each group give J = g' V^-1 g (Hansen 1982), with V from sums over blocks of time. Each
J, and nearly their total, is chi-squared at the true phi, with one degree of freedom per sum. The
smallest total over the half-lives of the interval is compared with that, with one degree less.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl

from toolkit.reasons import Reason
from toolkit.statistics.core.contract import first_reason
from toolkit.statistics.core.kernel import Statistic
from toolkit.statistics.numeric.arrays import Flags, Floats, Integers
from toolkit.statistics.numeric.lags import MIN_PAIRS, Decay, Observations, Pairs, joined, parts
from toolkit.statistics.numeric.unit_root import of_longest_runs

LEVEL = 0.025
"""The interval is given where the chance of a worse fit is at least this."""

_WINDOWS = (1, 2, 5, 20, 80, 320, 1_440)
_SPAN_PER_LAG = 7
_HALF_WAVES = 3
_DAY_S, _LEAST_DAYS, _LEAST_STEPS_A_DAY = 86_400, 3, 4
_BLOCK_STEPS = (10, 60)
_BLOCKS = 160
_LEAST_BLOCKS = 30
_SPEEDS = 25
_NEAREST_TO_ONE = 1e-6
_SINGULAR = 1e-10


def misfits(held: Observations, lower: Floats, upper: Floats) -> Floats:
    """Compute the p-value of each trajectory's fit, NaN if it cannot be tested.

    ``lower`` and ``upper`` are the ends of the intervals of half-lives, in steps: 0 for below one,
    infinite for none, NaN without an interval.
    """
    found = np.full(len(held.numbers), np.nan)
    for place, (first, last) in enumerate(zip(held.begins, held.begins[1:], strict=False)):
        if not math.isnan(lower[place]):
            a_step = held.a_step if isinstance(held.a_step, int) else int(held.a_step[first])
            found[place] = _chance_of_worse(
                held.value[first:last],
                held.key[first:last] - held.key[first],
                a_step,
                int(held.step_s[place]),
                _speeds(lower[place], upper[place]),
            )
    return found


def chance_beyond(value: float, freedom: int) -> float:
    """Return the chance that chi-squared is above a value (Abramowitz and Stegun 1964, 26.4.4)."""
    half, odd = value / 2, freedom % 2
    term = math.exp(-half) * (math.sqrt(half / math.pi) * 2 if odd else 1.0)
    total = math.erfc(math.sqrt(half)) if odd else 0.0
    for power in range(1 + odd, freedom + 1, 2):
        total += term
        term *= value / (power + 1)
    return total


def _speeds(lower: float, upper: float) -> Floats:
    """Spread phi over an interval of half-lives (steps), ends included."""
    low, high = (0.0 if steps == 0 else 0.5 ** (1 / steps) for steps in (lower, upper))
    first, last = (max(1 - phi, _NEAREST_TO_ONE) for phi in (low, high))
    left = np.geomspace(first, last, _SPEEDS)
    return np.append(1 - left, 1.0) if high == 1 else np.asarray(1 - left)


def _chance_of_worse(
    value: Floats, key: Integers, a_step: int, step_s: int, speeds: Floats
) -> float:
    span = int(key[-1]) // a_step + 1
    earlier = _before(key, a_step)
    previous = earlier - 1
    paired = np.flatnonzero((previous >= 0) & (key[previous] == key - a_step))
    size = min(max(span // _BLOCKS, _BLOCK_STEPS[0]), _BLOCK_STEPS[1])
    block = np.flatnonzero(np.diff(key[paired] // (size * a_step), prepend=-1))
    if len(block) < _LEAST_BLOCKS:
        return math.nan
    x = value - value.mean()
    now, before = x[paired], x[previous[paired]]
    worst, sums = np.zeros(len(speeds)), 0
    for instruments in (
        _windows(x, key, a_step, span, paired),
        _waves((key[paired] + a_step / 2) / a_step, span, _DAY_S / step_s),
    ):
        a, b = (np.add.reduceat(instruments * each, block, axis=1) for each in (now, before))
        worst += _distances(a, b, speeds)
        sums += len(instruments)
    return chance_beyond(float(worst.min()), sums - 1)


def _before(key: Integers, lag: int) -> Integers:
    if key[-1] == len(key) - 1:
        return np.maximum(np.arange(len(key)) - lag + 1, 0)
    if key[-1] > 4 * len(key):
        return np.searchsorted(key, key - lag, side="right")
    until = np.cumsum(np.bincount(key))
    return np.where(key >= lag, until[key - lag], 0)


def _windows(x: Floats, key: Integers, a_step: int, span: int, paired: Integers) -> Floats:
    until = np.append(0.0, np.cumsum(x))
    edges = list(_WINDOWS)
    while 4 * edges[-1] * _SPAN_PER_LAG <= span:
        edges.append(4 * edges[-1])
    held = [edge for edge in edges if edge * _SPAN_PER_LAG <= span]
    # those at least one step more than an edge before: the edge's own step is the window's last
    sums = [until[_before(key, edge * a_step + 1)[paired]] for edge in held]
    return np.stack([near - far for near, far in pairwise(sums)])


def _waves(place: Floats, span: int, day: float) -> Floats:
    waves = [np.cos(np.pi * number * place / span) for number in range(1, _HALF_WAVES + 1)]
    if day >= _LEAST_STEPS_A_DAY and span >= _LEAST_DAYS * day:
        angle = 2 * np.pi * place / day
        waves += [np.cos(angle), np.sin(angle)]
    return np.stack(waves)


def _distances(a: Floats, b: Floats, speeds: Floats) -> Floats:
    """Compute J at each speed from the block sums of u's two parts, by instrument."""
    phi = speeds[:, None]
    sums = a.sum(axis=1) - phi * b.sum(axis=1)
    both = a @ b.T
    aa, ab, bb = a @ a.T, both + both.T, b @ b.T
    variance = aa - phi[:, None] * ab + np.square(phi)[:, None] * bb
    size = np.sqrt(np.einsum("kii->ki", variance))
    unit = np.divide(sums, size, out=np.zeros_like(sums), where=size > 0)
    alike = (
        variance / np.where(size > 0, size, 1)[:, :, None] / np.where(size > 0, size, 1)[:, None]
    )
    inverse = np.linalg.pinv(alike, rcond=_SINGULAR, hermitian=True)
    return np.asarray(np.einsum("ki,kij,kj->k", unit, inverse, unit))


_DEVIATIONS = 6 * 1.482602218505602  # of a normal's standard deviations, as `spread_mad` has them


def without_spikes(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split rows by ``number`` and ``value`` into the share of spikes, and the rows without spikes.

    The share is of the squared distances from the median, null if nothing varies. If more than half
    of the values equal the median, the deviation is that of the others.
    """
    apart = pl.col("apart")
    found = rows.with_columns(
        (pl.col("value") - pl.col("value").median().over("number")).abs().alias("apart")
    ).with_columns(
        pl.coalesce(
            each.median().over("number").replace(0.0, None)
            for each in (apart, pl.when(apart > 0).then(apart))
        ).alias("deviation")
    )
    spike = (apart > _DEVIATIONS * pl.col("deviation")).fill_null(value=False)
    squares = apart.pow(2)
    found = found.with_columns(spike.alias("spike"))
    shares = found.group_by("number", maintain_order=True).agg(
        pl.when(squares.sum() > 0)
        .then(squares.filter(pl.col("spike")).sum() / squares.sum())
        .alias("spike_share")
    )
    kept = found.filter(pl.col("spike").any().over("number") & ~pl.col("spike"))
    return shares, kept.select(rows.columns)


CRITICAL = np.array(
    [
        (0.0, -3.127, -1.566, 0.229),
        (0.5, -3.035, -1.441, 0.387),
        (1.0, -2.961, -1.333, 0.490),
        (2.0, -2.858, -1.152, 0.669),
        (3.0, -2.801, -1.043, 0.784),
        (5.0, -2.702, -0.868, 0.971),
        (7.5, -2.578, -0.726, 1.130),
        (10.0, -2.538, -0.645, 1.241),
        (15.0, -2.447, -0.538, 1.389),
        (20.0, -2.384, -0.466, 1.452),
        (30.0, -2.314, -0.388, 1.556),
        (50.0, -2.260, -0.296, 1.665),
        (75.0, -2.187, -0.239, 1.699),
        (100.0, -2.176, -0.217, 1.731),
        (150.0, -2.135, -0.166, 1.787),
        (200.0, -2.110, -0.148, 1.798),
    ]
)
"""c, and the 2.5 %, 50 % and 97.5 % points of the statistic under it.

From 60,000 stationary paths of 4,000 steps each: the t-statistic of a regression with an intercept.
"""

_NORMAL = np.array([[-1.959964], [0.0], [1.959964]])
_LEAST_FREEDOM = 4.0
_NOISE_SHARE = 0.05
_GRID = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 120)])
_HALVINGS = 48


class Reversion(NamedTuple):
    """Half-lives of each trajectory in steps: 0 for below one step, infinite for no reversion."""

    steps: Floats
    lower: Floats
    """NaN, as ``upper``, where the blocks are too few for an interval."""
    upper: Floats


def reversion(decay: Decay, noise_share: Floats) -> Reversion:
    """Estimate the half-lives, and their 95 % intervals, from the sums over triples.

    The table without reversion assumes that the sum's error comes from the spread itself. With gaps
    part of it is normal: each point lies between the table's and the normal's (`_own_share`). With
    noise of more than 5 % of the variance the estimate and the lower bound are those of the normal,
    which widens the interval.
    """
    with np.errstate(all="ignore"):
        freedom = decay.b**2 / decay.bb
        own = _own_share(decay)
        noisy = noise_share > _NOISE_SHARE
        of_normal = np.where(noisy, 0.0, own)
        found = decay.span * math.log(2) / _accepted_from(decay, freedom, own, of_normal)
        upper, steps, lower = np.where(np.isnan(found), 0.0, found)
        unknown = ~(freedom >= _LEAST_FREEDOM)
        return Reversion(steps, np.where(unknown, np.nan, lower), np.where(unknown, np.nan, upper))


def _own_share(decay: Decay) -> Floats:
    """Compute the share of the sum's error that is the spread's own, and not from random gaps.

    If a share q of the observations is left at random, p = q^3 of the times have a triple. Of the k
    possible triples whose lag covers a step, the count deviates from k p by k p (1 - p) u on
    average (squared), with u = 1 + 2 (1 - 1/k) q^2 / (1 + q + q^2), as neighbours share an
    observation. So the sum's error is (1 + u (1 - p) / (p k)) times that without gaps.
    """
    present = np.minimum(decay.triples / decay.span, 1)
    left = np.cbrt(present)
    uneven = 1 + 2 * (1 - 1 / decay.lag) * left**2 / (1 + left + left**2)
    return np.asarray(1 / np.sqrt(1 + uneven * (1 - present) / (present * decay.lag)))


def _accepted_from(decay: Decay, freedom: Floats, *own: Floats) -> Floats:
    """Find the smallest c at which the statistic reaches each quantile (row), NaN if at none.

    The largest c is that of a half-life of one step. ``own`` are the shares of the spread's own
    error: for the lowest quantile, and for the others.
    """
    shares = np.stack([own[min(quantile, 1)] for quantile in range(len(_NORMAL))])
    # Fisher's expansion of Student's 97.5 % point, over the normal's
    student = 1 + 1.2104 / freedom + 1.44 / freedom**2

    def excess(c: Floats) -> Floats:
        critical = _critical(c, shares)
        found = _statistic(decay, student, c) - critical
        return np.where(np.isnan(found), -critical, found)

    grid = decay.span * math.log(2) * _GRID[:, None]
    reached = excess(np.stack([grid] * len(_NORMAL), axis=1)) >= 0
    at = reached.argmax(axis=0)
    rows = np.arange(len(decay.span))
    below, above = grid[np.maximum(at - 1, 0), rows], grid[at, rows]
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        inside = excess(middle) >= 0
        below, above = np.where(inside, below, middle), np.where(inside, middle, above)
    return np.where(at > 0, above, np.where(reached[0], 0.0, np.nan))


def _statistic(decay: Decay, student: Floats, c: Floats) -> Floats:
    """Compute the sum over its standard error, from Student's scale to the normal's."""
    left = np.exp(-decay.lag * c / decay.span)
    variance = decay.aa - 2 * left * decay.ab + left * left * decay.bb
    error = np.sqrt(np.maximum(variance, 0) / (1 - decay.overlap))
    return (decay.a - left * decay.b) / (error * student)


def _critical(c: Floats, own: Floats) -> Floats:
    """Interpolate the table between roots of c, and beyond its end towards the normal."""
    of_c, ends = CRITICAL[:, 0], CRITICAL[-1, 1:, None]
    roots, of_roots, near = np.sqrt(c), np.sqrt(of_c), np.empty_like(c)
    for quantile, points in enumerate(CRITICAL.T[1:]):
        near[..., quantile, :] = np.interp(roots[..., quantile, :], of_roots, points)
    far = _NORMAL + (ends - _NORMAL) * np.sqrt(of_c[-1] / np.maximum(c, of_c[-1]))
    found = np.where(c <= of_c[-1], near, far)
    return np.asarray(own * found + (1 - own) * _NORMAL)


_LOW = 0.125


def half_lags(held: Observations, level: Floats) -> Floats:
    """Find the first lag, in steps, at which each autocorrelation is at most half of a level.

    Lags double, up to half of the span, while 100 pairs are so far apart. Between two of them the
    logarithm of the autocorrelation is taken as straight, or the autocorrelation itself if it falls
    further than that of one speed. Infinite if none is low enough, 0 if the first one is.
    """
    found = np.where(level > 0, np.inf, np.nan)
    before_lag, before = np.zeros(len(level)), level.copy()
    open_, lag = level > 0, 1
    spans = held.spans()
    while (open_ := open_ & (2 * lag <= spans)).any():
        with np.errstate(all="ignore"):
            pairs = held.pairs(held.later(lag))
            here = np.where(pairs.pairs >= MIN_PAIRS, pairs.correlation, np.nan)
            reached = open_ & (here <= level / 2)
            straight = np.log(before / (level / 2)) / np.log(before / here)
            part = np.where(here > _LOW * level, straight, (before - level / 2) / (before - here))
            at = before_lag + np.clip(part, 0, 1) * (lag - before_lag)
        found = np.where(reached, 0.0 if lag == 1 else at, found)
        known = open_ & ~np.isnan(here)
        before_lag, before = np.where(known, lag, before_lag), np.where(known, here, before)
        open_ &= ~reached
        lag *= 2
    return found


_SHORT, _LONG = 1, 9
"""The lags, in steps beyond the first, over which a decay is measured."""
_LEFT = 0.5
"""The long lag is used where this much of the correlation is left over it."""
_ACF_LAGS = (1, 10, 30)
"""Where the fits are compared with the autocorrelation, in steps."""
_TWO_SIDED_95 = 1.96
_SPIKES_DOMINATE = 0.5
"""Spikes dominate where more than this of the variance is theirs."""
_HALF_LIFE, _AR1, _ACF = "half_life", "half_life_ar1", "acf"
_EMPTY = pl.col("n") == 0


class _Fit(NamedTuple):
    """Of each trajectory, its pairs by lag, the sums of its decay and what follows from them."""

    numbers: Integers
    apart: dict[int, Pairs]
    correlation: dict[int, Floats]
    decay: Decay
    noise_share: Floats
    found: Reversion

    @property
    def memory(self) -> Flags:
        """Whether any correlation is left after a step."""
        near = self.apart[1].pairs
        with np.errstate(all="ignore"):
            return np.asarray(self.correlation[1] > _TWO_SIDED_95 / np.sqrt(near), np.bool_)

    @property
    def level(self) -> Floats:
        """The autocorrelation at lag 0 beneath the noise, that at lag 1 where it is not known."""
        level = np.where(np.isnan(self.noise_share), self.correlation[1], 1 - self.noise_share)
        return np.minimum(level, 1)


def _summed(rows: pl.DataFrame) -> tuple[Integers, Pairs, Pairs, Pairs, Decay]:
    """Sum over the pairs of the lags `_ACF_LAGS`, and over the triples of the long lag."""
    held = Observations.of(rows)
    next_one, far = held.later(1), held.later(1 + _LONG)
    pairs = (held.pairs(next_one), held.pairs(far), held.pairs(held.later(30)))
    return (held.numbers, *pairs, held.decay(next_one, far, _LONG))


def _short(rows: pl.DataFrame) -> Decay:
    held = Observations.of(rows)
    return held.decay(held.later(1), held.later(1 + _SHORT), _SHORT)


def _estimated(rows: pl.DataFrame) -> _Fit:
    found, *of_pairs, triples = zip(*map(_summed, parts(rows)), strict=True)
    numbers = np.concatenate(found)
    apart = {lag: joined(Pairs, each) for lag, each in zip(_ACF_LAGS, of_pairs, strict=True)}
    decay = joined(Decay, triples)
    fast = ~((decay.triples >= MIN_PAIRS) & (decay.a >= _LEFT * decay.b))
    fast_rows = rows.filter(pl.col("number").is_in(numbers[fast]))
    for long, short in zip(decay, joined(Decay, map(_short, parts(fast_rows))), strict=True):
        long[fast] = short
    with np.errstate(all="ignore"):
        correlation = {lag: pairs.correlation for lag, pairs in apart.items()}
        share = 1 - correlation[1] / (decay.a / decay.b) ** (1 / decay.lag)
    return _Fit(numbers, apart, correlation, decay, share, reversion(decay, share))


def _measured(rows: pl.DataFrame) -> pl.DataFrame:
    estimate = _estimated(rows)
    (steps, lower, upper), near = estimate.found, estimate.apart[1]
    with np.errstate(all="ignore"):
        ar1_phi = near.products / near.earlier_squares
    ar1_steps = _steps(ar1_phi)
    phi = np.exp2(-1 / np.where(steps > 0, steps, np.nan))
    apart, correlation = estimate.apart, estimate.correlation
    found = pl.DataFrame(
        {
            "number": estimate.numbers,
            "pairs": near.pairs,
            "triples": estimate.decay.triples,
            "lag": estimate.decay.lag,
            "still": near.constant | (near.earlier_squares == 0),
            "memory": estimate.memory,
            "share": estimate.noise_share,
            "phi": phi,
            "steps": steps,
            "lower": lower,
            "upper": upper,
            "slope": ar1_phi,
            "ar1_steps": ar1_steps,
            "fit": _misfit(apart, correlation, phi, correlation[1] / phi),
            "ar1_fit": _misfit(apart, correlation, ar1_phi, np.ones(len(phi))),
            "outside": (ar1_steps < lower) | (ar1_steps > upper),
        }
    )
    return _explained(found.join(_beside(rows, estimate), on="number", maintain_order="left"))


def _beside(rows: pl.DataFrame, estimate: _Fit) -> pl.DataFrame:
    """Compute what the half-life of each trajectory is judged by, and what needs no model."""
    (steps, lower, upper), memory = estimate.found, estimate.memory
    tested = np.where(memory & (steps > 0), lower, np.nan), upper
    spikes, calm_steps = _calm(rows, estimate)
    endless = np.isinf(steps) | np.isinf(upper) | np.isinf(calm_steps)
    found, at = [], 0
    for part in parts(rows):
        held = Observations.of(part)
        here = slice(at, at := at + len(held.numbers))
        unit_roots = of_longest_runs(held, endless[here])
        found.append(
            pl.DataFrame(
                {
                    "number": held.numbers,
                    "fit_p_value": misfits(held, *(each[here] for each in tested)),
                    "half_lag": half_lags(held, estimate.level[here]),
                    "returns": [test is not None and test.rejected for test in unit_roots],
                    "calm_steps": calm_steps[here],
                }
            )
        )
    return pl.concat(found).join(spikes, on="number")


def _calm(rows: pl.DataFrame, estimate: _Fit) -> tuple[pl.DataFrame, Floats]:
    spikes, kept = without_spikes(rows)
    steps = estimate.found.steps.copy()
    if kept.height:
        calm = _estimated(kept)
        found = np.where(calm.memory, calm.found.steps, 0.0)
        enough = calm.decay.triples >= MIN_PAIRS
        steps[np.searchsorted(estimate.numbers, calm.numbers)] = np.where(enough, found, np.nan)
    return spikes, steps


def _steps(phi: Floats) -> Floats:
    """Convert a decay per step to a half-life in steps, 0 below one and infinite for none."""
    inside = np.where((phi >= 0.5) & (phi < 1), phi, 0.5)
    return np.where(
        np.abs(phi) >= 1, np.inf, np.where(phi >= 0.5, -math.log(2) / np.log(inside), 0.0)
    )


def _misfit(
    apart: dict[int, Pairs], correlation: dict[int, Floats], phi: Floats, scale: Floats
) -> Floats:
    """Find the largest distance of scale phi^lag from the autocorrelation, NaN without lag 10."""
    worst = np.where(apart[10].pairs >= MIN_PAIRS, 0.0, np.nan)
    for lag in _ACF_LAGS:
        off = np.abs(correlation[lag] - scale * phi**lag)
        worst = np.maximum(worst, np.where(apart[lag].pairs >= MIN_PAIRS, off, 0.0))
    return worst


def _explained(found: pl.DataFrame) -> pl.DataFrame:
    """Add why figures are null, each in a column: an expression of all reasons is slow to plan."""
    still = {Reason.DEGENERATE: pl.col("still")}
    reason = first_reason(
        {
            Reason.TOO_FEW: pl.col("triples") < MIN_PAIRS,
            **still,
            Reason.NO_REVERSION: pl.col("slope") <= -1,
            Reason.BELOW_STEP: ~pl.col("memory"),
        }
    )
    doubt = first_reason(
        {
            Reason.SPIKES_DOMINATE: pl.col("spike_share") > _SPIKES_DOMINATE,
            Reason.SEVERAL_SPEEDS: pl.col("fit_p_value") < LEVEL,
        }
    )
    found = found.with_columns(
        reason.alias("why"),
        first_reason({Reason.TOO_FEW: pl.col("pairs") < MIN_PAIRS, **still}).alias("why_ar1"),
        doubt.alias("doubt"),
    )
    untested = first_reason({Reason.TOO_FEW: pl.col("fit_p_value").is_nan()})
    uncompared = first_reason({Reason.TOO_FEW: pl.col("fit").is_nan()})
    return found.with_columns(
        *(
            pl.coalesce("why", *doubts, _outside(steps)).alias(f"why_{steps}")
            for steps, *doubts in (("steps",), ("lower", "doubt"), ("upper", "doubt"))
        ),
        pl.coalesce("why", _outside("calm_steps")).alias("why_calm_steps"),
        pl.coalesce("why", _outside("half_lag", Reason.TOO_SHORT)).alias("why_half_lag"),
        pl.coalesce("why", untested).alias("why_fit"),
        pl.coalesce("why_ar1", _outside("ar1_steps")).alias("why_ar1_steps"),
    ).with_columns(pl.coalesce("why_steps", "why_ar1", uncompared).alias("why_acf"))


def _outside(steps: str, endless: Reason = Reason.NO_REVERSION) -> pl.Expr:
    found, doubt = pl.col(steps), pl.col("doubt")
    disagree = found.is_infinite() & pl.col("returns") & (endless is Reason.NO_REVERSION)
    return first_reason(
        {
            Reason.TOO_FEW: found.is_nan(),
            Reason.SPIKES_DOMINATE: disagree & (doubt == Reason.SPIKES_DOMINATE.value),
            Reason.SEVERAL_SPEEDS: disagree & (doubt == Reason.SEVERAL_SPEEDS.value),
            Reason.TESTS_DISAGREE: disagree,
            endless: found.is_infinite(),
            Reason.BELOW_STEP: found == 0,
        }
    )


@cache
def _results(_column: str) -> list[pl.Expr]:
    triples, share = pl.col("triples").fill_null(0), pl.col("spike_share")
    compared = pl.col("why").is_null() & pl.col("why_ar1").is_null()
    return [
        triples.alias("half_life_triples"),
        pl.when(triples > 0).then("lag").otherwise(_SHORT).alias("half_life_lag_steps"),
        _known("phi", "why_steps").alias("half_life_phi"),
        _known("share", "why_steps").alias("noise_share"),
        *_seconds(_HALF_LIFE, "steps"),
        *_seconds(f"{_HALF_LIFE}_lower", "lower"),
        *_seconds(f"{_HALF_LIFE}_upper", "upper"),
        pl.when(pl.col("why_fit").is_null()).then("fit_p_value").alias("fit_p_value"),
        _reason("why_fit").alias("fit_reason"),
        share,
        first_reason({Reason.EMPTY: _EMPTY, Reason.DEGENERATE: share.is_null()}).alias(
            "spike_share_reason"
        ),
        *_seconds("acf_half_lag", "half_lag"),
        *_seconds(f"{_HALF_LIFE}_without_spikes", "calm_steps"),
        pl.col("pairs").fill_null(0).alias("ar1_pairs"),
        pl.when(pl.col("why_ar1").is_null()).then("slope").alias("ar1_phi"),
        _reason("why_ar1").alias("ar1_reason"),
        *_seconds(_AR1, "ar1_steps"),
        (compared & pl.col("outside")).fill_null(value=False).alias("half_lives_differ"),
        _known("fit", "why_steps").alias(f"{_HALF_LIFE}_acf_error"),
        _known("ar1_fit", "why_ar1").alias(f"{_AR1}_acf_error"),
        _reason("why_acf").alias(f"{_ACF}_reason"),
    ]


def _known(column: str, why: str) -> pl.Expr:
    return pl.when(pl.col(why).is_null()).then(pl.col(column).fill_nan(None))


def _reason(why: str) -> pl.Expr:
    return pl.when(_EMPTY).then(pl.lit(Reason.EMPTY.value)).otherwise(why)


def _seconds(name: str, steps: str) -> list[pl.Expr]:
    """Convert steps to seconds, null with the reason."""
    why = f"why_{steps}"
    return [
        pl.when(pl.col(why).is_null()).then(pl.col(steps) * pl.col("step_s")).alias(f"{name}_s"),
        _reason(why).alias(f"{name}_reason"),
    ]


HALF_LIFE = Statistic(lambda _column: [], _results, _measured)
"""The half-life of the autocorrelation with its interval, and that of an AR(1)."""
