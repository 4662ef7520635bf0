"""The page of one symbol: what it draws, what opens, what is in its link."""

from __future__ import annotations

import math

import polars as pl
import pytest

from toolkit.intervals import Interval
from toolkit.market import swapped

from .conftest import HOLE, MINUTES, SERVED_AT, START, bring, spread_rows
from .shown import figures, rows_of, texts, values_of

PAIR = "BTC_USD:COINBASE.spot:KRAKEN.spot"


def test_prices_spreads_and_events_are_shown_and_a_symbol_not_held_is_named(page, full):
    shown = page(full.path, "symbol")
    chart, matrix = figures(shown)
    named = [trace["name"] for trace in chart["data"] if trace.get("name")]
    assert named == ["KRAKEN.spot", "spread", "splash", "funding"]
    rows = MINUTES - (HOLE[1] - HOLE[0])
    assert any(text.startswith(f"{rows:,} prices of 1 legs") for text in texts(shown.caption))
    assert matrix["data"][0]["y"] == ["KRAKEN.spot", "COINBASE.spot"]
    (line,) = values_of(shown, "symbol_spreads")
    assert (line["buy"], line["sell"]) == ("COINBASE.spot", "KRAKEN.spot")
    assert line["last spread (bps)"] == pytest.approx(4.0, abs=0.01)
    assert rows_of(shown, "symbol_events")["kind"] == ["pump", "spread", "spread"]
    shown = page(full.path, "symbol", symbol="NO_SUCH")
    assert "symbol=NO_SUCH" in shown.warning[0].value
    assert len(figures(shown)) == 2


def test_the_choices_are_in_the_link_and_a_window_is_relative(page, full):
    shown = page(full.path, "symbol", symbol="BTC_USD", window="7 days", spreads="mean")
    assert shown.query_params["window"] == "7 days"
    (line,) = values_of(shown, "symbol_spreads")
    assert line["mean (bps)"] == pytest.approx(2.0, abs=0.02)
    shown.get_by_key("symbol_prices").set_value("from_median").run()
    assert shown.query_params["prices"] == "from_median"


def test_a_zoom_is_what_is_listed_and_measured(page, full):
    zoom = "2023-03-10T08:00:00Z/2023-03-10T09:00:00Z"
    shown = page(full.path, "symbol", zoom=zoom)
    assert rows_of(shown, "symbol_events")["kind"] == ["spread"]
    assert figures(shown)[0]["layout"]["xaxis"]["range"] == ["2023-03-10 08:00", "2023-03-10 09:00"]
    shown.get_by_key("symbol_zoom_out").click().run()
    assert "zoom" not in shown.query_params


@pytest.mark.parametrize("choices", [{}, {"fees": "example"}])
def test_a_time_without_a_spread_says_so(page, full, choices):
    shown = page(full.path, "symbol", zoom="2022-03-10T08:00:00Z/2022-03-10T09:00:00Z", **choices)
    words = "No spread of `BTC_USD` in this time. Choose a longer window above."
    assert words in texts(shown.caption)


def test_net_of_fees_a_pair_has_a_figure_each_way_round(page, full):
    shown = page(full.path, "symbol", fees="example")
    (line,) = values_of(shown, "symbol_spreads")
    simple = 1e4 * math.expm1(line["last spread (bps)"] / 1e4)
    assert line["net (bps)"] == pytest.approx(abs(simple) - line["cost (bps)"], abs=1e-3)
    assert line["cost (bps)"] > 0
    (words,) = [m.help for m in shown.markdown if "spreads, net" in m.value]
    assert "EXAMPLE VALUES" in words
    cells = figures(shown)[1]["data"][1]["text"]
    assert sum(text.startswith("-") for text in cells) == 2  # it pays neither way


@pytest.mark.parametrize("choices", [{}, {"fees": "example"}, {"spreads": "mean"}])
def test_a_spread_held_both_ways_round_is_shown_once(page, full, choices):
    turned = spread_rows().rename({"buy_price": "sell_price", "sell_price": "buy_price"})
    window = Interval(START, SERVED_AT - 3600)
    rows = turned.filter(pl.col("ts") < window.end).with_columns(-pl.col("spread_pct"))
    bring(full, swapped(PAIR), rows, window)
    shown = page(full.path, "symbol", **choices)
    (line,) = values_of(shown, "symbol_spreads")
    assert (line["buy"], line["sell"]) == ("COINBASE.spot", "KRAKEN.spot")
    assert not shown.exception
    assert not shown.error


@pytest.mark.parametrize(
    ("place", "key", "asked"),
    [("symbol_spreads", PAIR, ("trajectory", PAIR)), ("symbol_events", "pump-one", None)],
)
def test_a_row_opens_its_chart_or_its_event(page, full, place, key, asked):
    shown = page(full.path, "symbol")
    shown.session_state[f"{place}_opened"] = key
    shown.run()
    assert not shown.exception
    name, value = asked or ("event", "pump-one")
    assert shown.query_params[name] == value


def test_a_store_without_events_and_one_without_a_symbol_say_what_loads_them(page, held, bare):
    shown = page(held.path, "symbol")
    assert "No event log is stored." in texts(shown.info)
    key = "events_events/spread_events/splash_events/funding"
    assert shown.button(key=key).label == "Load 7 days of events"
    assert "has no symbols yet" in page(bare.path, "symbol").info[0].value
