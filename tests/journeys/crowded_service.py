"""Serves seed 7 with crowded event logs: of each day, 700 documents and more share one second.

``python crowded_service.py PORT`` serves at this port until it is ended, so that a load can be
watched over a service that dies and comes back.
"""

from __future__ import annotations

import sys

from tests.adversary import ArchiveSettings, adverse
from toolkit.service import Clock, Config, Simulated, serve

SEED, NOW = 7, 1_795_132_800  # 2026-11-20
SETTINGS = ArchiveSettings(burst=700)


def announce(base_url: str) -> None:
    sys.stdout.write(f"{base_url}\n")
    sys.stdout.flush()


def main(port: int) -> None:
    config = Config(
        Simulated(SEED), port=port, clock=Clock(fixed_at=NOW), application=adverse(events=SETTINGS)
    )
    serve(config, ready=announce)


if __name__ == "__main__":
    main(int(sys.argv[1]))
