"""What closing a position would add or take at some times, from prices known by then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from toolkit.statistics.carry_paths import Moments, Numbers, Path, Times, counted
from toolkit.statistics.contract import Frame, checked_columns, collected
from toolkit.statistics.observations import checked_keys, observed

_PREFIX = "funding/"
_PRICES = ("buy_price", "sell_price")
_SPREAD = "spread_log_bps"


@dataclass(frozen=True, slots=True)
class Rows:
    """The prices of one trajectory: when each is known (s, rising), for how long, and what it is.

    ``values`` has the price of the buy and of the sell leg, or the spread alone, 1e-4 log bps.
    """

    known_at: Times
    max_stale_s: int
    values: tuple[Numbers, ...]

    def at(self, ts: Times) -> tuple[Numbers, ...]:
        """Return what was known last at each time, NaN where that is too old.

        >>> rows = Rows(np.array([60, 120]), 30, (np.array([1.0, 2.0]),))
        >>> rows.at(np.array([59, 60, 91, 120]))[0].tolist()
        [nan, 1.0, nan, 2.0]
        """
        if not self.known_at.size:
            return tuple(np.full(ts.size, np.nan) for _ in self.values)
        row = np.searchsorted(self.known_at, ts, side="right") - 1
        fresh = (row >= 0) & (ts - self.known_at[np.maximum(row, 0)] <= self.max_stale_s)
        return tuple(np.where(fresh, value[np.maximum(row, 0)], np.nan) for value in self.values)


NONE_KNOWN = Rows(np.empty(0, np.int64), 0, (np.empty(0),))
"""The prices of a trajectory without any."""


def marks_of(
    prices: Frame | None, step_s: int | None, max_stale_s: int | None
) -> dict[object, Rows] | None:
    """Read the prices of each trajectory, without the prefix ``funding/`` of its key.

    >>> frame = pl.DataFrame({"trajectory": ["a"] * 2, "ts": [0, 60], "spread_log_bps": [1.0, 2.0]})
    >>> marks_of(frame, None, None)["a"].known_at.tolist()
    [60, 120]
    """
    if prices is None:
        return None
    priced = isinstance(prices, pl.DataFrame | pl.LazyFrame) and all(
        name in prices.collect_schema() for name in _PRICES
    )
    columns = _PRICES if priced else (_SPREAD,)
    checked_columns(prices, *columns)
    rows = collected(prices.lazy().select("trajectory", "ts", *columns))
    checked_keys(rows)
    steps = rows.sort("trajectory", "ts").with_columns(step=pl.col("ts").diff().over("trajectory"))
    known = pl.all_horizontal(
        observed(name).is_not_null() & ((pl.col(name) > 0) | (name == _SPREAD)) for name in columns
    )
    found = {}
    for (key,), every in steps.partition_by(
        "trajectory", as_dict=True, maintain_order=True
    ).items():
        modes = every["step"].drop_nulls().mode()
        step = step_s or (int(modes.min()) if modes.len() else 1)  # type: ignore[arg-type]  # whole
        part = every.filter(known)
        values = tuple(part[name].to_numpy() / (1e4 if name == _SPREAD else 1) for name in columns)
        stale = 3 * step if max_stale_s is None else max_stale_s
        found[plain(key)] = Rows(part["ts"].to_numpy() + step, stale, values)
    return found


def plain(key: object) -> object:
    """Return the key without the prefix of funding, so that it is that of the spread.

    >>> plain("funding/BTC_USDT:X.futures:Y.futures"), plain(7)
    ('BTC_USDT:X.futures:Y.futures', 7)
    """
    return key.removeprefix(_PREFIX) if isinstance(key, str) else key


@dataclass(frozen=True, slots=True)
class FundedPosition:
    """One trajectory's settlements, ``ts`` rising, each leg's rate at each (0 where it has none).

    ``rows`` None holds a constant notional without prices.
    """

    ts: Times
    buy_rate: Numbers
    sell_rate: Numbers
    rows: Rows | None
    compound: bool

    @property
    def basis(self) -> str:
        """What rates are paid on, in a word."""
        if self.compound:
            return "compound"
        return "drifting" if self.rows is not None and len(self.rows.values) == 2 else "constant"

    def path(self) -> Path:
        """Return the path of the position.

        >>> rates = np.array([0.0, 0.0]), np.array([0.5, 0.5])
        >>> [FundedPosition(np.array([0, 60]), *rates, None, compound).path().level.tolist()
        ...  for compound in (False, True)]
        [[0.0, 0.5, 1.0], [1.0, 1.5, 2.25]]
        """
        prices = self._at(self.ts)
        if self.compound:
            grown = np.maximum(1 + self.sell_rate - self.buy_rate, 0.0)
            level = np.append(1.0, np.cumprod(grown))
            return Path(self.ts, level, level[1:] * self._gain(prices), self.rows is not None)
        buy, sell = prices if len(prices) == 2 else (1.0, 1.0)
        paid = self.sell_rate * sell - self.buy_rate * buy
        if self.rows is not None:
            np.nan_to_num(paid, copy=False)
        level = np.append(0.0, np.cumsum(paid))
        return Path(self.ts, level, self._gain(prices), self.rows is not None)

    def moments(self, ts: Times, path: Path) -> Moments:
        """Return where the path is at times equally far apart, and what a unit of it is then."""
        place = counted(path.ts, ts)
        prices, level = self._at(ts), path.level[place]
        mark = self._gain(prices)
        scale = funding_scale = np.full(ts.size, 1e4)
        if self.compound:
            # nothing is opened with nothing
            funding_scale = 1e4 / np.where(level > 0, level, np.nan)
            scale, mark = 1e4 / (np.where(level > 0, level, np.nan) * (1 + mark)), level * mark
        elif len(prices) == 2:
            scale = funding_scale = 1e4 / np.sqrt(prices[0] * prices[1])
        return Moments(ts, place, level, level + mark, path.unpriced[place], scale, funding_scale)

    def _at(self, ts: Times) -> tuple[Numbers, ...]:
        return (np.zeros(ts.size),) if self.rows is None else self.rows.at(ts)

    def _gain(self, prices: tuple[Numbers, ...]) -> Numbers:
        """Return what the prices add: of a unit held, or where gains are put back, per one."""
        if not self.compound:
            return prices[0] - prices[1] if len(prices) == 2 else -prices[0]
        if len(prices) == 2:
            return prices[0] / prices[1] - 1
        return np.expm1(-prices[0])
