"""An empty store, a client of a service that runs for a block, a market of one leg, a follow."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit.client import Client
from toolkit.loader import FollowProgress, FollowResult, Pace, follow
from toolkit.market import Leg
from toolkit.service import Bars, Config, running
from toolkit.service.market.source import Whole
from toolkit.store import Store
from toolkit.wire.socket_steps import ReconnectPolicy

QUICK = {
    "pace": Pace(sweep_s=0.2, poll_s=0.1, rules_s=0.2),
    "policy": ReconnectPolicy(first_wait_s=0.02, longest_wait_s=0.1),
}


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for one store after another, which DuckDB has an engine for: to start one is dear."""
    return tmp_path_factory.mktemp("place") / "rail.duckdb"


@pytest.fixture
def store(place: Path) -> Iterator[Store]:
    """A store that is not there yet."""
    yield Store(place)
    for left in place.parent.iterdir():
        left.unlink()


@contextmanager
def client_of(config: Config, key: str = "demo-pro", **options: Any) -> Iterator[Client]:
    """A client of a running service."""
    with running(config) as service, Client(service.base_url, key, **options) as client:
        yield client


class Line(Whole):
    """A source with one leg and one bar every ``interval_s`` from ``first``.

    ``tail`` rewrites bars, ``without`` leaves some out.
    """

    kind = "simulated"
    id = "line"
    listing = {"BTC_USDT": (Leg.parse("AURORA.spot"),)}  # noqa: RUF012 - the protocol's shape

    def __init__(
        self,
        bars: int,
        interval_s: int = 60,
        tail: Mapping[int, float] | None = None,
        without: Sequence[int] = (),
        first: int = 0,
    ) -> None:
        kept = [i for i in range(bars) if i not in without]
        self._bars = Bars(
            ts=first + np.array(kept) * interval_s,
            price=np.array([(tail or {}).get(i, 1.0 + i) for i in kept]),
            interval_s=interval_s,
        )

    def bars(self, symbol: str, leg: Leg) -> Bars:
        assert (symbol, str(leg)) == ("BTC_USDT", "AURORA.spot")
        return self._bars


def until(
    enough: Callable[[FollowProgress], bool],
    client: Client,
    store: Store,
    what: object,
    **options: Any,
) -> FollowResult:
    """A follow that is stopped when it has come far enough."""
    stop = threading.Event()

    def look(progress: FollowProgress) -> None:
        if enough(progress):
            stop.set()

    return follow(client, store, what, stop=stop, on_progress=look, **(QUICK | options))
