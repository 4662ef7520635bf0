"""Exchanges that a local service reads, and the market made from their answers."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from toolkit.cards import counted
from toolkit.errors import ExchangeError, ExchangeOutageError, InputError, StoppedError, needs_extra
from toolkit.foreign import plain
from toolkit.market import Symbol, format_ts
from toolkit.market.venues import canonical

if TYPE_CHECKING:
    from toolkit.service import MarketSource
    from toolkit.service.market.exchanges import ListedLeg, WantedLegs
    from toolkit.service.market.exchanges.reading import Exchange, ExchangeCheck

USUAL = "usual"
"""The word for the five exchanges that are read where none are named."""

_USUAL = ("BINANCE", "BYBIT", "OKX", "KRAKEN", "HYPERLIQUID"), {"USDC": "USDT"}  # the last has USDC
_SYMBOLS = "BTC_USDT,ETH_USDT,SOL_USDT,XRP_USDT,DOGE_USDT"
_DAYS, _MOST_DAYS, _DAY_S = 7, 366, 86_400


@dataclass(frozen=True, slots=True)
class ExchangeChoice:
    """What is read of real exchanges: which, which symbols, and how many days back at first.

    ``renames``: quotes of an exchange, each with the quote that its legs are served in.

    >>> choice = ExchangeChoice.read("okx,Binance", ["BTC_USDT"], {"USD": "USDT"})
    >>> choice.exchanges, choice.symbols, choice.days
    (('OKX', 'BINANCE'), ('BTC_USDT',), 7)
    >>> ExchangeChoice.read("usual").renames
    {'USDC': 'USDT'}
    """

    exchanges: tuple[str, ...]
    symbols: tuple[str, ...]
    renames: Mapping[str, str]
    days: int

    @classmethod
    def read(
        cls,
        exchanges: str | Iterable[str],
        symbols: str | Iterable[str] | None = None,
        renames: Mapping[str, str] | None = None,
        days: int | None = None,
    ) -> Self:
        """Check what is given: names, or a text of them with commas; "usual" is five exchanges.

        Raises `InputError` for an exchange that is not known, what is not a symbol, less than a
        day.
        """
        with needs_extra("service"):
            from toolkit.service.market.exchanges import KNOWN  # noqa: PLC0415 - see local.py

        names, renames = tuple(map(canonical, _names(exchanges))), dict(renames or {})
        if names == (USUAL.upper(),):
            names, renames = _USUAL[0], _USUAL[1] | renames
        if unknown := [name for name in names or ("",) if name not in KNOWN]:
            raise InputError("exchanges", unknown[0].lower(), [USUAL, *map(str.lower, KNOWN)])
        wanted = tuple(map(str, map(Symbol.parse, _names(symbols or _SYMBOLS))))
        days = _DAYS if days is None else days
        if not 1 <= days <= _MOST_DAYS:
            raise InputError("days", days, f"1 to {_MOST_DAYS}")
        return cls(tuple(dict.fromkeys(names)), wanted, renames, days)


def _names(given: str | Iterable[str]) -> tuple[str, ...]:
    texts = given.split(",") if isinstance(given, str) else given
    return tuple(dict.fromkeys(each.strip().upper() for each in texts if each.strip()))


def archive_beside(store: Path) -> Path:
    """Return where the answers of exchanges are kept by default: beside the store.

    >>> archive_beside(Path("data/real.duckdb"))
    PosixPath('data/real.exchanges.duckdb')
    """
    return store.with_name(f"{store.stem}.exchanges.duckdb")


@contextlib.contextmanager
def exchange_market(choice: ExchangeChoice, archive: Path) -> Iterator[MarketSource]:
    """Give the market of exchanges for a ``with`` block, in which it is read on.

    The block begins once all up to now was read; standard error shows that. An exchange that
    refuses or does not answer is left out and named there. Raises `ExchangeError` where none
    answers, `InputError` for an ``archive`` that is not one or that another process has, and
    `StoppedError` at a Ctrl-C before the block.
    """
    from toolkit.service.market.exchanges import WantedLegs  # noqa: PLC0415 - see local.py
    from toolkit.service.market.exchanges.archive import Archive, Exchanges  # noqa: PLC0415 - an extra
    from toolkit.service.market.exchanges.polling import Poller  # noqa: PLC0415 - see local.py
    from toolkit.service.market.exchanges.reading import Exchange  # noqa: PLC0415 - see local.py
    from toolkit.service.market.source import WALL_CLOCK  # noqa: PLC0415 - see local.py

    stopping = threading.Event()

    def say(line: str) -> None:
        if not stopping.is_set():  # else the last word is that of who stops it
            sys.stderr.write(f"{plain(line, 400)}\n")

    wanted = WantedLegs(choice.symbols, choice.renames)
    asked = [Exchange(name, sleep=stopping.wait) for name in choice.exchanges]
    legs, silent = _listed(asked, wanted, say)
    if not legs and not (silent and archive.exists()):
        raise ExchangeError("no exchange is left to read; `rail serve --check-exchanges` shows why")
    quarters: dict[str, int] = {}

    def advance(name: str, share: float) -> None:
        if int(4 * share) > quarters.get(name, 0):
            quarters[name] = int(4 * share)
            say(f"{name}: {share:.0%} read")

    start = int(min(each.now() for each in asked)) - choice.days * _DAY_S
    kept = Archive.open(archive, start=start, legs=legs, silent=silent)
    read = {key.leg.exchange for key, leg in kept.legs.items() if leg.ended_at is None}
    exchanges = [each for each in asked if each.name in read]
    for name in sorted(silent - read):
        say(f"{name}: left out until it answers at a later start")
    if kept.start > start:
        say(f"{archive} begins at {format_ts(kept.start)}, and nothing before it is read")
    poller = Poller(kept, exchanges, WALL_CLOCK, wanted, tell=say, stopping=stopping)
    with contextlib.ExitStack() as closing:
        for each in asked:
            closing.callback(each.close)
        closing.callback(kept.close)
        closing.enter_context(poller)
        try:
            poller.catch_up(advance)
        except KeyboardInterrupt:
            told = f"{archive} keeps what was read, the same command goes on from there"
            raise StoppedError(told) from None
        yield Exchanges(kept)


def _listed(
    exchanges: Iterable[Exchange], wanted: WantedLegs, say: Callable[[str], None]
) -> tuple[list[ListedLeg], set[str]]:
    found: list[ListedLeg] = []
    silent: set[str] = set()
    for each in exchanges:
        try:
            legs = each.list(wanted)
        except ExchangeError as error:
            is_silent = isinstance(error, ExchangeOutageError)
            say(f"{each.name}: {'no answer' if is_silent else 'left out'}: {error}")
            silent |= {each.name} if is_silent else set()
            continue
        notes = {leg.note.replace(leg.key.symbol, leg.key.symbol.split("_")[1]) for leg in legs}
        say("; ".join([f"{each.name}: {counted(len(legs), 'leg')}", *sorted(notes - {""})]))
        for line in each.left_out:
            say(line)
        found += legs
    return found, silent


def check_exchanges(choice: ExchangeChoice) -> Iterator[tuple[str, ExchangeCheck]]:
    """Yield each exchange, and what it answers from this machine."""
    from toolkit.service.market.exchanges import WantedLegs  # noqa: PLC0415 - see local.py
    from toolkit.service.market.exchanges.reading import check  # noqa: PLC0415 - see local.py

    wanted = WantedLegs(choice.symbols, choice.renames)
    yield from ((name, check(name, wanted, choice.days)) for name in choice.exchanges)
