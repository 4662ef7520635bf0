"""What the page of funding shows, in each state that a store can be in."""

import json
from functools import partial

import polars as pl
import pytest

from toolkit.dashboard.navigation import page_file
from toolkit.dashboard.settings import MAIN
from toolkit.intervals import Interval
from toolkit.market import Family, Source, Trajectory
from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter

from .conftest import keep_snapshot
from .shown import figures, sync, texts

START = 1_678_406_400  # 2023-03-10 00:00 UTC
EIGHT = 8 * 3600
SERVED_AT = START + 30 * EIGHT  # ten days
PAIR = Trajectory.parse("BTC_USDT:AURORA.futures:BOREAS.futures", Family.FUNDING)
OTHER = Trajectory.parse("ETH_USDT:BOREAS.futures:CORONA.futures", Family.FUNDING)
SOURCE = Source("simulated", "seed-7")


def settled(missing=()):
    """Ten days of settlements every 8 h; the sell leg pays 2 bps more each time."""
    kept = [k for k in range(30) if k not in missing]
    return pl.DataFrame(
        {
            "ts": [START + EIGHT * k for k in kept],
            "buy_rate": 1e-4,
            "sell_rate": 3e-4,
            "buy_interval_hours": 8.0,
            "sell_interval_hours": 8.0,
            "differential_pct_8h": 0.02,
            "extra": pl.Series([None] * len(kept), dtype=pl.String),
        }
    )


def overview():
    legs = [
        ("BTC_USDT", "AURORA", 1e-4, 8),
        ("BTC_USDT", "BOREAS", 3e-4, 8),
        ("ETH_USDT", "BOREAS", 5e-4, 1),
        ("ETH_USDT", "CORONA", -1e-4, 4),
    ]
    items = [
        {
            "symbol": symbol,
            "exchange": exchange,
            "market": "futures",
            "rate": rate,
            "interval_hours": hours,
            "next_funding_time": SERVED_AT + 3600 * hours,
        }
        for symbol, exchange, rate, hours in legs
    ]
    return json.dumps({"type": "funding_overview", "ts": SERVED_AT, "items": items}).encode()


def fill(path, *, pairs=True, rates=True, missing=(), source=SOURCE):
    store = Store(path)
    writer = StoreWriter(store)
    writer.bind(source)
    load = writer.start_load(LoadOrigin("http://127.0.0.1:1", SERVED_AT, None, "0.1.0"))
    if pairs:
        edge = Edge(served_at=SERVED_AT, delay_s=0, retention_s=None, step_s=EIGHT)
        batch = Batch()
        for trajectory in (PAIR, OTHER):
            batch.add(trajectory, settled(missing), Interval(START, SERVED_AT), edge)
        writer.commit(load, batch)
    if rates:
        keep_snapshot(store, load, "funding", overview(), SERVED_AT)
    writer.finish_load(load, [])
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("funding") / "held.duckdb")


@pytest.fixture
def page(page_alone):
    """The page over a store, opened by a link with the given parameters."""
    return partial(page_alone, "funding")


def metrics(shown):
    return {metric.label: metric.value for metric in shown.metric}


def test_it_opens_on_the_rates_in_force_by_symbol_and_exchange(page, store):
    shown = page(store)
    assert shown.get_by_key("funding_view").value == "Rates in force"
    cells, numbers = figures(shown)[0]["data"]
    assert (cells["y"], cells["x"]) == (["ETH_USDT", "BTC_USDT"], ["AURORA", "BOREAS", "CORONA"])
    assert numbers["text"] == ["+0.400", "+0.030", "+0.010", "-0.020"]
    assert not shown.warning
    assert not shown.error


def test_the_unit_is_chosen_and_kept_in_the_link(page, store):
    shown = page(store)
    shown.get_by_key("funding_unit").set_value("apr").run()
    assert shown.query_params["unit"] == "apr"
    assert "% per year (APR)" in figures(shown)[0]["layout"]["title"]["text"]
    assert "% per year (APR)" in shown.dataframe[0].value.columns
    again = page(store, unit="24h")
    assert again.get_by_key("funding_unit").value == "24h"


def test_legs_are_listed_the_highest_first_with_the_rate_as_given(page, store):
    table = page(store).dataframe[0].value
    assert table["leg"].to_list() == [
        "BOREAS.futures",
        "BOREAS.futures",
        "AURORA.futures",
        "CORONA.futures",
    ]
    assert table["% per 8 h"].to_list() == pytest.approx([0.4, 0.03, 0.01, -0.02])
    assert table["as given (%)"].to_list() == pytest.approx([0.05, 0.03, 0.01, -0.01])
    assert table["next settlement (UTC)"][0] == "2023-03-20 01:00"


def test_symbols_with_rates_apart_open_the_pair_that_is_held_whichever_way_round(page, store):
    table = page(store).dataframe[1].value
    assert table["symbol"].to_list() == ["ETH_USDT", "BTC_USDT"]
    assert table[""].to_list() == ["Open", "Open"]
    assert table["% per 8 h"].to_list() == pytest.approx([0.42, 0.02])


def test_a_pair_that_is_not_held_has_no_button_and_says_what_loads_it(page, tmp_path):
    path = fill(tmp_path / "rates.duckdb", pairs=False)
    shown = page(path)
    assert shown.dataframe[1].value[""].isna().all()
    assert texts(shown.code) == [sync(path, "funding/ETH_USDT:CORONA.futures:BOREAS.futures")]


def test_a_link_opens_its_pair_with_differential_carry_and_their_grounds(page, store):
    shown = page(store, trajectory=PAIR.key)
    assert shown.get_by_key("funding_view").value == "One pair through time"
    differential, carry = figures(shown)[0]["data"]
    assert differential["name"] == "differential, sell less buy"
    assert carry["name"] == "cumulative carry"
    # Ten days: from one interval before the first settlement to the newest.
    assert metrics(shown) == {
        "Cumulative carry (bps)": "+60.00",
        "Simple APR (%)": "+21.90",
        "On the leg bought (bps)": "-30.00",
        "On the leg sold (bps)": "+90.00",
    }
    assert texts(shown.caption).count("n = 30, coverage 100 %") == 4
    assert len(shown.dataframe[0].value) == 60


def test_a_shorter_window_is_measured_anew(page, store):
    shown = page(store, trajectory=PAIR.key)
    shown.get_by_key("funding_window").set_value("24 hours").run()
    assert metrics(shown)["Cumulative carry (bps)"] == "+6.00"
    assert "n = 3, coverage 100 %" in texts(shown.caption)


def test_missing_settlements_are_counted(page, tmp_path):
    shown = page(fill(tmp_path / "gap.duckdb", missing=(10, 11)), trajectory=PAIR.key)
    assert "Settlements missing between others: 4" in texts(shown.caption)
    assert metrics(shown)["Cumulative carry (bps)"] == "+56.00"
    remarks = shown.dataframe[0].value["remark"].dropna().to_list()
    assert remarks == ["one before it is missing"] * 2


def test_a_pair_held_the_other_way_round_is_shown_as_asked_with_every_sign_turned(page, store):
    asked = "BTC_USDT:BOREAS.futures:AURORA.futures"
    shown = page(store, trajectory=asked)
    assert shown.get_by_key("funding_pair").value == f"funding/{asked}"
    assert shown.query_params["trajectory"] == f"funding/{asked}"
    assert not shown.warning
    assert metrics(shown) == {
        "Cumulative carry (bps)": "-60.00",
        "Simple APR (%)": "-21.90",
        "On the leg bought (bps)": "-90.00",
        "On the leg sold (bps)": "+30.00",
    }
    (chart,) = figures(shown)
    words = chart["layout"]["title"]["subtitle"]["text"]
    assert asked in words
    assert "carry -60.00 bps, APR -21.90 %" in words
    assert chart["data"][0]["hovertext"][0] == " (buy 0.03, sell 0.01)"
    newest = shown.dataframe[0].value[["leg", "rate (%)"]].head(2)
    assert newest["leg"].to_list() == ["buy", "sell"]
    assert newest["rate (%)"].to_list() == pytest.approx([0.03, 0.01])
    shown.get_by_key("funding_pair").set_value(OTHER.key).run()
    assert metrics(shown)["Cumulative carry (bps)"] == "+60.00"


def test_a_pair_that_is_not_held_is_not_replaced_by_another(page, store):
    asked = "XRP_USDT:AURORA.futures:BOREAS.futures"
    shown = page(store, trajectory=asked)
    assert shown.get_by_key("funding_pair").value is None
    assert not figures(shown)
    assert not shown.metric
    assert shown.run().query_params["trajectory"] == asked


@pytest.mark.parametrize(
    ("params", "says"),
    [
        (
            {"trajectory": "XRP_USDT:AURORA.futures:BOREAS.futures"},
            ["does not hold", "rail sync funding/XRP_USDT:AURORA.futures:BOREAS.futures"],
        ),
        ({"trajectory": "![x](https://example.org)"}, ["`trajectory=![x]", "no pair"]),
        ({"trajectory": "BTC_USDT:AURORA.futures"}, ["no pair", "for funding two legs"]),
        ({"unit": "week"}, ["unit=week", "1h, 8h, 24h, apr"]),
    ],
)
def test_a_link_that_cannot_be_followed_says_why_until_something_is_chosen(
    page, store, params, says
):
    shown = page(store, **params)
    (warning,) = texts(shown.warning)
    for words in says:
        assert words in warning
    assert bool(figures(shown)) == ("unit" in params)
    assert len(shown.run().warning) == 1
    if "unit" in params:
        shown.get_by_key("funding_unit").set_value("1h").run()
    else:
        shown.get_by_key("funding_pair").set_value(OTHER.key).run()
        assert metrics(shown)["Cumulative carry (bps)"] == "+60.00"
        assert shown.query_params["trajectory"] == OTHER.key
    assert not shown.warning


def test_the_view_of_a_pair_opens_again_after_the_view_of_the_rates(page, store):
    for asked in ({}, {"trajectory": "XRP_USDT:AURORA.futures:BOREAS.futures"}):
        shown = page(store, **asked)
        for view in ("Rates in force", "One pair through time"):
            shown.get_by_key("funding_view").set_value(view).run()
            assert not shown.exception
        shown.get_by_key("funding_pair").set_value(OTHER.key).run()
        assert metrics(shown)["Cumulative carry (bps)"] == "+60.00"


def test_a_store_without_funding_says_how_to_load_it(page, tmp_path):
    shown = page(fill(tmp_path / "none.duckdb", pairs=False, rates=False))
    (says,) = texts(shown.info)
    assert "holds no funding yet" in says
    assert "rail sync snapshot/funding" in texts(shown.code)[0]


def test_a_store_that_was_never_synced_says_how_to_load_it(page, tmp_path):
    empty = Store(tmp_path / "empty.duckdb")
    StoreWriter(empty).bind(SOURCE)
    assert "holds no funding yet" in page(empty.path).info[0].value


def test_pairs_without_rates_open_on_a_pair_and_say_what_brings_the_rates(page, tmp_path):
    path = fill(tmp_path / "pairs.duckdb", rates=False)
    shown = page(path)
    assert shown.get_by_key("funding_view").value == "One pair through time"
    shown.get_by_key("funding_view").set_value("Rates in force").run()
    assert "No funding overview is held." in texts(shown.info)
    assert sync(path, "snapshot/funding") in texts(shown.code)


def test_rates_without_pairs_say_what_brings_the_widest(page, tmp_path):
    path = fill(tmp_path / "rates.duckdb", pairs=False)
    shown = page(path)
    shown.get_by_key("funding_view").set_value("One pair through time").run()
    assert "No pair's funding is held." in texts(shown.info)
    assert texts(shown.code) == [sync(path, "funding/ETH_USDT:CORONA.futures:BOREAS.futures")]


def test_an_overview_without_rates_says_so(page, tmp_path):
    path = fill(tmp_path / "held.duckdb", rates=False)
    kept = Store(path)
    load = StoreWriter(kept).start_load(LoadOrigin("http://127.0.0.1:1", SERVED_AT, None, "0.1.0"))
    keep_snapshot(kept, load, "funding", b'{"items":[]}', SERVED_AT)
    (chart,) = figures(page(path))
    assert "No funding rate as of" in chart["layout"]["annotations"][0]["text"]


def test_times_are_in_the_links_zone(page, store):
    shown = page(store, timezone="Asia/Tokyo", clock="Asia/Tokyo")
    assert "next settlement (Asia/Tokyo)" in shown.dataframe[0].value.columns
    assert "2023-03-20 09:00 Asia/Tokyo" in figures(shown)[0]["layout"]["title"]["subtitle"]["text"]


@pytest.mark.parametrize(("kind", "mark"), [("simulated", ["SIMULATED"]), ("live", [])])
def test_every_chart_is_marked_with_its_source(page, tmp_path, kind, mark):
    path = fill(tmp_path / "held.duckdb", source=Source(kind, "x"))
    for params in ({}, {"trajectory": PAIR.key}):
        (chart,) = figures(page(path, **params))
        assert [note["text"] for note in chart["layout"].get("annotations", [])] == mark


def test_a_store_that_is_not_there_says_what_makes_one(page, tmp_path):
    (says,) = texts(page(tmp_path / "nowhere.duckdb").error)
    assert "there is no store at" in says


def test_the_navigation_leads_to_it_and_the_choice_is_kept(page, store):
    shown = page(store, script=MAIN)
    shown.switch_page(page_file("funding")).run()
    assert not shown.exception
    shown.get_by_key("funding_view").set_value("One pair through time").run()
    shown.get_by_key("funding_pair").set_value(OTHER.key).run()
    assert figures(shown)[0]["layout"]["title"]["text"].startswith("ETH_USDT")
