"""`rail report`: a report of the store by one command, and whether one is still equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.reports import read_recipe
from toolkit.store import Store

from .conftest import LOADED, Rail, refused

SPREAD, FUNDING = (str(each.key) for each in LOADED[1:])


@pytest.mark.parametrize(
    ("command", "whats"),
    [
        (
            f"spread {SPREAD} --part tail_index",
            ["plot", "summary", "hour_of_week", "flags", "tail_index"],
        ),
        pytest.param(
            "funding", ["plot", "summary", "persistence", "holdings"], marks=pytest.mark.slow
        ),
        pytest.param(
            "events spread --part clustering",
            ["plot_activity", "summary", "survival", "league", "clustering"],
            marks=pytest.mark.slow,
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


def test_what_cannot_be_reported_on_is_refused_before_anything_is_written(
    rail: Rail, held: Store
) -> None:
    assert "holds nothing of XRP_USDT" in refused(rail("report", "symbol", "XRP_USDT"))
    assert "a name that ends in .html" in refused(rail("report", "funding", "--to", "r.pdf"))
    assert "--start" in refused(rail("report", "spread", "--start", "soon"))
    assert "nearest: tail_index" in refused(rail("report", "spread", "--part", "tail_indx"))
    assert "--part: 'episodes'" in refused(rail("report", "spread", "--part", "episodes"))
    assert "no recipe in it" in refused(rail("report", "--verify", str(held.path)))
    assert "over published data" in refused(rail("report", "spread", "--cluster", "2"))
    assert "after `rail report spread`" in refused(rail("report", "--store", "a.duckdb", "spread"))
    assert not list(held.path.parent.glob("*.html"))


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
