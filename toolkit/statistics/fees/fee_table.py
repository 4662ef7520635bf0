"""The user's fee table, and the costs of positions by it.

A fee that the table does not state is unknown, never 0, and figures that need it are null. The
table is a TOML file with one entry per exchange (or market of it) and date::

    name = "my account"

    [[fee]]
    exchange = "BINANCE"        # as in the data: UPPERCASE, DEX-{CHAIN} for a DEX
    market = "futures"          # optional: without it, all markets without an entry
    valid_from = 2026-01-01     # UTC
    valid_to = 2026-07-01       # optional, UTC, exclusive
    tier = "VIP 1"              # optional, for the reader
    maker_bps = 2.0             # of the notional, per fill, negative for a rebate
    taker_bps = 5.0             # of the notional, per fill, on a DEX the pool's fee
    slippage_bps = 1.0          # of the notional, per round trip on this leg
    gas_quote = 3.0             # per fill on a DEX, in the quote currency
    withdraw_quote = {BTC = 20.0}   # per withdrawal of the asset, in the quote currency

Of the entries in force, the one that began last applies.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from toolkit.errors import InputError
from toolkit.fields import read_toml, typed
from toolkit.market import Leg, Market, Pair, SnapshotTrajectory, Stream, Trajectory, parse_ts
from toolkit.market.venues import canonical, venue_of
from toolkit.statistics.core.contract import real_number

EXAMPLE_EXCHANGES = ("BINANCE", "KRAKEN", "DEX-ETHEREUM")

_HEAD = """\
# A fee table. The numbers are EXAMPLES, no exchange's own: edit them all.
# What is left out is unknown, never 0: figures that need it are null and name what is missing.
# More entries of one exchange: by market = "spot" or "futures", by valid_from, valid_to (UTC).
name = "EXAMPLE VALUES, no exchange's own: edit"
"""
_ENTRY = """
[[fee]]
exchange = "{exchange}"
valid_from = 2017-01-01
tier = "example"
maker_bps = {maker}      # of the notional, per fill, negative for a rebate
taker_bps = {taker}      # of the notional, per fill
slippage_bps = {slippage}   # of the notional, per round trip on this leg
withdraw_quote = {{BTC = 20.0, ETH = 5.0}}   # to withdraw once, in the quote currency
"""
_DEX = """
[[fee]]
exchange = "{exchange}"
valid_from = 2017-01-01
taker_bps = 30.0     # the pool's fee
slippage_bps = 10.0
gas_quote = 5.0      # per fill, in the quote currency
"""


def example_text(exchanges: Iterable[str] = EXAMPLE_EXCHANGES) -> str:
    """Return the text of a fee table of round numbers, labelled as an example."""
    text = _HEAD
    for exchange in exchanges:
        form = _DEX if exchange.startswith("DEX-") else _ENTRY
        maker, taker, slippage = venue_of(exchange).example_fees_bps
        text += form.format(exchange=exchange, maker=maker, taker=taker, slippage=slippage)
    return text


Style = Literal["taker", "maker", "maker_buy", "maker_sell", "prefunded", "transfer"]
"""How a position is taken: see `FeeModel.round_trip_bps`."""

NOTIONAL = 10_000.0
"""The default notional of one leg in the quote currency."""

FILLS = dict.fromkeys(("taker", "maker", "maker_buy", "maker_sell"), 4)
FILLS |= {"prefunded": 2, "transfer": 2}
"""The fills of each style on two legs; one leg has half."""

_TAKER, _MAKER = "taker_bps", "maker_bps"
RATES: dict[str, tuple[str, str]] = {
    "taker": (_TAKER, _TAKER),
    "maker": (_MAKER, _MAKER),
    "maker_buy": (_MAKER, _TAKER),
    "maker_sell": (_TAKER, _MAKER),
    "prefunded": (_TAKER, _TAKER),
    "transfer": (_TAKER, _TAKER),
}
"""The rate of the buy leg and that of the sell leg."""

_OF_ONE_LEG = ("taker", "maker")
_NAMES = ("exchange", "market", "valid_from", "valid_to", "tier")
_AMOUNTS = ("maker_bps", "taker_bps", "slippage_bps", "gas_quote")
_AN_AMOUNT, _MOST = "a finite number, not negative but for a maker's rebate", 1e300
_PAIR = "SYMBOL:BUY.market:SELL.market"


@dataclass(frozen=True, slots=True)
class Fee:
    """One entry of a fee table. None means not stated. ``tier`` has no effect.

    >>> Fee("KRAKEN", None, valid_from=0, taker_bps=20.0).in_force(1700000000)
    True
    """

    exchange: str
    market: Market | None
    valid_from: int
    maker_bps: float | None = None
    taker_bps: float | None = None
    slippage_bps: float | None = None
    gas_quote: float | None = None
    withdraw_quote: tuple[tuple[str, float], ...] = ()
    valid_to: int | None = None
    tier: str | None = None

    def in_force(self, at: int) -> bool:
        """Return whether the entry applies at a time (s)."""
        return self.valid_from <= at and (self.valid_to is None or at < self.valid_to)


@dataclass(frozen=True, slots=True)
class FeeModel:
    """A fee table: its name, shown with every figure computed with it, and its entries.

    >>> fees = FeeModel.example()
    >>> fees.round_trip_bps("BTC_USDT:BINANCE.spot:KRAKEN.spot", at=1700000000)
    53.0
    >>> fees.round_trip_bps("BTC_USDT:BINANCE.spot:BYBIT.spot", at=1700000000) is None
    True
    >>> fees.hash == FeeModel.example().hash
    True
    """

    name: str
    fees: tuple[Fee, ...]

    @classmethod
    def example(cls, exchanges: Iterable[str] = EXAMPLE_EXCHANGES) -> FeeModel:
        """Return a table of round numbers, named as an example."""
        return cls.parse(example_text(exchanges))

    @classmethod
    def read(cls, path: str | Path) -> FeeModel:
        """Read the table of a TOML file.

        Raises `InputError`: The file does not exist, or as `parse`.
        """
        advice = "`rail fees --example` prints one"
        return cls._of(read_toml(path, "fees", "a TOML file in UTF-8", advice=advice)[1])

    @classmethod
    def parse(cls, text: str) -> FeeModel:
        r"""Parse the table of a TOML text.

        Raises `InputError`: It is not TOML. A name is missing or not known. A number is negative
        (but a maker's rebate) or not finite. An entry ends before it begins. Two entries share
        exchange, market and first date.

        >>> FeeModel.parse('name = "mine"\n[[fee]]\nexchange = "KRAKEN"\ntaker = 20')
        Traceback (most recent call last):
        toolkit.errors.InputError: fee: 'taker' is not allowed; allowed: exchange, market, ...
        """
        return cls._of(read_toml("the text", "fees", "a TOML text", text=text)[1])

    @classmethod
    def _of(cls, given: dict[str, Any]) -> FeeModel:
        name, entries = given.get("name"), given.get("fee", [])
        if set(given) - {"name", "fee"} or not isinstance(name, str) or not name:
            raise InputError("fees", sorted(given), "a name, and [[fee]] entries")
        if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
            raise InputError("fee", entries, "tables, each headed [[fee]]")
        fees = tuple(_fee(one) for one in entries)
        keys = [(canonical(fee.exchange), fee.market, fee.valid_from) for fee in fees]
        for key in keys:
            if keys.count(key) > 1:
                raise InputError("fee", key[0], "one entry an exchange, market and date")
        return cls(name, fees)

    @property
    def hash(self) -> str:
        """The first 16 hex digits of the SHA-256 over the name and the sorted entries.

        >>> len(FeeModel.example().hash)
        16
        """
        given = [self.name, *sorted(repr(fee) for fee in self.fees)]
        return hashlib.sha256(json.dumps(given).encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """The name with the hash."""
        return f"{self.name} ({self.hash})"

    @property
    def changes(self) -> list[int]:
        """The times (s) at which an entry begins or ends, in order."""
        ends = {fee.valid_to for fee in self.fees if fee.valid_to is not None}
        return sorted({fee.valid_from for fee in self.fees} | ends)

    def round_trip_bps(
        self,
        trajectory: str | Stream,
        notional: float = NOTIONAL,
        style: Style = "taker",
        *,
        at: int,
    ) -> float | None:
        """Return the cost of taking a position at a time, in bps of one leg's notional, or None.

        ==============  =========================================================================
        style           costs
        ==============  =========================================================================
        ``taker``       both legs opened and closed as taker: four fills. One leg: two fills
        ``maker``       the same as maker
        ``maker_buy``   four fills: maker on the buy leg, taker on the sell leg
        ``maker_sell``  four fills: taker on the buy leg, maker on the sell leg
        ``prefunded``   bought on one leg and sold on the other from holdings on both: one taker
                        fill each. Moving the holdings back is not included
        ``transfer``    bought on the buy leg, withdrawn, and sold on the other: one taker fill
                        each and the withdrawal. Price moves on the way are not included, and
                        futures cannot be withdrawn
        ==============  =========================================================================

        Two fills on a leg pay its slippage once, one fill half of it. Each fill on a DEX pays gas.
        None if the table lacks something needed: see `lacking`.

        Raises `InputError`: ``notional`` (in the quote currency) is not a number above 0, ``style``
        is not one of these or needs two legs, or the key names no legs.

        >>> fees, pair = FeeModel.example(), "BTC_USDT:BINANCE.spot:KRAKEN.spot"
        >>> [fees.round_trip_bps(pair, 1e4, style, at=1700000000)
        ...  for style in ("taker", "maker_buy", "prefunded", "transfer")]
        [53.0, 47.0, 26.5, 46.5]
        >>> fees.round_trip_bps("BTC_USDT:KRAKEN.spot", at=1700000000)
        42.0
        >>> fees.round_trip_bps("pair/BTC_USD:KRAKEN.spot/BTC_USD:BINANCE.spot", at=1700000000)
        53.0
        """
        check_asked(self, notional, style)
        at = parse_ts(at, parameter="at")
        position = _position(trajectory, style)
        parts = [
            self._leg_bps(leg, rate, notional, FILLS[style] // 2, at)
            for leg, rate in zip(position.legs, RATES[style], strict=False)
        ]
        if style == "transfer":
            parts.append(self._withdrawal_bps(position, notional, at))
        known = [part for part in parts if part is not None]
        return math.fsum(known) if len(known) == len(parts) else None

    def lacking(self, trajectory: str | Stream, style: Style = "taker", *, at: int) -> list[str]:
        """List in words what `round_trip_bps` needs and the table does not state.

        >>> pair = "ETH_USDT:DEX-ETHEREUM.dex:BYBIT.spot"
        >>> FeeModel.example().lacking(pair, "maker", at=1700000000)
        ['maker_bps of DEX-ETHEREUM.dex', 'an entry for BYBIT.spot']
        """
        position = _position(trajectory, style)
        found = []
        for leg, rate in zip(position.legs, RATES[style], strict=False):
            found += self.lacking_of(leg, rate, at=at)
        if style == "transfer" and self._withdrawal_bps(position, 1.0, at) is None:
            if Market.FUTURES in {leg.market for leg in position.legs}:
                found.append("a withdrawal: what trades on futures is not withdrawn")
            elif self.in_force(position.legs[0], at):
                found.append(f"withdraw_quote of {position.base} at {position.legs[0]}")
        return found

    def lacking_of(self, leg: Leg, *rates: str, at: int) -> list[str]:
        """List what the table does not state about a leg, including some rates."""
        fee = self.in_force(leg, at)
        if fee is None:
            return [f"an entry for {leg}"]
        needed = [*rates, "slippage_bps", *(["gas_quote"] if leg.market is Market.DEX else [])]
        return [f"{name} of {leg}" for name in needed if getattr(fee, name) is None]

    def in_force(self, leg: Leg, at: int) -> Fee | None:
        """Return the newest entry in force for the leg's market, or else for its exchange.

        An alias counts as its exchange (`toolkit.market.venues`).
        """
        exchange = canonical(leg.exchange)
        for market in (leg.market, None):
            mine = [f for f in self.fees if (canonical(f.exchange), f.market) == (exchange, market)]
            if mine:
                valid = [fee for fee in mine if fee.in_force(at)]
                return max(valid, key=lambda fee: fee.valid_from, default=None)
        return None

    def _leg_bps(
        self, leg: Leg, rate_name: str, notional: float, fills: int, at: int
    ) -> float | None:
        fee = self.in_force(leg, at)
        if fee is None or fee.slippage_bps is None:
            return None
        rate = getattr(fee, rate_name)
        gas = fee.gas_quote if leg.market is Market.DEX else 0.0
        if rate is None or gas is None:
            return None
        cost: float = fills * (rate + 1e4 * gas / notional) + fee.slippage_bps * fills / 2
        return cost

    def _withdrawal_bps(self, position: _CostedLegs, notional: float, at: int) -> float | None:
        fee = self.in_force(position.legs[0], at)
        if fee is None or Market.FUTURES in {leg.market for leg in position.legs}:
            return None
        amount = dict(fee.withdraw_quote).get(position.base)
        return None if amount is None else 1e4 * amount / notional


def check_asked(fees: object, notional: float, style: str) -> None:
    """Raise `InputError` for a bad fee table, notional or style."""
    real_number("notional", notional, "an amount above 0 in the quote currency", above=0)
    if style not in get_args(Style):
        raise InputError("style", style, get_args(Style))
    if type(fees) is not FeeModel:
        raise InputError("fees", fees, "a fee table, e.g. FeeModel.read('fees.toml') or .example()")


def check_held_style(style: str) -> None:
    """Raise `InputError` for a style that opens no position."""
    if style in ("prefunded", "transfer"):
        raise InputError("style", style, "a style that opens and closes a position, e.g. taker")


class _CostedLegs(NamedTuple):
    base: str
    legs: tuple[Leg, ...]


def _position(trajectory: str | Stream, style: str) -> _CostedLegs:
    key = str(trajectory)
    if key.startswith("pair/"):
        two = Pair.parse(key)
        return _CostedLegs(two.buy.symbol.base, two.legs)
    position = Stream.parse(key.removeprefix("funding/"))  # or of one leg of it
    if not isinstance(position, Trajectory | SnapshotTrajectory):
        raise InputError("trajectory", position.key, f"{_PAIR}, or SYMBOL:EXCHANGE.market")
    if len(position.legs) == 1 and style not in _OF_ONE_LEG:
        raise InputError("style", style, _OF_ONE_LEG, advice=f"{position.key} has one leg")
    return _CostedLegs(position.symbol.base, position.legs)


def _fee(given: dict[str, Any]) -> Fee:
    known = (*_NAMES, *_AMOUNTS, "withdraw_quote")
    for name in given:
        if name not in known:
            raise InputError("fee", name, known)
    exchange, market, since, until, tier = (given.get(name) for name in _NAMES)
    if not isinstance(exchange, str) or not (market is None or isinstance(market, str)):
        raise InputError("fee", given, "an exchange, and a market or none, as texts")
    if not (tier is None or isinstance(tier, str)):
        raise InputError("tier", tier, "a text, or none")
    leg = Leg(exchange, Market.SPOT) if market is None else Leg.parse(f"{exchange}.{market}")
    valid_from = _date("valid_from", since)
    valid_to = None if until is None else _date("valid_to", until)
    if valid_to is not None and valid_to <= valid_from:
        raise InputError("valid_to", until, f"a date or time after valid_from, {since}")
    withdraw = given.get("withdraw_quote", {})
    if not isinstance(withdraw, dict):
        raise InputError("withdraw_quote", withdraw, "amounts by asset, e.g. {BTC = 20.0}")
    return Fee(
        leg.exchange,
        None if market is None else leg.market,
        valid_from,
        **{name: _amount(name, given[name]) for name in _AMOUNTS if name in given},
        withdraw_quote=tuple(sorted((asset, _amount(asset, of)) for asset, of in withdraw.items())),
        valid_to=valid_to,
        tier=tier,
    )


def _date(name: str, value: Any) -> int:
    if not isinstance(value, dt.date):
        raise InputError(name, value, "a date or time, e.g. 2026-01-01")
    return parse_ts(value, parameter=name)


def _amount(name: str, value: Any) -> float:
    least = -_MOST if name == "maker_bps" else 0.0
    found: float = typed(float, _AN_AMOUNT, ge=least, le=_MOST)(name, value)
    return found
