"""``python -m tests.adversary FILE``: a local service that behaves by a file of switches."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.adversary import adverse, read_adversary
from toolkit.errors import RailError
from toolkit.market import parse_ts
from toolkit.service import Clock, Config, Replay, Simulated, serve

_EVERYTHING_S = 100 * 366 * 86_400


def main() -> None:
    """Serve until SIGINT or SIGTERM, with the keys of the demo."""
    parser = argparse.ArgumentParser("python -m tests.adversary", description=__doc__)
    parser.add_argument("file", type=Path, help="a TOML file of switches: docs/adversary.md")
    parser.add_argument("--replay", type=Path, help="serve this recorded market, a simulated else")
    parser.add_argument("--now", help="stop the service's clock at this time, UTC")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8700)
    said = parser.parse_args()
    try:
        config = Config(
            Replay.read(said.replay) if said.replay else Simulated(7),
            host=said.host,
            port=said.port,
            clock=Clock(fixed_at=parse_ts(said.now) if said.now else None),
            retention_s=_EVERYTHING_S if said.replay else None,
            application=adverse(read_adversary(said.file)),
        )
        keys = ", ".join(key for owner in config.owners for key in owner.keys)
        serve(config, ready=lambda url: _say(f"listening at {url}; keys: {keys}"))
    except RailError as error:
        sys.exit(f"python -m tests.adversary: {error}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
