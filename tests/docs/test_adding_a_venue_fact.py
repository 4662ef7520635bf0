"""A fact about one exchange is one line in one file, and every place that asks knows it then.

The line is written in a copy of the tree, whose process is asked. What starts it is slow.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = """
[BOREAS]
aliases = ["NORTHWIND"]
lots = { m = 1e6 }
coins = { XBT = "BTC" }
interval_hours = 4
stamped_late_s = 90
cap_per_hour = 0.001
baseline_8h = 2e-4
example_fees_bps = [1.0, 3.0, 2.0]
spot = { venue = "okx", rows = 200 }
"""
ASKED = """\
import json
import polars as pl
from toolkit.market import Pair
from toolkit.service.market.exchanges.reading import Exchange
from toolkit.statistics import funding
from toolkit.statistics.fees.fee_table import FeeModel
from toolkit.workspace.local import ExchangeChoice

hour, n = 14_400, 6
rates = pl.DataFrame({
    "trajectory": ["funding/A_B:BOREAS.futures:AURORA.futures"] * n,
    "ts": [hour * at + 90 for at in range(1, n + 1)],
    "buy_rate": [1e-4, 1e-4, 1e-4, 4e-3, 4e-3, 4e-3], "sell_rate": [1e-4] * n,
    "buy_interval_hours": pl.Series([None] * n, dtype=pl.Float64), "sell_interval_hours": [4.0] * n,
})
kept = funding.persistence(rates, 0, hour * (n + 1)).row(0, named=True)
settled = funding.intervals(rates).filter(leg="buy").row(0, named=True)
def coins(*bases):
    keys = [f"{base}_USD:{at}.spot" for base, at in zip(bases, ["AURORA", "BOREAS"])]
    return Pair.of(*keys).coins()
print(json.dumps({
    "lots": coins("PEPE", "mPEPE"), "coins": coins("BTC", "XBT"),
    "settled": [settled["ts"], settled["interval_hours"]],
    "at": [kept["buy_at_cap_share"], kept["buy_at_baseline_share"]],
    "fees": FeeModel.example(["NORTHWIND"]).round_trip_bps("A_B:BOREAS.spot", at=1_700_000_000),
    "service": [Exchange("northwind").name, ExchangeChoice.read("boreas").exchanges[0]],
}))
"""


@pytest.mark.slow
def test_one_row_about_a_venue_is_known_to_pairs_settlements_fees_and_the_service(tmp_path) -> None:
    shutil.copytree(ROOT / "toolkit", tmp_path / "toolkit")
    with (tmp_path / "toolkit/market/venues.toml").open("a", encoding="utf-8") as file:
        file.write(ROW)
    command = [sys.executable, "-c", ASKED]
    settings = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        command, cwd=tmp_path, env=settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "lots": [1, 1e6],
        "coins": [1, 1],
        "settled": [14_400, 4],
        "at": [0.5, 0.5],
        "fees": 8,
        "service": ["BOREAS", "BOREAS"],
    }
