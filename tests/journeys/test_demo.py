"""`rail demo` as a person meets it: on a terminal of 80 columns, run again, stopped anywhere."""

from __future__ import annotations

import fcntl
import itertools
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import termios
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from tests.listening import free_port
from tests.once import made_once
from toolkit.market import Source
from toolkit.store import Store, StoreWriter
from toolkit.workspace.snapshot_tables import funding_rates, open_spreads, widest_differentials

from .conftest import RAIL
from .dashboard_process import STREAMLIT, App, faults
from .kill_loop import KILLS

COLUMNS = 80
PATIENCE_S = 240


class Screen:
    """A command on a terminal of 80 columns, and all that it has written there."""

    def __init__(self, argv: list[str], data: Path) -> None:
        self.written = ""
        self.pid, self._at = pty.fork()
        if self.pid == 0:
            environment = os.environ | {"XDG_DATA_HOME": str(data), "TERM": "xterm"}
            environment |= STREAMLIT
            os.chdir(data)
            os.execvpe(argv[0], argv, environment)
        fcntl.ioctl(self._at, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))

    def read(self, enough: Callable[[str], bool], patience_s: float = PATIENCE_S) -> bool:
        """Read until it is enough. False where the command ended, or time ran out, before."""
        until = time.monotonic() + patience_s
        while not enough(self.written):
            if time.monotonic() > until:
                return False
            if not select.select([self._at], [], [], 0.05)[0]:
                continue
            try:
                found = os.read(self._at, 65_536)
            except OSError:
                return False
            if not found:
                return False
            self.written += found.decode(errors="replace")
        return True

    def ctrl_c(self) -> None:
        os.write(self._at, b"\x03")

    def end(self) -> int:
        """Read to the end, and return the exit code."""
        self.read(lambda _: False)
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            time.sleep(1)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self._at)
        return code

    @property
    def lines(self) -> list[str]:
        """What is left to be read once the bars have gone."""
        text = re.sub(r"\x1b\[\?25[lh]", "", self.written)
        shown: list[str] = [""]
        row = 0
        for part in re.split(r"(\x1b\[[0-9;]*[A-Za-z]|\r|\n)", text):
            if part == "\n":
                row += 1
                shown += [""] * (row + 1 - len(shown))
            elif part == "\x1b[1A":
                row -= 1
            elif part == "\x1b[2K":
                shown[row] = ""
            elif part and not part.startswith("\x1b") and part != "\r":
                shown[row] += part
        return [line for line in shown if line.strip()]


@contextmanager
def demo(data: Path, *options: str) -> Iterator[Screen]:
    data.mkdir(exist_ok=True)
    screen = Screen([str(RAIL), "demo", "--no-browser", *options], data)
    try:
        yield screen
    finally:
        try:
            os.kill(screen.pid, signal.SIGKILL)
            os.waitpid(screen.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def store_of(data: Path) -> Store:
    (path,) = (data / "machine-rail").glob("demo-*.duckdb")
    return Store(path)


def listed(store: Store) -> set[str]:
    """The trajectories on the first page, by the snapshots that the store holds."""
    spreads, rates = (
        store.snapshots(kind, newest=True)["document"][0] for kind in ("spread", "funding")
    )
    opened = open_spreads(spreads).drop_nulls("opened_at")["trajectory"]
    return {*opened, *widest_differentials(funding_rates(rates))["trajectory"]}


def held(store: Store) -> set[str]:
    return set(store.catalogue().filter(pl.col("rows") > 0)["stream"])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's data folder: the demo was stopped as it loaded, and then ran to its end."""
    made = made_once(tmp_path_factory, "demo", load)
    return Path(shutil.copytree(made, tmp_path_factory.mktemp("d"), dirs_exist_ok=True))


def load(data: Path) -> None:
    for text in ("store:", "%", "rows, ") if KILLS >= 50 else ("rows, ",):
        with demo(data, "--once") as screen:
            assert screen.read(lambda written, text=text: text in written), screen.written
            screen.read(lambda _: False, 1.0)
            screen.ctrl_c()
            assert screen.end() == 130, screen.written
        assert_stopped(screen)
    with demo(data, "--once") as screen:
        assert screen.end() == 0, screen.written
        lines = screen.lines
    assert [line.partition(":")[0] for line in lines[:3]] == ["market", "store", "loaded"], lines
    assert len(lines) <= 10, lines


def test_after_a_ctrl_c_in_the_first_load_the_next_run_loads_the_rest(data: Path) -> None:
    store = store_of(data)
    assert listed(store) <= held(store)


def check_only_added(before: pl.DataFrame, after: pl.DataFrame) -> None:
    """What earlier loads brought is there as it was, and a little more came."""
    earlier = after.filter(pl.col("load_id").is_in(before["load_id"].to_list()))
    assert earlier["rows"].sum() == before["rows"].sum()
    new = after["rows"].sum() - before["rows"].sum()
    assert 0 < new < before["rows"].sum() / 4


def test_the_next_run_adds_what_is_new_its_address_comes_first_and_its_pages_live(
    data: Path,
) -> None:
    before = store_of(data).rows_by_load()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with demo(data, "--port", str(port)) as screen:
            assert screen.read(lambda text: "streaming:" in text), screen.written
            lines = screen.lines
            address = re.fullmatch(r"dashboard: (http://127\.0\.0\.1:(\d+)), once .*", lines[0])
            assert address, lines
            assert port < int(address[2]) <= port + 20
            assert len(lines) <= 11, lines
            paths = [line for line in lines if str(data) in line]
            assert len(paths) == 2
            assert all(len(line) <= COLUMNS for line in lines if line not in paths), lines
            until = time.monotonic() + PATIENCE_S
            while time.monotonic() < until:
                try:
                    urllib.request.urlopen(f"{address[1]}/_stcore/health", timeout=10).close()
                    break
                except OSError:
                    time.sleep(0.2)
            app = App(None, address[1], data / "none")  # type: ignore[arg-type]  # the page alone is asked
            shown = app.page("overview")
            assert faults(shown) == []
            (refresh,) = [node for node in shown if node.get("key") == "refresh"]
            assert refresh["value"] == "5 s"
            store = store_of(data)
            newest = store.catalogue()["last_ts"].max()
            assert isinstance(newest, int)
            asked = store.snapshots("spread", newest=True)["served_at"][0]
            while time.monotonic() < until:
                time.sleep(2)
                known = store.catalogue()["last_ts"].max()
                later = store.snapshots("spread", newest=True)["served_at"][0]
                if known > newest and later > asked:
                    break
            else:
                pytest.fail("nothing new came while the dashboard was open")
            assert listed(store) <= held(store)
            screen.ctrl_c()
            assert screen.end() == 130
    assert_stopped(screen)
    check_only_added(before, store.rows_by_load())
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(address[1], timeout=10)


def assert_stopped(screen: Screen) -> None:
    """One line of ours after the Ctrl-C, and no other."""
    after = screen.written.rpartition("^C")[2]
    text = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]|\r", "", after)
    lines = [line for line in text.splitlines() if line.strip()]
    assert "Traceback" not in screen.written, screen.written
    ours = [line for line in screen.lines if line.removeprefix("^C").startswith("rail: stopped; ")]
    assert len(ours) == 1, screen.written
    assert "rail demo` " in ours[0]
    assert len(ours[0].removeprefix("^C")) <= COLUMNS
    assert [line for line in lines if "rail: stopped" in line] == lines[-1:], lines


DELAYS_S = (0.0, 0.3, 1.0, 2.5, 5.0)
LINES = ("dashboard:", "store:", "streaming:")
MOMENTS = (
    list(itertools.product(LINES, DELAYS_S))
    if KILLS >= 50
    else [("dashboard:", 0.0), ("store:", 1.0)]
)
"""After which line, and how much later, Ctrl-C comes. `make kill-loop` tries all of these.

While it streams, the test of the pages has it.
"""


@pytest.mark.parametrize(("text", "after_s"), MOMENTS)
def test_ctrl_c_at_any_moment_is_one_line_and_the_next_run_goes_on(
    data: Path, text: str, after_s: float
) -> None:
    with demo(data, "--port", str(free_port())) as screen:
        assert screen.read(lambda written: text in written), screen.written
        screen.read(lambda _: False, after_s)
        screen.ctrl_c()
        assert screen.end() == 130, screen.written
    assert_stopped(screen)
    assert store_of(data).source.kind == "simulated"


def test_beside_a_named_store_of_an_earlier_market_a_new_one_begins_and_the_old_stays_readable(
    tmp_path: Path,
) -> None:
    earlier, source = tmp_path / "mine.duckdb", Source("simulated", "seed-7-000000000000")
    StoreWriter(Store(earlier)).bind(source)
    before = earlier.read_bytes()
    for note, enough in (("so a new file", "rows"), ("its file is beside", "store:")):
        with demo(tmp_path, "--once", "--store", "mine.duckdb") as screen:
            assert screen.read(lambda text, enough=enough: enough in text), screen.written
            screen.ctrl_c()
            assert screen.end() == 130
        notes = [line for line in screen.lines if line.startswith("note: ")]
        assert notes == [f"note: mine.duckdb is kept; this version's market differs, {note}"]
        assert len(notes[0]) <= COLUMNS
    (beside,) = tmp_path.glob("mine-*.duckdb")
    assert Store(beside).source.id.endswith(beside.stem.removeprefix("mine-"))
    assert earlier.read_bytes() == before
    assert Store(earlier).source == source
    asked = [str(RAIL), "store", "verify", "--store", "mine.duckdb"]
    subprocess.run(asked, cwd=tmp_path, capture_output=True, check=True)
