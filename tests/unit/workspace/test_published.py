"""`tk.open` of published data: read like the store it was, and never loaded into."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import toolkit as tk
from toolkit.errors import StoreError, UnknownTrajectoryError
from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory
from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter

PAIR = Trajectory.parse("A_B:X.spot:Y.spot")


@pytest.fixture(scope="module")
def rail(tmp_path_factory: pytest.TempPathFactory) -> tk.Workspace:
    """A workspace over three hours of a spread."""
    store = Store(tmp_path_factory.mktemp("spread") / "rail.duckdb")
    writer, batch = StoreWriter(store), Batch()
    writer.bind(Source("live", "rail"))
    rows = pl.DataFrame({"ts": range(0, 10_800, 60)}).with_columns(
        buy_price=100.0,
        sell_price=100.0 + pl.col("ts") / 10_800,
        spread_pct=pl.lit(None, pl.Float64),
        extra=pl.lit(None, pl.String),
    )
    window = Interval(0, 10_800)
    batch.add(PAIR, rows, window, Edge(20_000, step_s=60, tail_ts=10_800))
    writer.commit(
        writer.start_load(LoadOrigin("http://h", 20_000, None, "0"), [PAIR], window), batch
    )
    return tk.open(store.path)


@pytest.fixture(scope="module")
def archive(rail: tk.Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where it is published."""
    folder = tmp_path_factory.mktemp("published") / "archive"
    assert rail.publish(folder).files == 3  # prices, and of the ledger two
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_series_statistics_status_coverage_and_sql_are_those_of_the_store(
    rail: tk.Workspace, archive: Path
) -> None:
    published = tk.open(archive)
    asked = (PAIR, 0, 10_800)
    for named in (f"{archive}/manifest.json", f"file://{archive}"):
        assert tk.open(named).spread(*asked).df.equals(rail.spread(*asked).df)
    assert published.spread(*asked).df.equals(rail.spread(*asked).df)
    assert published.spread(*asked).summary().equals(rail.spread(*asked).summary())
    clock = ("behind_s",)
    assert published.status().drop(clock).equals(rail.status().drop(clock))
    for each in (published, rail):
        states = each.store.coverage(PAIR, Interval(0, 20_000))["state"].to_list()
        assert states == ["held", "not yet known"]
    count = "SELECT count(*) AS n, sum(spread_bps) AS total FROM spreads"
    assert published.sql(count).equals(rail.sql(count))


def test_what_it_does_not_hold_is_to_be_loaded_where_it_is_published_from(archive: Path) -> None:
    published = tk.open(archive)
    with pytest.raises(UnknownTrajectoryError, match="published data takes no rows") as refused:
        published.spread("A_B:X.spot:Z.spot")
    assert f"held by {archive}" in str(refused.value)
    assert "rail sync" not in str(refused.value)


def test_loading_into_it_is_refused_before_anything_is_asked(archive: Path) -> None:
    published = tk.open(archive, base_url="http://127.0.0.1:9")
    by_its_path = tk.open(published.store.path, base_url="http://127.0.0.1:9")
    for each in (published, by_its_path):
        with pytest.raises(StoreError, match=f"{archive}/manifests/.* takes no rows; `rail"):
            each.sync("BTC_USDT:*", "2h")
