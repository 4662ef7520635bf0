"""What `rail stats` prints of funding is what is measured: signs, venues and predictions."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable

import polars as pl
import pytest

import toolkit as tk
from toolkit.market import SnapshotLog
from toolkit.statistics import funding
from toolkit.store import Batch, Edge, LoadOrigin, Snapshot, Store, StoreWriter

from .conftest import LOADED, SETTLED, refused

Rail = Callable[..., subprocess.CompletedProcess[str]]
FUNDING = LOADED[2]
TIMES = ("--start", str(SETTLED.start), "--end", str(SETTLED.end))


def printed(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_tables_are_those_of_the_statistics(rail: Rail, held: Store) -> None:
    rows = held.series(FUNDING)

    apart = rail("stats", "dispersion", *TIMES, "--bucket", "1d", "--format", "json")
    shown = printed(rail("stats", "persistence", *TIMES))

    source = {"source": held.source.label}
    expected = funding.dispersion_summary(rows, *SETTLED, bucket="1d").to_dicts()[0]
    assert json.loads(printed(apart)) == source | expected
    assert re.search(r"positive share\s+\d+\.\d\d %", shown)
    assert "APR range" in printed(rail("stats", "dispersion", *TIMES))


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (("persistence", "--band", "-1"), "percent a year from 0"),
        (("dispersion", "--bucket", "7h"), "divides a day"),
        (("dispersion", "--min-coverage", "2"), "a part of the window"),
        (("persistence", "--start", "2020-01-01", "--end", "2020-02-01"), "holds nothing in"),
    ],
)
def test_what_cannot_be_measured_is_refused(rail: Rail, asked: tuple[str, ...], why: str) -> None:
    assert why in refused(rail("stats", *asked))


@pytest.mark.parametrize("kept", [True, False])
def test_predictions_are_the_rates_that_snapshots_kept_or_else_rows_that_settle_nothing(
    rail: Rail, held: Store, kept: bool
) -> None:
    rows = held.series(FUNDING)
    settled = rows.filter(pl.col("sell_rate").is_not_null(), pl.col("ts") > SETTLED.start)
    times = settled["ts"].to_list() if kept else []
    leg = FUNDING.legs[1]
    batch, edge = Batch(), Edge(SETTLED.end, step_s=60)
    for at in times:
        item = {"symbol": str(FUNDING.symbol), "exchange": leg.exchange, "market": str(leg.market)}
        item |= {"rate": 3e-4, "interval_hours": 8, "next_funding_time": None}
        document = json.dumps({"items": [item]}).encode()
        batch.add_snapshot(Snapshot(SnapshotLog.named("funding"), at - 60, document, 60), edge)
    if times:
        writer = StoreWriter(held)
        writer.commit(writer.start_load(LoadOrigin("http://x", SETTLED.end, None, "0")), batch)

    done = printed(rail("stats", "prediction-errors", *TIMES, "--format", "json"))
    found = {row["trajectory"]: row for row in map(json.loads, done.splitlines())}

    row = found[f"funding/{FUNDING.symbol}:{leg}"]
    assert (row["n"], row["prediction_reason"]) == (len(times), None if kept else "empty")
    if kept:
        mean = 1e4 * (settled["sell_rate"].mean() - 3e-4)
        assert (row["age_mean_s"], row["error_mean_bps"]) == (60, pytest.approx(mean))


def test_what_has_nothing_to_compare_says_so(rail: Rail, held: Store) -> None:
    shown = rail("stats", "rank-persistence", "--store", str(held.path)).stdout
    assert "nothing to compare in this window, a longer one" in " ".join(shown.split())


def test_what_compares_series_is_measured_of_all_of_them(held: Store) -> None:
    rows = held.series(FUNDING)
    with tk.open(held.path) as rail:
        found = rail.measure(funding.dispersion_summary, *SETTLED, family="funding", bucket="1d")
        legs = rail.funding(FUNDING.legs_key, *SETTLED).holdings(horizons="8h", legs=True)
    assert found.equals(funding.dispersion_summary(rows, *SETTLED, bucket="1d"))
    alone = funding.holdings(funding.legs(rows), *SETTLED, horizons="8h", funding_only=True)
    assert legs.equals(alone)
