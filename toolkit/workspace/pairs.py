"""Pairs of any two stored prices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import polars as pl

from toolkit.cards import some
from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval
from toolkit.market import Pair, Stream, Trajectory
from toolkit.series import FundingSeries, PriceSeries, Series, SpreadSeries, pair_series
from toolkit.series.trajectories import joined_notes
from toolkit.statistics import spread as spread_statistics
from toolkit.statistics.families import extent_of
from toolkit.store import Store, check_known, sync_advice


@dataclass(frozen=True, slots=True)
class Joining:
    """Parameters of `toolkit.statistics.spread.pair`.

    ``fx`` is for keys of two quotes without an FX leg.
    """

    fx: Trajectory | str | None = None
    multiplier: float | None = None
    max_stale_s: int | None = None

    def pairs(self, pairs: Iterable[Pair | str] | Pair | str) -> tuple[Pair, ...]:
        """Read the keys of pairs, each once. Raises `InputError` for an invalid pair.

        >>> pairs = ["pair/A_USD:X.spot/A_USDT:X.spot", "pair/A_USD:X.spot/A_USD:Y.spot"]
        >>> [str(pair.fx) for pair in Joining(fx="USDT_USD:X.spot").pairs(pairs)]
        ['USDT_USD:X.spot', 'None']
        """
        several = [pairs] if isinstance(pairs, str | Stream) else pairs
        if not isinstance(several, Iterable):
            raise InputError("pairs", pairs, "a list of keys pair/BUY/SELL")
        found = tuple(dict.fromkeys(Pair.parse(key, self.fx) for key in several))
        if not found:
            raise InputError("pairs", pairs, "one key or more of the form pair/BUY/SELL")
        if self.fx is not None and all(str(pair.fx) != str(self.fx) for pair in found):
            raise InputError("fx", self.fx, "none: each key has its FX leg, or legs of one quote")
        for pair in found:
            pair.coins(self.multiplier)
        return found


@dataclass(frozen=True, slots=True)
class HeldPairs:
    """Pairs of stored prices. ``legs`` has the catalogue's row of each leg."""

    store: Store
    pairs: tuple[Pair, ...]
    joining: Joining
    legs: Mapping[Trajectory, dict[str, Any]]

    @classmethod
    def of(
        cls, store: Store, pairs: Iterable[Pair | str] | Pair | str, joining: Joining
    ) -> HeldPairs:
        """Find the legs of the pairs. Raises `UnknownTrajectoryError` for an unknown leg."""
        found = joining.pairs(pairs)
        with store.reading():
            rows = {row["stream"]: row for row in store.catalogue().iter_rows(named=True)}
            legs = dict.fromkeys(leg for pair in found for leg in pair.prices)
            for leg in legs:
                if leg.key not in rows:
                    check_known(store, leg)
        for leg in legs:
            if not rows[leg.key]["rows"]:
                advice = sync_advice(store, leg.key, does="asks again")
                raise EmptyWindowError(f"{store.name} holds no rows of {leg}; {advice}")
        return cls(store, found, joining, {leg: rows[leg.key] for leg in legs})

    def everything(self) -> Interval:
        """Return the window from the first to the last second that a pair's legs share."""
        found = []
        for pair in self.pairs:
            held = [each for leg in pair.prices if (each := extent_of([self.legs[leg]]))]
            start, end = max(each.start for each in held), min(each.end for each in held)
            found += [Interval(start, end)] if start < end else []
        if not found:
            raise EmptyWindowError(f"the legs of {self._named} have no time in common")
        return Interval(min(each.start for each in found), max(each.end for each in found))

    def groups(self, window: Interval, *, as_of: int | None = None) -> Iterator[pl.DataFrame]:
        """Yield the rows of each pair in a window, as from `toolkit.statistics.spread.pair`.

        Skips pairs with a leg without a row, and raises `EmptyWindowError` if all are. ``as_of``
        is that of `toolkit.store.Store.series`.
        """
        found = False
        for pair in self.pairs:
            prices = [self.store.series(leg, window, as_of=as_of) for leg in pair.prices]
            if any(rows.is_empty() for rows in prices):
                continue
            steps = tuple(self.legs[leg]["step_s"] for leg in pair.prices)
            yield spread_statistics.pair(
                *prices,
                multiplier=self.joining.multiplier,
                max_stale_s=self.joining.max_stale_s,
                steps_s=None if None in steps else steps,
            )
            found = True
        if not found:
            raise EmptyWindowError(f"{self.store.path} holds nothing in {window} of {self._named}")

    @property
    def steps(self) -> dict[str, int]:
        """The steps (s) of the pairs by key: the longer of the prices', if known."""
        known = {pair: [self.legs[leg]["step_s"] for leg in pair.prices] for pair in self.pairs}
        return {pair.key: max(each[:2]) for pair, each in known.items() if None not in each}

    @property
    def notes(self) -> list[str]:
        """How the prices were joined, for several pairs what is the same for all."""
        notes = joined_notes(self.pairs[0], self.joining.multiplier, self.joining.max_stale_s)
        return notes if len(self.pairs) == 1 else notes[:1]

    @property
    def _named(self) -> str:
        return some([pair.key for pair in self.pairs])


def paired(
    read: Callable[[str], Series],
    buy: Trajectory | PriceSeries | FundingSeries | str,
    sell: Trajectory | PriceSeries | FundingSeries | str,
    fx: Trajectory | PriceSeries | str | None,
    *,
    multiplier: float | None,
    max_stale_s: int | None,
) -> SpreadSeries | FundingSeries:
    """Return the spread of two prices or the funding of two legs, read or given."""
    legs = [leg for leg in (buy, sell, fx) if leg is not None]
    keys = [leg.stream.key if isinstance(leg, Series) else str(leg) for leg in legs]
    funding = all(key.startswith("funding/") for key in keys[:2])
    if not funding:
        Pair.of(*keys).coins(multiplier)
    kind = FundingSeries if funding else PriceSeries
    named = zip(legs, keys, strict=True)
    found = [leg if isinstance(leg, kind) else read(key) for leg, key in named]
    if funding:
        return pair_series(*cast("list[FundingSeries]", found[:2]))
    prices = cast("list[PriceSeries]", found)
    return pair_series(*prices, multiplier=multiplier, max_stale_s=max_stale_s)
