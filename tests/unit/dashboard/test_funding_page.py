"""What the page of funding shows, in each state that a store can be in."""

from contextlib import nullcontext
from functools import partial

import polars as pl
import pytest

from toolkit.dashboard.link import page_file
from toolkit.dashboard.pages.funding.pair import due_in
from toolkit.dashboard.settings import MAIN
from toolkit.market import swapped
from toolkit.series import own_series
from toolkit.show.values import NULL
from toolkit.statistics.fees import FeeModel
from toolkit.store import Store
from toolkit.workspace.loading import keep_own
from toolkit.workspace.snapshot_tables import funding_rates

from .conftest import keep_snapshot
from .funded import (
    EIGHT,
    OTHER,
    PAIR,
    SERVED_AT,
    START,
    beside,
    cells,
    fill,
    kept,
    opened,
    overview,
    read_out,
    settled,
)
from .shown import drawn, figures, metrics, rows_of, sync, texts

WHOLE = {"trajectory": PAIR.key, "window": "All", "analysis": "by_weekday"}
"""A link to all of a pair, with an analysis of it."""


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


def test_it_opens_on_the_rates_in_force_with_what_each_cell_opens(seen, store):
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
    assert cells(seen(store))["ETH_USDT", "BOREAS"]["title"] == (
        "ETH_USDT BOREAS.futures: 438.00 % per year (APR), as the service gave it +0.05 % per 1 h, "
        "next settlement 2023-03-20 01:00. Opens ETH_USDT:CORONA.futures:BOREAS.futures"
    )


def test_the_unit_is_chosen_and_kept_in_the_link(page, store):
    shown = page(store)
    assert "unit" not in shown.query_params
    shown.get_by_key("funding_unit").set_value("8h").run()
    assert shown.query_params["unit"] == "8h"
    assert cells(shown)["ETH_USDT", "BOREAS"]["shown"] == "0.4000"
    assert drawn(shown, "rates")["full"] == pytest.approx(0.05)
    again = page(store, unit="24h")
    assert again.get_by_key("funding_unit").value == "24h"


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
    (chart,) = figures(shown)
    (cells,) = chart["data"]
    assert [note["text"] for note in chart["layout"]["annotations"]] == ["SIMULATED"]
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
def test_a_link_that_cannot_be_followed_says_why_until_a_choice(page, store, params, says):
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


def test_without_pairs_rates_or_both_it_says_what_brings_them(page, tmp_path):
    shown = page(fill(tmp_path / "none.duckdb", pairs=False, rates=False))
    (says,) = texts(shown.info)
    assert "has no funding yet" in says
    assert shown.button(key="load_snapshot/funding").label == "Load the rates in force"
    assert shown.button(key="load_funding/*").label == "Load 7 days of funding of all pairs"
    shown = page(fill(tmp_path / "pairs.duckdb", rates=False))
    assert "No funding overview is stored." in texts(shown.info)
    assert shown.button(key="load_snapshot/funding").label == "Load the rates in force"
    shown = page(fill(tmp_path / "rates.duckdb", pairs=False))
    shown.get_by_key("funding_view").set_value("pair").run()
    assert "No pair's funding is stored." in texts(shown.info)
    assert shown.button(key="pair_funding/*").label == "Load 7 days of funding of all pairs"
    path = fill(tmp_path / "held.duckdb", rates=False)
    keep_snapshot(Store(path), "funding", b'{"items":[]}', SERVED_AT)
    assert "The overview names no rate." in texts(page(path).caption)


def test_times_are_in_the_links_zone(seen, store):
    shown = seen(store, timezone="Asia/Tokyo", clock="Asia/Tokyo")
    assert any("at 2023-03-20 09:00 Asia/Tokyo" in each for each in texts(shown.markdown))
    assert "next settlement 2023-03-20 10:00" in cells(shown)["ETH_USDT", "BOREAS"]["title"]


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


def test_the_python_of_the_page_gives_the_settlements_of_its_files(seen, store):
    shown = seen(store, view="pair")  # of seven days, and not of all that is held
    names: dict[str, object] = {}
    (code,) = [each.value for each in shown.code if "settled = " in each.value]
    exec(code, names)
    settled = names["settled"].sort("ts", "leg", descending=[True, False])
    listed = rows_of(shown, "settlements")
    assert listed["leg"] == settled["leg"].to_list()
    assert listed["rate"] == [f"{100 * rate:.4f} %" for rate in settled["rate"]]


@pytest.mark.parametrize("asked", [PAIR.key, swapped(PAIR.key)])
def test_an_analysis_of_a_pair_gives_the_rows_of_its_python_whichever_way_round(seen, store, asked):
    shown = seen(store, **WHOLE | {"trajectory": asked})
    (code,) = [each.value for each in shown.code if "by_weekday" in each.value]
    names: dict[str, object] = {}
    *lines, last = code.splitlines()
    with nullcontext() if asked == PAIR.key else pytest.warns(UserWarning, match="turned"):
        exec("\n".join([*lines, f"found = {last}"]), names)
    listed = rows_of(shown, "funding_by_weekday")
    rates = names["found"]["funding_apr_pct"]
    assert listed["funding APR (%)"] == [f"{rate:,.2f}" for rate in rates]


def test_a_link_opens_its_pair_with_carry_its_grounds_and_how_steady_it_is(seen, store):
    shown = seen(store, **WHOLE)
    assert shown.get_by_key("funding_view").value == "pair"
    for chart in figures(shown):
        assert [note["text"] for note in chart["layout"]["annotations"]] == ["SIMULATED"]
    differential, paid, carry = figures(shown)[0]["data"]
    assert differential["name"] == "differential, sell less buy"
    assert (paid["name"], carry["name"]) == ("cumulative funding", "carry: funding and prices")
    # Ten days: from one interval before the first settlement to the newest.
    assert {
        "funding (bps)": "60.00",
        "funding APR (%)": "21.90",
        "basis (bps)": "0.00",
        "carry (bps)": "60.00",
        "funding of the buy leg (bps)": "-30.00",
        "funding of the sell leg (bps)": "90.00",
    }.items() <= metrics(shown).items()
    assert beside(shown).count("settlements 30, coverage 100.00 %") == 4
    assert len(rows_of(shown, "settlements")["leg"]) == 60
    (cells,) = figures(shown)[1]["data"]
    symbol = "BTC_USDT:"
    legs = [f"{symbol}BOREAS.futures", f"{symbol}AURORA.futures"]
    assert cells["y"] == [legs[0], f"{symbol}AURORA.futures:BOREAS.futures", legs[1]]
    assert cells["customdata"][0][0][0] == "2023-03-09 16:00"
    assert len(cells["x"]) == 30
    words, known = beside(shown), metrics(shown)
    assert (known["stretches"], known["positive share"], known["longest run"]) == (
        *("29", "100.00 %", "9 d 16 h"),
    )
    assert "run censored" in words
    assert "too few observations for this statistic" in words
    columns = drawn(shown, "holdings")["columns"]
    (lower,) = [each for each in columns if each["name"] == "gross mean lower (bps)"]
    why = [
        title for title, text in zip(lower["titles"], lower["shown"], strict=True) if text == NULL
    ]
    assert set(why) == {"too few observations for this statistic"}


def test_what_holding_a_pair_kept_is_listed_by_the_time_held_gross_and_net(seen, store):
    gross = rows_of(seen(store, **WHOLE), "holdings")
    assert gross["horizon"] == ["8 h", "1 d", "2 d", "3 d", "5 d", "7 d"]
    assert "net median (bps)" not in gross
    shown = seen(store, trajectory=PAIR.key, window="All", fees="example", style="maker")
    net = rows_of(shown, "holdings")
    assert (
        net["gross median (bps)"]
        == gross["gross median (bps)"]
        == ["2.00", "6.00", "12.00", "18.00", "30.00", "42.00"]
    )
    assert net["net median (bps)"][-1] == "32.00"
    # 10 bps of fees are five settlements: after 33 to 40 h, from the hour of the entry on
    assert net["broke even"] == ["0.00 %"] * 2 + ["100.00 %"] * 4
    says = next(each for each in texts(shown.markdown) if "earned the fees back" in each)
    assert says.endswith(
        "100.00 % earned the fees back: a quarter within 35.0 h, half within 37.0 h, "
        "three quarters within 39.0 h"
    )


def test_the_chart_of_a_pair_is_in_the_unit_and_has_the_carry_net_of_fees(seen, store):
    link = {"unit": "24h", "fees": "example", "style": "prefunded"}
    shown = seen(store, trajectory=PAIR.key, window="All", **link)
    differential, paid, gross, net = figures(shown)[0]["data"]
    assert differential["hovertemplate"].startswith("%{y:+,.4~f} % per 24 h")
    assert figures(shown)[0]["layout"]["yaxis"]["title"]["text"] == "differential (% per 24 h)"
    assert paid["name"] == "cumulative funding"
    assert (gross["name"], net["name"]) == ("carry: funding and prices", "net of a round trip")
    assert metrics(shown)["funding rate (% per 24 h)"] == "0.0600"
    (says,) = texts(shown.warning)
    assert "`prefunded` holds no position, so net figures here are of taker" in says
    cost = FeeModel.example(["AURORA", "BOREAS", "CORONA"]).round_trip_bps(PAIR, at=START)
    assert metrics(shown)["net carry (bps)"] == f"{60 - cost:.2f}"


def test_the_next_settlement_is_that_of_the_overview_else_an_interval_later(seen, store):
    rows = settled().with_columns(trajectory=pl.lit(PAIR.key))
    rates = funding_rates(overview().decode())
    now = SERVED_AT + 600
    of_overview = due_in(PAIR.key, rows, rates, now)
    assert of_overview == [
        {"leg": "long AURORA.futures", "in_s": EIGHT - 600, "every_s": EIGHT},
        {"leg": "short BOREAS.futures", "in_s": EIGHT - 600, "every_s": EIGHT},
    ]
    assert due_in(PAIR.key, rows, None, now) == of_overview
    assert due_in(PAIR.key, rows, None, now + EIGHT)[0]["in_s"] == EIGHT - 600
    assert due_in(PAIR.key, rows, rates, now + 4 * EIGHT) == []
    due = drawn(seen(store, view="pair"), "countdown")["due"]
    assert [each["leg"] for each in due] == ["long AURORA.futures", "short BOREAS.futures"]
    assert all(0 < each["in_s"] <= EIGHT for each in due)


def test_a_shorter_window_is_measured_anew(page, store):
    shown = page(store, trajectory=PAIR.key, window="All")
    shown.get_by_key("funding_window").set_value("24 hours").run()
    assert metrics(shown)["funding (bps)"] == "6.00"
    assert "settlements 3, coverage 100.00 %" in beside(shown)
    assert shown.query_params["window"] == "24 hours"


def test_the_carry_is_net_of_one_round_trip_by_table_and_style_of_a_position(seen, store):
    shown = seen(store, trajectory=PAIR.key, window="All", fees="example", style="maker")
    example = FeeModel.example(["AURORA", "BOREAS", "CORONA"])
    cost = example.round_trip_bps(PAIR, style="maker", at=START)
    found = metrics(shown)
    assert found["funding (bps)"] == "60.00"
    assert found["net carry (bps)"] == f"{60 - cost:.2f}"
    assert found["time to break even, funding only (days)"] == f"{cost / 6:.1f}"
    assert f"cost {cost:.2f} bps" in beside(shown)
    assert f"`{example.name}` ({example.hash}), style maker" in kept(shown).help
    assert (shown.query_params["fees"], shown.query_params["style"]) == ("example", "maker")


def test_missing_settlements_are_counted(page, tmp_path):
    shown = page(fill(tmp_path / "gap.duckdb", missing=(10, 11)), trajectory=PAIR.key, window="All")
    assert any("settlements missed: 4" in each for each in texts(shown.caption))
    assert metrics(shown)["funding (bps)"] == "56.00"
    remarks = rows_of(shown, "settlements")["remark"]
    assert [each for each in remarks if each != NULL] == ["one before it is missing"] * 2


def test_a_pair_held_the_other_way_round_is_shown_as_asked_with_every_sign_turned(page, store):
    asked = "BTC_USDT:BOREAS.futures:AURORA.futures"
    shown = page(store, trajectory=asked, window="All")
    assert shown.get_by_key("funding_pair").value == f"funding/{asked}"
    assert shown.query_params["trajectory"] == f"funding/{asked}"
    assert not shown.warning
    assert metrics(shown) | {
        "funding (bps)": "-60.00",
        "funding APR (%)": "-21.90",
        "funding of the buy leg (bps)": "-90.00",
        "funding of the sell leg (bps)": "30.00",
        "positive share": "0.00 %",
    } == metrics(shown)
    chart, words = figures(shown)[0], read_out(shown)
    assert asked in words
    assert "funding -60.00 bps, funding APR -21.90 %, basis 0.00 bps, carry -60.00 bps" in words
    assert chart["data"][0]["hovertext"][0] == " (buy 32.85, sell 10.95)"
    newest = rows_of(shown, "settlements")
    assert newest["leg"][:2] == ["buy", "sell"]
    assert newest["rate"][:2] == ["0.0300 %", "0.0100 %"]
    shown.get_by_key("funding_pair").set_value(OTHER.key).run()
    assert metrics(shown)["funding (bps)"] == "60.00"


def test_a_pair_that_is_not_held_is_not_replaced_by_another(page, store):
    asked = "XRP_USDT:AURORA.futures:BOREAS.futures"
    shown = page(store, trajectory=asked, window="All")
    assert shown.get_by_key("funding_pair").value is None
    assert not figures(shown)
    assert not shown.metric
    assert shown.run().query_params["trajectory"] == asked


def test_prices_are_in_what_is_kept_and_funding_only_says_that_they_are_not(page, tmp_path):
    store = fill(tmp_path / "wider.duckdb", widens_bps=50.0)
    asked = {"trajectory": PAIR.key, "window": "All", "fees": "example", "style": "maker"}
    shown = page(store, **asked)
    found = metrics(shown)
    basis = float(found["basis (bps)"])
    assert basis == pytest.approx(-50, abs=2)
    assert found["carry (bps)"] == f"{60 + basis:.2f}"
    assert found["net carry (bps)"] == f"{60 + basis - 10:.2f}"
    assert f"funding 60.00, prices {basis:.2f}" in kept(shown).value
    with_prices = rows_of(shown, "holdings")
    assert with_prices["funding median (bps)"][-1] == "42.00"
    assert float(with_prices["gross median (bps)"][-1]) == pytest.approx(42 - 50 * 7 / 10, abs=1)

    only = page(store, **asked, prices="without")
    assert only.get_by_key("funding_prices").value == "without"
    assert "funding only" in kept(only).value
    found = metrics(only)
    assert found["net carry, funding only (bps)"] == "50.00"
    assert not {"basis (bps)", "net carry (bps)", "carry (bps)"} & set(found)
    listed = rows_of(only, "holdings")
    assert listed["funding median (bps)"][-1] == "42.00"
    assert any("Funding by holding time" in each for each in texts(only.markdown))


def test_without_prices_what_is_kept_is_not_known_and_a_button_loads_them(page, tmp_path):
    store = fill(tmp_path / "unpriced.duckdb", priced=())
    shown = page(store, trajectory=PAIR.key, window="All", fees="example", style="maker")
    found = metrics(shown)
    assert (found["funding (bps)"], found["carry (bps)"]) == ("60.00", "–")
    assert found["net carry (bps)"] == "–"
    assert "the prices of both legs that it needs are not held; funding 60.00" in kept(shown).value
    assert "the prices of both legs that it needs are not held" in beside(shown)
    button = next(each for each in shown.button if "Load their prices" in each.label)
    assert not button.disabled
    assert rows_of(shown, "holdings")["funding median (bps)"][-1] == "42.00"


def test_the_funding_of_one_leg_of_ones_own_has_a_page_and_is_no_pair_of_the_league(page, tmp_path):
    path = tmp_path / "own.duckdb"
    rates = {
        "ts": [START + 28_800 * k for k in range(30)],
        "rate": [1e-4 + 1e-6 * k for k in range(30)],
    }
    key = "funding/BTC_USDT:BINANCE.futures"
    keep_own(own_series(pl.DataFrame(rates | {"interval_hours": [8] * 30}), key), path)
    shown = page(path, trajectory=key)
    assert "funding 24.99" in " ".join(texts(shown.markdown))
    assert not [text for text in texts(shown.warning) if "not allowed" in text]
    assert "No pair's funding is stored." in texts(page(path).info)
