"""With `--as-of` a command prints what it printed over the store as it was then."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

from tests.dated import date_commit, date_load
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, SnapshotKind, SnapshotLog, Trajectory
from toolkit.store import Store, StoreWriter
from toolkit.workspace import Workspace

from .conftest import LOADED, NOW, Rail, refused

FIRST, SECOND = 1_700_000_000, 1_700_086_400
THEN = "2023-11-14 23:00"
PARTS = [
    (FIRST, Interval(NOW - 43_200, NOW - 21_600), Interval(NOW - 3 * 86_400, NOW - 86_400)),
    (SECOND, Interval(NOW - 21_600, NOW), Interval(NOW - 86_400, NOW)),
]
"""When what was loaded: hours of prices, spreads and logs, and days of funding."""
LEGS = [Trajectory.parse(f"BTC_USDT:{leg}") for leg in ("AURORA.spot", "CORONA.futures")]
PAIR = "pair/BTC_USDT:AURORA.spot/BTC_USDT:CORONA.futures"
BY_CLOCK = ("behind_s",)
COMMANDS = [
    "status",
    "screen",
    "screen funding",
    f"screen --pair {PAIR}",
    "stats spread",
    f"stats spread {PAIR}",
    "stats funding",
    "stats carry --horizon 8h --every 8h",
    "stats persistence",
    "stats dispersion",
    "stats events",
    "stats episodes --enter-bps 10 --leave-bps 5",
    "stats stationarity",
    "stats hour-of-week",
    "events survival",
    "events league --by symbol",
    "events magnitudes splash",
    "events together --same symbol --within 10m",
    "events payoff --delay 1m",
    "events audit",
]


@pytest.fixture(scope="module")
def stores(service: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store with the first of the parts, and the same a day later, with both."""
    folder = tmp_path_factory.mktemp("as-of")
    late, early = folder / "late" / "rail.duckdb", folder / "early" / "rail.duckdb"
    late.parent.mkdir()
    early.parent.mkdir()
    logs = [EventLog(family) for family in EventFamily]
    known: set[int] = set()
    with Workspace(Client(service, "demo-pro"), Store(late)) as workspace:
        for at, recent, days in PARTS:
            workspace.sync([*logs, SnapshotLog(SnapshotKind.SPREAD)], *recent)
            opened = workspace.store.events("spread", recent)
            workspace.sync([*LOADED[:2], *LEGS, busiest(opened)], *recent)
            workspace.sync(LOADED[2:], *days)
            loads = set(workspace.store.loads()["load_id"])
            for load_id in loads - known:
                date_load(workspace.store, load_id, at)
            if not known:
                shutil.copy(late, early)
            known |= loads
    return early, late


def busiest(opened: pl.DataFrame) -> Trajectory:
    """Return the trajectory with the most documents."""
    names = ("symbol", "buy_exchange", "buy_market", "sell_exchange", "sell_market")
    row = opened.group_by(names).len().sort("len", *names, descending=True).row(0)
    return Trajectory.parse("{}:{}.{}:{}.{}".format(*row))


def rows_of(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [{name: it for name, it in row.items() if name not in BY_CLOCK} for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_prints_what_it_printed_then(
    rail: Rail, stores: tuple[Path, Path], command: str
) -> None:
    early, late = stores
    asked = [*command.split(), "--format", "json"]
    then = rows_of(rail(*asked, "--as-of", THEN, store=str(late)))
    assert {row.pop("as_of") for row in then} == {1_700_002_800}
    assert then == rows_of(rail(*asked, store=str(early)))
    assert then != rows_of(rail(*asked, store=str(late)))


@pytest.fixture
def dated(polled: Path, workdir: Path) -> Store:
    """The store that polled, as if it had done so first."""
    store = Store(Path(shutil.copy(polled, workdir / "rail.duckdb")))
    date_commit(store, FIRST)
    return store


@pytest.mark.slow
@pytest.mark.usefixtures("dated")
def test_a_reader_sees_as_of_when(rail: Rail) -> None:
    for form in ("table", "markdown"):
        done = rail(
            "stats", "spread", "snapshot-spread/*", "--as-of", THEN, "--format", form, columns=240
        )
        assert f", as of {THEN} UTC" in done.stdout.splitlines()[0]
    said = rail("status", "--as-of", THEN, columns=200).stdout
    assert f"as of {THEN} UTC" in said
    assert "compact" not in said


def test_a_time_before_the_history_says_from_when_on_it_is_known(rail: Rail, dated: Store) -> None:
    with StoreWriter(dated).writing() as connection:
        connection.execute("INSERT INTO meta VALUES ('history_from', ?)", [str(SECOND)])
    said = refused(rail("status", "--as-of", THEN))
    assert "--as-of" in said
    assert "a time from 2023-11-15 22:13:20 UTC on" in said


@pytest.mark.slow
def test_a_report_is_of_that_time_and_can_be_verified(
    rail: Rail, stores: tuple[Path, Path], tmp_path: Path
) -> None:
    asked = ("report", "events", "spread", "--as-of", THEN, "--to", str(tmp_path / "then.html"))
    done = rail(*asked, store=str(stores[1]))
    assert done.returncode == 0, done.stderr
    assert f"as known at {THEN}" in " ".join(done.stdout.split())
    verified = rail("report", "--verify", str(tmp_path / "then.html"), store=str(stores[1]))
    assert verified.returncode == 0, verified.stderr
