"""What the page of a trajectory shows, in each state that a store can be in."""

import datetime as dt
import json
import subprocess
import sys

import duckdb
import pytest

from toolkit.market import Source
from toolkit.store import Store

LEG = "BTC_USD:KRAKEN.spot"
PAIR = "BTC_USD:COINBASE.spot:KRAKEN.spot"


def texts(elements):
    return [element.value for element in elements]


def march(day, hour=0):
    return dt.datetime(2023, 3, day, hour)  # noqa: DTZ001 - the page's calendar has no zones


def link(page):
    return {name: page.query_params[name] for name in ("trajectory", "start", "end")}


def figures(page):
    return [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]


def test_the_page_opens_on_the_first_trajectory_and_all_that_is_held(page, held):
    shown = page(held.path)
    assert shown.selectbox(key="trajectory").value == LEG
    assert shown.selectbox(key="trajectory").options == [LEG, PAIR]
    assert link(shown) == {
        "trajectory": LEG,
        "start": "2023-03-10T00:00Z",
        "end": "2023-03-10T10:00Z",
    }
    assert not shown.warning
    assert not shown.error


def test_a_link_opens_its_trajectory_and_its_window(page, held):
    shown = page(held.path, trajectory=PAIR, start="2023-03-10T01:00Z", end="2023-03-10T02:30:00Z")
    assert shown.selectbox(key="trajectory").value == PAIR
    assert shown.get_by_key("start").value == march(10, 1)
    chart, coverage = figures(shown)
    assert [line["name"] for line in chart["data"]] == [
        "buy COINBASE.spot",
        "sell KRAKEN.spot",
        "log spread, sell over buy",
    ]
    assert chart["layout"]["xaxis"]["range"] == ["2023-03-10 01:00", "2023-03-10 02:30"]
    assert "n = 90, coverage 100 %" in chart["layout"]["title"]["subtitle"]["text"]
    assert coverage["data"][0]["name"] == "held 100 %"
    assert "Every second of the window is held." in texts(shown.caption)
    assert not shown.warning


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"trajectory": "ETH_USD:KRAKEN.spot"}, ["ETH_USD", "does not hold", LEG]),
        ({"start": "yesterday"}, ["start=yesterday", "ISO 8601", "2023-03-10 00:00 UTC instead"]),
        ({"end": "1850-01-01"}, ["end=1850", "1970 and 2100", "2023-03-10 10:00 UTC instead"]),
        (
            {"start": "2023-03-10T09:00Z", "end": "2023-03-10T08:00Z"},
            ["is empty", "2023-03-10 00:00 UTC to 2023-03-10 10:00 UTC instead"],
        ),
        ({"start": "2023-03-10T01:00:30Z"}, ["whole minutes", "2023-03-10 01:00 UTC"]),
    ],
)
def test_a_link_that_cannot_be_followed_says_why_until_something_is_chosen(
    page, held, params, says
):
    shown = page(held.path, **params)
    (warning,) = texts(shown.warning)
    for words in says:
        assert words in warning
    assert len(figures(shown)) == 2
    assert len(shown.run().warning) == 1
    shown.selectbox(key="trajectory").select(PAIR).run()
    assert not shown.warning
    assert link(shown)["trajectory"] == PAIR


def test_what_a_link_says_is_shown_and_not_read_as_markup(page, held):
    shown = page(held.path, trajectory="![x](https://example.org/x.png)")
    assert "`trajectory=![x](https://example.org/x.png)`" in shown.warning[0].value


def test_choosing_a_window_keeps_the_link_up_to_date(page, held):
    shown = page(held.path)
    shown.get_by_key("start").set_value(march(10, 4)).run()
    assert link(shown)["start"] == "2023-03-10T04:00Z"
    assert shown.get_by_key("preset").value is None
    assert figures(shown)[0]["layout"]["xaxis"]["range"][0] == "2023-03-10 04:00"
    shown.get_by_key("preset").set_value("All").run()
    assert link(shown)["start"] == "2023-03-10T00:00Z"
    assert shown.get_by_key("start").value == march(10)


def test_a_link_that_changes_under_an_open_page_is_followed(page, held):
    shown = page(held.path)
    shown.query_params["start"] = "2023-03-10T05:00Z"
    shown.run()
    assert shown.get_by_key("start").value == march(10, 5)


def test_a_window_chosen_backwards_is_explained(page, held):
    shown = page(held.path)
    shown.get_by_key("start").set_value(march(11)).run()
    (warning,) = texts(shown.warning)
    assert "2023-03-11 00:00 UTC to 2023-03-10 10:00 UTC is empty" in warning
    assert figures(shown)[0]["layout"]["xaxis"]["range"][0] == "2023-03-10 00:00"


def test_a_window_without_rows_says_what_to_do(page, held):
    shown = page(held.path, start="2022-01-01", end="2022-01-02")
    chart, _ = figures(shown)
    assert f"rail sync {LEG}" in chart["layout"]["annotations"][0]["text"].replace("<br>", " ")
    assert not shown.metric


def test_statistics_stand_beside_their_n_and_coverage(page, held):
    shown = page(held.path, trajectory=PAIR)
    metrics = {metric.label: metric.value for metric in shown.metric}
    assert metrics["Observations"] == "539"
    assert metrics["Coverage"] == "90.33 %"
    assert metrics["Median"] == "2.00 log bps"
    captions = texts(shown.caption)
    assert "without a value: 1" in captions
    assert "longest gap 1 h 1 min" in captions
    assert "n = 539, coverage 90.33 %" in captions
    table = shown.dataframe[0].value
    half_life = table[table["statistic"] == "Half-life"].iloc[0]
    assert half_life["n"].endswith("pairs")


def test_a_statistic_that_cannot_be_had_is_a_dash_with_its_reason(page, held):
    shown = page(held.path, trajectory=PAIR, start="2023-03-10T00:00Z", end="2023-03-10T00:10Z")
    metrics = {metric.label: metric.value for metric in shown.metric}
    assert metrics["Half-life"] == "–"
    assert "too few observations for this statistic" in texts(shown.caption)
    table = shown.dataframe[0].value
    missing = table[table["value"] == "–"]
    assert set(missing["reason"]) == {"too few observations for this statistic"}


def test_gaps_are_listed_with_their_state(page, held):
    gaps = page(held.path).dataframe[1].value
    first = gaps.iloc[0].to_list()
    assert first == ["2023-03-10 03:20", "2023-03-10 04:20", "1 h", "empty"]
    assert "not yet known" in gaps["state"].to_list()


def test_rows_are_shown_newest_first(page, held):
    rows = page(held.path).dataframe[2].value
    assert rows.iloc[0]["time (UTC)"] == "2023-03-10 09:59"
    assert len(rows) == 540


def test_the_age_counts_from_the_services_clock(page, held):
    (age,) = (text for text in texts(page(held.path).caption) if "Newest row" in text)
    assert age.startswith("Newest row 1 min before the service's clock at the last sync; synced ")
    assert "As of 2023-03-10 10:00 UTC" in age


def test_the_browsers_zone_can_be_chosen_where_it_is_not_utc(page, held):
    shown = page(held.path, timezone="Asia/Tokyo")
    assert figures(shown)[0]["layout"]["xaxis"]["title"]["text"] == "time (UTC)"
    shown.get_by_key("clock").set_value("Asia/Tokyo").run()
    layout = figures(shown)[0]["layout"]
    assert layout["xaxis"]["title"]["text"] == "time (Asia/Tokyo)"
    assert layout["xaxis"]["range"][0] == "2023-03-10 09:00"
    assert shown.dataframe[2].value.iloc[0]["time (Asia/Tokyo)"] == "2023-03-10 18:59"
    assert link(shown)["start"] == "2023-03-10T00:00Z"
    with pytest.raises(KeyError):
        page(held.path, timezone="UTC").get_by_key("clock")


def test_simulated_data_is_announced_on_the_page_and_in_every_chart(page, make_store):
    shown = page(make_store(Source("simulated", "mini-1")).path, trajectory=PAIR)
    assert texts(shown.warning) == [
        "SIMULATED market, `mini-1`: no market ever showed these numbers."
    ]
    for figure in figures(shown):
        assert "SIMULATED" in [note["text"] for note in figure["layout"]["annotations"]]


def test_a_replay_is_named(page, held):
    assert texts(page(held.path).info) == ["Replay of recorded data, `depeg-77aa`."]


def test_a_live_source_is_named(page, make_store):
    assert "Live service, `rail`." in texts(page(make_store(Source("live", "rail")).path).caption)


def test_a_store_without_trajectories_says_how_to_load_one(page, tmp_path):
    store = Store(tmp_path / "empty.duckdb")
    store.bind(Source("live", "rail"))
    (says,) = texts(page(store.path).info)
    assert "holds no trajectory yet" in says
    assert "`rail sync" in says


def test_a_store_that_is_not_there_says_what_makes_one(page, tmp_path):
    (says,) = texts(page(tmp_path / "none.duckdb").error)
    assert "there is no store at" in says
    assert "rail sync" in says


def not_duckdb(path):
    path.write_text("trajectory,ts\n" * 1000)


def another_database(path):
    duckdb.connect(str(path)).execute("CREATE TABLE t (i INTEGER)").close()


@pytest.mark.parametrize("make", [not_duckdb, another_database])
def test_a_file_that_is_no_store_is_named(page, tmp_path, make):
    path = tmp_path / "other.duckdb"
    make(path)
    (says,) = texts(page(path).error)
    assert "other.duckdb" in says
    assert "not a store" in says


def test_a_store_that_another_process_keeps_open_says_which(page, held):
    program = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(held.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout.readline() == "open\n"
        shown = page(held.path)
        holder.communicate("\n")
        (says,) = texts(shown.error)
        assert f"held open by process {holder.pid}" in says
    shown.run()
    assert not shown.error
    assert len(figures(shown)) == 2
