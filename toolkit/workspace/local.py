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
from toolkit.workspace.exchanges import ExchangeChoice, exchange_market

if TYPE_CHECKING:
    from toolkit.service import Config, MarketSource

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
