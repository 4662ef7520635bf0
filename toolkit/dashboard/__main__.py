"""`python -m toolkit.dashboard --store FILE`: serves the dashboard until it is stopped."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from toolkit.dashboard.settings import command


def main() -> None:
    """Become the Streamlit server that `command` describes."""
    arguments = argparse.ArgumentParser(prog="python -m toolkit.dashboard")
    arguments.add_argument("--store", type=Path, required=True)
    arguments.add_argument("--host", default="127.0.0.1")
    arguments.add_argument("--port", type=int, default=8501)
    arguments.add_argument("--headless", action="store_true")
    arguments.add_argument("--follow", action="store_true")
    given = arguments.parse_args()
    argv = command(given.store, given.port, given.host, given.headless, given.follow)
    os.execv(argv[0], argv)  # noqa: S606 - our own command, no shell


if __name__ == "__main__":
    main()
