"""Returns of holding a funding position, over all entry times.

A single figure of carry depends on when the position was opened, so `holdings` opens it every hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.columns import columns_of
from toolkit.errors import InputError
from toolkit.market import When, parse_length
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, Question, checked_frame
from toolkit.statistics.core.windows import settlements_extent, window_of
from toolkit.statistics.fees import NOTIONAL, FeeModel, Style
from toolkit.statistics.fees.fee_table import check_asked, check_held_style
from toolkit.statistics.fees.net_edge import costs_over_time, fee_table
from toolkit.statistics.funding.accruals import accruals
from toolkit.statistics.funding.carry_figures import Sample, figures, schema
from toolkit.statistics.funding.carry_marks import (
    FUNDING_ONLY,
    FundedPosition,
    PairPrices,
    Prices,
    covered,
    gross_bps,
    held,
    merged,
    sliced,
)
from toolkit.statistics.funding.dispersion import legs as legs_of
from toolkit.statistics.funding.persistence import funding_memories
from toolkit.statistics.funding.settlements import LEGS, LegSettlements, settlements
from toolkit.statistics.numeric.arrays import Floats, Integers
from toolkit.statistics.numeric.long_run import Memory

HORIZONS = ("1h", "8h", "1d", "3d", "7d", "30d")
"""The default holding times."""

_SETTLED = ("leg_number", "ts", "rate", "interval_hours", "interval_reason")
_ACCRUES = ("accrues_from", "accrues_until")


_OF_COSTS = ("net_median_bps", "net_positive_share", "breakeven_median_h", "net_apr_median_pct")
_OF_PRICES = ("net_", "breakeven_", "drawdown_")
_NAMES = [each.name for each in columns_of("funding.holdings")]


def _titled(
    *, every: str | int, compound: bool, funding_only: bool, legs: bool, **_: object
) -> str:
    kept = "Funding only, kept" if funding_only or legs else "Kept with prices"
    compounded = ", compounded," if compound else ""
    held = "short positions of one leg alone" if legs else "positions"
    return f"{kept}{compounded} by {held} entered each {every},"


@analysis(
    "funding.holdings",
    (
        "horizon_s",
        "gross_median_bps",
        "funding_median_bps",
        *_OF_COSTS,
        *(f"{FUNDING_ONLY}{name}" for name in _OF_COSTS),
        *("gross_q05_bps", "gross_q95_bps", "basis_mean_bps", "n", "coverage", "gross_mean_bps"),
        *("gross_mean_lower_bps", "gross_mean_upper_bps", "drawdown_median_bps", "funding_q05_bps"),
        *("funding_q95_bps", "funding_mean_bps", "funding_mean_lower_bps"),
        *("funding_mean_upper_bps", "funding_only_drawdown_median_bps"),
    ),
    title=_titled,
    about="""
        Kept is what settlements paid plus what prices brought, by the stored spread or
        prices of the legs. Positive: long the buy leg and short the sell leg received it.
        With --legs it is that leg alone, short, with funding only. A settlement at the
        entry is not received, one at the exit is. An entry counts if all legs cover its
        whole horizon. The range of the mean is its 95 % interval, which allows for
        overlapping holdings, and is missing if funding remembers more than the window. With
        a fee table net figures and the hours to break even follow. --funding-only leaves
        prices out.

        Before: rail fees --example > fees.toml""",
    command="carry",
    report=3,
    example="BTC_USDT:* --horizon 1d --fees fees.toml",
    also=[f"{FUNDING_ONLY}{name}" for name in _NAMES if name.startswith(_OF_PRICES)],
    horizons=Parameter("The time in a position: 8h, 7d. May be repeated.", option="--horizon"),
    every=Parameter("The time between two entries."),
    compound=Parameter("Reinvest what is received at each settlement."),
    legs=Parameter("Each leg of the pairs alone, short.", across=legs_of),
    step_s=Parameter("The time between two prices. Default: the commonest.", "s", advanced=True),
    max_stale_s=Parameter(
        "How long a price is valid after its step. Default: three steps.", "s", advanced=True
    ),
)
def holdings(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    horizons: Sequence[str | int] | str | int = HORIZONS,
    every: str | int = "1h",
    prices: Prices | None = None,
    funding_only: bool = False,
    step_s: int | None = None,
    max_stale_s: int | None = None,
    fees: FeeModel | None = None,
    notional: float = NOTIONAL,
    style: Style = "taker",
    compound: bool = False,
    legs: bool = False,
) -> pl.DataFrame:
    """Compute the distribution of what a position kept, over all times at which it was entered.

    One row per trajectory and horizon, sorted. The position is long the buy leg and short the sell
    leg: swap the legs with `toolkit.statistics.spread.turned` for the other side. A frame with
    ``rate`` and ``interval_hours`` is of single legs, held short, so a positive rate is received,
    with funding alone.

    - A position is entered at each multiple of ``every`` in ``[start, end - horizon]``, from 00:00
      UTC on, and closed a horizon later. A settlement at the entry is not received, one at the exit
      is. Each pays its whole rate.
    - An entry counts if both legs cover its whole horizon by settlements, as in
      `toolkit.statistics.funding.summary`. ``n_uncovered`` counts the others.
    - Gross is funding plus basis, by ``prices`` as in `toolkit.statistics.funding` (known after
      ``step_s``, for ``max_stale_s``). Entries without a price at the entry or exit are counted in
      ``n_unpriced`` and left out of all but funding. If they are more than a tenth, all but funding
      is null. At a settlement in between, the last known price counts.
    - ``legs`` holds each leg of the pairs alone and short, with ``funding_only``, which leaves
      prices out: names of net figures, drawdown and break-even then begin with ``funding_only_``.
    - A rate is paid on the notional of one leg at the entry, and the basis is the fall of the log
      spread, of that notional: ``notional_basis`` is ``constant``. So swapping the legs changes
      only the sign. ``compound`` puts all that is received, and the fall of the spread, into the
      position at each settlement, at no cost.
    - Net is gross less `FeeModel.round_trip_bps` as of the entry, of the notional then.
    - A position breaks even at the first settlement by which it has earned the cost, at the spread
      then. Quantiles count those that had not within the horizon as not yet.
    - The drawdown is the largest fall from an earlier maximum, without the cost.
    - The bands cover the mean and the median with 95 %. Their error is that of the slow part of
      what entries keep over time, with Student's t, so overlapping holdings are not taken as
      independent. The band of the mean is moved by the skewness (Hall). The median's is between the
      quantiles at the ends of the band of the share that kept at most it (Woodruff).
    - Bands assume that funding forgets well within the window. If the chance that it does not is
      0.3 or more, as for much real funding, they are null for ``long_memory``. They are also null
      if the entries span fewer than 12 horizons, or with fewer than 24 settlements.
      docs/calibration.md has how often they are null, and cover.

    {columns}

    Raises `InputError`: As `toolkit.statistics.funding.summary`. A length is invalid, a notional is
    not above 0, or a style opens no position. ``prices`` lack a column, have a row twice, or are
    given with ``funding_only``.

    Source: Lazarus, E., Lewis, D. J., Stock, J. H. and Watson, M. W. (2018), Journal of Business
    and Economic Statistics 36. Hall, P. (1992), Journal of the Royal Statistical Society B 54.
    Woodruff, R. S. (1952), Journal of the American Statistical Association 47. Memory: Whittle, P.
    (1953), Arkiv for Matematik 2. Granger, C. W. J. and Joyeux, R. (1980), Journal of Time Series
    Analysis 1.

    Ten days at 3 bps per 8 h, against a spot leg, while the spread falls by 1 bps a day.

    >>> frame = pl.DataFrame({"trajectory": "BTC_USDT:KRAKEN.spot:BINANCE.futures",
    ...     "ts": [28800 * k for k in range(1, 31)], "buy_rate": 0.0, "sell_rate": 3e-4,
    ...     "buy_interval_hours": None, "sell_interval_hours": [8] * 30})
    >>> days = {"trajectory": frame["trajectory"][0], "ts": [28800 * k for k in range(-1, 31)]}
    >>> prices = pl.DataFrame(days | {"spread_log_bps": [-k / 3 for k in range(-1, 31)]})
    >>> found = holdings(frame, horizons=["1d", "7d"], prices=prices)
    >>> found.select("n", pl.col("funding_mean_bps", "gross_mean_bps").round(9)).rows()
    [(217, 9.0, 10.0), (73, 63.0, 70.0)]
    >>> holdings(frame, horizons=["1d"]).select("gross_mean_bps", "gross_reason").row(0)
    (None, 'missing_price')
    """
    lengths = _lengths(horizons)
    every_s = parse_length(every, parameter="every")
    if fees is not None:
        check_asked(fees, notional, style)
    check_held_style(style)
    frame = _of_pairs(legs_of(frame) if legs else frame)
    funding_only = funding_only or legs
    by = (("fees", fees.hash if fees else None), ("notional", notional), ("style", style))
    asked = (
        *(("horizons", ",".join(map(str, lengths))), ("every", every_s)),
        *(("funding_only", funding_only), *by, ("compound", compound)),
    )
    window = window_of(frame, start, end, settlements_extent)
    question = Question("funding.holdings/4", *window, None, step_s, max_stale_s, asked)
    priced = PairPrices.of(
        prices, funding_only=funding_only, step_s=step_s, max_stale_s=question.max_stale_s
    )
    rows: list[dict[str, Any]] = []
    settled = settlements(frame, *_SETTLED)
    entered = partial(_samples, horizons_s=lengths, every_s=every_s)
    memory = funding_memories(settled, question)
    for pair in _trajectories(settled, question):
        marks = None if priced is None else priced[pair.key]
        position = FundedPosition(pair.ts, pair.buy_rate, pair.sell_rate, marks, compound)
        costs = costs_over_time([pair.key], fees, notional, style) if fees else None
        samples = entered(pair, position, question, costs, memory=memory[pair.key])
        shared = {"trajectory": pair.key, "notional_basis": position.basis}
        rows += [shared | figures(sample) | _lacks(sample, pair.key, priced) for sample in samples]
    columns = {"trajectory": frame.collect_schema()["trajectory"]}
    columns |= schema(funding_only=funding_only)
    return pl.DataFrame(rows, schema=columns).with_columns(*fee_table(fees), *question.columns)


def _lengths(horizons: Sequence[str | int] | str | int) -> list[int]:
    each_of = [horizons] if isinstance(horizons, str | int) else horizons
    lengths = [parse_length(each, parameter="horizons") for each in each_of]
    if not lengths or len(set(lengths)) < len(lengths):
        raise InputError("horizons", horizons, "lengths such as ['8h', '7d'], each of them once")
    return lengths


def _lacks(sample: Sample, key: Any, prices: PairPrices | None) -> dict[str, Any]:
    if prices is None or not sample.lacks_prices:
        return {}
    return {"prices_lack": prices.lacking(key)}


def _of_pairs(frame: Frame) -> Frame:
    """Return a frame of single legs as pairs with a spot buy leg, and others unchanged."""
    checked_frame(frame)
    schema = frame.collect_schema()
    if "rate" not in schema or "sell_rate" in schema or "interval_hours" not in schema:
        return frame
    return frame.with_columns(
        sell_rate="rate",
        sell_interval_hours="interval_hours",
        buy_rate=pl.lit(0.0),
        buy_interval_hours=pl.lit(None, pl.Float64),
    )


@dataclass(frozen=True, slots=True)
class _Legs:
    """One trajectory's settlements and coverage. ``why`` is the reason if nothing is covered."""

    key: Any
    ts: Integers
    buy_rate: Floats
    sell_rate: Floats
    segments: list[tuple[Integers, Integers]]
    why: Reason


def _trajectories(found: LegSettlements, question: Question) -> Iterator[_Legs]:
    rows, paid = found.rows, accruals(found, question, "row", *_ACCRUES)
    # rows of the legs of a trajectory follow each other, and spot legs have none
    since = np.searchsorted(
        rows["leg_number"].to_numpy(), np.arange(len(LEGS) * found.trajectories.height + 1)
    )
    paid_since = np.searchsorted(paid["row"].to_numpy(), since)
    begins, ends = (paid[name].to_numpy() for name in _ACCRUES)
    ts, rate = rows["ts"].to_numpy(), rows["rate"].to_numpy()
    dense = rows["interval_reason"].eq_missing(Reason.DENSE_ROWS.value).to_numpy()
    for number, (key, *spot) in enumerate(found.trajectories.iter_rows()):
        legs, segments = [], []
        for leg, is_spot in enumerate(spot, len(LEGS) * number):
            places = slice(since[leg], since[leg + 1])
            legs.append((ts[places], rate[places]))
            if not is_spot:
                covers = slice(paid_since[leg], paid_since[leg + 1])
                segments.append(merged(begins[covers], ends[covers]))
        both = slice(since[len(LEGS) * number], since[len(LEGS) * (number + 1)])
        cases = {
            Reason.MISSING_LEG: sum(settled.size > 0 for settled, _ in legs) < len(segments),
            Reason.DENSE_ROWS: dense[both].any(),
        }
        why = next((reason for reason, holds in cases.items() if holds), Reason.LOW_COVERAGE)
        yield _Legs(key, *_received(legs, question), segments, why)


def _received(
    legs: list[tuple[Integers, Floats]], question: Question
) -> tuple[Integers, Floats, Floats]:
    """Return the settlement times in the window, and the rate of each leg then, 0 without one."""
    times = [settled for settled, _ in legs]
    both = np.sort(np.concatenate(times), kind="stable")  # two sorted runs, which it merges
    ts = both[np.append(True, both[1:] > both[:-1])[: both.size]]
    rates = np.zeros((len(LEGS), ts.size))
    for (at, rate), of_leg in zip(legs, rates, strict=True):
        of_leg[slice(None) if at.size == ts.size else np.searchsorted(ts, at)] = rate
    first, last = np.searchsorted(ts, (question.start, question.end), side="right")
    buy, sell = rates[:, first:last]
    return ts[first:last], buy, sell


def _samples(
    legs: _Legs,
    position: FundedPosition,
    question: Question,
    costs: pl.DataFrame | None,
    *,
    memory: Memory,
    horizons_s: list[int],
    every_s: int,
) -> Iterator[Sample]:
    """Enter at each due time, and yield a sample per horizon, shortest first."""
    path = position.path()
    first = -(-question.start // every_s) * every_s
    due = np.arange(first, question.end + 1, every_s, dtype=np.int64)
    cost = _costs_at(due, costs)
    moments = {
        late_s: position.moments(due + late_s, path)
        for late_s in {0, *(each % every_s for each in horizons_s)}
    }
    for horizon_s in sorted(horizons_s):
        n_due = max((question.end - first - horizon_s) // every_s + 1, 0)
        steps, late_s = divmod(horizon_s, every_s)
        opened, closed = moments[0][:n_due], moments[late_s][steps : steps + n_due]
        funding = opened.funding_scale * (closed.level - opened.level)
        whole = covered(legs.segments, opened.ts, horizon_s) & ~np.isnan(funding)
        counts = sliced(whole)
        opened, closed, paid = opened[counts], closed[counts], cost[:n_due][counts]
        funding = funding[counts]
        priced, gross, cost_bps = None, funding, paid
        if path.priced:
            gross = gross_bps(opened, closed)
            priced = ~np.isnan(gross)
            known = sliced(priced)
            opened, closed = opened[known], closed[known]
            gross, cost_bps = gross[known], paid[known]
        yield Sample(
            horizon_s=horizon_s,
            every_s=every_s,
            n_due=n_due,
            n_uncovered=n_due - int(np.count_nonzero(whole)),
            ts=due[:n_due][counts],
            funding_bps=funding,
            cost_bps=paid,
            priced=priced,
            holding=held(path, opened, closed, gross, cost_bps),
            why=legs.why,
            memory=memory,
        )


def _costs_at(ts: Integers, costs: pl.DataFrame | None) -> Floats:
    if costs is None or costs.is_empty():
        return np.full(ts.size, np.nan)
    since = np.searchsorted(costs["ts"].to_numpy(), ts, side="right") - 1
    found = costs["cost_bps"].fill_null(np.nan).to_numpy()
    return np.where(since >= 0, found[np.maximum(since, 0)], np.nan)
