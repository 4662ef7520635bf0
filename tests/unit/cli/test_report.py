"""`rail report`: a report of the store by one command, and whether one is still equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.reports import read_recipe
from toolkit.store import Store

from .conftest import LOADED, Rail

SPREAD, FUNDING = (str(each.key) for each in LOADED[1:])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "whats"),
    [
        (
            f"spread {SPREAD} --part tail_index",
            ["plot", "summary", "hour_of_week", "flags", "tail_index"],
        ),
        ("funding", ["plot", "summary", "persistence", "holdings"]),
        (
            "events spread --part clustering",
            ["plot_activity", "summary", "survival", "league", "clustering"],
        ),
    ],
)
def test_each_report_is_written_and_verified_by_a_command(
    rail: Rail, held: Store, command: str, whats: list[str]
) -> None:
    done = rail("report", *command.split(), "--to", "r.html")
    recipe, _ = read_recipe("r.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("r.html is written, of rail.duckdb as known at ")
    assert done.stdout.endswith("to check it later: rail report --verify r.html\n")
    assert [part.what for part in recipe.parts] == whats
    checked = rail("report", "--verify", "r.html")
    assert checked.returncode == 0
    assert checked.stdout.startswith(f"equal: {len(whats)} parts, computed again from rail")
    assert held.path.exists()


@pytest.mark.slow
def test_a_symbol_has_its_legs_on_one_axis_with_spreads_and_funding(
    rail: Rail, held: Store
) -> None:
    done = rail("report", "symbol", "BTC_USDT", "--store", str(held.path))
    recipe, _ = read_recipe("report-symbol.html")
    assert done.returncode == 0, done.stderr
    assert recipe.parts[0].what == "symbol"
    assert {row["stream"]: row["n"] for row in recipe.answers[0].shown}[SPREAD] == 720
    assert [part.stream for part in recipe.parts if part.what == "plot"] == [SPREAD, FUNDING]
    assert rail("report", "--verify", "report-symbol.html").returncode == 0


@pytest.mark.slow
def test_a_changed_report_ends_with_exit_code_1_and_what_differs(rail: Rail, held: Store) -> None:
    rail("report", "events", "funding", "--store", str(held.path), "--to", "r.html")
    file = Path("r.html")
    file.write_text(file.read_text().replace("</h1>", "!</h1>"))
    done = rail("report", "--verify", "r.html")
    assert done.returncode == 1
    assert done.stdout.startswith("not equal: 4 parts")


@pytest.mark.slow
def test_a_daily_report_is_compared_with_that_of_the_day_before(rail: Rail, held: Store) -> None:
    (held.path.parent / "daily").mkdir()
    (held.path.parent / "rail.toml").write_text('[follow]\nstreams = ["BTC_USDT:*", "events/*"]\n')
    for window in (
        ("--start", "2026-11-03T12:00", "--end", "2026-11-03T18:00"),
        ("--start", "2026-11-03T18:00", "--end", "2026-11-04T01:00"),
    ):
        assert rail("report", "watchlist", "--to", "daily", *window).returncode == 0
    recipe, page = read_recipe("daily/watchlist-2026-11-04.html")
    assert next(part.stream for part in recipe.parts if part.what == "summary") == SPREAD
    assert FUNDING not in page
    assert recipe.earlier is not None
    assert recipe.earlier.parts[0].end == recipe.parts[0].start
    assert "Changed since the report before" in page
    done = rail("report", "--verify", "daily/watchlist-2026-11-04.html")
    assert done.returncode == 0, done.stdout
