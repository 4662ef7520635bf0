"""The series of a pair: the spread of any two prices, or the funding of any two legs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import overload

import polars as pl

from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval, clip, difference, union
from toolkit.market import Family, Pair, Source, Trajectory, format_ts
from toolkit.series.base import Origin, Series
from toolkit.series.trajectories import FundingSeries, PriceSeries, SpreadSeries
from toolkit.statistics import spread as spread_statistics
from toolkit.tables import LedgerState

_WORST = (
    LedgerState.UNRECOVERABLE,
    LedgerState.LOST,
    LedgerState.MISSING,
    LedgerState.UNKNOWN,
    LedgerState.EMPTY,
    LedgerState.HELD,
)
"""States of the ledger, the worst first: a pair has that of its worst leg."""


@overload
def pair_series(buy: FundingSeries, sell: FundingSeries) -> FundingSeries: ...


@overload
def pair_series(
    buy: PriceSeries,
    sell: PriceSeries,
    fx: PriceSeries | None = None,
    *,
    multiplier: float | None = None,
    max_stale_s: int | None = None,
) -> SpreadSeries: ...


def pair_series(
    buy: PriceSeries | FundingSeries,
    sell: PriceSeries | FundingSeries,
    fx: PriceSeries | None = None,
    *,
    multiplier: float | None = None,
    max_stale_s: int | None = None,
) -> SpreadSeries | FundingSeries:
    """Join two price series to a series of their spread, see `toolkit.statistics.spread.pair`.

    The funding of two single legs is joined to that of the pair: long the first leg, short the
    second, with the settlements of either, to the minute.

    The window is the common one. Nothing is read before it, so a rare price may be null at first.
    The notes name how quotes and contracts were made equal, the greatest age of a price, and
    sources where there are several. Gaps are those of all legs together.

    Raises `EmptyWindowError` where the windows have no second in common or a series has no row, and
    `InputError` as the statistic does, for legs as of two times, and for the funding of two symbols
    or of anything but single legs.
    """
    if isinstance(buy, FundingSeries) or isinstance(sell, FundingSeries):
        return _pair_of_funding(buy, sell)
    legs = {"buy": buy, "sell": sell} | ({} if fx is None else {"fx": fx})
    low, high = _common(legs)
    frames = {name: leg.df.select("trajectory", "ts", "price") for name, leg in legs.items()}
    for name, frame in frames.items():
        if low >= high or frame.is_empty():
            raise EmptyWindowError(
                f"the {name} leg {legs[name].stream} has no price in the window of the pair"
            )
    steps = [leg.origin.step_s for leg in legs.values()]
    known_steps = tuple(step for step in steps if step is not None)
    rows = spread_statistics.pair(
        *frames.values(),
        multiplier=multiplier,
        max_stale_s=max_stale_s,
        steps_s=known_steps if len(known_steps) == len(steps) else None,
    )
    two = Pair.of(*(leg.stream.key for leg in legs.values()))
    origin = Origin(
        _source(legs),
        buy.origin.path,
        buy.origin.as_of,
        max(known_steps[:2]) if len(known_steps) == len(steps) else None,
        _delay_s(legs),
        _states(legs, Interval(low, high)),
        notes=_notes(legs, joined_notes(two, multiplier, max_stale_s)),
    )
    return SpreadSeries(two, Interval(low, high), origin, rows)


def _common(legs: Mapping[str, Series]) -> tuple[int, int]:
    times = {leg.origin.as_of for leg in legs.values()}
    if len(times) > 1:
        shown = ", ".join("now" if at is None else format_ts(at) for at in times)
        raise InputError("as_of", shown, "legs as known at one time")
    low = max(leg.window.start for leg in legs.values())
    return low, min(leg.window.end for leg in legs.values())


def _pair_of_funding(buy: Series, sell: Series) -> FundingSeries:
    legs = {"buy": buy, "sell": sell}
    for leg in legs.values():
        if not isinstance(leg, FundingSeries) or leg.stream.key.count(":") != 1:
            allowed = "the funding of one leg, funding/SYMBOL:EXCHANGE.market, as both"
            raise InputError("pair", leg.stream.key, allowed)
    bought, sold = (Trajectory.parse(leg.stream.key) for leg in legs.values())
    if bought.symbol != sold.symbol:
        raise InputError("pair", f"{bought.symbol} and {sold.symbol}", "funding of one symbol")
    two = Trajectory(Family.FUNDING, bought.symbol, (*bought.legs, *sold.legs))
    low, high = _common(legs)
    if low >= high:
        raise EmptyWindowError(f"{bought} and {sold} have no time in common")
    minute = ((pl.col("ts") + 30) // 60 * 60).alias("ts")
    sides = [
        leg.rows.select(
            minute,
            pl.col("sell_rate").alias(f"{side}_rate"),
            pl.col("sell_interval_hours").alias(f"{side}_interval_hours"),
        )
        for side, leg in legs.items()
    ]
    rows = sides[0].join(sides[1], on="ts", how="full", coalesce=True).sort("ts")
    nothing = pl.lit(None, pl.Float64).alias("differential_pct_8h")
    rows = rows.select(pl.lit(two.key).alias("trajectory"), pl.all(), nothing)
    steps = [leg.origin.step_s for leg in legs.values() if leg.origin.step_s is not None]
    window = Interval(low, high)
    origin = Origin(
        _source(legs),
        buy.origin.path,
        buy.origin.as_of,
        min(steps, default=None),
        _delay_s(legs),
        _states(legs, window),
        notes=_notes(legs, ["joined from the funding of two legs"]),
        fees=buy.origin.fees,
        held_prices=buy.origin.held_prices,
    )
    return FundingSeries(two, window, origin, rows)


def _source(legs: Mapping[str, Series]) -> Source:
    found = {leg.source for leg in legs.values()}
    if len(found) == 1:
        return found.pop()
    return Source("several", ", ".join(sorted(source.id for source in found)))


def _delay_s(legs: Mapping[str, Series]) -> int | None:
    """Return the longest delay of the legs, None where one is not known."""
    delays = [leg.origin.delay_s for leg in legs.values()]
    known = [delay for delay in delays if delay is not None]
    return max(known) if len(known) == len(delays) else None


def _states(legs: Mapping[str, Series], window: Interval) -> pl.DataFrame | None:
    known = [leg.origin.states for leg in legs.values() if leg.origin.states is not None]
    if len(known) < len(legs):
        return None
    found: list[tuple[int, int, str]] = []
    taken: list[Interval] = []
    for state in _WORST:
        stretches = pl.concat(known).filter(state=state.value).select("start_ts", "end_ts")
        inside = clip(stretches.iter_rows(), window)
        own = difference(inside, taken)
        found += [(*stretch, state.value) for stretch in own]
        taken = union([*taken, *own])
    return pl.DataFrame(found, schema=known[0].schema, orient="row").sort("start_ts")


def joined_notes(
    two: Pair, multiplier: float | None = None, max_stale_s: int | None = None
) -> list[str]:
    """Return in words how the prices of a pair are joined. The first note is on their age.

    >>> joined_notes(Pair.of("A_USD:X.spot", "1000A_USD:Y.spot"))[1]
    'the sell price is divided by 1000, the coins in one contract'
    """
    age = "until its next bar is due" if max_stale_s is None else f"for {max_stale_s} s"
    notes = [f"joined from two prices, each used from its bar's end {age}"]
    if two.fx is not None:
        how = "divided" if two.fx_divides else "multiplied"
        notes.append(f"the buy price is {how} by {two.fx}")
    for name, count in zip(("buy", "sell"), two.coins(multiplier), strict=True):
        if count != 1:
            notes.append(f"the {name} price is divided by {count:g}, the coins in one contract")
    return notes


def _notes(legs: Mapping[str, Series], joined: list[str]) -> tuple[str, ...]:
    notes = list(joined)
    if len({leg.source for leg in legs.values()}) > 1:
        notes += [f"{name} leg: {leg.source.label}" for name, leg in legs.items()]
    inherited = [note for leg in legs.values() for note in leg.origin.notes]
    return (*notes, *dict.fromkeys(inherited))
