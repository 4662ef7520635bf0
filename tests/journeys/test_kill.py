"""kill -9 at random moments of a load: afterwards the store equals one undisturbed run.

RAIL_KILLS sets how often a load is killed; `make kill-loop` does it 50 times, in 30 days
of minutes instead of 10.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from toolkit.market import format_ts
from toolkit.store import Store
from toolkit.store.writing.remap import remap

from .conftest import serving
from .kill_loop import KILLS, Loads, check_same, content, write_market

START, LEGS = 1_767_225_600, 5
DAYS = 30 if KILLS >= 50 else 10
END = format_ts(START + DAYS * 86_400)
LOADING = ["sync", "--all-prices", "--all-spreads", "--start", "2026-01-01", "--end", END]


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Days of minutes on five legs: enough for a load to be killed in the middle of."""
    return write_market(tmp_path_factory.mktemp("market"), START, DAYS, [6] * LEGS)


def test_a_load_killed_again_and_again_equals_an_undisturbed_one(
    market: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moments = random.Random(20_261_120)
    with serving("--replay", str(market), "--now", END) as base_url:
        loads = Loads(LOADING, {"RAIL_BASE_URL": base_url})
        whole = tmp_path / "whole.duckdb"
        usual_s = loads.finish(whole)
        wanted = content(Store(whole))
        killed, in_the_middle, lives = 0, 0, 0
        while killed < KILLS:
            store = tmp_path / f"killed-{lives}.duckdb"
            lives += 1
            while killed < KILLS and loads.kill(store, moments.uniform(0.3, 1.1) * usual_s):
                killed += 1
                in_the_middle += store.exists() and Store(store).catalogue().height > 0
            for _ in range(2):
                loads.finish(store)
                check_same(wanted, content(Store(store)))
            remap(Store(store), None)  # every row has its page, and no other page counts
            check_same(wanted, content(Store(store)))
    with capsys.disabled():
        said = f"{killed} kills, {in_the_middle} of them after a first commit, {lives} stores"
        sys.stdout.write(f"\n{said}\n")
