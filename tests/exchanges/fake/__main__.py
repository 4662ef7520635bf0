"""Serve the fake on the wall clock until Ctrl-C: `python -m tests.exchanges.fake`."""

from __future__ import annotations

import argparse
import signal
import time

from tests.exchanges.fake import Fake
from tests.exchanges.truth import Truth

ENDS = {signal.SIGINT, signal.SIGTERM}


def main() -> None:
    """Print the address as the setting by which the toolkit finds it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)  # in the server's threads too
    parser = argparse.ArgumentParser(prog="python -m tests.exchanges.fake", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--days-ago", type=float, default=0.0, help="how far its clock is behind")
    given = parser.parse_args()
    late_s = 86_400 * given.days_ago
    today = int(time.time() - late_s) // 86_400 * 86_400
    truth = Truth.eventful(today - 86_400, given.seed)
    with Fake(truth, lambda: time.time() - late_s, given.port) as fake:
        print(f"RAIL_EXCHANGES_AT={fake.at}", flush=True)  # noqa: T201 - what it is started for
        signal.sigwait(ENDS)


if __name__ == "__main__":
    main()
