"""What the page of events shows, in each state that a store can be in."""

from dataclasses import replace
from functools import partial

import polars as pl
import pytest
from scipy.stats import chi2

from tests.empty_store import empty_store
from toolkit.dashboard.link import page_file
from toolkit.dashboard.loads import loader_of
from toolkit.dashboard.settings import MAIN
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Source, Trajectory
from toolkit.store import Edge, Store
from toolkit.tables import BROUGHT, EVENT

from .conftest import EDGE, bring, loading
from .shown import figures, rows_of, sync, texts

START = 1_678_406_400  # 2023-03-10 00:00 UTC
HOUR = 3600
DAYS = 10
SERVED_AT = START + 24 * HOUR * DAYS
LAST = 24 * (DAYS - 1)
"""The hour at which the last 24 begin."""
OPENED = START + HOUR * (LAST + 1)
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
    store = empty_store(path, source)
    edge = Edge(served_at=SERVED_AT, delay_s=0, retention_s=None, step_s=0)
    names = [name for name in EVENT.names if name not in {"revision", *BROUGHT}]
    schema = {name: EVENT.schema[name] for name in names}
    frame = pl.DataFrame(events() if rows is None else rows, schema=schema)
    with loading(store, SERVED_AT) as batch:
        for family in families:
            mine = frame.filter(family=family.value)
            batch.add_documents(EventLog(family), mine, Interval(START, SERVED_AT), edge)
        if trajectory:
            minutes = pl.DataFrame(
                {
                    "ts": [OPENED + 60 * m for m in range(3)],
                    "buy_price": 100.0,
                    "sell_price": 101.0,
                    "spread_pct": 1.0,
                    "extra": pl.Series([None] * 3, dtype=pl.String),
                }
            )
            step = replace(EDGE, served_at=SERVED_AT)
            batch.add(PAIR, minutes, Interval(OPENED, OPENED + 180), step)
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("events") / "held.duckdb")


@pytest.fixture
def page(page_alone):
    """The page over a store, opened by a link with the given parameters."""
    return partial(page_alone, "events")


@pytest.fixture
def seen(seen_alone):
    """The same, run once for each link: for tests that read it alone."""
    return partial(seen_alone, "events")


def subtitle(shown, title):
    """What is behind the help sign beside a chart's title."""
    (words,) = (m.help for m in shown.markdown if m.value.startswith(f"**{title}"))
    return words.split("\n\n")


def listed(shown):
    """The rows of the list, what they show by heading."""
    columns = rows_of(shown, "events")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_it_opens_on_the_last_24_hours_with_kinds_timeline_and_list(seen, store):
    shown = seen(store)
    (timeline,) = figures(shown)
    assert [note["text"] for note in timeline["layout"]["annotations"]] == ["SIMULATED"]
    opened = ["spread (2)", "splash (1)", "funding (1)"]
    assert [bar["name"] for bar in timeline["data"][:3]] == opened
    assert [bar["name"] for bar in timeline["data"][3:]] == ["spread", "splash", "funding"]
    assert timeline["layout"]["yaxis"]["ticktext"] == ["BTC_USDT", "ETH_USDT"]
    assert "4 events, newest first." in texts(shown.caption)
    assert not shown.warning
    assert not shown.error
    kinds = rows_of(seen(store), "kinds")
    assert kinds["kind"] == ["spread", "pump", "funding"]
    assert kinds["events"] == ["2", "1", "1"]
    assert kinds["events per day"] == ["2.00", "1.00", "0.00"]
    assert kinds["median lifetime"] == ["2 h", "1 h", "–"]
    assert kinds["largest (bps)"] == ["246.9", "392.2", "20.0"]
    assert kinds["its symbol"] == ["BTC_USDT"] * 3
    rows = listed(seen(store))
    assert [row["symbol"] for row in rows] == ["BTC_USDT", "ETH_USDT", "BTC_USDT", "BTC_USDT"]
    assert rows[2] == {
        "kind": "spread",
        "opened at (UTC)": "03-19 01:00",
        "symbol": "BTC_USDT",
        "legs": "AURORA.spot → BOREAS.futures",
        "peak (bps)": "246.9",
        "duration": "2 h",
        "seen": "closed",
    }
    assert rows[0]["kind"] == "pump"
    assert rows[1]["duration"] == "at least 19 h"
    assert (rows[3]["peak (bps)"], rows[3]["duration"]) == ("20.0", "5 h")
    assert listed(seen(store))[-1]["opened at (UTC)"] == "03-18 23:00"


def test_a_choice_that_streamlit_forgot_is_made_again(page, store):
    shown = page(store)
    shown.session_state["event_rated"] = shown.session_state["event_ranked"] = None
    assert not shown.run().exception


def test_a_brushed_stretch_of_the_window_is_listed_measured_and_in_the_link(page, store, seen):
    zoom = "2023-03-19T00:30:00Z/2023-03-19T04:30:00Z"
    shown = page(store, zoom=zoom)
    assert [row["kind"] for row in listed(shown)] == ["spread", "funding"]
    assert rows_of(shown, "kinds")["kind"] == ["spread", "funding"]
    timeline = figures(shown)[0]
    assert timeline["layout"]["xaxis"]["range"] == ["2023-03-19 00:30", "2023-03-19 04:30"]
    assert timeline["layout"]["xaxis2"]["range"] == ["2023-03-19 00:00", "2023-03-20 00:00"]
    assert shown.query_params["zoom"] == zoom
    shown.get_by_key("events_zoom_out").click().run()
    assert "zoom" not in shown.query_params
    assert len(listed(shown)) == 4
    shown = seen(store, zoom="2023-03-01T00:00:00Z/2023-03-19T04:00:00Z")
    assert shown.query_params["zoom"] == "2023-03-19T00:00:00Z/2023-03-19T04:00:00Z"
    assert "zoom" not in seen(store, zoom="2023-03-01T00:00:00Z/2023-03-02T00:00:00Z").query_params


@pytest.mark.parametrize(
    ("params", "ids"),
    [
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
def test_a_link_filters_what_is_shown(seen, store, params, ids):
    shown = seen(store, **params)
    assert len(listed(shown)) == ids
    assert not shown.warning
    for name, value in params.items():
        assert shown.query_params[name] == value


def test_a_filter_is_named_in_the_charts_and_kept_in_the_link(page, store):
    shown = page(store)
    shown.get_by_key("event_family").set_value(["spread"]).run()
    shown.get_by_key("event_symbol").set_value(["BTC_USDT"]).run()
    shown.get_by_key("event_measure").set_value("How long they live").run()
    assert subtitle(shown, "How long events last")[0] == "spread events, BTC_USDT"
    assert shown.query_params["family"] == "spread"
    assert shown.query_params["symbol"] == "BTC_USDT"
    shown.get_by_key("event_family").set_value([]).run()
    assert "family" not in shown.query_params


def test_a_link_that_cannot_be_followed_says_why(seen, store):
    shown = seen(store, event="nobody", symbol="NOPE", state="asleep", window="a while")
    warnings = texts(shown.warning)
    says = [
        ("event=nobody", "not in the stored events"),
        ("symbol=NOPE", "leaves it out"),
        ("state=asleep", "any, open, over", "takes any instead"),
        ("window=a while", "24 hours, 7 days", "takes 24 hours instead"),
    ]
    assert len(warnings) == len(says)
    for each in says:
        assert any(all(words in warning for words in each) for warning in warnings), each
    assert len(figures(shown)) == 1


def test_what_was_wrong_with_a_filter_is_forgotten_when_one_is_chosen(page, store):
    shown = page(store, symbol="NOPE")
    assert len(shown.run().warning) == 1
    shown.get_by_key("event_state").set_value("over").run()
    assert not shown.warning


def test_an_event_of_a_link_has_transitions_documents_and_neighbours_and_closes(page, store):
    shown = page(store, event="s1")
    (head,) = [text for text in texts(shown.markdown) if "spread.opened" in text]
    assert "`BTC_USDT` `AURORA.spot → BOREAS.futures`" in head
    words = (
        "Opened **2023-03-19 01:00 UTC**, lasted **2 h**, peak **2.500 %** (246.9 bps), **closed**"
    )
    assert words in head
    transitions = rows_of(shown, "transitions")
    assert transitions["type"] == ["spread.opened", "spread.updated", "spread.closed"]
    assert transitions["time (UTC)"][0] == "2023-03-19 01:00:00.250"
    assert transitions["peak so far (%)"] == ["1.500", "2.500", "2.500"]
    assert transitions["close reason"][-1] == "converged"
    assert any('"pct": 2.500000000000000000001' in text for text in texts(shown.code))
    shown.session_state["transitions_opened"] = "0"
    shown.run()
    assert any('"pct": 1.500000000000000000001' in text for text in texts(shown.code))
    assert not any('"pct": 2.5' in text for text in texts(shown.code))
    assert shown.get_by_key("event_step_p").disabled
    shown.get_by_key("event_step_n").click().run()
    assert shown.query_params["event"] == "s2"
    assert shown.get_by_key("event_step_n").disabled
    shown.get_by_key("event_step_p").click().run()
    assert shown.query_params["event"] == "s1"
    shown.get_by_key("event_close").click().run()
    assert "event" not in shown.query_params
    assert not rows_of(shown, "transitions")
    assert len(listed(shown)) == 4


def test_an_event_outside_the_window_is_found_and_times_are_in_the_links_zone(seen, store):
    shown = seen(store, event="old")
    assert any(
        "Opened **2023-03-10 05:00 UTC**, lasted **1 h**" in t for t in texts(shown.markdown)
    )
    assert not shown.warning
    shown = seen(store, timezone="Asia/Tokyo", clock="Asia/Tokyo", event="s1")
    assert listed(shown)[2]["opened at (Asia/Tokyo)"] == "03-19 10:00"
    assert any("2023-03-19 10:00 Asia/Tokyo" in text for text in texts(shown.markdown))


@pytest.mark.parametrize("place", ["kinds", "events", "timeline"])
def test_a_row_and_a_bar_open_their_event(page, store, place):
    shown = page(store)
    shown.session_state[f"{place}_opened"] = "p1"
    shown.run()
    assert shown.query_params["event"] == "p1"
    assert any("splash.pump" in text for text in texts(shown.markdown))


def test_the_python_of_the_page_gives_its_rows(seen, store):
    shown = seen(store, symbol="ETH_USDT", exchange="CORONA", state="open", window="All")
    (lines,) = [text for text in texts(shown.code) if text.startswith("import polars")]
    names = {}
    exec(lines, names)
    names["rail"].close()
    assert names["lives"]["event_id"].to_list() == ["s2"]
    assert len(listed(shown)) == 1


def test_an_events_trajectory_that_is_not_held_says_what_loads_it(page, store):
    shown = page(store, event="s1")
    shown.button(key=f"event_{PAIR}").click().run()  # nobody answers at that address
    loader_of(store).wait()
    (says,) = texts(shown.run().error)
    around = ("--start", "2023-03-18T23:00Z", "--end", "2023-03-19T05:00Z")
    assert "failed" in says
    assert sync(store, str(PAIR), *around) in says


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
    assert sorted(row["seen"] for row in listed(shown)) == ["closed", "still open"]
    assert rows_of(shown, "transitions")["type"] == ["spread.opened", "spread.closed"]


def test_documents_that_do_not_say_what_became_of_their_event_are_counted(page, tmp_path):
    odd = [
        *events(),
        document("x", "sighed", LAST + 1, lifecycle=None),
        document("y", "opened", LAST + 1, event_type=None),
    ]
    shown = page(fill(tmp_path / "held.duckdb", odd))
    assert len(listed(shown)) == 4
    assert any(
        text.startswith("2 documents of unknown type are left out") for text in texts(shown.caption)
    )


def test_a_log_without_an_answer_is_named_with_the_button_that_loads_it(page, tmp_path):
    path = fill(tmp_path / "held.duckdb", families=[EventFamily.SPREAD])
    shown = page(path)
    assert "No splash and funding events are stored." in texts(shown.caption)
    assert shown.button(key="load_logs").label == "Load 7 days of them"
    assert len(listed(shown)) == 2


def test_no_documents_no_logs_and_no_store_each_say_what_to_do(page, tmp_path):
    shown = page(fill(tmp_path / "held.duckdb", []))
    assert figures(shown) == []
    assert shown.info[0].value.startswith("All events, all symbols: none from")
    assert shown.info[0].value.endswith("Choose a longer window, or clear the filters.")
    shown = page(empty_store(tmp_path / "empty.duckdb", SOURCE).path)
    assert "has no event log yet" in shown.info[0].value
    assert "Load 7 days of events" in [button.label for button in shown.button]
    assert "there is no store at" in texts(page(tmp_path / "nowhere.duckdb").error)[0]


LEG = Trajectory.parse("BTC_USDT:AURORA.spot")
PUMPED = START + HOUR * (LAST + 6)


def with_prices(path):
    """Add minutes of the leg's price, which jumps by 10 % and gives back half after 20 minutes."""
    ts = list(range(PUMPED - 2 * HOUR, PUMPED + 3 * HOUR, 60))
    price = [100.0 if t < PUMPED else 110.0 if t < PUMPED + 1_200 else 105.0 for t in ts]
    rows = {"ts": ts, "price": price, "mark_price": None, "volume": None, "extra": None}
    schema = {"mark_price": pl.Float64, "volume": pl.Float64, "extra": pl.String}
    frame = pl.DataFrame(rows, schema_overrides=schema)
    edge = replace(EDGE, served_at=SERVED_AT)
    bring(Store(path), LEG, frame, Interval(ts[0], ts[-1] + 60), edge)
    return path


def measured(shown, what):
    """Choose what is shown of one kind of event."""
    shown.get_by_key("event_measure").set_value(what).run()


def test_kinds_have_lives_and_rates_over_the_time_in_which_the_log_is_held(page, tmp_path):
    shown = page(fill(tmp_path / "held.duckdb"), window="7 days")
    kinds = rows_of(shown, "kinds")
    assert kinds["events"] == ["2", "1", "1"]
    assert kinds["still open"] == ["1", "0", "0"]
    assert kinds["median lifetime"][-1] == "5 h"
    assert "lifetime lower" not in kinds  # of one life nothing is known
    assert "What followed is measured on the prices of their legs" in shown.info[0].value
    (button,) = [each for each in shown.button if "with most pumps and dumps" in each.label]
    assert "BTC_USDT:AURORA.spot" in button.key
    lower, upper = chi2.ppf([0.025, 0.975], [4, 6]) / 2 / 7
    names = ("events per day", "per day lower", "per day upper")
    assert [kinds[name][0] for name in names] == ["0.29", f"{lower:.2f}", f"{upper:.2f}"]
    assert kinds["coverage"] == ["100.00 %"] * 3
    measured(shown, "How long they live")
    assert subtitle(shown, "How long events last")[0] == "spread events, all symbols"
    measured(shown, "How often by symbol")
    assert figures(shown)[1]["data"][0]["y"] == ["BTC_USDT", "ETH_USDT"]
    assert subtitle(shown, "How often events open")[2] == "n = 2 events of 2 groups, 2 shown"
    measured(shown, "Hours of the week")
    assert "**Events in each hour of the week (UTC)**" in texts(shown.markdown)
    shown.get_by_key("event_window").set_value("24 hours").run()
    assert len(figures(shown)) == 1  # a day has no hours of the week


def test_what_is_measured_is_chosen_and_kept(page, tmp_path):
    shown = page(fill(tmp_path / "held.duckdb"))
    assert "Hours of the week" not in shown.get_by_key("event_measure").options  # of one day
    assert len(figures(shown)) == 1
    measured(shown, "How often by legs")
    shown.get_by_key("event_rated").set_value("pump").run()
    league = figures(shown)[1]
    assert league["data"][0]["y"] == ["BTC_USDT AURORA.spot"]
    shown.get_by_key("event_family").set_value(["spread"]).run()
    league = figures(shown)[1]
    assert league["data"][0]["y"][0] == "BTC_USDT AURORA.spot<br>→ BOREAS.futures"


def test_events_of_one_state_have_no_rates_and_none_that_passes_says_what_to_do(seen, store):
    shown = seen(store, state="over")
    assert "events per day" not in rows_of(shown, "kinds")
    assert len(figures(shown)) == 1
    assert "Rates and lifetimes are shown for events in any state." in texts(shown.caption)
    shown = seen(store, family="splash", exchange="AURORA", state="open")
    assert figures(shown) == []
    words = "Splash events, all symbols, on AURORA, open: none from"
    assert shown.info[0].value.startswith(words)


def test_after_pumps_the_path_from_the_next_price_and_what_was_given_back_are_shown(page, tmp_path):
    path = with_prices(fill(tmp_path / "held.duckdb"))
    shown = page(path)
    assert "**Before and after the events**" in texts(shown.markdown)
    later = {metric.label: metric for metric in shown.metric}
    assert later["5 min later: median return (bps)"].value == "0.00"
    assert later["30 min later: median return (bps)"].value == "-465.20"
    assert "continued 0.00 %, median retraced 48.81 %, with price 1" in texts(shown.caption)
    shown = page(path, event="p1")
    around = figures(shown)[0]
    assert around["layout"]["shapes"][0]["x0"] == "2023-03-19 06:00"
    later = {metric.label: metric for metric in shown.metric}
    assert later["30 min later: return (bps)"].value == "-465.20"
    assert later["30 min later: return (bps)"].delta == "retraced 48.81 %"
    shown = page(path, family="spread")
    assert "After pumps and dumps" not in texts(shown.subheader)
    assert len(figures(shown)) == 1
