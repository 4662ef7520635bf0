"""What the page of funding shows, in each state that a store can be in."""

from functools import partial

import pytest

from toolkit.dashboard.link import page_file
from toolkit.dashboard.settings import MAIN
from toolkit.market import Source
from toolkit.store import Store

from .conftest import keep_snapshot
from .funded import OTHER, PAIR, SERVED_AT, cells, fill, kept, opened, read_out
from .shown import drawn, figures, metrics, rows_of, sync, texts


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("funding") / "held.duckdb")


@pytest.fixture
def page(page_alone):
    """The page over a store, opened by a link with the given parameters."""
    return partial(page_alone, "funding")


@pytest.fixture
def seen(seen_alone):
    """The same, run once for each link: for tests that read it alone."""
    return partial(seen_alone, "funding")


def test_it_opens_on_the_rates_in_force_with_the_extremes_of_each_symbol(seen, store):
    shown = seen(store)
    data, found = drawn(shown, "rates"), cells(shown)
    assert data["venues"] == ["AURORA", "BOREAS", "CORONA"]
    assert [(row["symbol"], row["shown"]) for row in data["rows"]] == [
        ("ETH_USDT", "459.90"),
        ("BTC_USDT", "21.90"),
    ]
    assert {at: (cell["shown"], cell["badge"]) for at, cell in found.items()} == {
        ("ETH_USDT", "BOREAS"): ("438.00", "S"),
        ("ETH_USDT", "CORONA"): ("-21.90", "L"),
        ("BTC_USDT", "AURORA"): ("10.95", "L"),
        ("BTC_USDT", "BOREAS"): ("32.85", "S"),
    }
    assert data["bar"] == ["-54.75", "0", "+54.75 % per year (APR)"]
    assert any("predicted, not settled, at 2023-03-20" in each for each in texts(shown.markdown))
    assert not shown.warning
    assert not shown.error


def test_the_unit_is_chosen_and_kept_in_the_link(page, store):
    shown = page(store)
    assert "unit" not in shown.query_params
    shown.get_by_key("funding_unit").set_value("8h").run()
    assert shown.query_params["unit"] == "8h"
    assert cells(shown)["ETH_USDT", "BOREAS"]["shown"] == "0.4000"
    assert drawn(shown, "rates")["full"] == pytest.approx(0.05)
    again = page(store, unit="24h")
    assert again.get_by_key("funding_unit").value == "24h"


def test_a_cell_says_what_the_service_gave_when_it_settles_and_what_it_opens(seen, store):
    assert cells(seen(store))["ETH_USDT", "BOREAS"]["title"] == (
        "ETH_USDT BOREAS.futures: 438.00 % per year (APR), as the service gave it +0.05 % per 1 h, "
        "next settlement 2023-03-20 01:00. Opens ETH_USDT:CORONA.futures:BOREAS.futures"
    )


def test_a_cell_opens_its_pair_whichever_way_round_it_is_held(page, store):
    shown = page(store)
    cell = cells(shown)["ETH_USDT", "BOREAS"]
    assert cell["key"] == "funding/ETH_USDT:CORONA.futures:BOREAS.futures"
    assert opened(shown, "rates", cell["key"]).query_params["trajectory"] == cell["key"]
    assert metrics(shown)["funding (bps)"] == "-42.00"


def test_a_cell_of_a_pair_that_cannot_be_loaded_says_why_and_what_loads_it(page, tmp_path):
    path = fill(tmp_path / "rates.duckdb", pairs=False)
    shown = page(path)
    cell = cells(shown)["ETH_USDT", "BOREAS"]
    assert cell["title"].endswith(", which is loaded first")
    (says,) = texts(opened(shown, "rates", cell["key"]).error)
    assert "failed" in says
    assert sync(path, cell["key"], "--start", "7d") in says


def test_the_league_has_what_each_pair_kept_the_most_over_7_days_first(seen, store):
    shown = seen(store, symbols="ETH_USDT")
    assert rows_of(shown, "league") | {"symbol": ["ETH_USDT"], "kept 1 d (bps)": ["6.0"]} == {
        "symbol": ["ETH_USDT"],
        "short → long": ["CORONA → BOREAS"],
        "kept 1 d (bps)": ["6.0"],
        "kept 7 d (bps)": ["42.0"],
        "sign": ["● steady"],
        "sign flips": ["0"],
        "funding drawdown (bps)": ["0.0"],
        "APR, 7 d (%)": ["from 21.9 to 21.9, lowest 21.9, highest 21.9"],
    }
    assert "kept 30 d (bps)" not in rows_of(shown, "league")  # ten days are held


@pytest.mark.parametrize("view", ["", "time", "pair"])
def test_every_view_hands_its_rows_over_as_files(seen, store, view):
    buttons = seen(store, **({"view": view} if view else {})).get("download_button")
    assert [button.label for button in buttons] == ["CSV", "Parquet"]


def test_the_league_is_net_by_the_bar_in_money_of_the_size_and_opens_its_pair(page, store):
    shown = page(store, fees="example", style="maker", size="20000")
    assert rows_of(shown, "league")["kept 7 d (bps)"] == ["32.0", "32.0"]
    title = drawn(shown, "league")["columns"][3]["titles"][0]
    assert title.startswith("20,000 USDT kept 64.00, coverage 100.00 %, funding 42.00 bps")
    again = opened(shown, "league", PAIR.key)
    words = kept(again).value
    assert words.startswith("**20,000 USDT would have kept 64.00 USDT** in the 7 d to 2023-03-19")
    assert words.endswith("net of 20.00 for fees: funding 84.00, prices 0.00")
    assert "notional 20,000 per leg" in kept(again).help
    assert again.query_params["size"] == "20000"


def test_funding_through_time_is_a_row_a_symbol_a_leg_or_a_pair_in_the_unit(page, store):
    shown = page(store, view="time", window="All")
    (cells,) = figures(shown)[0]["data"]
    assert cells["y"] == ["ETH_USDT", "BTC_USDT"]
    assert cells["x"][0] == "2023-03-09 12:00"
    assert cells["showscale"]
    assert cells["zmax"] == pytest.approx(54.75)
    assert any(
        "means of 1 d, 2023-03-09 00:00 UTC to 2023-03-20" in e for e in texts(shown.markdown)
    )
    shown.get_by_key("funding_rows").set_value("legs").run()
    (legs,) = figures(shown)[0]["data"]
    assert legs["y"][0] == "ETH_USDT:CORONA.futures"
    assert len(legs["y"]) == 4
    shown.get_by_key("funding_rows").set_value("pairs").run()
    shown.get_by_key("funding_unit").set_value("8h").run()
    (pairs,) = figures(shown)[0]["data"]
    assert pairs["y"] == [OTHER.legs_key, PAIR.legs_key]
    assert pairs["zmax"] == pytest.approx(0.05)
    assert shown.query_params["view"] == "time"
    assert shown.query_params["rows"] == "pairs"


@pytest.mark.parametrize(
    ("params", "says"),
    [
        (
            {"trajectory": "XRP_USDT:AURORA.futures:BOREAS.futures"},
            ["is not in this store", "rail sync funding/XRP_USDT:AURORA.futures:BOREAS.futures"],
        ),
        ({"trajectory": "![x](https://example.org)"}, ["`trajectory=![x]", "not a pair"]),
        ({"trajectory": "BTC_USDT:AURORA.futures"}, ["not a pair", "for funding two legs"]),
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
    assert not figures(shown)
    assert len(shown.run().warning) == 1
    if "unit" in params:
        shown.get_by_key("funding_unit").set_value("1h").run()
    else:
        shown.get_by_key("funding_pair").set_value(OTHER.key).run()
        assert metrics(shown)["funding (bps)"] == "42.00"
        assert shown.query_params["trajectory"] == OTHER.key
    assert not shown.warning


def test_the_view_of_a_pair_opens_again_after_the_view_of_the_rates(page, store):
    for asked in ({}, {"trajectory": "XRP_USDT:AURORA.futures:BOREAS.futures"}):
        shown = page(store, **asked)
        for view in ("now", "pair"):
            shown.get_by_key("funding_view").set_value(view).run()
            assert not shown.exception
        shown.get_by_key("funding_pair").set_value(OTHER.key).run()
        assert metrics(shown)["funding (bps)"] == "42.00"


def test_a_store_without_funding_says_how_to_load_it(page, tmp_path):
    shown = page(fill(tmp_path / "none.duckdb", pairs=False, rates=False))
    (says,) = texts(shown.info)
    assert "has no funding yet" in says
    assert shown.button(key="load_snapshot/funding").label == "Load the rates in force"
    assert shown.button(key="load_funding/*").label == "Load 7 days of funding of all pairs"


def test_pairs_without_rates_say_what_brings_the_rates(page, tmp_path):
    path = fill(tmp_path / "pairs.duckdb", rates=False)
    shown = page(path)
    assert "No funding overview is stored." in texts(shown.info)
    assert shown.button(key="load_snapshot/funding").label == "Load the rates in force"


def test_rates_without_pairs_say_what_brings_them(page, tmp_path):
    path = fill(tmp_path / "rates.duckdb", pairs=False)
    shown = page(path)
    shown.get_by_key("funding_view").set_value("pair").run()
    assert "No pair's funding is stored." in texts(shown.info)
    assert shown.button(key="pair_funding/*").label == "Load 7 days of funding of all pairs"


def test_an_overview_without_rates_says_so(page, tmp_path):
    path = fill(tmp_path / "held.duckdb", rates=False)
    keep_snapshot(Store(path), "funding", b'{"items":[]}', SERVED_AT)
    assert "The overview names no rate." in texts(page(path).caption)


def test_times_are_in_the_links_zone(seen, store):
    shown = seen(store, timezone="Asia/Tokyo", clock="Asia/Tokyo")
    assert any("at 2023-03-20 09:00 Asia/Tokyo" in each for each in texts(shown.markdown))
    assert "next settlement 2023-03-20 10:00" in cells(shown)["ETH_USDT", "BOREAS"]["title"]


@pytest.mark.parametrize(("kind", "mark"), [("simulated", ["SIMULATED"]), ("live", [])])
def test_every_chart_is_marked_with_its_source(page, tmp_path, kind, mark):
    path = fill(tmp_path / "held.duckdb", source=Source(kind, "x"))
    for params in ({}, {"trajectory": PAIR.key}):
        for chart in figures(page(path, **params)):
            assert [note["text"] for note in chart["layout"].get("annotations", [])] == mark


def test_the_navigation_leads_to_it_and_the_choice_is_kept(page, store):
    shown = page(store, script=MAIN)
    shown.switch_page(page_file("funding")).run()
    assert not shown.exception
    shown.get_by_key("funding_view").set_value("pair").run()
    shown.get_by_key("funding_pair").set_value(OTHER.key).run()
    assert read_out(shown).startswith("ETH_USDT")


def test_the_league_has_prices_in_it_and_offers_those_that_are_not_held(page, tmp_path):
    store = fill(tmp_path / "one.duckdb", widens_bps=50.0, priced=(PAIR,))
    shown = page(store)
    listed = rows_of(shown, "league")
    assert listed["symbol"] == ["BTC_USDT", "ETH_USDT"]
    assert float(listed["kept 7 d (bps)"][0]) == pytest.approx(42 - 50 * 7 / 10, abs=1)
    assert listed["kept 7 d (bps)"][1] == "–"
    title = drawn(shown, "league")["columns"][3]["titles"][1]
    assert "not held, coverage 100.00 %, funding 42.00 bps" in title
    assert any("Load 30 days of prices of 1 pair" in each.label for each in shown.button)

    only = page(store, prices="without")
    assert rows_of(only, "league")["kept 7 d (bps)"] == ["42.0", "42.0"]
    assert any("Funding of the stored pairs" in each for each in texts(only.markdown))
