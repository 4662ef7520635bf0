"""The end of a process whose daemon threads work with a store: its own exit code, a whole store."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolkit.client import Client
from toolkit.ending import nobody_waits, under_way
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.market import Stream
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Store

LONG = "RAIL_KILLS" in os.environ  # read before a test may not; `make kill-loop` sets it
NOW = 1_795_046_400
KEYS = ["BTC_USDT:AURORA.spot:CORONA.futures", "BTC_USDT:AURORA.spot", "events/spread"]
WINDOW = Interval(NOW - 2 * 86_400, NOW)

IN_A_DAEMON = """
import sys, threading, time
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.loader import Pace, Since, follow, sync
from toolkit.market import Stream
from toolkit.store import Store

url, path, keys, start, end, seconds = sys.argv[1:]
streams = [Stream.parse(key) for key in keys.split()]
start, end = int(start), int(end)
store, client, begun = Store(path), Client(url, "demo-pro"), threading.Event()

def syncs():
    sync(client, store, streams, Interval(start, end), on_progress=lambda _: begun.set())

def follows():
    seen = lambda progress: progress.new and begun.set()
    follow(client, store, streams, since=Since(start), pace=Pace(sweep_s=0.1), on_progress=seen)

def reads():
    while True:
        store.sql("select trajectory, avg(spread_log_bps) from spreads group by trajectory")
        begun.set()

threading.Thread(target=globals()["WHAT"], daemon=True).start()
assert begun.wait(60)
time.sleep(float(seconds))
"""


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with running(Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=10**6)) as local:
        yield local.base_url


def loaded(service: str, path: Path) -> Store:
    store = Store(path)
    with Client(service, "demo-pro") as client:
        sync(client, store, [Stream.parse(key) for key in KEYS], WINDOW)
    return store


def ended(program: str, *arguments: str) -> tuple[int, str, str]:
    """Run a program of Python: its exit code, its errors and its output."""
    argv = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr, done.stdout


def test_a_block_ends_as_if_it_were_not_marked() -> None:
    with pytest.raises(LookupError), under_way(), under_way():
        raise LookupError
    with under_way():
        assert not nobody_waits()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "times"), [("syncs", 10 if LONG else 4), ("follows", 2), ("reads", 2)]
)
def test_a_process_ends_with_its_own_code_while_a_daemon_thread_works_with_a_store(
    service: str, tmp_path: Path, what: str, times: int
) -> None:
    whole = loaded(service, tmp_path / "whole.duckdb")
    held = whole.counts(WINDOW)
    for time in range(times):
        path = tmp_path / (f"{what}-{time}.duckdb" if what != "reads" else "whole.duckdb")
        seconds = f"{0.3 * time / times:.2f}"
        asked = (service, str(path), " ".join(KEYS), *map(str, WINDOW), seconds)
        assert ended(IN_A_DAEMON.replace("WHAT", what), *asked) == (0, "", "")
        assert loaded(service, path).counts(WINDOW) == held


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_output_that_is_lost_at_the_end_is_no_success() -> None:
    program = "from toolkit import cli; cli.main = lambda: print('rows'); cli.program()"
    argv = [sys.executable, "-c", program]
    env = {name: each for name, each in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        lost = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, env=env, check=False)
    assert lost.returncode == 1
    assert lost.stderr.startswith(b"rail: the output could not be written whole: ")
    kept = subprocess.run(argv, capture_output=True, env=env, check=True)
    assert kept.stdout.split() == [b"rows"]


HOLDS_IN_A_DAEMON = """
import sys, threading
from toolkit import ending

class Held:
    def __del__(self):
        sys.stderr.write("" if ending._calls else "held beyond the block")

begun, stop = threading.Event(), threading.Event()

def inner():
    held = Held()
    begun.set()
    stop.wait()
    with ending.under_way():
        pass

def works():
    with ending.under_way(stop.set):
        inner()

threading.Thread(target=works, daemon=True).start()
begun.wait()
"""


@pytest.mark.slow
def test_what_a_thread_holds_is_let_go_before_its_block_ends_with_the_process() -> None:
    assert ended(HOLDS_IN_A_DAEMON) == (0, "", "")


ASKS_IN_A_DAEMON = """
import sys, threading
from toolkit import ending
from toolkit.client import Client
from toolkit.ending import under_way

ending._PATIENCE_S = 3600.0

def asks():
    with under_way():
        Client(sys.argv[1], "demo-pro").discover()

threading.Thread(target=asks, daemon=True).start()
sys.stdin.readline()
"""


@pytest.mark.slow
def test_a_process_ends_while_a_daemon_thread_waits_for_a_service_that_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address, pipe = f"http://127.0.0.1:{silent.getsockname()[1]}", subprocess.PIPE
        argv = [sys.executable, "-c", ASKS_IN_A_DAEMON, address]
        with subprocess.Popen(argv, stdin=pipe, stderr=pipe, text=True) as child:
            asked, _ = silent.accept()
            with asked:
                assert asked.recv(1)
                _, said = child.communicate("ends\n", timeout=300)
        assert (child.returncode, said) == (0, "")


PROGRAM = """
import atexit, sys, threading
from toolkit.cli import program
sys.argv = ["rail", *sys.argv[1:]]
def works():
    threading.main_thread().join()
    atexit.register(print, "at exit")
    print("a thread")
threading.Thread(target=works).start()
program()
"""


@pytest.mark.parametrize(
    ("command", "debug", "code"),
    [("--version", "", 0), ("status", "", 1), ("nothing", "", 2), ("status", "1", 1)],
)
def test_a_command_ends_with_its_code_once_threads_have_and_all_at_exit_has_run(
    tmp_path: Path, command: str, debug: str, code: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"RAIL_DEBUG": debug},
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert done.stdout.splitlines()[-2:] == ["a thread", "at exit"]
    assert ("Traceback" in done.stderr) == bool(debug)
