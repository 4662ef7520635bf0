"""Marks of a position: what closing it would add at some times, by the prices known then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from toolkit.errors import InputError
from toolkit.market import swapped
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, checked_columns, collected
from toolkit.statistics.core.definition import holding
from toolkit.statistics.core.observations import checked_keys, observed
from toolkit.statistics.funding.carry_paths import Moments, Numbers, Path, Times, counted

FUNDING_ONLY = "funding_only_"
"""The prefix of columns without prices."""
HOW_TO_PRICE = "prices= takes rows of both legs' prices, funding_only=True leaves prices out"
STALE_STEPS = 3
"""The default number of steps for which a price holds once known."""

OPENS_WITHIN_S = 28_800
"""How long after a window's start a position may be opened if no price is known before (s)."""
BASIS = ("basis_bps", "basis_reason", "carry_bps", "carry_reason", "prices_lack")

_PREFIX = "funding/"
_SPREAD = "spread_log_bps"


@dataclass(frozen=True, slots=True)
class Marks:
    """The log spread of one pair, 1e4 ln(sell / buy): when known (s, rising), and for how long."""

    known_at: Times
    spread_log_bps: Numbers
    max_stale_s: int

    def at(self, ts: Times) -> Numbers:
        """Return the value last known at each time, NaN if too old.

        >>> marks = Marks(np.array([60, 120]), np.array([1.0, 2.0]), 30)
        >>> marks.at(np.array([59, 60, 91, 120])).tolist()
        [nan, 1.0, nan, 2.0]
        """
        if not self.known_at.size:
            return np.full(ts.size, np.nan)
        row = np.searchsorted(self.known_at, ts, side="right") - 1
        fresh = (row >= 0) & (ts - self.known_at[np.maximum(row, 0)] <= self.max_stale_s)
        return np.where(fresh, self.spread_log_bps[np.maximum(row, 0)], np.nan)

    def last(self, ts: Times) -> Numbers:
        """Return the value last known at each time, however old, NaN before the first."""
        row = np.searchsorted(self.known_at, ts, side="right")
        return np.append(np.nan, self.spread_log_bps)[row]

    def opening(self, start: int, before: int | None) -> float:
        """Return the log spread at which a position is opened at ``start``, NaN without one.

        It is the last known then, else the first known within 8 h and before the first settlement,
        ``before``, so that the same settlements are received.

        >>> marks = Marks(np.array([60, 120]), np.array([1.0, 2.0]), 30)
        >>> [marks.opening(start, before) for start, before in ((120, None), (1, 3600), (1, 60))]
        [2.0, 1.0, nan]
        """
        known = float(self.at(np.array([start]))[0])
        at = int(np.searchsorted(self.known_at, start))
        if np.isnan(known) and at < self.known_at.size:
            soon = int(self.known_at[at])
            if soon <= start + OPENS_WITHIN_S and (before is None or soon < before):
                return float(self.spread_log_bps[at])
        return known

    @property
    def turned(self) -> Marks:
        """The marks of the reverse pair."""
        return replace(self, spread_log_bps=-self.spread_log_bps)


NONE_KNOWN = Marks(np.empty(0, np.int64), np.empty(0), 0)


@dataclass(frozen=True, slots=True)
class LegPrices:
    """The marks of pairs, by key without ``funding/``, and what ``loads`` missing ones."""

    marks: Mapping[object, Marks]
    loads: Mapping[object, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        prices: Frame | LegPrices | None,
        *,
        funding_only: bool,
        step_s: int | None = None,
        max_stale_s: int | None = None,
    ) -> LegPrices | None:
        """Read the prices given to a statistic, None if it leaves prices out.

        A frame has trajectory, ts and either ``buy_price`` and ``sell_price`` or
        ``spread_log_bps``. Raises `InputError` for another one, and for prices with
        ``funding_only``.

        >>> frame = pl.DataFrame({"trajectory": "a", "ts": [0, 60], "spread_log_bps": [1.0, 2.0]})
        >>> LegPrices.of(frame, funding_only=False)["a"].known_at.tolist()
        [60, 120]
        """
        if not isinstance(funding_only, bool):
            raise InputError("funding_only", funding_only, "True or False")
        if funding_only:
            if prices is not None:
                raise InputError("prices", prices, "None where funding_only leaves prices out")
            return None
        if isinstance(prices, LegPrices):
            return prices if max_stale_s is None else prices.held_for(max_stale_s)
        return cls({} if prices is None else _marks_of(prices, step_s, max_stale_s))

    def __getitem__(self, key: object) -> Marks:
        key = plain(key)
        if key not in self.marks and isinstance(key, str) and swapped(key) in self.marks:
            return self.marks[swapped(key)].turned
        return self.marks.get(key, NONE_KNOWN)

    def lacking(self, key: object) -> str:
        """Return how to load a pair's missing prices."""
        return self.loads.get(plain(key), HOW_TO_PRICE)

    def held_for(self, max_stale_s: int) -> LegPrices:
        """Return the same prices with another ``max_stale_s``."""
        marks = {key: replace(each, max_stale_s=max_stale_s) for key, each in self.marks.items()}
        return replace(self, marks=marks)


def _marks_of(prices: Frame, step_s: int | None, max_stale_s: int | None) -> dict[object, Marks]:
    frame = holding(prices, _SPREAD)
    checked_columns(frame, _SPREAD)
    rows = collected(frame.lazy().select("trajectory", "ts", _SPREAD))
    checked_keys(rows)
    found = {}
    for (key,), part in (
        rows.sort("trajectory", "ts")
        .partition_by("trajectory", as_dict=True, maintain_order=True)
        .items()
    ):
        modes = part["ts"].diff().drop_nulls().mode()
        step = step_s or (int(modes.min()) if modes.len() else 1)  # type: ignore[arg-type]  # whole
        found[plain(key)] = marks_of(part, step, max_stale_s)
    return found


def marks_of(rows: pl.DataFrame, step_s: int, max_stale_s: int | None = None) -> Marks:
    """Return the marks of one pair: rows with ts and ``spread_log_bps``, sorted by ts.

    >>> rows = pl.DataFrame({"ts": [0, 60], "spread_log_bps": [100.0, None]})
    >>> marks_of(rows, 60).spread_log_bps.tolist()
    [100.0]
    """
    known = rows.filter(observed(_SPREAD).is_not_null())
    stale_s = STALE_STEPS * step_s if max_stale_s is None else max_stale_s
    return Marks(known["ts"].to_numpy() + step_s, known[_SPREAD].to_numpy(), stale_s)


def plain(key: object) -> object:
    """Return the key without the prefix of funding.

    >>> plain("funding/BTC_USDT:X.futures:Y.futures"), plain(7)
    ('BTC_USDT:X.futures:Y.futures', 7)
    """
    return key.removeprefix(_PREFIX) if isinstance(key, str) else key


def with_basis(figures: pl.DataFrame, prices: LegPrices) -> pl.DataFrame:
    """Add the basis from ``window_start`` to ``window_end``, and the carry: the columns `BASIS`.

    ``figures`` has trajectory, t_first (s, the first settlement), funding_bps with its reason,
    window_start and window_end (s), in any order. See `toolkit.statistics.funding.summary`.

    >>> rows = {"trajectory": ["a"], "t_first": [60], "funding_bps": [1.0], "window_start": [60],
    ...         "funding_reason": [None], "window_end": [120]}
    >>> marks = Marks(np.array([60, 120]), np.array([5.0, 3.0]), 60)
    >>> figures = pl.DataFrame(rows, schema_overrides={"funding_reason": pl.String})
    >>> with_basis(figures, LegPrices({"a": marks})).select("basis_bps", "carry_bps").row(0)
    (2.0, 3.0)
    """
    basis = np.full(figures.height, np.nan)
    lacks = []
    numbered = figures.select(
        "trajectory", "window_start", "t_first", "window_end"
    ).with_row_index()
    for (key, start, first), part in numbered.group_by(
        "trajectory", "window_start", "t_first", maintain_order=True
    ):
        marks, loads = prices[key], prices.lacking(key)
        at_end = marks.at(part["window_end"].to_numpy())
        opened = marks.opening(int(start), None if first is None else int(first))
        basis[part["index"].to_numpy()] = opened - at_end
        lacks.append(part.select("index", prices_lack=pl.lit(loads)))
    named = (
        pl.concat(lacks).sort("index")["prices_lack"] if lacks else pl.Series([], dtype=pl.String)
    )
    unknown = pl.col("basis_bps").is_null()
    missing = pl.when(unknown).then(pl.lit(Reason.MISSING_PRICE.value))
    return figures.with_columns(
        pl.Series("basis_bps", basis).fill_nan(None), named.alias("prices_lack")
    ).with_columns(
        missing.alias("basis_reason"),
        (pl.col("funding_bps") + pl.col("basis_bps")).alias("carry_bps"),
        pl.coalesce("funding_reason", missing).alias("carry_reason"),
        pl.when(unknown).then("prices_lack").alias("prices_lack"),
    )


@dataclass(frozen=True, slots=True)
class FundedPosition:
    """One trajectory's settlements: ``ts`` rising, and each leg's rate then, 0 without one.

    ``marks`` None leaves prices out.
    """

    ts: Times
    buy_rate: Numbers
    sell_rate: Numbers
    marks: Marks | None
    compound: bool

    @property
    def basis(self) -> str:
        """The notional that rates are paid on."""
        return "compound" if self.compound else "constant"

    def path(self) -> Path:
        """Return the path of the position.

        >>> rates = np.array([0.0, 0.0]), np.array([0.5, 0.5])
        >>> [FundedPosition(np.array([0, 60]), *rates, None, compound).path().level.tolist()
        ...  for compound in (False, True)]
        [[0.0, 0.5, 1.0], [1.0, 1.5, 2.25]]
        """
        paid = self.sell_rate - self.buy_rate
        mark = self._mark(None if self.marks is None else self.marks.last(self.ts), self.ts)
        if self.compound:
            level = np.append(1.0, np.cumprod(np.maximum(1 + paid, 0.0)))
            return Path(self.ts, level, level[1:] * mark, self.marks is not None)
        level = np.append(0.0, np.cumsum(paid))
        return Path(self.ts, level, mark, self.marks is not None)

    def moments(self, ts: Times, path: Path) -> Moments:
        """Return the path's places at equidistant times, and the value of a unit then."""
        place = counted(path.ts, ts)
        mark = self._mark(None if self.marks is None else self.marks.at(ts), ts)
        level = path.level[place]
        scale = funding_scale = np.full(ts.size, 1e4)
        if self.compound:
            # nothing is opened with nothing
            funding_scale = 1e4 / np.where(level > 0, level, np.nan)
            scale, mark = 1e4 / (np.where(level > 0, level, np.nan) * (1 + mark)), level * mark
        return Moments(ts, place, level, level + mark, scale, funding_scale)

    def _mark(self, spread_log_bps: Numbers | None, ts: Times) -> Numbers:
        """Return what prices add to a level of 1, or with compounding per one."""
        if spread_log_bps is None:
            return np.zeros(ts.size)
        fall = -spread_log_bps / 1e4
        return np.expm1(fall) if self.compound else fall


Prices = Frame | LegPrices
