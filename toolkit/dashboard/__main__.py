"""`python -m toolkit.dashboard --store FILE`: serve the dashboard until it is stopped.

With ``--end-with-stdin`` it ends with its standard input, a parent's pipe.
"""

from __future__ import annotations

import argparse
import os
import runpy
import signal
import sys
import threading
import time
from pathlib import Path

from toolkit.dashboard.settings import command
from toolkit.serving import expect_whole_requests
from toolkit.workspace.login import find_login

_GRACE_S = 5.0


def main() -> None:
    """Run the Streamlit server that `command` describes."""
    arguments = argparse.ArgumentParser(prog="python -m toolkit.dashboard")
    arguments.add_argument("--store", type=Path, required=True)
    arguments.add_argument("--host", default="127.0.0.1")
    arguments.add_argument("--port", type=int, default=8501)
    arguments.add_argument("--headless", action="store_true")
    arguments.add_argument("--follow", action="store_true")
    arguments.add_argument("--share", action="store_true")
    arguments.add_argument("--name", action="append", default=[])
    arguments.add_argument("--proxy", action="append", default=[])
    arguments.add_argument("--end-with-stdin", action="store_true")
    given = arguments.parse_args()
    if given.end_with_stdin:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    os.environ["FORWARDED_ALLOW_IPS"] = ",".join(
        given.proxy
    )  # uvicorn believes all of this machine
    expect_whole_requests()
    sys.argv = command(
        given.store,
        given.port,
        given.host,
        given.headless,
        follow=given.follow,
        login=find_login() if given.share else None,
        names=given.name,
    )
    runpy.run_module("streamlit", run_name="__main__", alter_sys=True)


def _end_with_stdin() -> None:
    while os.read(0, 1024):  # without Python's buffer, whose lock would outlive this thread
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os._exit(128 + signal.SIGTERM)  # Streamlit forgets a signal that comes while it starts


if __name__ == "__main__":
    main()
