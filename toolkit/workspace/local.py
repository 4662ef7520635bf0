"""The local service, as the workspace and the command line start it.

The service's own code is loaded when one is started: it brings a web server along.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import InputError, needs_extra
from toolkit.market import Source

if TYPE_CHECKING:
    from toolkit.service import Config, MarketSource
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from toolkit.cards import counted
from toolkit.errors import ExchangeError, ExchangeOutageError, StoppedError
from toolkit.foreign import plain
from toolkit.market import Symbol, format_ts
from toolkit.market.venues import canonical

if TYPE_CHECKING:
    from toolkit.service import MarketSource
    from toolkit.service.market.exchanges import ListedLeg, Wanted
    from toolkit.service.market.exchanges.checking import Checked
    from toolkit.service.market.exchanges.reading import Exchange


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
            from toolkit.service.market.exchanges.facts import (  # noqa: PLC0415 - see above
                KNOWN,
            )

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
    from toolkit.service.market.clock import WALL_CLOCK  # noqa: PLC0415 - see above
    from toolkit.service.market.exchanges import Wanted  # noqa: PLC0415 - see above
    from toolkit.service.market.exchanges.archive import Archive, Exchanges  # noqa: PLC0415 - an extra
    from toolkit.service.market.exchanges.polling import Poller  # noqa: PLC0415 - see above
    from toolkit.service.market.exchanges.reading import Exchange  # noqa: PLC0415 - see above

    stopping = threading.Event()

    def say(line: str) -> None:
        if not stopping.is_set():  # else the last word is that of who stops it
            sys.stderr.write(f"{plain(line, 400)}\n")

    wanted = Wanted(choice.symbols, choice.renames)
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
    exchanges: Iterable[Exchange], wanted: Wanted, say: Callable[[str], None]
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


def check_exchanges(choice: ExchangeChoice) -> Iterator[tuple[str, Checked]]:
    """Yield each exchange, and what it answers from this machine."""
    from toolkit.service.market.exchanges import Wanted  # noqa: PLC0415 - see above
    from toolkit.service.market.exchanges.checking import check  # noqa: PLC0415 - see above

    wanted = Wanted(choice.symbols, choice.renames)
    yield from ((name, check(name, wanted, choice.days)) for name in choice.exchanges)


DEFAULT_SEED = 7
"""The SIMULATED market that is served where no other is named."""

_EVERYTHING_S = 100 * 366 * 86_400  # recorded data is as old as it is: no plan's depth cuts it


@dataclass(frozen=True, slots=True)
class Serving:
    """A local service that answers: its address, source, keys, and its clock where it is fixed.

    ``codes``, by owner, let each owner with webhooks in the plan sign in once.
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

    With ``replay`` what that Parquet file (or ``prices``, ``funding`` and ``pumps.parquet`` in that
    folder) holds, under the symbols that ``renamed`` gives, all of it unless ``retention_s`` limits
    it. With ``exchanges`` what those answer and ``archive`` keeps. Else the endless SIMULATED
    market of ``seed`` (`DEFAULT_SEED`). ``now`` (s) stops the service's clock. ``owners`` is a TOML
    file of owners, plans and keys, in place of the demo ones. Webhooks go to public https
    addresses, with ``webhooks_to_loopback`` to this machine as well. Raises `InputError` for what
    cannot be served.
    """
    with needs_extra("service"):
        from toolkit.service import (  # noqa: PLC0415 - see above
            Clock,
            Config,
            Replay,
            Simulated,
            WebhookSettings,
            serve,
        )

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
    """Give the address of a local service on the SIMULATED market of a seed, for a ``with`` block.

    It listens at ``port`` where that is free, else at any free one. Blocks of one process and seed
    share one service, which stops with the last of them. Its clock is the wall clock, its market
    endless. It answers for the last 30 days.

    >>> with simulated_service() as base_url, simulated_service() as same:
    ...     base_url.startswith("http://127.0.0.1:"), same == base_url
    (True, True)
    """
    with needs_extra("service"):
        from toolkit.service import Simulated  # noqa: PLC0415 - see above

    return _service_of(seed, seed, lambda: contextlib.nullcontext(Simulated(seed)), port)


def exchanges_service(
    choice: ExchangeChoice, archive: Path, *, port: int = 0
) -> AbstractContextManager[str]:
    """Give the address of a local service on real exchanges, as `simulated_service` does.

    It answers for all that the archive keeps, once it has read up to now. Blocks of one archive
    share it. Raises `InputError` for one that chooses otherwise.
    """
    return _service_of(archive.resolve(), choice, lambda: exchange_market(choice, archive), port)


@contextlib.contextmanager
def _service_of(
    key: int | Path,
    choice: object,
    market: Callable[[], AbstractContextManager[MarketSource]],
    port: int,
) -> Iterator[str]:
    with needs_extra("service"):
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
