"""Queries of users in a process of their own: its bounds, its end, and what is left of it."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.empty_store import empty_store
from toolkit.errors import InputError
from toolkit.store import Store
from toolkit.store.reading import sql_process

from .conftest import SOURCE, committing

ENDLESS = "SELECT count(*) FROM range(100000000000) a, range(1000) b"
IN_ONE_STEP = "SELECT repeat('x', 2000000000)"

PROGRAM = """
import subprocess, sys
from toolkit.store import Store
from toolkit.store.reading import sql_process
store = Store(sys.argv[1])
print(store.sql("SELECT count(*) AS n FROM prices").item(), flush=True)
print(sql_process._idle[0]._process.pid, flush=True)
if len(sys.argv) > 2:
    print("asked", flush=True)
    store.sql(sys.argv[2])
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = empty_store(tmp_path_factory.mktemp("sql process") / "rail.duckdb", SOURCE)
    committing(made)("A_B:X.spot", [(0, 1.0), (60, 2.0)])
    return made


def ended(process: int) -> bool:
    """Wait until a process that is no child of ours has ended."""
    status = Path(f"/proc/{process}/stat")
    for _ in range(600):
        try:
            if ") Z " in status.read_text():
                return True
        except OSError:
            return True
        threading.Event().wait(0.05)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("query", [ENDLESS, IN_ONE_STEP])
def test_a_query_that_takes_too_long_is_ended_and_the_next_is_answered(
    store: Store, query: str
) -> None:
    with pytest.raises(InputError, match=r"allowed: one that takes at most 0\.3 s"):
        store.sql(query, within_s=0.3)
    assert store.sql("SELECT count(*) AS n FROM prices", within_s=60).item() == 2
    assert [file.name for file in store.path.parent.iterdir()] == [store.path.name]


@pytest.mark.slow
@pytest.mark.parametrize("greedy", ["list(x)", "x, sin(x)"])  # for DuckDB, and for polars
def test_a_query_has_a_part_of_the_memory(store: Store, greedy: str) -> None:
    share = "SELECT current_setting('memory_limit') AS memory"
    assert store.sql(share).item().endswith("iB")
    (process,) = (worker._process.pid for worker in sql_process._idle[-1:])
    assert resource.prlimit(process, resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[0])
    bound = pages * resource.getpagesize() + 400 * 2**20
    resource.prlimit(process, resource.RLIMIT_AS, (bound, bound))
    with pytest.raises(InputError, match=r"allowed: one that takes at most .*iB of memory"):
        store.sql(f"SELECT {greedy} FROM range(100000000000) t(x)")
    assert store.sql("SELECT 1 AS one").item() == 1


def test_questions_of_several_threads_are_answered_side_by_side(store: Store) -> None:
    with ThreadPoolExecutor(3) as threads:
        found = threads.map(lambda n: store.sql("SELECT $n AS n", {"n": n}).item(), range(9))
        assert list(found) == list(range(9))


@pytest.mark.parametrize("value", [lambda: 1, object(), threading.Lock()])
def test_a_value_that_is_none_for_a_query_is_refused(store: Store, value: object) -> None:
    with pytest.raises(InputError, match=r"parameters|DuckDB"):
        store.sql("FROM prices WHERE ts = ?", [value])
    assert store.sql("FROM prices").height == 2


@pytest.mark.slow
def test_a_script_leaves_nothing_behind(store: Store) -> None:
    argv = [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM, str(store.path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    rows, process = done.stdout.split()
    assert (rows, done.stderr) == ("2", "")
    assert ended(int(process))


@pytest.mark.slow
@pytest.mark.parametrize("query", [ENDLESS, IN_ONE_STEP])
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_a_query_ends_with_the_process_that_asked_it(
    store: Store, query: str, by: signal.Signals
) -> None:
    argv = [sys.executable, "-c", PROGRAM, str(store.path), query]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        rows, process, asked = (running.stdout.readline().strip() for _ in range(3))
        assert (rows, asked) == ("2", "asked")
        os.kill(running.pid, by)
        errors = running.stderr.read()
    assert ended(int(process))
    assert running.returncode == -by
    assert ("KeyboardInterrupt" in errors) == (by is signal.SIGINT)
