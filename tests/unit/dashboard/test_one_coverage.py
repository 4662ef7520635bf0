"""The ledger, the statistic, the pages and the command give one coverage of the same hours."""

from __future__ import annotations

import json

import polars as pl
import pytest
from typer.testing import CliRunner

from tests.empty_store import empty_store
from toolkit.cli.analyses import stats as app
from toolkit.dashboard.pages.health.tables import coverage_lines
from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory, format_ts
from toolkit.statistics import quality, spread
from toolkit.store import Edge

from .conftest import START, bring
from .shown import figures as charts_of

PAIR = Trajectory.parse("BTC_USD:COINBASE.spot:KRAKEN.spot")


def filled(path, rows, window):
    """A store that was answered for a window of a pair a day after its end."""
    store = empty_store(path, Source("replay", "depeg"))
    values = rows.select(
        "ts", "buy_price", "sell_price", spread_pct=pl.lit(None, pl.Float64), extra=pl.lit(None)
    ).cast({"extra": pl.String})
    bring(store, PAIR, values, window, Edge(served_at=window.end + 86_400, step_s=60))
    return store


def figures(store, window):
    """The coverage of the pair by name of who gives it."""
    rows = store.series(PAIR, window)
    (ledger,) = coverage_lines(
        store.coverage(PAIR, window).with_columns(stream=pl.lit(PAIR.key))
    ).to_dicts()
    times = ["--start", str(window.start), "--end", str(window.end)]
    done = CliRunner().invoke(
        app, ["spread", PAIR.key, "--store", str(store.path), *times, "--format", "json"]
    )
    return {
        "ledger": ledger["held_s"] / ledger["known_s"],
        "rows": quality.coverage(rows, *window)["coverage"].item(),
        "statistic": spread.summary(rows, *window)["coverage"].item(),
        "threshold": spread.time_above(rows, *window, threshold_bps=1)["coverage"].item(),
        "command": json.loads(done.stdout)["coverage"],
    }


@pytest.fixture
def sparse(tmp_path):
    """Eight hours of which every eighth minute is absent."""
    window = Interval(START, START + 8 * 3600)
    ts = [at for minute, at in enumerate(range(*window, 60)) if minute % 8]
    rows = pl.DataFrame({"ts": ts, "buy_price": 100.0, "sell_price": 101.0})
    return filled(tmp_path / "held.duckdb", rows, window), window


def test_one_minute_of_eight_absent_is_an_eighth_of_the_coverage_for_all(sparse, page):
    store, window = sparse
    assert set(figures(store, window).values()) == {0.875}
    observed = spread.summary(store.series(PAIR, window), *window)["observed_share"].item()
    assert observed == 1 - 60 / window.length_s
    start, end = (format_ts(at).replace(" UTC", "Z").replace(" ", "T") for at in window)
    shown = page(store.path, trajectory=PAIR.key, start=start, end=end)
    assert {metric.label: metric.value for metric in shown.metric}["coverage"] == "87.50 %"
    assert "coverage 87.50 %" in shown.get("plotly_chart")[0].proto.alt
    shown.get_by_key("below").set_value("Coverage").run()
    charts = charts_of(shown)
    assert charts[1]["data"][0]["name"] == "held 87.50 %"
    asked = ["--store", str(store.path), "--start", start, "--end", end]
    done = CliRunner().invoke(app, ["spread", *asked])
    assert "87.50 %" in done.stdout


def test_real_hours_have_one_coverage_for_all(real_data, tmp_path):
    rows = pl.read_parquet(real_data / "prices.parquet").filter(
        pl.col("dataset").cast(pl.String) == "iaqf_dhruvk1432",
        pl.col("symbol").cast(pl.String) == "BTC_USD",
    )
    buy, sell = (
        rows.filter(pl.col("exchange").cast(pl.String) == exchange).select("ts", price)
        for exchange, price in (
            ("COINBASE", pl.col("price").alias("buy_price")),
            ("KRAKEN", pl.col("price").alias("sell_price")),
        )
    )
    window = Interval(1678406400, 1678752000)  # 10 to 14 March 2023
    inside = buy.join(sell, on="ts").filter(pl.col("ts").is_between(*window, closed="left"))
    found = figures(filled(tmp_path / "real.duckdb", inside.sort("ts"), window), window)
    assert set(found.values()) == {inside["ts"].n_unique() / (window.length_s // 60)}
