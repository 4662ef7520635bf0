"""The local service, as the workspace and the command line start it.

The service's own code is loaded when one is started: it brings a web server along.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit import market
from toolkit.errors import InputError, needs_extra

if TYPE_CHECKING:
    from toolkit.service import Config, MarketSource

DEFAULT_SEED = 7
"""The SIMULATED market that is served where no other is named."""

_EVERYTHING_S = 100 * 366 * 86_400  # recorded data is as old as it is: no plan's depth cuts it


@dataclass(frozen=True, slots=True)
class Serving:
    """A local service that answers: its address, source, keys, and its clock where it is fixed.

    ``codes``, by owner, let each owner with webhooks in the plan sign in once. ``faithful``: it
    behaves as agreed, by no adversary's switches.
    """

    base_url: str
    source: market.Source
    symbols: int
    legs: int
    clock_at: int | None
    keys: str
    codes: Mapping[str, str] = field(repr=False)
    faithful: bool = True


def serve_local(
    *,
    replay: Path | None = None,
    datasets: Sequence[str] = (),
    interval_s: int | None = None,
    renamed: Mapping[str, str] | None = None,
    seed: int | None = None,
    now: int | None = None,
    retention_s: int | None = None,
    owners: Path | None = None,
    adversary: Path | None = None,
    webhooks_to_loopback: bool = False,
    host: str = "127.0.0.1",
    port: int = 0,
    ready: Callable[[Serving], object],
) -> None:
    """Serve until SIGINT or SIGTERM. ``ready`` is called once connections are accepted.

    With ``replay`` what that Parquet file (or ``prices``, ``funding`` and ``pumps.parquet`` in that
    folder) holds, all of it unless ``retention_s`` limits it, under the symbols that ``renamed``
    gives in place of the file's. Without, the endless SIMULATED market of ``seed``
    (`DEFAULT_SEED`). ``now`` (s) stops the service's clock. ``owners`` is a TOML file
    of owners, plans and keys, in place of the demo ones, ``adversary`` one of switches that make
    the service behave otherwise than agreed. Webhooks go to public https addresses, with
    ``webhooks_to_loopback`` to this machine as well. Raises `InputError` for what cannot be served.
    """
    with needs_extra("service"):
        from toolkit.service import (  # noqa: PLC0415 - see above
            Adversary,
            Clock,
            Config,
            Replay,
            Simulated,
            WebhookSettings,
            read_adversary,
            serve,
        )

    if replay is not None and seed is not None:
        raise InputError("seed", seed, "none beside a replay")
    source: MarketSource
    if replay is not None:
        source = Replay.read(replay, datasets=datasets, interval_s=interval_s, renamed=renamed)
        retention_s = retention_s or _EVERYTHING_S
    elif renamed:
        raise InputError("renamed", ", ".join(renamed), "nothing without a replay")
    else:
        source = Simulated(DEFAULT_SEED if seed is None else seed)
    config = Config(
        source,
        host=host,
        port=port,
        clock=Clock(fixed_at=now),
        retention_s=retention_s,
        owners_file=owners,
        adversary=read_adversary(adversary) if adversary else Adversary(),
        webhooks=WebhookSettings(loopback=webhooks_to_loopback),
    )
    serve(config, ready=lambda base_url: ready(_serving(base_url, config)))


def _serving(base_url: str, config: Config) -> Serving:
    from toolkit.service.accounts.owners import Owners, OwnersFile  # noqa: PLC0415 - see above
    from toolkit.service.adversary.settings import KIND  # noqa: PLC0415 - see above
    from toolkit.service.transports.webhooks.courier import MINIMUM_PLAN  # noqa: PLC0415 - see above

    file = config.owners_file
    owners = (OwnersFile(file) if file else Owners(config.owners)).named.values()
    entitled = [owner.name for owner in owners if owner.plan.rank >= MINIMUM_PLAN.rank]
    codes = {name: config.sessions.issue(name) for name in entitled}
    source = config.source
    legs = sum(map(len, source.listing.values()))
    named = market.Source(source.kind, source.id)
    keys = ", ".join(key for owner in config.owners for key in owner.keys)
    if config.owners_file:
        keys = f"those of {config.owners_file}"
    return Serving(
        base_url,
        named,
        len(source.listing),
        legs,
        config.clock.fixed_at,
        keys,
        codes,
        faithful=config.adversary == KIND,
    )


@dataclass(slots=True)
class _SharedService:
    """A local service that several workspaces of this process use."""

    base_url: str
    closing: contextlib.ExitStack
    users: int = 0


_shared: dict[int, _SharedService] = {}  # by seed
_sharing = threading.Lock()


@contextlib.contextmanager
def simulated_service(seed: int = DEFAULT_SEED, *, port: int = 0) -> Iterator[str]:
    """Give the address of a local service on the SIMULATED market of a seed, for a ``with`` block.

    It listens at ``port`` where that is free, else at any free one. Blocks of one process and one
    seed share one service. It stops with the last of them, or with the process. Its clock is the
    wall clock, its market endless. It answers for the last 30 days.

    >>> with simulated_service() as base_url, simulated_service() as same:
    ...     base_url.startswith("http://127.0.0.1:"), same == base_url
    (True, True)
    """
    with needs_extra("service"):
        from toolkit.service import Config, Simulated, running  # noqa: PLC0415 - see above

    with _sharing:
        if seed not in _shared:
            closing = contextlib.ExitStack()
            source = Simulated(seed)
            try:
                service = closing.enter_context(running(Config(source, port=port)))
            except InputError:
                service = closing.enter_context(running(Config(source, port=0)))
            _shared[seed] = _SharedService(service.base_url, closing)
        shared = _shared[seed]
        shared.users += 1
    try:
        yield shared.base_url
    finally:
        with _sharing:
            shared.users -= 1
            if not shared.users:
                del _shared[seed]
                shared.closing.close()
