"""`rail` run inside the test's process, a service to ask, and a store that was loaded from it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolkit.cli import main
from toolkit.cli.show import console
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Family, SnapshotKind, SnapshotLog, Trajectory
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Store
from toolkit.workspace import Workspace

NOW = 1_793_750_400
"""2026-11-04 00:00 UTC: where the service's clock stands."""
WINDOW = Interval(NOW - 43_200, NOW)
SETTLED = Interval(NOW - 3 * 86_400, NOW)
LOADED = (
    Trajectory.parse("BTC_USDT:AURORA.spot"),
    Trajectory.parse("BTC_USDT:AURORA.spot:CORONA.futures"),
    Trajectory.parse("BTC_USDT:AURORA.futures:CORONA.futures", Family.FUNDING),
)


@pytest.fixture
def rail(
    workdir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `rail` in an empty folder, without a process of its own, on so many columns.

    Settings are given by keyword as RAIL_* variables.
    """

    def run(
        *arguments: str, columns: int = 160, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        before, sys.argv = sys.argv, ["rail", *map(str, arguments)]
        capsys.readouterr()
        try:
            with monkeypatch.context() as environment:
                console.width = columns
                for name, value in settings.items():
                    environment.setenv(f"RAIL_{name.upper()}", value)
                main()
            code: object = 0
        except SystemExit as ended:
            code = ended.code or 0
        finally:
            sys.argv = before
        assert isinstance(code, int)
        return subprocess.CompletedProcess(sys.argv, code, *capsys.readouterr())

    assert workdir.is_dir()
    return run


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line that a refusal is."""
    assert done.returncode == 1, (done.stdout, done.stderr)
    assert "Traceback" not in done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("rail: ")
    return lines[0]


@pytest.fixture(scope="session")
def service() -> Iterator[str]:
    """The address of a SIMULATED market whose clock stands at NOW."""
    with running(Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=10**6)) as local:
        yield local.base_url


@pytest.fixture(scope="session")
def loaded(service: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a day of a price, a spread and the event logs, and three days of funding."""
    path = tmp_path_factory.mktemp("loaded") / "rail.duckdb"
    with Workspace(Client(service, "demo-pro"), Store(path)) as workspace:
        workspace.sync(LOADED[:2], *WINDOW)
        workspace.sync(LOADED[2:], *SETTLED)
        logs = [EventLog(family) for family in EventFamily]
        workspace.sync([*logs, SnapshotLog(SnapshotKind.SPREAD)], *WINDOW)
    return path


@pytest.fixture
def held(loaded: Path, workdir: Path) -> Store:
    """The loaded store as ``rail.duckdb`` in the working directory."""
    return Store(Path(shutil.copy(loaded, workdir / "rail.duckdb")))
