"""The page of all spreads: rows, filters, links, and the states without any."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from toolkit.dashboard.navigation import page_file
from toolkit.intervals import Interval
from toolkit.market import Trajectory
from toolkit.statistics.spread import summary, with_spread
from toolkit.store import Batch, LoadOrigin, StoreWriter

from .conftest import EDGE, SERVED_AT, START, spread_rows
from .shown import sync

PAIR = "BTC_USD:COINBASE.spot:KRAKEN.spot"


def warnings(shown):
    return [warning.value for warning in shown.warning]


def test_a_spread_has_its_statistics_with_n_and_coverage(page, held):
    (row,) = page(held.path, "spreads").dataframe[0].value.to_dict("records")
    assert row["symbol"] == "BTC_USD"
    assert (row["buy"], row["sell"]) == ("COINBASE.spot", "KRAKEN.spot")
    assert row["n"] == 539
    assert row["coverage (%)"] == pytest.approx(100 * 539 / 600)
    assert row["last (log bps)"] == pytest.approx(4.0, abs=0.01)
    assert row["≥ 20 (% of time)"] == 0.0


def test_the_age_of_a_spread_is_that_of_now_whose_time_is_shown(page, aged):
    shown = page(aged.path, "spreads")
    assert shown.dataframe[0].value["age"][0].startswith("21 min")
    assert shown.caption[-1].value.startswith("Age: ")
    assert "2023-03-10 10:20" in shown.caption[-1].value


def test_the_half_life_is_in_minutes(page, held):
    other, steps = Trajectory.parse(PAIR.replace("BTC", "ETH")), np.random.default_rng(7)
    level_bps = [0.0]
    for step in steps.normal(size=spread_rows().height - 1):
        level_bps.append(0.9 * level_bps[-1] + step)
    rows = spread_rows().with_columns(
        buy_price=100.0, sell_price=100.0 + 0.01 * pl.Series(level_bps)
    )
    batch = Batch()
    batch.add(other, rows, Interval(START, SERVED_AT), EDGE)
    writer = StoreWriter(held)
    writer.commit(writer.start_load(LoadOrigin("http://127.0.0.1:1", SERVED_AT, None, "0")), batch)
    measured = summary(with_spread(held.series(other)), START, SERVED_AT)
    shown = page(held.path, "spreads").dataframe[0].value.to_dict("records")
    (row,) = [row for row in shown if row["symbol"] == "ETH_USD"]
    assert row["half-life (min)"] == pytest.approx(measured["half_life_s"].item() / 60)


def test_the_window_and_the_unit_are_said(page, held):
    says = page(held.path, "spreads").caption[0].value
    assert says.startswith("1 of 1 spreads, the largest last spread first")
    assert "Window 2023-03-10 00:00 UTC to 2023-03-10 10:00 UTC" in says
    assert "10,000 ln(sell price / buy price)" in says


def test_the_time_counted_follows_the_threshold_and_the_link_says_it(page, held):
    shown = page(held.path, "spreads")
    shown.get_by_key("above").set_value(2.5).run()
    table = shown.dataframe[0].value
    assert table["≥ 2.5 (% of time)"].iloc[0] == pytest.approx(40, abs=0.5)
    assert shown.query_params["above"] == "2.5"


def test_filters_come_from_the_link_and_stay_over_a_change_of_page(page, held):
    shown = page(held.path, "spreads", symbol="BTC_USD", exchange="KRAKEN", min="2")
    assert shown.get_by_key("symbol").value == ["BTC_USD"]
    assert shown.get_by_key("min").value == 2.0
    assert not warnings(shown)
    shown.switch_page(page_file("overview")).run()
    shown.switch_page(page_file("spreads"))
    shown.query_params.clear()
    shown.run()
    assert shown.get_by_key("exchange").value == ["KRAKEN"]
    assert shown.query_params["min"] == "2"


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"symbol": "X_Y"}, "`symbol=X_Y`, which this store does not hold; the page leaves it out"),
        ({"type": "spot/moon"}, "`type=spot/moon`"),
        ({"min": "many"}, "`min=many`, which is no number from 0 to 10,000; the page takes 0"),
        ({"above": "-5"}, "`above=-5`, which is no number from 0.1 to 10,000"),
        ({"window": "2 years"}, "`window=2 years` (allowed: 24 hours, 7 days"),
    ],
)
def test_a_link_that_cannot_be_followed_says_why_until_something_is_chosen(
    page, held, params, says
):
    shown = page(held.path, "spreads", **params)
    (warning,) = warnings(shown)
    assert says in warning
    assert len(shown.dataframe) == 1
    shown.get_by_key("above").set_value(3.0).run()
    assert not warnings(shown)


def test_filters_that_leave_nothing_say_so(page, held):
    shown = page(held.path, "spreads", min="5000")
    assert [info.value for info in shown.info] == [
        "No spread passes the filters; take one of them back."
    ]
    assert not shown.dataframe


def test_a_row_opens_its_trajectory(page, held):
    shown = page(held.path, "spreads")
    shown.session_state["spreads_clicked"] = {"row": 0, "label": "Open"}
    shown.run()
    assert shown.selectbox(key="trajectory").value == PAIR


def test_a_store_without_spreads_says_how_to_load_one(page, bare):
    shown = page(bare.path, "spreads")
    assert "holds no spread: none was asked for" in shown.info[0].value
    assert shown.code[0].value == sync(
        bare.path, "--all-spreads", "--symbol", "BTC_USDT", service=None
    )


def test_spreads_that_are_the_services_own_are_counted_in_words(page, held):
    before = page(held.path, "spreads").caption
    assert not any("own figure" in caption.value for caption in before)
    batch, prices = Batch(), ("buy_price", "sell_price")
    bare = spread_rows().with_columns(pl.lit(None, pl.Float64).alias(name) for name in prices)
    other = Trajectory.parse("BTC_USD:KRAKEN.spot:GEMINI.spot")
    batch.add(other, bare, Interval(START, SERVED_AT), EDGE)
    writer = StoreWriter(held)
    writer.commit(writer.start_load(LoadOrigin("http://h", SERVED_AT, None, "0")), batch)
    said = " ".join(caption.value for caption in page(held.path, "spreads").caption)
    assert "Of 1 of the spreads the service's own figure is used" in said
