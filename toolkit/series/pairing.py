"""The series of a pair: the spread of any two price series, of one store or of several."""

from __future__ import annotations

import polars as pl

from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval, clip, difference, union
from toolkit.market import Pair, Source, format_ts
from toolkit.series.base import Origin
from toolkit.series.prices import PriceSeries
from toolkit.series.trajectories import SpreadSeries
from toolkit.statistics import spread as spread_statistics
from toolkit.tables import LedgerState

_WORST = (
    LedgerState.UNRECOVERABLE,
    LedgerState.MISSING,
    LedgerState.UNKNOWN,
    LedgerState.EMPTY,
    LedgerState.HELD,
)
"""States of the ledger: a pair has the first of these that one of its legs is in."""


def pair_series(
    buy: PriceSeries,
    sell: PriceSeries,
    fx: PriceSeries | None = None,
    *,
    multiplier: float | None = None,
    max_stale_s: int | None = None,
) -> SpreadSeries:
    """Join two price series to a series of their spread, see `toolkit.statistics.spread.pair`.

    Its window is what all have in common. Nothing is read before the windows of the legs, so that
    a price that comes seldom may be null at first. Its notes say how quotes and
    contracts were made equal and how old a price may be. Series of several sources may be joined:
    the notes name them. Its gaps are those of all legs together.

    Raises `EmptyWindowError` where the windows have no second in common or a series has no row, and
    `InputError` as the statistic does and for legs as known at two times.
    """
    legs = {"buy": buy, "sell": sell} | ({} if fx is None else {"fx": fx})
    times = {leg.origin.as_of for leg in legs.values()}
    if len(times) > 1:
        shown = ", ".join("now" if at is None else format_ts(at) for at in times)
        raise InputError("as_of", shown, "legs as known at one time")
    low = max(leg.window.start for leg in legs.values())
    high = min(leg.window.end for leg in legs.values())
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


def _source(legs: dict[str, PriceSeries]) -> Source:
    found = {leg.source for leg in legs.values()}
    if len(found) == 1:
        return found.pop()
    return Source("several", ", ".join(sorted(source.id for source in found)))


def _delay_s(legs: dict[str, PriceSeries]) -> int | None:
    """Return the longest delay of the legs, None where one is not known."""
    delays = [leg.origin.delay_s for leg in legs.values()]
    known = [delay for delay in delays if delay is not None]
    return max(known) if len(known) == len(delays) else None


def _states(legs: dict[str, PriceSeries], window: Interval) -> pl.DataFrame | None:
    """Return the state of every second of a pair, None where that of a leg is not known."""
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
    """Return in words how the prices of a pair are joined: first that of age, which all have.

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


def _notes(legs: dict[str, PriceSeries], joined: list[str]) -> tuple[str, ...]:
    notes = list(joined)
    if len({leg.source for leg in legs.values()}) > 1:
        notes += [f"{name} leg: {leg.source.label}" for name, leg in legs.items()]
    inherited = [note for leg in legs.values() for note in leg.origin.notes]
    return (*notes, *dict.fromkeys(inherited))
