"""What the pages keep of a store: results of a trajectory stay until that one changes."""

from __future__ import annotations

import math
import threading

import polars as pl
import pytest
import streamlit as st
from polars.testing import assert_frame_equal

from toolkit.dashboard.parts.spread_table import measure_figures, measure_level, measure_net
from toolkit.dashboard.reading import measure_following, read_held, read_rows
from toolkit.errors import StoreError
from toolkit.intervals import Interval
from toolkit.market import Trajectory
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.spread import episodes, time_above
from toolkit.statistics.spread.net_episodes import Level
from toolkit.store import LoadOrigin, Store, StoreWriter
from toolkit.store.file.engine import version_of
from toolkit.workspace import open_workspace

from .conftest import LEG, PAIR, SERVED_AT, START, bring, price_rows, spread_rows

OTHER = Trajectory.parse("ETH_USD:COINBASE.spot:KRAKEN.spot")
ORIGIN = LoadOrigin("http://127.0.0.1:1", SERVED_AT, None, "0.1.0")


def look(store: Store):
    return read_held(store.path, version_of(store.path))


WINDOW = Interval(START, SERVED_AT)
FEES = FeeModel.example(["COINBASE", "KRAKEN"])


def measured(store: Store) -> pl.DataFrame:
    """The figures a page shows, checked against those of rail.screen over all rows."""
    st.cache_data.clear()
    found = measure_figures(look(store), "spread", WINDOW)
    screened = open_workspace(store.path).screen(*WINDOW, sort="trajectory", fees=FEES)
    assert found.equals(screened.select(found.columns))
    net = measure_net(look(store), "spread", WINDOW, FEES, "taker")
    figures = ["trajectory", "net_share", "net_mean_bps", "cost_bps"]
    assert_frame_equal(net.select(figures), screened.select(figures))

    rows = store.scan("spread").collect()
    beyond = measure_level(look(store), "spread", WINDOW, Level(2.5))
    assert beyond.equals(Level(2.5).measure(rows, *WINDOW))
    above = time_above(rows, *WINDOW, threshold_bps=2.5)
    assert beyond["level_share"].equals(above["time_above_share"], check_names=False)
    for key, a_day, observed in zip(
        *beyond.select("trajectory", "level_per_day"), above["observed_share"], strict=True
    ):
        begun = episodes(rows.filter(trajectory=key), *WINDOW, enter_bps=2.5)["censored_left"]
        assert a_day == pytest.approx((~begun).sum() / (observed * 10 / 24))
    return found


@pytest.mark.slow
def test_summaries_are_those_of_the_rows_after_each_commit(held: Store) -> None:
    first = measured(held)
    assert first.height == 1
    bring(held, OTHER, spread_rows().head(300))
    assert measured(held).height == 2
    changed = spread_rows().with_columns(sell_price=pl.col("sell_price") * 1.01)
    bring(held, OTHER, changed)
    last = measured(held)
    assert last.filter(trajectory=PAIR.key).equals(first)
    assert last.filter(trajectory=OTHER.key)["spread_mean_log_bps"].item() > 90


def test_a_commit_of_one_trajectory_leaves_what_was_measured_of_every_other(held: Store) -> None:
    before = look(held).versions
    bring(held, OTHER, spread_rows())
    between = look(held).versions
    assert {key: between[key] for key in before} == before
    bring(held, LEG, price_rows().with_columns(price=pl.lit(1.0)))
    after = look(held).versions
    changed = {key for key in between if after[key] != between[key]}
    assert changed == {LEG.key}
    before = measure_level(look(held), "spread", WINDOW, Level())
    figures = measure_figures(look(held), "spread", WINDOW)
    bring(held, LEG, price_rows().with_columns(price=pl.lit(2.0)))
    assert measure_level(look(held), "spread", WINDOW, Level()) is before
    assert measure_figures(look(held), "spread", WINDOW).equals(figures)


def test_what_followed_events_is_measured_anew_when_their_prices_change(held: Store) -> None:
    pump = pl.DataFrame({"trajectory": [LEG.key], "ts": [START + 24_000], "direction": [1.0]})

    def mean() -> float:
        versions = (look(held).versions[LEG.key],)
        path, through = measure_following(held.path, pump, 60, versions=versions)
        assert through["n"].to_list() == [1, 1, 1]
        return path.filter(offset_s=240)["return_mean_log_bps"].item()

    before = mean()
    bring(held, OTHER, spread_rows())
    assert mean() == before
    after = pl.when(pl.col("ts") > START + 24_000).then(pl.lit(1.1)).otherwise(pl.lit(1.0))
    bring(held, LEG, price_rows().with_columns(price=pl.col("price") * after))
    assert mean() == pytest.approx(before + 1e4 * math.log(1.1))


def test_another_file_and_rows_that_a_remap_read_anew_have_other_versions(
    held: Store, aged: Store
) -> None:
    assert look(held).versions[PAIR.key] != look(aged).versions[PAIR.key]
    before = look(held).versions
    with StoreWriter(held).writing() as connection:
        connection.execute("UPDATE load SET profile_hash = '5c4e'")
    after = look(held).versions
    assert before
    assert not [key for key in before if after[key] == before[key]]


def test_rows_that_cannot_be_read_are_named_and_not_left_out(held: Store) -> None:
    version = look(held).versions[PAIR.key]
    with StoreWriter(held).writing() as connection:
        connection.execute("INSERT INTO spread FROM spread WHERE ts % 420 = 0")
    with pytest.raises(StoreError, match=f"{PAIR.key} is not readable"):
        read_rows(held.path, PAIR.key, *WINDOW, version=version)


def test_a_log_that_a_writer_removes_meanwhile_is_no_error(tmp_path):
    path, log = tmp_path / "rail.duckdb", tmp_path / "rail.duckdb.wal"
    path.touch()
    stop = threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            log.touch()
            log.unlink()

    writer = threading.Thread(target=come_and_go)
    writer.start()
    try:
        lengths = {len(version_of(path)) for _ in range(5_000)}
    finally:
        stop.set()
        writer.join()
    assert lengths <= {1, 2}
