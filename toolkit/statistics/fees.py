"""What a spread leaves after costs, by a fee table that the user owns.

The service's figures net of fees are always null, and no fee is built in here: what trading costs
depends on the account, and on the day. A fee that the table does not state is unknown, never 0, and
a figure that needs it is null.

The table is a TOML file, with one entry per exchange (or per market of it) and date::

    name = "my account"

    [[fee]]
    exchange = "BINANCE"        # as in the data: UPPERCASE, DEX-{CHAIN} for a DEX
    market = "futures"          # optional, without it, for markets that have no entry of their own
    valid_from = 2026-01-01     # UTC, until the next entry of the same exchange and market
    maker_bps = 2.0             # of the notional, a fill, negative for a rebate
    taker_bps = 5.0             # of the notional, a fill, on a DEX the pool's fee
    slippage_bps = 1.0          # of the notional, a round trip on this leg
    gas_quote = 3.0             # of one fill on a DEX, in the quote currency
    withdraw_quote = {BTC = 20.0}   # to withdraw that asset once, in the quote currency
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import polars as pl

from toolkit.errors import InputError
from toolkit.market import Leg, Market, Trajectory, parse_ts
from toolkit.statistics.contract import (
    Frame,
    Reason,
    checked_columns,
    checked_types,
    first_reason,
    real_number,
)
from toolkit.statistics.definition import holding
from toolkit.statistics.kernel import checked_keys, observed

__all__ = ["Fee", "FeeModel", "Style", "net_edge"]


def __dir__() -> list[str]:
    return __all__


Style = Literal["taker", "maker", "transfer"]
"""How a spread is taken: four fills at one of the two rates, or bought here and sold there."""

_AMOUNTS = ("maker_bps", "taker_bps", "slippage_bps", "gas_quote")
_FILLS: dict[str, int] = {"taker": 4, "maker": 4, "transfer": 2}
_EXAMPLE = """
name = "EXAMPLE VALUES, no exchange's own: edit"

[[fee]]
exchange = "BINANCE"
valid_from = 2017-01-01
maker_bps = 2.0
taker_bps = 5.0
slippage_bps = 1.0
withdraw_quote = {BTC = 20.0, ETH = 5.0}

[[fee]]
exchange = "KRAKEN"
valid_from = 2017-01-01
maker_bps = 10.0
taker_bps = 20.0
slippage_bps = 2.0
withdraw_quote = {BTC = 20.0, ETH = 5.0}

[[fee]]
exchange = "DEX-ETHEREUM"
valid_from = 2017-01-01
taker_bps = 30.0
slippage_bps = 10.0
gas_quote = 5.0
"""


@dataclass(frozen=True, slots=True)
class Fee:
    """One entry of a fee table. None is what it does not state."""

    exchange: str
    market: Market | None
    valid_from: int
    maker_bps: float | None = None
    taker_bps: float | None = None
    slippage_bps: float | None = None
    gas_quote: float | None = None
    withdraw_quote: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class FeeModel:
    """A fee table: its name, which is beside every figure made with it, and its entries.

    >>> fees = FeeModel.example()
    >>> fees.round_trip_bps("BTC_USDT:BINANCE.spot:KRAKEN.spot", 1e4, at=1700000000)
    53.0
    >>> fees.round_trip_bps("BTC_USDT:BINANCE.spot:BYBIT.spot", 1e4, at=1700000000) is None
    True
    """

    name: str
    fees: tuple[Fee, ...]

    @classmethod
    def example(cls) -> FeeModel:
        """Make a table of round numbers that shows the form, named as an example."""
        return cls.parse(_EXAMPLE)

    @classmethod
    def read(cls, path: str | Path) -> FeeModel:
        """Read the table of a TOML file.

        Raises
        ------
        InputError
            There is no such file, or as `parse`.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, TypeError, ValueError):
            raise InputError("fees", path, "a TOML file in UTF-8 that is there") from None
        return cls.parse(text)

    @classmethod
    def parse(cls, text: str) -> FeeModel:
        r"""Parse the table of a TOML text.

        Raises
        ------
        InputError
            It is no TOML. A name is missing or not known. A number is negative (but a maker's
            rebate) or not finite. Two entries share exchange, market and date.

        Examples
        --------
        >>> FeeModel.parse('name = "mine"\n[[fee]]\nexchange = "KRAKEN"\ntaker = 20')
        Traceback (most recent call last):
        toolkit.errors.InputError: fee: 'taker' is not allowed; allowed: exchange, market, ...
        """
        try:
            given = tomllib.loads(text)
        except tomllib.TOMLDecodeError as problem:
            raise InputError("fees", str(problem), "a TOML text") from None
        except (AttributeError, TypeError):
            raise InputError("fees", text, "a TOML text") from None
        name, entries = given.get("name"), given.get("fee", [])
        if set(given) - {"name", "fee"} or not isinstance(name, str) or not name:
            raise InputError("fees", sorted(given), "a name, and [[fee]] entries")
        if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
            raise InputError("fee", entries, "tables, each headed [[fee]]")
        fees = tuple(_fee(one) for one in entries)
        keys = [(fee.exchange, fee.market, fee.valid_from) for fee in fees]
        for key in keys:
            if keys.count(key) > 1:
                raise InputError("fee", key[0], "one entry an exchange, market and date")
        return cls(name, fees)

    @property
    def hash(self) -> str:
        """The first 16 hex digits of the SHA-256 over the name and every entry, in any order.

        >>> len(FeeModel.example().hash)
        16
        """
        given = [self.name, *sorted(repr(fee) for fee in self.fees)]
        return hashlib.sha256(json.dumps(given).encode()).hexdigest()[:16]

    def round_trip_bps(
        self, trajectory: str | Trajectory, notional: float, style: Style = "taker", *, at: int
    ) -> float | None:
        """Return the cost of taking a spread at a time, in bps of one leg's notional, or None.

        ``taker`` and ``maker`` open and close both legs: twice the sum of their fees, plus their
        slippage, plus two fills' gas on a DEX leg. ``transfer`` buys on one leg, withdraws, and
        sells on the other: one taker's fee and half the slippage of each, one fill's gas on a DEX,
        and the withdrawal from the buy leg. The price's moves on the way are not in it, and what
        trades on futures is not withdrawn.

        None where the table does not state something that this needs.

        Raises
        ------
        InputError
            ``notional`` (in the quote currency) is no number above 0, or ``style`` none of the
            three, or the trajectory has not two legs.

        Examples
        --------
        >>> trajectory = "BTC_USDT:BINANCE.spot:KRAKEN.spot"
        >>> FeeModel.example().round_trip_bps(trajectory, 1e4, "transfer", at=1700000000)
        46.5
        """
        _check_asked(notional, style)
        at = parse_ts(at, parameter="at")
        legs = Trajectory.parse(trajectory)
        if len(legs.legs) != 2:
            raise InputError("trajectory", legs.key, "SYMBOL:BUY.market:SELL.market")
        parts = [self._leg_bps(leg, notional, style, at) for leg in legs.legs]
        if style == "transfer":
            parts.append(self._withdrawal_bps(legs, notional, at))
        known = [part for part in parts if part is not None]
        return math.fsum(known) if len(known) == len(parts) else None

    def lacking(self, trajectory: str, style: Style, *, at: int) -> list[str]:
        """List what the table does not state and a round trip would need, in words."""
        legs = Trajectory.parse(trajectory)
        found = []
        for leg in legs.legs:
            fee = self._in_force(leg, at)
            needed = ["maker_bps" if style == "maker" else "taker_bps", "slippage_bps"]
            needed += ["gas_quote"] if leg.market is Market.DEX else []
            absent = [f"{name} of {leg}" for name in needed if fee and getattr(fee, name) is None]
            found += absent if fee else [f"an entry for {leg}"]
        futures = Market.FUTURES in {leg.market for leg in legs.legs}  # which are never withdrawn
        if style == "transfer" and not futures and not self._withdrawal_bps(legs, 1.0, at):
            found.append(f"withdraw_quote of {legs.symbol.base} at {legs.buy}")
        return found

    def _in_force(self, leg: Leg, at: int) -> Fee | None:
        """Return the newest entry for the leg's market, or else for its exchange."""
        for market in (leg.market, None):
            mine = [f for f in self.fees if (f.exchange, f.market) == (leg.exchange, market)]
            valid = [fee for fee in mine if fee.valid_from <= at]
            if mine:
                return max(valid, key=lambda fee: fee.valid_from, default=None)
        return None

    def _leg_bps(self, leg: Leg, notional: float, style: Style, at: int) -> float | None:
        fee = self._in_force(leg, at)
        if fee is None or fee.slippage_bps is None:
            return None
        rate = fee.maker_bps if style == "maker" else fee.taker_bps
        gas = fee.gas_quote if leg.market is Market.DEX else 0.0
        if rate is None or gas is None:
            return None
        fills = _FILLS[style] / 2
        return fills * (rate + 1e4 * gas / notional) + fee.slippage_bps * fills / 2

    def _withdrawal_bps(self, legs: Trajectory, notional: float, at: int) -> float | None:
        fee = self._in_force(legs.buy, at)
        if fee is None or Market.FUTURES in {leg.market for leg in legs.legs}:
            return None
        amount = dict(fee.withdraw_quote).get(legs.symbol.base)
        return None if amount is None else 1e4 * amount / notional


def _fee(given: dict[str, Any]) -> Fee:
    known = ("exchange", "market", "valid_from", *_AMOUNTS, "withdraw_quote")
    for name in given:
        if name not in known:
            raise InputError("fee", name, known)
    exchange, market, since = (given.get(name) for name in known[:3])
    if not isinstance(exchange, str) or not (market is None or isinstance(market, str)):
        raise InputError("fee", given, "an exchange, and a market or none, as texts")
    leg = Leg(exchange, Market.SPOT) if market is None else Leg.parse(f"{exchange}.{market}")
    if not isinstance(since, dt.date):
        raise InputError("valid_from", since, "a date or time, e.g. 2026-01-01")
    withdraw = given.get("withdraw_quote", {})
    if not isinstance(withdraw, dict):
        raise InputError("withdraw_quote", withdraw, "amounts by asset, e.g. {BTC = 20.0}")
    return Fee(
        leg.exchange,
        None if market is None else leg.market,
        parse_ts(since, parameter="valid_from"),
        **{name: _amount(name, given[name]) for name in _AMOUNTS if name in given},
        withdraw_quote=tuple(sorted((asset, _amount(asset, of)) for asset, of in withdraw.items())),
    )


def _amount(name: str, value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and math.isfinite(value) and (value >= 0 or name == "maker_bps"):
        return float(value)
    raise InputError(name, value, "a finite number, not negative but for a maker's rebate")


def _check_asked(notional: float, style: str) -> None:
    real_number("notional", notional, "an amount above 0 in the quote currency", above=0)
    if style not in get_args(Style):
        raise InputError("style", style, get_args(Style))


def net_edge(
    frame: Frame,
    fees: FeeModel,
    *,
    notional: float,
    style: Style = "taker",
    exit_bps: float = 0.0,
) -> pl.DataFrame:
    """Add to every row, in the order given, what its spread would leave after costs.

    Reads ``trajectory`` (a String, the text key, which names both legs), ``ts`` and ``spread_bps``
    (computed from ``buy_price`` and ``sell_price`` where the frame lacks it). A ``taker`` or
    ``maker`` takes a spread on either side of ``exit_bps``, the level at which it is assumed to be
    closed. A ``transfer`` takes only what the sell leg pays more. Fees are those of the row's time.
    A LazyFrame is collected. This is arithmetic on a price that was seen, not a promise of a fill.

    =====================  =======  ====  =====================================================
    column                 type     unit  meaning
    =====================  =======  ====  =====================================================
    gross_bps              Float64  bps   abs(spread_bps - exit_bps), of a transfer, spread_bps
    breakeven_bps          Float64  bps   cost a fill at which nothing is left: gross over 4 fills
                                          (2 of a transfer), whatever the fees are
    gross_reason           String   none  empty (no spread in the row)
    cost_bps               Float64  bps   see `FeeModel.round_trip_bps`
    cost_reason            String   none  unknown_fee
    edge_bps               Float64  bps   gross_bps - cost_bps
    edge_at_half_cost_bps  Float64  bps   gross_bps - cost_bps / 2
    edge_at_twice_cost_bps Float64  bps   gross_bps - 2 cost_bps
    edge_reason            String   none  empty, unknown_fee
    fee_model              String   none  the table's name, which marks values that are examples
    fee_model_hash         String   none  the same where the table is the same
    =====================  =======  ====  =====================================================

    Raises
    ------
    InputError
        A column is missing or of another type. A key is null, doubled or no key of two legs.
        ``notional`` or ``exit_bps`` is no number, or ``style`` none of the three. The table has
        entries and the cost of no row: the message names what it lacks.

    Examples
    --------
    >>> frame = pl.DataFrame(
    ...     {
    ...         "trajectory": ["BTC_USDT:BINANCE.spot:KRAKEN.spot"] * 2,
    ...         "ts": [1700000000, 1700000060],
    ...         "spread_bps": [80.0, -20.0],
    ...     }
    ... )
    >>> net = net_edge(frame, FeeModel.example(), notional=10_000)
    >>> net.select("gross_bps", "cost_bps", "edge_bps", "breakeven_bps").rows()
    [(80.0, 53.0, 27.0, 20.0), (20.0, 53.0, -33.0, 5.0)]
    """
    _check_asked(notional, style)
    real_number("exit_bps", exit_bps, "a finite number")
    if type(fees) is not FeeModel:
        raise InputError("fees", fees, "a fee table, e.g. FeeModel.read('fees.toml') or .example()")
    frame = holding(frame, "spread_bps")
    checked_columns(frame, "spread_bps")
    checked_types(frame, {"trajectory": "String"})
    rows = frame.lazy().collect(engine="in-memory")
    checked_keys(rows)
    spread = observed("spread_bps")
    gross = spread if style == "transfer" else (spread - exit_bps).abs()
    costs = _costs(rows, fees, notional, style)
    found = (
        rows.select("trajectory", "ts", gross.alias("gross_bps"))
        .with_row_index("row")
        .sort("ts")
        .join_asof(costs, on="ts", by="trajectory", check_sortedness=False)
        .sort("row")
    )
    gross, cost = pl.col("gross_bps"), pl.col("cost_bps")
    empty, unknown = {Reason.EMPTY: gross.is_null()}, {Reason.UNKNOWN_FEE: cost.is_null()}
    figures = found.select(
        gross,
        (gross * (1 / _FILLS[style])).alias("breakeven_bps"),
        first_reason(empty).alias("gross_reason"),
        cost,
        first_reason(unknown).alias("cost_reason"),
        (gross - cost).alias("edge_bps"),
        (gross - 0.5 * cost).alias("edge_at_half_cost_bps"),
        (gross - 2 * cost).alias("edge_at_twice_cost_bps"),
        first_reason({**empty, **unknown}).alias("edge_reason"),
        pl.lit(fees.name).alias("fee_model"),
        pl.lit(fees.hash).alias("fee_model_hash"),
    )
    if fees.fees and rows.height and figures["cost_bps"].null_count() == rows.height:
        last = rows.sort("ts").row(-1, named=True)
        if lacks := ", ".join(fees.lacking(last["trajectory"], style, at=last["ts"])):
            advice = "add it under [[fee]], valid from before the rows"
            raise InputError("fees", fees.name, f"a table with {lacks}", advice=advice)
    return pl.concat([rows, figures], how="horizontal")


def _costs(rows: pl.DataFrame, fees: FeeModel, notional: float, style: Style) -> pl.DataFrame:
    """Return the costs of each trajectory with the time from which they apply, in order."""
    since = sorted({fee.valid_from for fee in fees.fees})
    given = [
        (key, at, fees.round_trip_bps(key, notional, style, at=at))
        for key in rows["trajectory"].unique(maintain_order=True)
        for at in since
    ]
    schema = {"trajectory": pl.String, "ts": pl.Int64, "cost_bps": pl.Float64}
    return pl.DataFrame(given, schema=schema, orient="row").sort("ts")
