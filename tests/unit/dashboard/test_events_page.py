"""What the page of events shows, in each state that a store can be in."""

from functools import partial

import polars as pl
import pytest

from toolkit.dashboard.navigation import page_file
from toolkit.dashboard.settings import MAIN
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Source, Trajectory
from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter
from toolkit.tables import EVENT

from .shown import figures, sync, texts

START = 1_678_406_400  # 2023-03-10 00:00 UTC
HOUR = 3600
DAYS = 10
SERVED_AT = START + 24 * HOUR * DAYS
LAST = 24 * (DAYS - 1)
"""The hour at which the last 24 begin."""
PAIR = Trajectory.parse("BTC_USDT:AURORA.spot:BOREAS.futures")
SOURCE = Source("simulated", "seed-7")


def document(event_id, kind, hour, *, family="spread", pct=1.0, **more):
    """One row of the event table, its document with more digits than a float keeps."""
    ts = START + int(HOUR * hour)
    told = {
        "family": family,
        "schema_id": f"svc.{family}.v1",
        "event_id": event_id,
        "event_type": f"{family}.{kind}",
        "ts_ms": 1000 * ts + 250,
        "ts": ts,
        "lifecycle": "closed" if kind in {"closed", "faded"} else "open",
        "symbol": "BTC_USDT",
        "buy_exchange": "AURORA",
        "buy_market": "spot",
        "sell_exchange": None if family == "splash" else "BOREAS",
        "sell_market": None if family == "splash" else "futures",
        "magnitude_pct": None if family == "funding" else pct,
        "peak_pct": pct if family == "spread" else None,
        "differential_pct_8h": pct if family == "funding" else None,
        "close_reason": "converged" if kind == "closed" else None,
        "document": f'{{"event_id":"{event_id}","pct":{pct}00000000000000000001,"ts":{ts}}}',
    }
    return told | more


def events():
    return [
        document("s1", "opened", LAST + 1, pct=1.5),
        document("s1", "updated", LAST + 2, pct=2.5),
        document("s1", "closed", LAST + 3, pct=2.5),
        document("s2", "opened", LAST + 5, symbol="ETH_USDT", sell_exchange="CORONA"),
        document("p1", "pump", LAST + 6, family="splash", pct=4.0),
        document("p1", "faded", LAST + 7, family="splash", pct=4.0),
        document("f1", "opened", LAST - 1, family="funding", pct=0.2),
        document("f1", "closed", LAST + 4, family="funding", pct=0.2),
        document("old", "opened", 5),
        document("old", "closed", 6),
    ]


def fill(path, rows=None, *, families=EventFamily, trajectory=False, source=SOURCE):
    store = Store(path)
    writer = StoreWriter(store)
    writer.bind(source)
    load = writer.start_load(LoadOrigin("http://127.0.0.1:1", SERVED_AT, None, "0.1.0"))
    edge = Edge(served_at=SERVED_AT, delay_s=0, retention_s=None, step_s=0)
    names = [name for name in EVENT.names if name not in {"revision", "load_id"}]
    schema = {name: EVENT.schema[name] for name in names}
    frame = pl.DataFrame(events() if rows is None else rows, schema=schema)
    batch = Batch()
    for family in families:
        mine = frame.filter(family=family.value)
        batch.add_documents(EventLog(family), mine, Interval(START, SERVED_AT), edge)
    if trajectory:
        minutes = pl.DataFrame(
            {
                "ts": [START + 60 * m for m in range(3)],
                "buy_price": 100.0,
                "sell_price": 101.0,
                "spread_pct": 1.0,
                "extra": pl.Series([None] * 3, dtype=pl.String),
            }
        )
        step = Edge(served_at=SERVED_AT, delay_s=0, retention_s=None, step_s=60)
        batch.add(PAIR, minutes, Interval(START, START + 180), step)
    writer.commit(load, batch)
    writer.finish_load(load, [])
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("events") / "held.duckdb")


@pytest.fixture
def page(page_alone):
    """The page over a store, opened by a link with the given parameters."""
    return partial(page_alone, "events")


def subtitle(figure):
    return figure["layout"]["title"]["subtitle"]["text"].split("<br>")


def listed(shown):
    (table,) = (t.value for t in shown.dataframe if "legs" in t.value.columns)
    return table


def test_it_opens_on_the_last_24_hours_with_timeline_list_and_activity(page, store):
    shown = page(store)
    timeline, activity = figures(shown)
    assert [bar["name"] for bar in timeline["data"]] == ["spread (2)", "splash (1)", "funding (1)"]
    assert subtitle(timeline)[:4] == [
        "all events, all symbols",
        "2023-03-19 00:00 to 2023-03-20 00:00 UTC",
        "n = 4 events",
        "1 still open (hatch /)",
    ]
    assert [bar["name"] for bar in activity["data"]] == ["spread (2)", "splash (1)", "funding (0)"]
    assert "4 events, newest first. –: not seen." in texts(shown.caption)
    assert not shown.warning
    assert not shown.error


def test_events_are_listed_newest_first_with_size_and_how_long_they_lasted(page, store):
    rows = listed(page(store)).to_dict("records")
    assert [row["symbol"] for row in rows] == ["BTC_USDT", "ETH_USDT", "BTC_USDT", "BTC_USDT"]
    assert rows[2] == {
        "": "Open",
        "opened (UTC)": "2023-03-19 01:00",
        "family": "spread",
        "symbol": "BTC_USDT",
        "legs": "AURORA.spot → BOREAS.futures",
        "peak": "+2.5 %",
        "lasted": "2 h",
        "seen": "closed",
    }
    assert rows[1]["lasted"] == "at least 19 h"
    assert (rows[3]["peak"], rows[3]["lasted"]) == ("+0.2 % per 8 h", "5 h")


def test_an_event_that_opened_before_the_window_is_seen_to_open(page, store):
    assert listed(page(store))["opened (UTC)"].to_list()[-1] == "2023-03-18 23:00"


@pytest.mark.parametrize(
    ("params", "ids"),
    [
        ({"family": "spread"}, 2),
        ({"family": "spread,splash"}, 3),
        ({"symbol": "ETH_USDT"}, 1),
        ({"exchange": "CORONA"}, 1),
        ({"exchange": "AURORA"}, 4),
        ({"state": "open"}, 1),
        ({"state": "over"}, 3),
        ({"window": "All"}, 5),
        ({"window": "7 days", "family": "funding", "state": "over"}, 1),
    ],
)
def test_a_link_filters_what_is_shown(page, store, params, ids):
    shown = page(store, **params)
    assert len(listed(shown)) == ids
    assert not shown.warning
    for name, value in params.items():
        assert shown.query_params[name] == value


def test_a_filter_is_named_in_the_charts_and_kept_in_the_link(page, store):
    shown = page(store)
    shown.get_by_key("event_family").set_value(["spread"]).run()
    shown.get_by_key("event_symbol").set_value(["BTC_USDT"]).run()
    assert subtitle(figures(shown)[0])[0] == "spread events, BTC_USDT"
    assert shown.query_params["family"] == "spread"
    assert shown.query_params["symbol"] == "BTC_USDT"
    shown.get_by_key("event_family").set_value([]).run()
    assert "family" not in shown.query_params


def test_nothing_that_passes_the_filter_says_what_to_do(page, store):
    shown = page(store, family="splash", state="open")
    (chart,) = figures(shown)
    words = chart["layout"]["annotations"][0]["text"].replace("<br>", " ")
    assert "Choose another window or filter" in words


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"event": "nobody"}, ["event=nobody", "does not hold", "rail sync events/spread"]),
        ({"symbol": "NOPE"}, ["symbol=NOPE", "leaves it out"]),
        ({"state": "asleep"}, ["state=asleep", "any, open, over", "takes any instead"]),
        ({"window": "a while"}, ["window=a while", "24 hours, 7 days", "takes 24 hours instead"]),
    ],
)
def test_a_link_that_cannot_be_followed_says_why(page, store, params, says):
    shown = page(store, **params)
    (warning,) = texts(shown.warning)
    for words in says:
        assert words in warning
    assert len(figures(shown)) == 2


def test_what_was_wrong_with_a_filter_is_forgotten_when_one_is_chosen(page, store):
    shown = page(store, symbol="NOPE")
    assert len(shown.run().warning) == 1
    shown.get_by_key("event_state").set_value("over").run()
    assert not shown.warning


def test_a_link_opens_one_event_with_its_transitions_and_its_documents(page, store):
    shown = page(store, event="s1")
    assert "spread `BTC_USDT`, `AURORA.spot → BOREAS.futures`" in texts(shown.subheader)
    assert "Event `s1`" in texts(shown.caption)
    assert "Opened **2023-03-19 01:00 UTC**, lasted **2 h**, peak **+2.5 %**, **closed**" in texts(
        shown.markdown
    )
    transitions = shown.dataframe[0].value
    assert transitions["transition"].to_list() == [
        "spread.opened",
        "spread.updated",
        "spread.closed",
    ]
    assert transitions["largest so far"].to_list() == ["+1.5 %", "+2.5 %", "+2.5 %"]
    assert transitions["close reason"].to_list()[-1] == "converged"
    assert transitions["ms"].to_list() == [250] * 3


def test_a_document_is_shown_to_its_last_digit(page, store):
    shown = page(store, event="s1")
    assert any('"pct": 2.500000000000000000001' in text for text in texts(shown.code))
    shown.get_by_key("event_document").set_value(0).run()
    assert any('"pct": 1.500000000000000000001' in text for text in texts(shown.code))
    assert not any('"pct": 2.5' in text for text in texts(shown.code))


def test_an_event_outside_the_window_is_found(page, store):
    shown = page(store, event="old")
    assert "Opened **2023-03-10 05:00 UTC**, lasted **1 h**, peak **+1 %**, **closed**" in texts(
        shown.markdown
    )
    assert not shown.warning


def test_closing_an_event_leaves_the_list(page, store):
    shown = page(store, event="s1")
    shown.get_by_key("event_close").click().run()
    assert "event" not in shown.query_params
    assert "Event `s1`" not in texts(shown.caption)
    assert len(listed(shown)) == 4


def test_an_events_trajectory_that_is_not_held_says_what_loads_it(page, store):
    around = ("--start", "2023-03-18T23:00:00Z", "--end", "2023-03-19T05:00:00Z")
    assert sync(store, str(PAIR), *around) in texts(page(store, event="s1").code)


def test_an_events_trajectory_that_is_held_is_a_click_away(page, tmp_path):
    path = fill(tmp_path / "both.duckdb", trajectory=True)
    shown = page(path, script=MAIN)
    shown.switch_page(page_file("events"))
    shown.query_params["event"] = "s1"
    shown.run()
    assert not shown.exception
    shown.get_by_key("event_way").click().run()
    assert not shown.exception
    assert shown.query_params["trajectory"] == PAIR.key
    assert shown.query_params["start"] == "2023-03-18T23:00Z"


def test_documents_without_an_id_of_their_event_are_told_apart_by_their_legs(page, tmp_path):
    hashed = [
        document("sha256:aa", "opened", LAST + 1),
        document("sha256:bb", "closed", LAST + 2),
        document("sha256:cc", "opened", LAST + 1, symbol="ETH_USDT"),
    ]
    shown = page(fill(tmp_path / "held.duckdb", hashed), event="sha256:bb")
    assert sorted(listed(shown)["seen"]) == ["closed", "still open"]
    assert shown.dataframe[0].value["transition"].to_list() == ["spread.opened", "spread.closed"]


def test_documents_that_do_not_say_what_became_of_their_event_are_counted(page, tmp_path):
    odd = [
        *events(),
        document("x", "sighed", LAST + 1, lifecycle=None),
        document("y", "opened", LAST + 1, event_type=None),
    ]
    shown = page(fill(tmp_path / "held.duckdb", odd))
    assert len(listed(shown)) == 4
    assert any(text.startswith("2 documents say neither") for text in texts(shown.caption))


def test_a_log_that_was_never_asked_for_is_named_with_what_loads_it(page, tmp_path):
    path = fill(tmp_path / "held.duckdb", families=[EventFamily.SPREAD])
    shown = page(path)
    load = sync(path, "events/splash", "events/funding")
    assert f"Never asked for: splash, funding; `{load}` loads them." in texts(shown.caption)
    assert len(listed(shown)) == 2


def test_logs_without_documents_say_what_to_do(page, tmp_path):
    shown = page(fill(tmp_path / "held.duckdb", []))
    (chart,) = figures(shown)
    assert "No events of all events" in chart["layout"]["annotations"][0]["text"]


def test_a_store_without_event_logs_says_how_to_load_them(page, tmp_path):
    empty = Store(tmp_path / "empty.duckdb")
    StoreWriter(empty).bind(SOURCE)
    shown = page(empty.path)
    assert "holds no event log yet" in shown.info[0].value
    logs = ("events/spread", "events/splash", "events/funding")
    assert texts(shown.code) == [sync(empty.path, *logs, service=None)]


def test_a_store_that_is_not_there_says_what_makes_one(page, tmp_path):
    (says,) = texts(page(tmp_path / "nowhere.duckdb").error)
    assert "there is no store at" in says


def test_times_are_in_the_links_zone(page, store):
    shown = page(store, timezone="Asia/Tokyo", clock="Asia/Tokyo", event="s1")
    assert listed(shown)["opened (Asia/Tokyo)"].to_list()[2] == "2023-03-19 10:00"
    assert any("2023-03-19 10:00 Asia/Tokyo" in text for text in texts(shown.markdown))


@pytest.mark.parametrize(("kind", "mark"), [("simulated", ["SIMULATED"]), ("live", [])])
def test_every_chart_is_marked_with_its_source(page, tmp_path, kind, mark):
    shown = page(fill(tmp_path / "held.duckdb", source=Source(kind, "x")))
    for chart in figures(shown):
        assert [note["text"] for note in chart["layout"].get("annotations", [])] == mark
