"""`rail app` as an installed command: started anywhere, asked by socket, ended by a signal."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from urllib.parse import quote_plus

import pytest

from tests.listening import free_port
from toolkit.dashboard.link import PAGES

from .conftest import RAIL
from .dashboard_process import App, app_over, faults, properties

STORE = Path("rail.duckdb")
TABLES_ALONE = ("spreads", "funding", "alerts", "health")
"""The pages that begin with tables, and draw a chart when one is asked for if at all."""
NO_PRICES = "What followed is measured on the prices of their legs. None are stored."
UNPRICED = "The carry of 1 pair is not known for the whole time, as their prices are not stored."
SAID = {"events": [NO_PRICES], "funding": [UNPRICED]}


@pytest.fixture(scope="module")
def folder(day_of_market: Path) -> Path:
    return day_of_market


def assert_ends(app: App, how: signal.Signals, code: int, *, as_terminal: bool = False) -> None:
    """A signal ends a dashboard that has shown a page, all its processes and its open port."""
    assert app.end(how, as_terminal=as_terminal) == code
    assert not app.has_left_a_process()
    with pytest.raises(OSError, match="refused"):
        app.get("/_stcore/health")
    assert "Traceback" not in app.output.read_text()


def test_every_page_says_whose_data_it_shows_from_any_folder_until_a_signal(folder: Path) -> None:
    with app_over(STORE, folder) as app:
        assert b"<title>" in app.get("/")
        assert app.get("/_stcore/health") == b"ok"
        key = "BTC_USDT:AURORA.spot:CORONA.futures"
        argv = [RAIL, "open", key, "--store", STORE, "--no-browser"]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=True)
        assert done.stdout == f"{app.address}/trajectory?trajectory={quote_plus(key)}\n"
        for name in PAGES:
            shown = app.page(name)
            assert faults(shown) == [], name
            said = [n["props"]["body"] for n in shown if n["type"] in ("warning", "info")]
            assert said == SAID.get(name, []), name
            ours = {each["component_name"] for each in properties(shown, "components.v2.component")}
            chart = properties(shown, "plotly_chart")
            assert "rail_rows" in ours or chart or name == "alerts", name
            assert chart or name in TABLES_ALONE, name
        assert_ends(app, signal.SIGTERM, 143)
        said = app.output.read_text()
    assert "(SIMULATED market, seed-7" in said
    assert f"at {app.address}" in said


def test_pages_are_served_from_a_publication_until_a_ctrl_c(folder: Path, tmp_path: Path) -> None:
    published = [RAIL, "store", "publish", "archive", "--store", STORE]
    subprocess.run(published, cwd=folder, check=True)
    with app_over(Path("archive"), folder, XDG_CACHE_HOME=str(tmp_path)) as app:
        for name in ("overview", "spreads", "trajectory"):
            shown = app.page(name)
            assert faults(shown) == [], name
            ours = {each["component_name"] for each in properties(shown, "components.v2.component")}
            assert "rail_rows" in ours or properties(shown, "plotly_chart"), name
        assert "archive/manifests/" in app.output.read_text()
        assert_ends(app, signal.SIGINT, 0, as_terminal=True)


def test_a_command_that_is_killed_takes_its_dashboard_along(folder: Path) -> None:
    with app_over(STORE, folder) as app:
        assert app.end(signal.SIGKILL) == -signal.SIGKILL
        while app.has_left_a_dashboard():  # one that goes on meets the limit of all tests
            time.sleep(0.1)


def test_open_without_a_dashboard_runs_one_and_sends_a_browser_to_the_page(
    folder: Path, tmp_path: Path
) -> None:
    stub, asked, port = tmp_path / "browser", tmp_path / "asked", free_port()
    stub.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {asked}\n')
    stub.chmod(0o755)
    argv = [RAIL, "open", "events/splash", "--store", STORE, "--port", str(port)]
    process = subprocess.Popen(argv, cwd=folder, env=os.environ | {"BROWSER": f"{stub} %s"})
    try:
        while not asked.exists() or not asked.read_text():
            assert process.poll() is None, "no browser was opened"
            time.sleep(0.1)
        assert asked.read_text() == f"http://127.0.0.1:{port}/events?family=splash"
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
