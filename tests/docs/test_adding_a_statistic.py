"""A statistic is added in four steps, and is on every face then.

The steps are those of CONTRIBUTING.md, done in a copy of the tree whose processes are asked. What
starts them is slow.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.empty_store import empty_store
from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory
from toolkit.store import Batch, Edge, LoadOrigin, StoreWriter
from toolkit.tables import ROWS

ROOT = Path(__file__).parents[2]
KEY = "ETH_USDT:A.spot:B.spot"
WINDOW = Interval(1_793_743_200, 1_793_750_400)

MODULE = '''\
"""How often a spread crosses a level."""

from __future__ import annotations

import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.market import Step, When
from toolkit.statistics.core.contract import Frame, Question, real_number
from toolkit.statistics.core.kernel import Statistic, measure
from toolkit.statistics.core.windows import window_of


@analysis(
    "spread.level_crossings",
    ("crossings", "above_share"),
    order="-crossings",
    level_bps=Parameter("The level that is crossed.", "bps"),
)
def level_crossings(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    level_bps: float = 0.0,
    column: str = "spread_log_bps",
    step_s: Step = None,
) -> pl.DataFrame:
    """Count how often a spread crosses a level.

    One row per trajectory, with the columns of `coverage` before these:

    {columns}

    Examples
    --------
    >>> frame = pl.DataFrame({"trajectory": ["a"] * 3, "ts": [0, 60, 120], "x_bps": [1.0, -1, 1]})
    >>> level_crossings(frame, 0, 180, column="x_bps")["crossings"].item()
    2
    """
    level = real_number("level_bps", level_bps, "a number")
    options = (("level_bps", level),)
    window = window_of(frame, start, end)
    question = Question("spread.level_crossings/1", *window, column, step_s, options=options)
    above = pl.col("value") > level
    counted = Statistic(
        lambda _: [(above.cast(pl.Int64).diff() != 0).sum().cast(pl.Int64).alias("crossings"),
                   above.mean().alias("above_share")],
        lambda _: [pl.col("crossings").fill_null(0), "above_share"],
    )
    return measure(frame, question, counted)
'''
COLUMNS = """\
spread.level_crossings,,,level_crossings,,,,,,
spread.level_crossings,@quality.coverage,,,,,,,,
spread.level_crossings,crossings,,Int64,count,crossings of the level,crossings,,,changes of side
spread.level_crossings,above_share,,Float64,fraction,share above,above,coverage_reason,,of n
spread.level_crossings,@asked,,,,,,,,
"""
ITS_TEST = '''\
"""Crossings of a level are counted."""

import polars as pl

from toolkit.statistics.level_crossings import level_crossings


def test_each_change_of_side_is_a_crossing() -> None:
    rows = {"trajectory": ["a"] * 4, "ts": [0, 60, 120, 180], "x_bps": [1.0, -1.0, -1.0, 2.0]}
    assert level_crossings(pl.DataFrame(rows), 0, 240, column="x_bps")["crossings"].item() == 2
'''
FACES = """\
import json, sys
from click.testing import CliRunner
from typer.main import get_command
import toolkit as tk
from tests.docs.series_stub import stub
from tests.docs.statistics_page import statistics_pages
from toolkit.assistant import TOOLS
from toolkit.dashboard.parts.analyses import Asked
from toolkit.reports.answering import answered
from toolkit.reports.recipe import Part
from tests.unit.statistics import test_level_crossings
from toolkit.cli.analyses import stats as app
from toolkit.statistics.level_crossings import level_crossings

test_level_crossings.test_each_change_of_side_is_a_crossing()
rail = tk.Workspace(lambda _: None, tk.Store(sys.argv[1]))
spread = rail.spread(sys.argv[2])
window, found = spread.window, spread.level_crossings(level_bps=1)
print(json.dumps({
    "method": found.to_dicts(),
    "measured": rail.measure(level_crossings, level_bps=1).to_dicts(),
    "explained": tk.statistics.explain(found, "crossings"),
    "help_of_commands": CliRunner().invoke(get_command(app), ["--help"]).output,
    "help": level_crossings.__doc__,
    "help_of_method": tk.series.SpreadSeries.level_crossings.__doc__,
    "stub": stub(),
    "page": "".join(statistics_pages().values()),
    "offered": list(Asked("explorer", "spread", lambda: None, (), "").analyses),
    "tools": [tool.name for tool in TOOLS],
    "part": answered(rail, Part("level_crossings", *window, stream=sys.argv[2])).answer.n,
}))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the tree to which a statistic was added in four steps."""
    copied = tmp_path / "tree"
    for part in ("toolkit", "tests/docs"):
        shutil.copytree(ROOT / part, copied / part)
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, copied)
    test = copied / "tests/unit/statistics/test_level_crossings.py"
    test.parent.mkdir(parents=True)
    (copied / "toolkit/statistics/level_crossings.py").write_text(MODULE)
    _append(copied / "toolkit/columns.csv", COLUMNS)
    test.write_text(ITS_TEST)
    _append(copied / "CHANGELOG.md", "- `rail stats level-crossings` counts crossings.\n")
    return copied


def _append(path: Path, text: str) -> None:
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two hours of a spread that crosses 1 bps with every second bar."""
    held = empty_store(tmp_path / "rail.duckdb", Source("simulated", "seed-7"))
    price = 100 + (pl.col("ts") // 120 % 2) / 10
    types = {each.name: each.type for each in ROWS["spread"].values}
    absent = {
        name: pl.lit(None, pl.String if of == "VARCHAR" else pl.Float64)
        for name, of in types.items()
    }
    prices = absent | {"buy_price": pl.lit(100.0), "sell_price": price}
    rows = pl.DataFrame({"ts": range(*WINDOW, 60)}).with_columns(**prices)
    batch = Batch()
    batch.add(Trajectory.parse(KEY), rows, WINDOW, Edge(WINDOW.end, step_s=60))
    writer = StoreWriter(held)
    writer.commit(writer.start_load(LoadOrigin("http://x", WINDOW.end, None, "0")), batch)
    return held.path


def _asked(tree: Path, *arguments: str) -> str:
    settings = os.environ | {"PYTHONPATH": str(tree), "COLUMNS": "160"}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=tree, env=settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.slow
def test_a_statistic_that_is_added_in_four_steps_is_on_every_face(tree: Path, store: Path) -> None:
    sentence = "Count how often a spread crosses a level."
    typed = "from toolkit.cli import main; main()", "stats", "level-crossings", KEY
    options = "--level-bps", "1", "--store", str(store), "--format", "json"
    command = _asked(tree, "-c", *typed, *options)
    [row] = [json.loads(line) for line in command.splitlines()]
    assert row.pop("source")
    assert (row["crossings"], row["above_share"]) == (59, 0.5)

    faces: dict[str, Any] = json.loads(_asked(tree, "-c", FACES, str(store), KEY))
    assert faces["method"] == [row]
    assert faces["measured"] == [row]
    assert "crossings = 59: changes of side" in faces["explained"]
    assert "crossings Int64 count changes of side" in _words(faces["help"])
    assert f"level-crossings {sentence}" in _words(faces["help_of_commands"])
    assert "``level_bps``: The level that is crossed." in faces["help_of_method"]
    assert "self, *, level_bps: float = 0.0, column: str" in _words(faces["stub"])
    assert "`rail.spread(KEY).level_crossings()`" in faces["page"]
    assert "level_crossings" in faces["tools"]
    assert "level_crossings" in faces["offered"]
    assert faces["part"] == 120
    assert "| `crossings` | Int64 count | changes of side |" in faces["page"]
