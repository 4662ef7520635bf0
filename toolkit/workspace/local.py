"""The local service, as the workspace and the command line start it.

The service's own code is loaded when one is started: it brings a web server along.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory

if TYPE_CHECKING:
    from toolkit.service import Config

__all__ = [
    "Serving",
    "serve_local",
    "simulated_half_lives_s",
    "simulated_service",
    "simulated_window",
]


@dataclass(frozen=True, slots=True)
class Serving:
    """A local service that answers: where, on what, and at which time its clock stands."""

    base_url: str
    source: Source
    symbols: int
    legs: int
    clock_at: int | None


def serve_local(
    *,
    replay: Path | None = None,
    datasets: Sequence[str] = (),
    interval_s: int | None = None,
    now: int | None = None,
    retention_s: int | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    ready: Callable[[Serving], object],
) -> None:
    """Serve until SIGINT or SIGTERM; ``ready`` is called once connections are accepted.

    With ``replay`` the bars of that Parquet file (or of ``prices.parquet`` in that folder), else
    the miniature SIMULATED market. ``now`` (s) makes the service's clock stand still; a simulated
    market's stands at its end anyway. Raises `InputError` for what cannot be served.
    """
    from toolkit.service import Clock, Config, Replay, miniature, serve  # noqa: PLC0415 - see above

    if replay is None:
        source = miniature.source()
        now = miniature.END if now is None else now
    else:
        source = Replay.read(replay, datasets=datasets, interval_s=interval_s)
    clock = Clock(fixed_at=now)
    config = Config(source, host=host, port=port, clock=clock, retention_s=retention_s)
    serve(config, ready=lambda base_url: ready(_serving(base_url, config)))


def _serving(base_url: str, config: Config) -> Serving:
    source = config.source
    legs = sum(map(len, source.listing.values()))
    named = Source(source.kind, source.id)
    return Serving(base_url, named, len(source.listing), legs, config.clock.fixed_at)


@contextlib.contextmanager
def simulated_service() -> Iterator[str]:
    """The address of a local service on the miniature SIMULATED market, for the block's length.

    Its clock stands at the market's end.

    Examples
    --------
    >>> with simulated_service() as base_url:
    ...     base_url.startswith("http://127.0.0.1:")
    True
    """
    from toolkit.service import Clock, Config, miniature, running  # noqa: PLC0415 - see above

    config = Config(miniature.source(), port=0, clock=Clock(fixed_at=miniature.END))
    with running(config) as service:
        yield service.base_url


def simulated_window() -> Interval:
    """The whole of the miniature SIMULATED market.

    Examples
    --------
    >>> print(simulated_window())
    [2026-11-01 00:00 UTC, 2026-11-04 00:00 UTC)
    """
    from toolkit.service import miniature  # noqa: PLC0415 - see above

    return Interval(miniature.START, miniature.END)


def simulated_half_lives_s() -> dict[Trajectory, int]:
    """The half-life (s) that each spread of the miniature market was simulated with.

    Examples
    --------
    >>> simulated_half_lives_s()[Trajectory.parse("BTC_USDT:AURORA.spot:BOREAS.spot")]
    300
    """
    from toolkit.service import miniature  # noqa: PLC0415 - see above

    return {Trajectory.parse(key): half_life_s for key, half_life_s in miniature.TRUTH.items()}
