"""Stored prices of the legs of funding pairs, for carry.

They are the pair's spread in either orientation, or its two prices joined, whichever covers more of
the window. Ties go to the spread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import polars as pl

from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory, format_ts, swapped
from toolkit.statistics.families import FAMILIES
from toolkit.statistics.funding.carry_marks import (
    OPENS_WITHIN_S,
    STALE_STEPS,
    Marks,
    PairPrices,
    marks_of,
)
from toolkit.statistics.spread import pair
from toolkit.store import Store, held_key, sync_advice

_BEFORE_S = 3_600
_NAMED = 3


@dataclass(frozen=True)
class HeldPrices:
    """The prices in a store as of a time (s, local clock), None for now."""

    store: Store
    as_of: int | None = None

    @cached_property
    def _streams(self) -> Mapping[str, dict[str, Any]]:
        """The catalogue's rows of stored prices and spreads, by key."""
        kinds = [Family.PRICE.value, Family.SPREAD.value]
        begins = None if self.as_of is None else self.store.history_from
        known = begins is None or (self.as_of is not None and self.as_of >= begins)
        held = self.store.catalogue(as_of=self.as_of if known else None)
        held = held.filter(pl.col("rows") > 0, pl.col("kind").is_in(kinds))
        return {row["stream"]: row for row in held.iter_rows(named=True)}

    def over(self, pairs: Iterable[str], window: Interval) -> PairPrices:
        """Read the prices of funding pairs over all of a window ``(start, end]``."""
        return self._read(pairs, window, None)

    def at_ends(self, pairs: Iterable[str], *windows: Interval) -> PairPrices:
        """Read the prices that are known at the ends of windows, and no others."""
        whole = Interval(min(each.start for each in windows), max(each.end for each in windows))
        around = [Interval(each.start, each.start + OPENS_WITHIN_S) for each in windows]
        around += [Interval(each.end, each.end) for each in windows]
        return self._read(pairs, whole, list(dict.fromkeys(around)))

    def keys_of(self, pair_key: str, window: Interval) -> tuple[str, ...]:
        """Return the streams of a pair's prices: its spread, or two prices."""
        trajectory = Trajectory.parse(pair_key, Family.FUNDING)
        spread = held_key(trajectory.legs_key, self._streams)
        legs = tuple(f"{trajectory.symbol}:{leg}" for leg in trajectory.legs)
        reach = self._reach((spread,), window) if spread else 0
        if self._reach(legs, window) > reach:
            return legs
        return (spread or trajectory.legs_key,)

    def reach_over(self, pair_key: str, window: Interval) -> bool:
        """Return whether a pair's prices span the window, from its first settlement on (8 h)."""
        reach = self._reach(self.keys_of(pair_key, window), window)
        return reach >= window.length_s - OPENS_WITHIN_S

    def _reach(self, keys: Sequence[str], window: Interval) -> int:
        """Return how much of a window all streams span (s), 0 if one is not stored."""
        if not all(key in self._streams for key in keys):
            return 0
        rows = [self._streams[key] for key in keys]
        first = max(window.start, *(row["first_ts"] for row in rows))
        last = min(window.end, *(row["last_ts"] + (row["step_s"] or 0) for row in rows))
        return max(0, int(last - first))

    def loads(self, pairs: Iterable[str], window: Interval) -> str:
        """Return the command that loads the prices of the first few pairs."""
        named = sorted(set(pairs))
        keys = dict.fromkeys(key for each in named[:_NAMED] for key in self.keys_of(each, window))
        start, end = _typed(window)
        more = f" for the first {_NAMED} of {len(named)}" if len(named) > _NAMED else ""
        times = ("--start", start, "--end", end)
        return sync_advice(self.store, *keys, *times, does=f"asks for the prices{more}")

    @cached_property
    def _is_taken_from_elsewhere(self) -> bool:
        """Whether no service loads rows into the store."""
        return bool(self.store.published) or self.store.source.kind == "own"

    def _call(self, pair_key: str, window: Interval) -> str:
        """Return the Python call that loads a pair's prices, without a path for equal results."""
        if self._is_taken_from_elsewhere:
            return self.loads([pair_key], window)
        keys = ", ".join(f'"{key}"' for key in self.keys_of(pair_key, window))
        start, end = _typed(window)
        return f'rail.sync([{keys}], "{start}", "{end}")'

    def lacking(self, found: pl.DataFrame, window: Interval) -> list[str]:
        """Return a line on a result's pairs without prices, if any, and how to load them."""
        if "prices_lack" not in found.columns:
            return []
        pairs = found.filter(pl.col("trajectory").str.count_matches(":") == 2)
        lack = pairs.drop_nulls("prices_lack")["trajectory"].unique().to_list()
        if not lack:
            return []
        of, loads = pairs["trajectory"].n_unique(), self.loads(lack, window)
        return [f"carry is not known of {len(lack)} of {of}, whose prices are not held; {loads}"]

    def _read(
        self, pairs: Iterable[str], window: Interval, moments: list[Interval] | None
    ) -> PairPrices:
        of_two = [key for key in pairs if key.count(":") == 2]  # one leg has no spread
        wanted = {key.rpartition("/")[2]: self.keys_of(key, window) for key in of_two}
        held = {key for keys in wanted.values() for key in keys if key in self._streams}
        rows = self._rows(held, window, moments)
        marks = {plain: self._marks(keys, rows) for plain, keys in wanted.items()}
        return PairPrices(
            {self._named(plain, wanted[plain]): each for plain, each in marks.items() if each},
            {plain: self._call(plain, window) for plain in wanted},
        )

    @staticmethod
    def _named(plain: str, keys: Sequence[str]) -> str:
        return swapped(plain) if keys[0] == swapped(plain) else plain

    def _rows(
        self, keys: set[str], window: Interval, moments: list[Interval] | None
    ) -> dict[str, pl.DataFrame]:
        found: dict[str, list[pl.DataFrame]] = {}
        for asked, read in self._asked(keys, window, moments):
            for group in self.store.groups(asked, read, as_of=self.as_of):
                for (key,), part in group.partition_by("trajectory", as_dict=True).items():
                    found.setdefault(cast("str", key), []).append(part)
        return {key: pl.concat(parts).unique("ts").sort("ts") for key, parts in found.items()}

    def _asked(
        self, keys: set[str], window: Interval, moments: list[Interval] | None
    ) -> Iterator[tuple[set[str], Interval]]:
        steps: dict[tuple[str, int], set[str]] = {}
        for key in sorted(keys):
            row = self._streams[key]
            steps.setdefault((row["kind"], row["step_s"] or 1), set()).add(key)
        for (_, step_s), asked in steps.items():
            back_s = (STALE_STEPS + 1) * step_s
            if moments is None:
                yield asked, Interval(window.start - back_s, window.end + 1)
                continue
            for about in moments:
                yield asked, Interval(about.start - back_s, about.end + 1)

    def _marks(self, keys: Sequence[str], rows: Mapping[str, pl.DataFrame]) -> Marks | None:
        if not all(key in rows for key in keys):
            return None
        steps = tuple(self._streams[key]["step_s"] or 1 for key in keys)
        if len(keys) == 1:
            found = FAMILIES[Family.SPREAD].ready(rows[keys[0]])
        else:
            buy, sell = (rows[key].select("trajectory", "ts", "price") for key in keys)
            found = pair(buy, sell, steps_s=steps)
        return marks_of(found, max(steps))


def _typed(window: Interval) -> tuple[str, str]:
    times = (window.start - _BEFORE_S, window.end)
    start, end = (format_ts(ts).removesuffix(" UTC").replace(" ", "T") for ts in times)
    return start, end
