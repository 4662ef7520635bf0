"""What the page of a trajectory shows, in each state that a store can be in."""

import datetime as dt
from dataclasses import replace

import polars as pl
import pytest

from toolkit.dashboard.shell import read_range
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.spread import net_episodes
from toolkit.store import Edge

from .conftest import (
    EDGE,
    SERVED_AT,
    START,
    WHOLE,
    bring,
    documents,
    loading,
    price_rows,
    spread_rows,
)
from .shown import cells_of, figures, metrics, texts

LEG = "BTC_USD:KRAKEN.spot"
PAIR = "BTC_USD:COINBASE.spot:KRAKEN.spot"
OF_ALL = ("clock", "refresh", "symbols", "fees", "style")
"""Parameters of the bar above all pages."""


def march(day, hour=0):
    return dt.datetime(2023, 3, day, hour)  # noqa: DTZ001 - the page's calendar has no zones


def link(page):
    return {name: page.query_params[name] for name in page.query_params if name not in OF_ALL}


def below(page, part):
    """Show a part below the figures."""
    page.get_by_key("below").set_value(part).run()
    assert not page.exception
    return page


def test_the_page_opens_on_the_first_trajectory_all_that_is_held_its_gaps_and_rows(page, held):
    shown = page(held.path)
    assert shown.selectbox(key="trajectory").value == LEG
    assert shown.selectbox(key="trajectory").options == [LEG, PAIR]
    assert link(shown) == {"trajectory": LEG, "window": "7 days"}
    assert shown.get_by_key("start").value == march(10)
    assert not shown.warning
    assert not shown.error
    gaps = below(shown, "Coverage").dataframe[0].value
    first = gaps.iloc[0].to_list()
    assert first == ["2023-03-10 03:20", "2023-03-10 04:20", "1 h", "empty"]
    assert "not yet known" in gaps["state"].to_list()
    rows = below(shown, "Rows").dataframe[0].value
    assert rows.iloc[0]["time (UTC)"] == "2023-03-10 09:59"
    assert len(rows) == 540


def test_a_link_opens_its_trajectory_and_its_window(page, held):
    shown = page(held.path, trajectory=PAIR, start="2023-03-10T01:00Z", end="2023-03-10T02:30:00Z")
    assert shown.selectbox(key="trajectory").value == PAIR
    assert shown.get_by_key("start").value == march(10, 1)
    chart, coverage = figures(below(shown, "Coverage"))
    for each in (chart, coverage):
        assert "REPLAY" in [note["text"] for note in each["layout"]["annotations"]]
    assert [line["name"] for line in chart["data"]] == ["log spread, sell over buy", "distribution"]
    assert chart["layout"]["xaxis"]["range"] == ["2023-03-10 01:00", "2023-03-10 02:30"]
    assert "text" not in chart["layout"]["title"]
    assert "n = 90, coverage 100.00 %" in shown.get("plotly_chart")[0].proto.alt
    assert coverage["data"][0]["name"] == "held 100.00 %"
    assert "The store covers every second of the window." in texts(shown.caption)
    assert not shown.warning


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"trajectory": "ETH_USD:KRAKEN.spot"}, ["ETH_USD", "is not in this store", LEG]),
        ({"trajectory": "![x](//example.org/x.png)"}, ["`trajectory=![x](//example.org/x.png)`"]),
        ({"start": "yesterday"}, ["start=yesterday", "ISO 8601", "2023-03-10 00:00 UTC instead"]),
        ({"end": "1850-01-01"}, ["end=1850", "1970 and 2100", "2023-03-10 10:00 UTC instead"]),
        (
            {"start": "2023-03-10T09:00Z", "end": "2023-03-10T08:00Z"},
            ["is empty", "2023-03-10 00:00 UTC to 2023-03-10 10:00 UTC instead"],
        ),
        ({"start": "2023-03-10T01:00:30Z"}, ["whole minutes", "2023-03-10 01:00 UTC"]),
        ({"window": "a fortnight"}, ["window=a fortnight", "takes 7 days instead"]),
        (
            {"window": "24 hours", "end": "2023-03-10T08:00Z"},
            ["window=24 hours", "uses the latter"],
        ),
        ({"zoom": "yesterday"}, ["zoom=yesterday", "the whole window"]),
        ({"legs": "four"}, ["legs=four", "takes none instead"]),
    ],
)
def test_a_link_that_cannot_be_followed_says_why_until_a_choice(page, held, params, says):
    shown = page(held.path, **params)
    (warning,) = texts(shown.warning)
    for words in says:
        assert words in warning
    assert len(figures(shown)) == 1
    assert len(shown.run().warning) == 1
    shown.selectbox(key="trajectory").select(PAIR).run()
    assert not shown.warning
    assert link(shown)["trajectory"] == PAIR


def test_choosing_a_window_keeps_the_link_up_to_date_and_explains_a_wrong_one(page, held):
    shown = page(held.path)
    shown.get_by_key("start").set_value(march(10, 4)).run()
    assert link(shown)["start"] == "2023-03-10T04:00Z"
    assert shown.get_by_key("preset").value is None
    assert figures(shown)[0]["layout"]["xaxis"]["range"][0] == "2023-03-10 04:00"
    shown.get_by_key("preset").set_value("All").run()
    assert link(shown) == {"trajectory": LEG, "window": "All"}
    assert shown.get_by_key("start").value == march(10)
    shown.get_by_key("start").set_value(march(11)).run()
    (warning,) = texts(shown.warning)
    assert "2023-03-11 00:00 UTC to 2023-03-10 10:00 UTC is empty" in warning
    assert figures(shown)[0]["layout"]["xaxis"]["range"][0] == "2023-03-10 00:00"


def test_a_window_that_is_a_preset_moves_on_with_the_rows(page, held):
    shown = page(held.path, trajectory=PAIR, window="All")
    newer = spread_rows().tail(2).with_columns(pl.col("ts") + 120)
    later = SERVED_AT + 120
    bring(held, PAIR, newer, Interval(SERVED_AT, later), replace(EDGE, served_at=later))
    shown.run()
    assert figures(shown)[0]["layout"]["xaxis"]["range"][1] == "2023-03-10 10:02"
    assert link(shown)["window"] == "All"


def test_what_is_zoomed_into_is_what_is_shown_and_measured(page, held):
    zoom = "2023-03-10T01:00:00Z/2023-03-10T02:00:00Z"
    shown = page(held.path, trajectory=PAIR, zoom=zoom)
    assert figures(shown)[0]["layout"]["xaxis"]["range"] == ["2023-03-10 01:00", "2023-03-10 02:00"]
    assert metrics(shown)["observations"] == "60"
    assert shown.get_by_key("start").value == march(10)
    assert link(shown) == {"trajectory": PAIR, "window": "7 days", "zoom": zoom}
    shown.get_by_key("trajectory_zoom_out").click().run()
    assert metrics(shown)["observations"] == "539"
    assert "zoom" not in link(shown)


def test_the_legs_are_below_where_wanted_and_the_hours_of_the_week_of_a_spread(page, held):
    shown = page(held.path, trajectory=PAIR, legs="below")
    assert len(figures(shown)[0]["data"]) == 4  # the spread, its distribution and two legs
    shown.get_by_key("legs").set_value("from_mean").run()
    assert figures(shown)[0]["layout"]["yaxis"]["title"]["text"] == "from mean (bps)"
    assert link(shown)["legs"] == "from_mean"
    shown = page(held.path, trajectory=PAIR)
    shown.get_by_key("below").set_value("Hours of the week").run()
    (cells,) = figures(shown)[1]["data"]
    assert cells["type"] == "heatmap"
    assert "Hours of the week" not in page(held.path, trajectory=LEG).get_by_key("below").options


def test_net_figures_and_what_would_have_been_kept_are_by_the_fees_of_the_bar(page, held):
    shown = page(held.path, trajectory=PAIR)
    assert metrics(shown)["time, ≥ 20 bps"] == "0.00 %"
    assert any("Choose a fee table" in words for words in texts(shown.caption))
    dear = page(held.path, trajectory=PAIR, fees="example")
    assert metrics(dear)["time, |spread| > cost"] == "0.00 %"
    assert metrics(dear)["net at entry (bps)"] == "0.00"
    prices = spread_rows().filter(pl.col("ts") >= START + 60 * 300)
    rows = prices.with_columns(sell_price=pl.col("buy_price") * 1.02)
    table = FeeModel.example(["COINBASE", "KRAKEN"])
    fees = {"fees": table, "notional": 10_000}
    found = net_episodes(rows.with_columns(trajectory=pl.lit(PAIR)), **fees).row(0, named=True)
    later = rows.with_columns(pl.col("ts") + 86_400)
    window = Interval(START + 86_400, SERVED_AT + 86_400)
    bring(held, PAIR, later, window, replace(EDGE, served_at=window.end))
    kept = metrics(page(held.path, trajectory=PAIR, fees="example", window="24 hours"))
    assert kept["episodes"] == str(found["net_episodes"]) == "1"
    assert kept["net at entry (bps)"] == f"{found['net_entry_bps']:,.2f}"
    assert kept["net at entry (USD)"] == f"{found['net_entry_bps']:,.2f}"  # of 10,000


def test_episodes_beyond_a_threshold_are_counted_without_fees(page, held):
    opened = page(held.path, trajectory=PAIR, threshold="3.5")
    assert len(figures(opened)[0]["layout"]["shapes"]) > 50
    assert any("Grey: ≥ 3.5 bps." in words for words in texts(opened.caption))
    shown = metrics(opened)
    assert shown["time, ≥ 3.5 bps"] == "20.30 %"  # 110 of 542 minutes
    assert float(shown["episodes/day, ≥ 3.5 bps"].replace(",", "")) > 100


def test_a_link_that_changes_is_followed_and_a_window_without_rows_explained(page, held):
    shown = page(held.path)
    shown.query_params["start"] = "2023-03-10T05:00Z"
    shown.run()
    assert shown.get_by_key("start").value == march(10, 5)
    shown = page(held.path, start="2022-01-01", end="2022-01-02")
    chart, _ = figures(shown)
    assert f"rail sync {LEG}" in chart["layout"]["annotations"][0]["text"].replace("<br>", " ")
    assert not shown.metric


def test_statistics_stand_beside_their_n_and_coverage(page, held):
    shown = page(held.path, trajectory=PAIR)
    found = metrics(shown)
    assert found["observations"] == "539"
    assert found["coverage"] == "89.83 %"
    assert found["mean (bps)"] == "2.00"
    beside = {metric.label: metric.delta for metric in shown.metric}
    assert beside["observations"] == "1 without a value"
    assert beside["coverage"] == "longest gap 1 h 1 min"
    table = below(shown, "All statistics").dataframe[0].value
    assert list(table.columns)[:2] == ["statistic", "value"]
    assert table[table["statistic"] == "median"].iloc[0]["value"] == "2.00 bps"
    assert any("Of 539 rows" in words and "pairs" in words for words in texts(shown.caption))


def test_a_statistic_that_cannot_be_had_is_a_dash_with_its_reason(page, held):
    shown = page(held.path, trajectory=PAIR, start="2023-03-10T00:00Z", end="2023-03-10T00:10Z")
    half_life = next(metric for metric in shown.metric if metric.label == "half-life")
    assert (half_life.value, half_life.delta) == ("–", "too few rows for a half-life")
    assert "Here: too few rows for a half-life" in half_life.help
    table = below(shown, "All statistics").dataframe[0].value
    missing = table[table["value"] == "–"]
    assert set(missing["reason"]) == {"too few observations for this statistic"}


def test_the_browsers_zone_can_be_chosen_where_it_is_not_utc(page, held):
    shown = below(page(held.path, timezone="Asia/Tokyo", end="2023-03-10T10:00Z"), "Rows")
    assert figures(shown)[0]["layout"]["xaxis"]["title"]["text"] == "time (UTC)"
    shown.get_by_key("clock").set_value("Asia/Tokyo").run()
    layout = figures(shown)[0]["layout"]
    assert layout["xaxis"]["title"]["text"] == "time (Asia/Tokyo)"
    assert layout["xaxis"]["range"][0] == "2023-03-10 09:00"
    assert shown.dataframe[0].value.iloc[0]["time (Asia/Tokyo)"] == "2023-03-10 18:59"
    assert link(shown)["start"] == "2023-03-10T00:00Z"
    assert shown.get_by_key("start").value == march(10, 9)
    assert shown.query_params["clock"] == "Asia/Tokyo"


def test_events_of_the_legs_are_marked_until_they_are_not_wanted(page, full):
    shown = page(full.path, trajectory=PAIR)
    marked = figures(shown)[0]
    assert marked["data"][-1]["name"] == "2 events opened"
    shown.get_by_key("marks").set_value(False).run()
    assert figures(shown)[0]["data"][-1]["name"] == "distribution"
    assert link(shown)["marks"] == "off"
    assert not listed(shown)
    assert "Events" not in shown.get_by_key("below").options
    shown = page(full.path, trajectory=PAIR, end="2023-03-10T01:00Z")
    assert listed(shown) == ["No spread event of these legs in the window."]


def test_events_of_the_legs_are_listed_newest_first_and_each_opens_its_page(page, full):
    shown = page(full.path, trajectory=PAIR)
    assert "Spread events of these legs, newest first: 2." in texts(shown.caption)
    assert cells_of(shown, "legs_events")["closed-one"] == {
        "type": "spread.closed",
        "time (UTC)": "03-10 08:40",
        "legs": "COINBASE.spot → KRAKEN.spot",
        "peak (bps)": "148.9",
    }
    shown.session_state["legs_events_opened"] = "closed-one"
    shown.run()
    assert [title.value for title in shown.header] == ["Events"]
    assert shown.query_params["event"] == "closed-one"
    assert not shown.warning


def test_the_list_of_events_says_how_many_more_there_are(page, full):
    rows = [(f"more-{minute}", "spread.opened", minute, "open", 1.0) for minute in range(20)]
    edge = Edge(served_at=SERVED_AT, delay_s=30, retention_s=None, step_s=0)
    with loading(full) as batch:
        batch.add_documents(EventLog(EventFamily.SPREAD), documents(*rows), WHOLE, edge)
    shown = page(full.path, trajectory=PAIR)
    assert "Spread events of these legs, newest first: 10 of 22." in texts(shown.caption)
    assert len(cells_of(shown, "legs_events")) == 10


def test_events_are_shaded_and_listed_as_far_as_their_own_log_is_known(page, full):
    later = SERVED_AT + 3600
    edge = replace(EDGE, served_at=later)
    bring(full, PAIR, spread_rows().clear(), Interval(SERVED_AT, later), edge)
    shown = page(full.path, trajectory=PAIR, start="2023-03-10T08:00Z", end="2023-03-10T11:00Z")
    spans = [
        (shape["x0"][11:], shape["x1"][11:]) for shape in figures(shown)[0]["layout"]["shapes"]
    ]
    assert spans == [("08:20", "08:40:00"), ("09:50", "09:59:30")]
    words = "Not loaded yet: spread events from 2023-03-10 09:59:30 UTC on."
    assert words in texts(shown.caption)


def listed(shown):
    return [text for text in texts(shown.caption) if "of these legs" in text]


def test_a_threshold_is_drawn_and_a_size_is_in_the_link_where_it_is_not_the_usual_one(page, held):
    shown = page(held.path, trajectory=PAIR)
    assert shown.get_by_key("marks").disabled
    assert not listed(shown)
    shown.get_by_key("threshold").set_value(2.0).run()
    assert "threshold" in figures(shown)[0]["data"][-1]["name"]
    shown = page(held.path, trajectory=PAIR, size="2500")
    assert shown.query_params["size"] == "2500"
    assert "size" not in page(held.path, trajectory=PAIR).query_params


def test_a_store_without_trajectories_says_how_to_load_one(page, bare):
    shown = page(bare.path)
    (says,) = texts(shown.info)
    assert "has no prices and no spreads yet" in says
    assert "rail sync" in shown.code[0].value


def test_the_trajectories_of_the_symbols_of_the_bar_are_offered_and_the_open_one(page, held):
    other = "ETH_USD:KRAKEN.spot"
    bring(held, other, price_rows())
    shown = page(held.path, trajectory=PAIR, symbols="ETH_USD")
    assert shown.selectbox(key="trajectory").options == [other, PAIR]
    shown.get_by_key("symbols").set_value([]).run()
    assert shown.selectbox(key="trajectory").options == [LEG, other, PAIR]


def test_a_zoom_is_at_least_ten_seconds_of_whole_ones_and_else_all_of_the_window():
    other = ([], [1, 2], [None, None], ["2026-11-20"], ["2026-11-20", "2026-11-21", "2026-11-22"])
    ends = (
        ["2026-11-21", "2026-11-20"],
        ["1969-01-01", "2026-11-20"],
        ["2026-11-20", "9999-12-31"],
    )
    for sent in (*other, *ends):
        assert read_range(sent, "America/New_York") is None
    sent = ["2026-11-20 00:00:00.9", "2026-11-20 00:00:01.1234567"]
    assert read_range(sent, "UTC") == Interval(1_795_132_800, 1_795_132_810)
    sent = ["1970-01-01 09:00:00.5", "1970-01-01 09:01:10.25"]
    assert read_range(sent, "Asia/Tokyo") == Interval(0, 71)


def test_a_link_shows_any_two_prices_that_are_held_also_where_one_has_no_row(page, held):
    other = "BTC_USD:COINBASE.spot"
    pair = f"pair/{LEG}/{other}"
    shown = page(held.path, trajectory=pair)
    assert any("is not in this store" in each.value for each in shown.warning)
    bring(held, other, price_rows())
    shown = page(held.path, trajectory=pair)
    assert not shown.warning
    assert shown.selectbox(key="trajectory").value == pair
    assert shown.query_params["trajectory"] == pair
    assert "coverage" in [each.label for each in shown.metric]
    assert "Coverage" not in shown.get_by_key("below").options
    shown.selectbox(key="trajectory").set_value(LEG).run()
    assert not shown.exception
    assert pair not in page(held.path, trajectory=LEG).selectbox(key="trajectory").options
    assert not page(held.path, trajectory=pair, start="2020-01-01", end="2020-01-02").metric


def test_a_pair_of_other_coins_or_without_its_fx_leg_is_not_held(page, held):
    for key in (f"pair/{LEG}/ETH_USD:KRAKEN.spot", f"pair/{LEG}/BTC_USDT:KRAKEN.spot", "pair/BTC"):
        shown = page(held.path, trajectory=key)
        assert any("is not in this store" in each.value for each in shown.warning)
