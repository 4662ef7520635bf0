"""`rail app` as an installed command: started anywhere, asked by socket, ended by a signal."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from toolkit.dashboard.navigation import PAGES

from .conftest import RAIL, serving
from .dashboard_process import app_over, faults, properties

STORE = Path("rail.duckdb")
WINDOW = ("--start", "2026-11-19", "--end", "2026-11-20")
WANTED = (
    *("BTC_USDT:AURORA.spot", "BTC_USDT:AURORA.spot:CORONA.futures"),
    "funding/BTC_USDT:AURORA.futures:CORONA.futures",
    *("events/spread", "events/splash", "events/funding"),
    *("snapshot/spread", "snapshot/funding"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder far from the checkout with a store of a day of a SIMULATED market."""
    folder = tmp_path_factory.mktemp("elsewhere")
    with serving("--seed", "7", "--now", "2026-11-20") as base_url:
        where = ("--store", STORE, "--base-url", base_url)
        subprocess.run([RAIL, "sync", *WANTED, *WINDOW, *where], cwd=folder, check=True)
    return folder


def test_every_page_is_served_from_any_folder_and_says_whose_data_it_shows(folder: Path) -> None:
    with app_over(STORE, folder) as app:
        assert b"<title>" in app.get("/")
        assert app.get("/_stcore/health") == b"ok"
        for name in PAGES:
            shown = app.page(name)
            assert faults(shown) == [], name
            assert [node for node in shown if node["type"] in ("warning", "info")] == [], name
            assert properties(shown, "dataframe") or name == "funding"
            assert properties(shown, "plotly_chart") or name == "spreads"
        said = app.output.read_text()
    assert "(SIMULATED market, seed-7" in said
    assert f"at {app.address}" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("how", "as_terminal", "code"),
    [(signal.SIGTERM, False, 143), (signal.SIGINT, True, 0), (signal.SIGINT, False, 0)],
)
def test_a_signal_ends_it_and_leaves_no_process_and_no_open_port(
    folder: Path, how: signal.Signals, as_terminal: bool, code: int
) -> None:
    with app_over(STORE, folder) as app:
        app.page("overview")
        assert app.end(how, as_terminal=as_terminal) == code
        assert not app.has_left_a_process()
        with pytest.raises(OSError, match="refused"):
            app.get("/_stcore/health")
    assert "Traceback" not in app.output.read_text()
