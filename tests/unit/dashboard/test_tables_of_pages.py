"""The pages' tables as pure functions: events counted, spreads filtered, coverage added up."""

from __future__ import annotations

import json
from functools import cache

import polars as pl
import pytest

from toolkit.dashboard.pages.health.tables import STATE_COLUMNS, coverage_lines, load_lines
from toolkit.dashboard.pages.overview.spreads import open_now
from toolkit.dashboard.pages.spreads.choice import shown_columns
from toolkit.dashboard.parts.event_tables import (
    count_events,
    document_columns,
    event_columns,
    newest_events,
    open_events,
)
from toolkit.dashboard.parts.spread_table import SpreadFilters, spread_lines
from toolkit.intervals import Interval
from toolkit.market import EventFamily
from toolkit.statistics.events import event_lifecycles
from toolkit.statistics.events.documents import identified
from toolkit.statistics.screening import spread_figures, with_q_values
from toolkit.statistics.spread.net_episodes import Level

A, B, C = (f"{symbol}:X.spot:Y.futures" for symbol in ("A_U", "B_U", "C_U"))


def events(*rows):
    names = ("family", "event_id", "event_type", "ts")
    frame = pl.DataFrame(rows, schema=list(names), orient="row")
    texts = ("lifecycle", "symbol", "buy_exchange", "buy_market", "sell_exchange", "sell_market")
    empty = {name: pl.lit(None, pl.String) for name in texts}
    frame = frame.with_columns(ts_ms=1000 * pl.col("ts"), **empty)
    return identified(frame.with_row_index("arrival"))


def test_an_event_counts_where_it_opened_once_per_lifecycle_over_its_logs_window():
    frame = events(
        ("spread", "a", "spread.opened", 5),
        ("spread", "a", "spread.closed", 15),
        ("spread", "b", "spread.opened", 10),
        ("spread", "b", "spread.opened", 12),
        ("splash", "c", "splash.dump", 19),
        ("splash", "d", "splash.pump", 20),
    )
    windows = dict.fromkeys(EventFamily, Interval(10, 20))
    found = count_events(frame, event_lifecycles(frame, 0, 30), windows)
    counts = {count.family: count[1:] for count in found}
    assert counts[EventFamily.SPREAD] == (2, 3, 1)  # b lost a close: two lifecycles, as in the list
    assert counts[EventFamily.SPLASH] == (1, 1, 0)
    assert counts[EventFamily.FUNDING] == (0, 0, 0)
    frame = events(("spread", "a", "spread.opened", 5), ("splash", "c", "splash.dump", 19))
    windows = {"spread": Interval(0, 10), "splash": Interval(10, 20)}
    found = count_events(frame, event_lifecycles(frame, 0, 30), windows)
    assert [count[:2] for count in found] == [("spread", 1), ("splash", 1)]


def test_each_of_the_newest_events_is_shown_by_its_newest_document_without_size_as_a_dash():
    frame = events(
        ("spread", "a", "spread.opened", 5),
        ("spread", "b", "spread.opened", 6),
        ("spread", "a", "spread.closed", 7),
    )
    found = newest_events(frame, 5)
    assert found.select("event_id", "event_type").rows() == [
        ("a", "spread.closed"),
        ("b", "spread.opened"),
    ]
    assert newest_events(frame, 1).height == 1
    found = events(("splash", "a", "splash.pump", 5))
    lifecycles = event_lifecycles(found, 0, 9)
    assert [column.texts[0] for column in document_columns(found, lifecycles, "UTC")][-2:] == [
        "–"
    ] * 2


def sized(*rows):
    """Documents of events by family, id, type, time and size."""
    frame = events(*(row[:4] for row in rows))
    return frame.with_columns(size=pl.Series([row[4] for row in rows], dtype=pl.Float64))


def test_a_list_has_the_peak_of_each_event_not_the_size_at_its_close():
    frame = sized(
        ("spread", "a", "spread.opened", 5, 1.2),
        ("spread", "a", "spread.updated", 6, 3.4),
        ("spread", "a", "spread.closed", 7, -0.01),
        ("funding", "f", "funding.opened", 8, -0.5),
        ("funding", "f", "funding.closed", 9, -0.1),
        ("splash", "odd", "splash.gone", 10, 2.0),
    )
    event, *_, peak = document_columns(
        newest_events(frame, 9), event_lifecycles(frame, 0, 20), "UTC"
    )
    assert list(zip(event.texts, peak.texts, peak.titles, strict=True)) == [
        ("splash.gone", "198.0", "2.000 %"),
        ("funding.closed", "-50.0", "-0.5000 % per 8 h"),
        ("spread.closed", "334.3", "3.400 %"),
    ]


def test_an_event_that_opened_again_has_the_peak_of_its_newest_life():
    frame = sized(
        ("spread", "a", "spread.opened", 5, 3.4),
        ("spread", "a", "spread.closed", 7, 0.1),
        ("spread", "a", "spread.opened", 9, 1.2),
    )
    newest = newest_events(frame, 9)
    # One heard after its log was last asked is in no lifecycle, nor in that which is over.
    for logs in (None, pl.DataFrame({"family": ["spread"], "known_until": [8]})):
        lifecycles = event_lifecycles(frame, 0, 20, logs=logs)
        assert document_columns(newest, lifecycles, "UTC")[-1].titles == ["1.200 %"]


def test_open_events_are_those_of_the_time_until_which_their_log_is_known():
    frame = sized(
        ("spread", "a", "spread.opened", 5, 1.0),
        ("spread", "a", "spread.closed", 30, 0.1),
        ("spread", "b", "spread.opened", 31, 1.0),
    )
    logs = pl.DataFrame({"family": ["spread"], "known_until": [20]})
    found = open_events(frame, event_lifecycles(frame, 0, 40, logs=logs), EventFamily.SPREAD)
    assert found.select("event", "ts", "t_open").rows() == [("a", 5, 5)]


def catalogue():
    return pl.DataFrame(
        {
            "stream": [A, B, C, "A_U:X.spot"],
            "kind": ["spread"] * 3 + ["price"],
            "last_ts": [540, 540, None, 540],
            "step_s": [60, None, None, 60],
            "served_at": [660, 660, 660, 660],
            "delay_s": [30, 0, 0, 0],
        }
    )


@cache
def lines(asked=(A, B, C), **measured):
    rows = pl.DataFrame(
        {
            "trajectory": [A] * 10 + [B],
            "ts": [*range(0, 600, 60), 540],
            "spread_log_bps": [*([5.0] * 9), -50.0, 7.0],
        }
    ).with_columns(spread_basis=pl.lit("legs", pl.Categorical))
    beyond = Level(absolute=True).measure(rows, 0, 600)
    recent = rows.group_by("trajectory").agg(recent="spread_log_bps")
    figures = with_q_values(spread_figures(rows, 0, 600)).with_columns(
        pl.lit(value).alias(name) for name, value in measured.items()
    )
    return spread_lines(catalogue(), figures, beyond, recent, asked=asked, now=1860)


def test_every_missing_number_of_a_spread_has_a_reason():
    found = lines()
    assert found["trajectory"].to_list() == [A, B, C]
    assert found["n"].to_list() == [10, 1, 0]
    assert found["age_s"].to_list() == [1260, 1320, None]
    assert found["notes"].to_list() == [
        "too few rows for a half-life",
        "too few rows for a half-life",
        "loaded, but no observation in the window",
    ]
    assert lines(asked=(A, B))["notes"][2] == "not loaded for the window"
    assert found["level_share"][0] == pytest.approx(60 / 600)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("several_speeds", "one speed beneath noise does not fit"),
        ("spikes_dominate", "more than half of the variance is that of a few spikes"),
        ("tests_disagree", "one test finds a return to the mean, another does not"),
    ],
)
def test_a_half_life_without_its_interval_says_so_in_the_notes(reason, words):
    bounds = {"half_life_upper_s": None, "half_life_upper_reason": reason}
    doubted = lines(half_life_s=60.0, half_life_reason=None, **bounds)
    assert doubted["notes"][0].startswith(f"half-life unreliable: {words}")
    missing = lines(half_life_s=None, half_life_reason=reason, **bounds)
    assert missing["notes"][0].startswith(f"no half-life: {words}")


def test_the_shown_table_has_units_and_no_zero_for_what_is_missing():
    columns = shown_columns(
        lines(), ["last", "above", "age", "recent"], {"above": "|spread| ≥ 20 bps"}, None
    )
    shown = {column.heading: list(column.values) for column in columns}
    assert shown["last spread (bps)"][2] is None
    assert shown["time, |spread| ≥ 20 bps"][0] == pytest.approx(0.1)
    assert shown["age"] == [1260, 1320, None]
    assert shown["24 h"][0][-1] == -50.0


LEAST = "spread_last_size_log_bps >= 50"


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (SpreadFilters(), [A, B, C]),
        (SpreadFilters(arguments={"exclude_symbols": ["A_U"]}), [B, C]),
        (SpreadFilters(arguments={"exchanges": ["X", "Y"]}), [A, B, C]),
        (SpreadFilters(arguments={"exchanges": ["Y"]}), []),
        (SpreadFilters(arguments={"types": ["spot/futures"]}), [A, B, C]),
        (SpreadFilters(arguments={"where": LEAST}), [A]),
        (SpreadFilters(arguments={"exclude_symbols": ["A_U"], "where": LEAST}), []),
        (SpreadFilters(sort="-n"), [A, B, C]),
        (SpreadFilters(sort="n"), [C, B, A]),
    ],
)
def test_filters_are_all_of_them_at_once(asked, kept):
    assert asked.applied(lines())["trajectory"].to_list() == kept


COVERAGE = pl.DataFrame(
    {
        "stream": ["A_U:X.spot"] * 4,
        "start_ts": [0, 50, 60, 90],
        "end_ts": [50, 60, 90, 100],
        "state": ["unrecoverable", "missing", "held", "not yet known"],
    }
)


def test_a_line_of_coverage_accounts_for_every_second_and_names_the_longest_gap():
    (line,) = coverage_lines(COVERAGE).to_dicts()
    assert [line[column] for column in STATE_COLUMNS.values()] == [30, 0, 10, 10, 50, 0]
    assert line["known_s"] == 100
    assert (line["gap_start"], line["gap_end"], line["gap_state"]) == (0, 50, "unrecoverable")
    whole = COVERAGE.filter(state="held")
    (line,) = coverage_lines(whole).to_dicts()
    assert line["gap_start"] is line["gap_state"] is None


def test_events_near_what_was_lost_have_a_column_with_the_reason_and_others_have_none():
    life = {"move": "pump", "family": "splash", "symbol": "A_B", "legs": "X.spot", "t_open": 0}
    seen = {"duration_s": 90.0, "kind": "closed", "peak": 1.0}
    lives = pl.DataFrame([{**life, **seen, "near_lost": why} for why in ("no answer", None)])
    named = {column.name: column.texts for column in event_columns(lives, "UTC")}
    assert named["near_lost"] == ["no answer", "–"]
    assert len(event_columns(lives.tail(1), "UTC")) == len(named) - 1


def test_a_load_says_how_long_it_took_what_it_brought_and_what_it_found():
    load = {
        "load_id": 1,
        "started_at": 100,
        "finished_at": 100,
        "finding": '[{"kind": "renamed"}, {"kind": "missing", "times": 3}]',
        "quota_left": 9,
        "quota": None,
    }
    loads = pl.DataFrame([load, load | {"load_id": 2, "finished_at": None, "finding": None}])
    rows = pl.DataFrame({"load_id": [1], "rows": [7], "asked_at": [90]})
    found = load_lines(loads, rows, now=9_000).to_dicts()
    assert (found[0]["took_s"], found[1]["took_s"]) == (0, None)
    assert found[0]["findings"] == "renamed (1×); missing (3×)"
    assert (found[0]["rows"], found[1]["rows"]) == (7, 0)
    assert (found[0]["quota_left"], found[1]["outcome"]) == (9, "stalled")


@pytest.mark.parametrize(
    ("asked_at", "now", "outcome"),
    [
        (None, 699, "running"),  # it began a moment ago
        (None, 700, "stalled"),
        (7_000, 7_599, "running"),  # a capture that began long ago and still asks
        (7_000, 7_600, "stalled"),
    ],
)
def test_a_load_without_an_end_is_running_while_it_asks(asked_at, now, outcome):
    load = {"load_id": 1, "started_at": 100, "finished_at": None, "finding": None}
    loads = pl.DataFrame([load | {"quota_left": None, "quota": None}])
    rows = pl.DataFrame({"load_id": [1], "rows": [7], "asked_at": [asked_at]})
    assert load_lines(loads, rows, now)["outcome"].to_list() == [outcome]


LIST_AT = 100_000
OLDER, NEWER = LIST_AT - 600, LIST_AT + 6_300
LEGS = {"buy_exchange": "X", "buy_market": "spot", "sell_exchange": "Y", "sell_market": "spot"}


def listed(*opened_at):
    item = {"symbol": "BTC_USD", **LEGS, "spread_pct": 1.0}
    return LIST_AT, json.dumps({"items": [item | {"opened_at": ts} for ts in opened_at]})


def logged(*opened):
    """Rows of `open_events`, by when each opened (None: not seen)."""
    rows = [
        {"symbol": f"S{number}_USD", **LEGS, "magnitude_pct": float(number), "t_open": ts}
        for number, ts in enumerate(opened)
    ]
    columns = dict.fromkeys(["symbol", *LEGS], pl.String)
    return pl.DataFrame(rows, schema=columns | {"magnitude_pct": pl.Float64, "t_open": pl.Int64})


def test_of_list_and_log_the_newer_one_that_is_understood_wins():
    found = open_now(listed(), logged(*[NEWER - 60] * 10), NEWER)
    assert (found.count, found.at, found.items) == ("10", NEWER, None)
    found = open_now(listed(), logged(*[OLDER - 60] * 10), OLDER)
    assert (found.count, found.at) == ("0", LIST_AT)
    assert found.items is not None
    odd = LIST_AT, json.dumps({"items": [{"symbol": "BTC_USD"}]})
    assert open_now(odd, logged(), OLDER).count == "not understood"
    assert open_now(odd, logged(OLDER), NEWER).count == "1"


def test_the_ages_of_a_log_end_where_its_own_answers_do_and_symbols_kept_are_counted():
    found = open_now(None, logged(NEWER - 120, None), NEWER)
    assert dict(zip(found.rows["symbol"], found.open_s, strict=True)) == {
        "S0_USD": 120,
        "S1_USD": None,
    }
    one = found.kept(lambda rows: rows.filter(symbol="S1_USD"))
    assert (one.count, one.rows["symbol"].to_list()) == ("1", ["S1_USD"])


def test_what_a_list_tracks_is_known_for_an_hour_beside_a_newer_log():
    soon = open_now(listed(None), logged(), LIST_AT + 600)
    assert (soon.items, soon.tracked["symbol"].to_list()) == (None, ["BTC_USD"])
    assert open_now(listed(None), logged(), NEWER).tracked.is_empty()
