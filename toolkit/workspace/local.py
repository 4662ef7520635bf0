"""The local service, on a SIMULATED market, a replay or real exchanges.

Its code and web server are imported when one starts.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from toolkit.cards import counted
from toolkit.errors import (
    ExchangeError,
    ExchangeOutageError,
    InputError,
    StoppedError,
    needs_extra,
)
from toolkit.foreign import plain
from toolkit.interrupts import later_interrupt
from toolkit.market import Source, Symbol, format_ts
from toolkit.market.venues import canonical

if TYPE_CHECKING:
    from toolkit.service import Config, MarketSource
    from toolkit.service.market.exchanges import ListedLeg, WantedLegs
    from toolkit.service.market.exchanges.reading import Exchange, ExchangeCheck


USUAL = "usual"
"""The name of five exchanges."""

_USUAL = ("BINANCE", "BYBIT", "OKX", "KRAKEN", "HYPERLIQUID"), {"USDC": "USDT"}  # the last has USDC
_SYMBOLS = "BTC_USDT,ETH_USDT,SOL_USDT,XRP_USDT,DOGE_USDT"
_DAYS, _MOST_DAYS, _DAY_S = 7, 366, 86_400


@dataclass(frozen=True, slots=True)
class ExchangeChoice:
    """The exchanges and symbols to read, from how many days back, and the quotes to rename.

    ``renames`` has quotes of an exchange, each with the one that its legs are served in.

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
        """Check lists of names, or texts with commas. "usual" is five exchanges.

        Raises `InputError` for an unknown exchange, an invalid symbol, or days outside 1 to 366.
        """
        with needs_extra("service"):
            from toolkit.service.market.exchanges import KNOWN  # noqa: PLC0415 - see above

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
    """Return the default archive of exchanges' answers, beside the store.

    >>> archive_beside(Path("data/real.duckdb"))
    PosixPath('data/real.exchanges.duckdb')
    """
    return store.with_name(f"{store.stem}.exchanges.duckdb")


@contextlib.contextmanager
def exchange_market(choice: ExchangeChoice, archive: Path) -> Iterator[MarketSource]:
    """Yield the market of exchanges, once it is read up to now. It is read on during the block.

    Standard error shows progress, and exchanges left out as they refuse or do not answer. Raises
    `ExchangeError` if none answers, `InputError` for an invalid or busy ``archive``, and
    `StoppedError` at a Ctrl-C before the block.
    """
    from toolkit.service.market.exchanges import WantedLegs  # noqa: PLC0415 - see above
    from toolkit.service.market.exchanges.archive import Archive, Exchanges  # noqa: PLC0415 - an extra
    from toolkit.service.market.exchanges.polling import Poller  # noqa: PLC0415 - see above
    from toolkit.service.market.exchanges.reading import Exchange  # noqa: PLC0415 - see above
    from toolkit.service.market.source import WALL_CLOCK  # noqa: PLC0415 - see above

    stopping = threading.Event()

    def say(line: str) -> None:
        if not stopping.is_set():
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
    from toolkit.service.market.exchanges import WantedLegs  # noqa: PLC0415 - see above
    from toolkit.service.market.exchanges.reading import check  # noqa: PLC0415 - see above

    wanted = WantedLegs(choice.symbols, choice.renames)
    yield from ((name, check(name, wanted, choice.days)) for name in choice.exchanges)


DEFAULT_SEED = 7
"""The seed of the default SIMULATED market."""

_EVERYTHING_S = 100 * 366 * 86_400  # no plan's retention hides recorded data


@dataclass(frozen=True, slots=True)
class Serving:
    """A running local service: its address, source, keys, and any fixed clock.

    ``codes`` by owner are one-time sign-ins for plans with webhooks.
    """

    base_url: str
    source: Source
    symbols: int
    legs: int
    clock_at: int | None
    keys: str
    codes: Mapping[str, str] = field(repr=False)


def serve_local(
    *,
    replay: Path | None = None,
    datasets: Sequence[str] = (),
    interval_s: int | None = None,
    renamed: Mapping[str, str] | None = None,
    seed: int | None = None,
    exchanges: ExchangeChoice | None = None,
    archive: Path = Path("rail.exchanges.duckdb"),
    now: int | None = None,
    retention_s: int | None = None,
    owners: Path | None = None,
    webhooks_to_loopback: bool = False,
    host: str = "127.0.0.1",
    port: int = 0,
    ready: Callable[[Serving], object],
) -> None:
    """Serve until SIGINT or SIGTERM. ``ready`` is called once connections are accepted.

    ``replay`` is a Parquet file, or a folder with ``prices``, ``funding`` and ``pumps.parquet``,
    served under the symbols in ``renamed``, within ``retention_s`` (default: all). ``exchanges``
    are served from ``archive``. The default is the SIMULATED market of ``seed`` (`DEFAULT_SEED`).
    ``now`` (s) stops the clock. ``owners`` is a TOML file of owners, plans and keys. Webhooks go to
    public https addresses, with ``webhooks_to_loopback`` also here. Raises `InputError` for invalid
    arguments.
    """
    with needs_extra("service"):
        from toolkit.service import Clock, Config, Replay, Simulated, WebhookSettings, serve  # noqa: PLC0415 - see above

    for name, given in (("replay", replay), ("seed", seed), ("now", now)):
        if exchanges is not None and given is not None:
            raise InputError(name, str(given), "none beside exchanges, whose clock is their own")
    if replay is not None and seed is not None:
        raise InputError("seed", seed, "none beside a replay")
    market: AbstractContextManager[MarketSource]
    if replay is not None:
        retention_s = retention_s or _EVERYTHING_S
        market = contextlib.nullcontext(
            Replay.read(replay, datasets=datasets, interval_s=interval_s, renamed=renamed)
        )
    elif renamed:
        raise InputError("renamed", ", ".join(renamed), "nothing without a replay")
    elif exchanges is not None:
        retention_s = retention_s or _EVERYTHING_S
        market = exchange_market(exchanges, archive)
    else:
        market = contextlib.nullcontext(Simulated(DEFAULT_SEED if seed is None else seed))
    with market as source:
        config = Config(
            source,
            host=host,
            port=port,
            clock=Clock(fixed_at=now),
            retention_s=retention_s,
            owners_file=owners,
            webhooks=WebhookSettings(loopback=webhooks_to_loopback),
        )
        serve(config, ready=lambda base_url: ready(_serving(base_url, config)))


def _serving(base_url: str, config: Config) -> Serving:
    from toolkit.service.accounts import Owners, OwnersFile  # noqa: PLC0415 - see above
    from toolkit.service.transports.courier import MINIMUM_PLAN  # noqa: PLC0415 - see above

    file = config.owners_file
    owners = (OwnersFile(file) if file else Owners(config.owners)).named.values()
    entitled = [owner.name for owner in owners if owner.plan.rank >= MINIMUM_PLAN.rank]
    codes = {name: config.sessions.issue(name) for name in entitled}
    source = config.source
    legs = sum(map(len, source.listing.values()))
    named = Source(source.kind, source.id)
    keys = ", ".join(key for owner in config.owners for key in owner.keys)
    if config.owners_file:
        keys = f"those of {config.owners_file}"
    return Serving(base_url, named, len(source.listing), legs, config.clock.fixed_at, keys, codes)


@dataclass(slots=True)
class _SharedService:
    base_url: str
    closing: contextlib.ExitStack
    choice: object
    users: int = 0


_shared: dict[int | Path, _SharedService] = {}  # by seed, or by the archive of exchanges
_sharing = threading.Lock()


def simulated_service(seed: int = DEFAULT_SEED, *, port: int = 0) -> AbstractContextManager[str]:
    """Yield the address of a local service on the SIMULATED market of a seed.

    It listens at ``port`` if that is free, else at any, on the wall clock, with a retention of 30
    days. ``with`` blocks of one process and seed share it.

    >>> with simulated_service() as base_url, simulated_service() as same:
    ...     base_url.startswith("http://127.0.0.1:"), same == base_url
    (True, True)
    """
    with needs_extra("service"), later_interrupt():  # an import can swallow a Ctrl-C
        from toolkit.service import Simulated  # noqa: PLC0415 - see above

    return _service_of(seed, seed, lambda: contextlib.nullcontext(Simulated(seed)), port)


def exchanges_service(
    choice: ExchangeChoice, archive: Path, *, port: int = 0
) -> AbstractContextManager[str]:
    """Yield the address of a local service on real exchanges, as `simulated_service` does.

    It serves the whole archive, read up to now, shared by its ``with`` blocks. Raises `InputError`
    for an archive with another choice.
    """
    return _service_of(archive.resolve(), choice, lambda: exchange_market(choice, archive), port)


@contextlib.contextmanager
def _service_of(
    key: int | Path,
    choice: object,
    market: Callable[[], AbstractContextManager[MarketSource]],
    port: int,
) -> Iterator[str]:
    with needs_extra("service"), later_interrupt():  # see above
        from toolkit.service import Config, running  # noqa: PLC0415 - see above

    with _sharing:
        if key not in _shared:
            with contextlib.ExitStack() as opening:
                retention_s = None if isinstance(key, int) else _EVERYTHING_S
                config = Config(opening.enter_context(market()), port=port, retention_s=retention_s)
                try:
                    service = opening.enter_context(running(config))
                except InputError:
                    service = opening.enter_context(running(replace(config, port=0)))
                _shared[key] = _SharedService(service.base_url, opening.pop_all(), choice)
        shared = _shared[key]
        if shared.choice != choice:
            raise InputError("exchanges", str(key), "what the workspace that is open on it reads")
        shared.users += 1
    try:
        yield shared.base_url
    finally:
        with _sharing:
            shared.users -= 1
            if not shared.users:
                del _shared[key]
                shared.closing.close()
