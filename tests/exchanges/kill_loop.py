"""Serve exchanges of the fake by a clock that runs fast: a process to be killed.

``python -m tests.exchanges.kill_loop ARCHIVE PORT BEGAN``. The clock began at ``BEGAN`` by the
machine's monotonic one, so that it goes on while nobody serves.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from toolkit.service import Config, serve
from toolkit.service.market.exchanges import WantedLegs
from toolkit.service.market.exchanges.archive import Archive, Exchanges
from toolkit.service.market.exchanges.polling import Poller
from toolkit.service.market.exchanges.reading import Exchange
from toolkit.service.market.source import SpedClock

START, SPEED, NAMES = 1_795_651_200, 20.0, ("binance", "okx")
WANTED = WantedLegs(("BTC_USDT", "SOL_USDT"))


def moment(began: float) -> float:
    """Return the time of the exchanges (s)."""
    return START + SPEED * (time.monotonic() - began)


class Sped(Exchange):
    """An exchange by the fast clock, as often as it likes."""

    began: float

    def now(self) -> float:
        return moment(self.began)


def exchanges(began: float) -> list[Sped]:
    """Return the exchanges that are read, by a clock that began then."""
    found = [Sped(name, sleep=lambda _: None) for name in NAMES]
    for each in found:
        each.began = began
    return found


def opened(path: Path, found: list[Sped]) -> Archive:
    """Open the archive for what exchanges list."""
    legs = [leg for each in found for leg in each.list(WANTED)]
    return Archive.open(path, start=START - 3 * 3600, legs=legs)


def main(path: str, port: str, began: str) -> None:
    """Read and serve until killed."""
    clock, found = SpedClock(start=START, speed=SPEED, began=float(began)), exchanges(float(began))
    archive = opened(Path(path), found)
    with Poller(archive, found, clock, WANTED) as poller:
        poller.catch_up()
        config = Config(Exchanges(archive), port=int(port), clock=clock, quota=10**6)
        serve(config, ready=lambda url: print(url, flush=True))  # noqa: T201 - it is heard


if __name__ == "__main__":
    main(*sys.argv[1:])
