"""The page of all spreads: rows, filters, links, and the states without any."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from toolkit.cards import duration
from toolkit.dashboard.link import page_file
from toolkit.dashboard.pages.spreads.choice import COLUMNS
from toolkit.market import Trajectory
from toolkit.statistics.screening import SPREAD_ORDER
from toolkit.statistics.spread import stationarity, summary, with_spread

from .conftest import SERVED_AT, START, bring, spread_rows
from .shown import figures, rows_of, sync, texts, values_of

PAIR = "BTC_USD:COINBASE.spot:KRAKEN.spot"


def rows(shown):
    return values_of(shown, "spreads")


def test_a_spread_has_its_figures_with_n_and_coverage(page, held):
    (row,) = rows(page(held.path, "spreads", columns=",".join(COLUMNS)))
    assert row["symbol"] == "BTC_USD"
    assert row["buy → sell"] == "COINBASE.spot → KRAKEN.spot"
    assert row["n"] == 539
    assert row["coverage"] == pytest.approx(539 / 600)
    assert row["last spread (bps)"] == pytest.approx(4.0, abs=0.01)
    assert row["percentile, 7 d"] == pytest.approx(90, abs=0.5)  # the fifth of five levels
    assert len(row["24 h"]) == 48
    assert row["time, ≥ 20 bps"] == row["episodes/day, ≥ 20 bps"] == 0.0
    assert row["notes"] == "service differs; 89 % covered; half-life under 1 step"


def test_the_columns_are_those_of_the_link_and_of_the_choice(page, held):
    shown = page(held.path, "spreads", columns="n,last")
    assert list(rows(shown)[0])[2:] == ["last spread (bps)", "n"]
    shown.get_by_key("columns").set_value(["mean"]).run()
    assert list(rows(shown)[0])[2:] == ["mean (bps)"]
    assert shown.query_params["columns"] == "mean"
    assert not rows(shown)[0].keys() & {"mean net (bps)", "notes"}
    bring(held, "BTC_USD:KRAKEN.spot:GEMINI.spot", spread_rows())
    shown = page(held.path, "spreads", columns="last,n,coverage")
    assert list(rows(shown)[0]) == ["symbol", "buy → sell", "last spread (bps)", "n", "coverage"]


def test_with_fees_the_most_left_after_costs_comes_first(page, held):
    bring(held, "ETH_USD:KRAKEN.spot:GEMINI.spot", spread_rows())
    shown = page(held.path, "spreads")
    assert shown.get_by_key("sort").value == SPREAD_ORDER
    shown.get_by_key("fees").set_value("example").run()
    assert shown.get_by_key("sort").value == "-net_mean_bps"
    assert "the most left after costs first" in shown.caption[0].value
    assert "sort" not in shown.query_params
    shown.get_by_key("sort").set_value("trajectory").run()
    shown.get_by_key("fees").set_value("none").run()
    assert shown.get_by_key("sort").value == "trajectory"


def test_rows_are_in_the_order_chosen(page, held):
    bring(held, "ETH_USD:KRAKEN.spot:GEMINI.spot", spread_rows().head(500))
    by_name = page(held.path, "spreads", sort="trajectory")
    assert [row["symbol"] for row in rows(by_name)] == ["BTC_USD", "ETH_USD"]
    by_name.get_by_key("sort").set_value("last_percentile").run()
    assert by_name.query_params["sort"] == "last_percentile"
    found = [row["percentile, 7 d"] for row in rows(by_name)]
    assert found == sorted(found)


def test_the_python_of_the_page_gives_its_rows(page, held):
    bring(held, "ETH_USD:KRAKEN.spot:GEMINI.spot", spread_rows())
    filters = {"type": "spot/spot", "exclude": "ETH_USD", "min": "1", "sort": "last_percentile"}
    shown = page(held.path, "spreads", symbols="BTC_USD", fees="example", **filters)
    code = shown.code[-1].value
    assert 'exclude_symbols=["ETH_USD"]' in code
    names: dict[str, object] = {}
    exec(code.replace("rail.screen(", "found = rail.screen("), names)
    (row,) = rows(shown)
    screened = names["found"].row(0, named=True)
    assert row["mean (bps)"] == pytest.approx(screened["spread_mean_log_bps"], rel=1e-6)
    assert row["cost (bps)"] == screened["cost_bps"]


def test_the_heat_map_is_of_one_symbol_in_the_link_with_room_for_its_labels(page, held):
    shown = page(held.path, "spreads")
    assert not figures(shown)
    shown.get_by_key("matrix").set_value("BTC_USD").run()
    assert shown.query_params["matrix"] == "BTC_USD"
    (figure,) = figures(shown)
    assert figure["data"][0]["y"] == ["KRAKEN.spot", "COINBASE.spot"]
    assert "title" not in figure["layout"]
    assert figure["layout"]["margin"]["l"] >= 6 * len("COINBASE.spot") + len("buy")
    assert figure["layout"]["yaxis"]["ticklabeloverflow"] == "allow"
    (chart,) = figures(page(held.path, "trajectory", trajectory=PAIR))
    assert chart["layout"]["margin"] == {"l": 66, "r": 8, "t": 30, "b": 98}


def test_the_half_life_is_a_length_in_words_and_sorts_by_its_seconds(page, held):
    other, steps = Trajectory.parse(PAIR.replace("BTC", "ETH")), np.random.default_rng(7)
    level_bps = [0.0]
    for step in steps.normal(size=spread_rows().height - 1):
        level_bps.append(0.9 * level_bps[-1] + step)
    noisy = spread_rows().with_columns(
        buy_price=100.0, sell_price=100.0 + 0.01 * pl.Series(level_bps)
    )
    bring(held, other.key, noisy)
    measured = summary(with_spread(held.series(other)), START, SERVED_AT)
    shown = page(held.path, "spreads")
    (row,) = [row for row in rows(shown) if row["symbol"] == "ETH_USD"]
    assert row["half-life"] == pytest.approx(measured["half_life_s"].item())
    assert row["ACF half lag"] == pytest.approx(measured["acf_half_lag_s"].item())
    texts = [text.removesuffix(" (?)") for text in rows_of(shown, "spreads")["half-life"]]
    assert duration(measured["half_life_s"].item()) in texts
    tested = stationarity(with_spread(held.series(other)), START, SERVED_AT)["adf_p_value"].item()
    assert tested - 1e-5 <= row["reversion q"] <= 2 * tested + 1e-5  # over both spreads


def test_window_and_order_are_said_the_threshold_counts_and_a_row_opens(page, held):
    shown = page(held.path, "spreads")
    (says,) = shown.caption
    assert says.value.startswith("1 of 1 spreads, the widest now first")
    assert "2023-03-10 00:00 UTC to 2023-03-10 10:00 UTC" in says.value
    shown.get_by_key("above").set_value(2.5).run()
    assert rows(shown)[0]["time, ≥ 2.5 bps"] == pytest.approx(0.40, abs=0.005)
    assert shown.query_params["above"] == "2.5"
    shown.session_state["spreads_opened"] = PAIR
    shown.run()
    assert shown.selectbox(key="trajectory").value == PAIR


def test_filters_come_from_the_link_and_stay_over_a_change_of_page(page, held):
    bring(held, "ETH_USD:KRAKEN.spot:GEMINI.spot", spread_rows())
    shown = page(held.path, "spreads", exchange="KRAKEN,GEMINI", exclude="BTC_USD", min="2")
    assert shown.get_by_key("exclude").value == ["BTC_USD"]
    assert [row["symbol"] for row in rows(shown)] == ["ETH_USD"]
    assert shown.get_by_key("min").value == 2.0
    assert not shown.warning
    shown.switch_page(page_file("overview")).run()
    shown.switch_page(page_file("spreads"))
    shown.query_params.clear()
    shown.run()
    assert shown.get_by_key("exchange").value == ["KRAKEN", "GEMINI"]
    assert shown.query_params["min"] == "2"


@pytest.mark.parametrize(
    ("params", "says"),
    [
        (
            {"exclude": "X_Y"},
            "`exclude=X_Y`, which is not in this store; the page leaves it out",
        ),
        ({"type": "spot/moon"}, "`type=spot/moon`"),
        ({"min": "many"}, "`min=many`, which is not a number from 0 to 10,000; the page takes 0"),
        ({"above": "-5"}, "`above=-5`, which is not a number from 0.1 to 10,000"),
        ({"sort": "luck"}, "`sort=luck` (allowed:"),
        ({"columns": "n,luck"}, "`columns=luck`"),
        ({"matrix": "X_Y"}, "`matrix=X_Y`"),
        ({"window": "2 years"}, "`window=2 years` (allowed: 24 hours, 7 days"),
    ],
)
def test_a_link_that_cannot_be_followed_says_why_until_a_choice(page, held, params, says):
    shown = page(held.path, "spreads", **params)
    (warning,) = texts(shown.warning)
    assert says in warning
    assert len(rows(shown)) == 1
    shown.get_by_key("above").set_value(3.0).run()
    assert not shown.warning


def test_a_store_without_spreads_says_how_to_load_one(page, bare, monkeypatch):
    monkeypatch.delenv("RAIL_BASE_URL", raising=False)
    shown = page(bare.path, "spreads")
    assert "has no spreads: load some" in shown.info[0].value
    assert texts(shown.code) == [sync(bare.path, "watchlist", "--start", "7d", service=None)]
    assert not [button for button in shown.button if button.label.startswith("Load")]


def test_spreads_that_are_the_services_own_are_noted(page, held):
    assert "own figure" not in rows(page(held.path, "spreads"))[0]["notes"]
    prices = ("buy_price", "sell_price")
    bare = spread_rows().with_columns(pl.lit(None, pl.Float64).alias(name) for name in prices)
    bring(held, "ETH_USD:KRAKEN.spot:GEMINI.spot", bare)
    notes = {row["symbol"]: row["notes"] for row in rows(page(held.path, "spreads"))}
    assert "the service's own figure" in notes["ETH_USD"]
    assert "own figure" not in notes["BTC_USD"]
