from __future__ import annotations

import math

import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.statistics.events import (
    LOOK_BACK_S,
    documents_window,
    event_lifecycles,
    lifecycles,
    survival,
)
from toolkit.statistics.survival import median_life

SCHEMA = {
    "family": pl.String,
    "event_id": pl.String,
    "event_type": pl.String,
    "lifecycle": pl.String,
    "ts": pl.Int64,
    "ts_ms": pl.Int64,
    "arrival": pl.Int64,
    "pct": pl.Float64,
}
STATES = {"closed": "closed", "faded": "closed"}


def documents(*told: tuple[str, str, float, float] | tuple[str, str, float]) -> pl.DataFrame:
    """Documents in the order given: event, type, second, and a magnitude where one matters."""
    rows = []
    for arrival, (event, event_type, at, *pct) in enumerate(told):
        family, _, last = event_type.partition(".")
        state = STATES.get(last, "open")
        rows.append(
            (family, event, event_type, state, int(at), round(1000 * at), arrival, *(pct or [None]))
        )
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def told(frame: pl.DataFrame, *columns: str, **options) -> list[tuple]:
    return lifecycles(frame, 0, 1000, **options).select(*columns).rows()


@pytest.mark.parametrize(
    ("options", "until"),
    [({}, 1000), ({"now": 400}, 400), ({"now": 400, "delay_s": 30}, 370), ({"now": 5000}, 1000)],
)
def test_an_event_that_is_still_open_is_censored_where_knowledge_ends(options, until):
    frame = documents(("a", "funding.opened", 100), ("a", "funding.updated", 200))
    columns = ("t_close", "duration_s", "observed", "kind", "lifecycle_reason", "known_until")
    assert told(frame, *columns, **options) == [(None, until - 100, 0, "open", "censored", until)]


def test_documents_younger_than_the_delay_do_not_shorten_what_is_open():
    frame = documents(("a", "spread.opened", 100), ("a", "spread.closed", 190))
    assert told(frame, "kind", "duration_s", now=210, delay_s=30) == [("open", 80.0)]
    assert told(frame, "kind", "duration_s", now=221, delay_s=30) == [("closed", 90.0)]


def test_a_close_without_an_opening_has_no_age():
    frame = documents(("a", "spread.updated", 5), ("a", "spread.closed", 10))
    columns = ("t_open", "t_close", "duration_s", "observed", "kind", "lifecycle_reason", "n")
    assert told(frame, *columns) == [(None, 10, None, 0, "orphan_close", "truncated", 2)]


def test_an_event_that_opened_before_the_window_and_closed_in_it_has_its_true_duration():
    frame = documents(("a", "spread.opened", 10), ("a", "spread.closed", 80))
    columns = ("t_open", "t_close", "duration_s", "kind")
    assert lifecycles(frame, 11, 1000).select(columns).rows() == [(10, 80, 70.0, "closed")]
    assert lifecycles(frame, 80, 1000).select(columns).rows() == [(10, 80, 70.0, "closed")]
    assert lifecycles(frame, 10, 80)["kind"].to_list() == ["open"]


def test_an_event_that_was_over_before_the_window_is_not_in_it():
    frame = documents(
        ("a", "spread.opened", 10),
        ("a", "spread.closed", 80),
        ("b", "spread.updated", 5),
        ("b", "spread.opened", 20),
        ("b", "spread.opened", 70),
        ("c", "spread.updated", 30),
    )
    found = lifecycles(frame, 81, 1000).select("event_id", "t_open", "kind").rows()
    assert found == [("b", 70, "open"), ("c", None, "orphan_update")]


def test_documents_from_before_the_look_back_change_nothing():
    close = LOOK_BACK_S + 500
    frame = documents(("a", "spread.opened", 10), ("a", "spread.closed", close))
    assert lifecycles(frame, LOOK_BACK_S + 10, close + 1)["kind"].to_list() == ["closed"]
    late = lifecycles(frame, LOOK_BACK_S + 11, close + 1)
    assert late["kind"].to_list() == ["orphan_close"]
    assert documents_window(Interval(LOOK_BACK_S + 10, close)) == Interval(10, close)


def test_a_pump_and_a_dump_of_one_symbol_are_told_apart_by_their_key():
    frame = documents(
        ("a", "splash.pump", 10),
        ("b", "splash.dump", 20),
        ("a", "splash.faded", 30),
        ("b", "splash.faded", 50),
    ).with_columns(symbol=pl.lit("BTC_USDT"))
    assert told(frame, "duration_s") == [(20.0,), (30.0,)]
    assert told(frame, "kind", key=("symbol",)) == [("reopened",), ("closed",), ("orphan_close",)]


def test_an_event_over_in_the_instant_it_opened_lasts_half_of_what_the_times_resolve():
    frame = documents(("a", "spread.opened", 10), ("a", "spread.closed", 10))
    assert told(frame, "duration_s", "zero_duration", "kind") == [(0.0005, True, "closed")]
    seconds = frame.with_columns(ts_ms=pl.lit(None, pl.Int64))
    assert told(seconds, "duration_s", "zero_duration", "kind") == [(0.5, True, "closed")]


def test_milliseconds_order_what_seconds_cannot_and_arrival_what_neither_can():
    frame = documents(("a", "spread.closed", 10.9), ("a", "spread.opened", 10.2))
    assert told(frame, "kind") == [("closed",)]
    seconds = frame.with_columns(ts_ms=pl.lit(None, pl.Int64))
    assert told(seconds, "kind") == [("orphan_close",), ("open",)]
    turned = seconds.with_columns(arrival=-pl.col("arrival"))
    assert told(turned, "kind") == [("closed",)]


def test_the_peak_is_the_magnitude_furthest_from_zero_with_its_sign():
    frame = documents(
        ("a", "spread.opened", 10, 1.5),
        ("a", "spread.updated", 20, -3.5),
        ("a", "spread.closed", 30, math.nan),
        ("b", "spread.opened", 30, None),
    )
    assert told(frame, "peak", "peak_reason", magnitude="pct") == [(-3.5, None), (None, "empty")]
    assert told(frame, "peak", "peak_reason") == [(None, "empty")] * 2


def test_a_type_that_is_not_known_is_read_by_its_lifecycle():
    frame = documents(
        ("a", "spread.opened", 10), ("a", "spread.widened", 20), ("a", "spread.gone", 30)
    ).with_columns(lifecycle=pl.Series(["open", "open", "closed"]))
    assert told(frame, "kind", "n_updates", "duration_s") == [("closed", 1, 20.0)]


def test_an_unknown_word_is_counted_kept_and_named():
    frame = documents(
        ("a", "spread.opened", 10),
        ("a", "spread.paused", 20),
        ("a", "spread.closed", 30),
        ("b", "spread.paused", 40),
    )
    frame = frame.with_columns(lifecycle=pl.lit("paused"))
    columns = ("event_id", "kind", "duration_s", "n", "n_updates", "n_unknown", "unknown_types")
    assert told(frame, *columns) == [
        ("a", "closed", 20.0, 3, 0, 1, "spread.paused"),
        ("b", "unknown", None, 1, 0, 1, "spread.paused"),
    ]


def test_a_close_stamped_before_its_opening_is_a_close_without_a_duration():
    """The opening arrived first; a clock that is behind stamped the close 3 s before it."""
    frame = documents(("a", "spread.opened", 100), ("a", "spread.closed", 97))
    columns = ("kind", "t_open", "t_close", "duration_s", "observed", "lifecycle_reason", "n")
    assert told(frame, *columns) == [("closed", 100, 97, None, 0, "clock_skew", 2)]
    apart = documents(("a", "spread.opened", 200), ("a", "spread.closed", 97))
    assert told(apart, "kind") == [("orphan_close",), ("open",)]
    in_order = documents(("a", "spread.closed", 97), ("a", "spread.opened", 100))
    assert told(in_order, "kind") == [("orphan_close",), ("open",)]


def test_a_ts_ms_that_disagrees_with_ts_is_counted_and_not_used():
    """With ts_ms an hour ahead the event had lasted less than no time."""
    frame = documents(("a", "spread.opened", 10), ("a", "spread.closed", 70)).with_columns(
        ts_ms=pl.Series([3_610_000, 70_000])
    )
    assert told(frame, "kind", "duration_s", "n_ts_differs") == [("closed", 60.0, 1)]
    alone = frame.head(1)
    assert told(alone, "kind", "duration_s", "n_ts_differs") == [("open", 990.0, 1)]


@pytest.mark.parametrize("column", ["family", "event_type", "ts", "arrival", "event_id"])
def test_a_document_without_what_identifies_it_is_refused(column):
    frame = documents(("a", "spread.opened", 10)).with_columns(
        pl.lit(None, SCHEMA[column]).alias(column)
    )
    with pytest.raises(InputError, match=f"a null {column}"):
        lifecycles(frame, 0, 100)


def test_a_wrong_question_is_refused():
    frame = documents(("a", "spread.opened", 10))
    with pytest.raises(InputError, match="key: 'symbol'"):
        lifecycles(frame, 0, 100, key=("symbol",))
    with pytest.raises(InputError, match="the columns that tell events apart"):
        lifecycles(frame, 0, 100, key=())
    with pytest.raises(InputError, match="delay_s"):
        lifecycles(frame, 0, 100, now=50, delay_s=-1)
    with pytest.raises(InputError, match="a start before its end"):
        lifecycles(frame, 50, 100, now=60, delay_s=30)


def test_the_hash_tells_keys_and_magnitudes_apart_and_not_windows():
    frame = documents(("a", "spread.opened", 10)).with_columns(symbol=pl.lit("x"))
    options = [{}, {"key": ("symbol",)}, {"magnitude": "pct"}, {"key": ("symbol", "event_id")}]
    hashes = {lifecycles(frame, 0, 100, **given)["params_hash"].item() for given in options}
    assert len(hashes) == 4
    assert lifecycles(frame, 5, 90, now=80)["params_hash"].item() in hashes


def hashed_documents(*told: tuple[str, float]) -> pl.DataFrame:
    """Documents of one spread without an id of its events, each of the size of its number."""
    texts = {"symbol": "A_B", "buy_exchange": "X", "buy_market": "spot"}
    texts |= {"sell_exchange": "Y", "sell_market": "spot", "lifecycle": None}
    return pl.DataFrame(
        [
            texts
            | {"family": "spread", "event_id": f"sha256:{n}", "event_type": f"spread.{kind}"}
            | {"ts": int(at), "ts_ms": round(1_000 * at), "arrival": n, "magnitude_pct": float(n)}
            for n, (kind, at) in enumerate(told)
        ],
        schema_overrides={"lifecycle": pl.String},
    )


def test_an_orphan_has_the_time_and_the_id_of_its_own_first_document() -> None:
    events = hashed_documents(
        ("opened", 10), ("closed", 40), ("closed", 5_000), ("opened", 5_050), ("closed", 5_090)
    )
    found = event_lifecycles(events, 4_000, 6_000)
    assert found.select("kind", "since", "event_id").rows() == [
        ("closed", 5_050, "sha256:3"),
        ("orphan_close", 5_000, "sha256:2"),
    ]


def test_two_events_of_one_second_have_each_their_own_id_and_size() -> None:
    events = hashed_documents(("opened", 10.1), ("closed", 10.2), ("opened", 10.5), ("closed", 12))
    found = event_lifecycles(events, 0, 100)
    assert found.select("event_id", "size", "t_close").rows() == [
        ("sha256:0", 0.0, 10),
        ("sha256:2", 2.0, 12),
    ]


def test_lives_of_events_whose_ids_were_made_are_null_and_say_why() -> None:
    told = [(kind, 100 * n + at) for n in range(12) for kind, at in (("opened", 0), ("closed", 40))]
    events = hashed_documents(*told, ("opened", 1_300))
    found = event_lifecycles(events, 0, 2_000)
    lives = {*found.select("kind", "duration_s", "observed", "lifecycle_reason").rows()}
    assert lives == {("closed", None, 0, "made_id"), ("open", None, 0, "made_id")}
    by_document = lifecycles(events, 0, 2_000)
    assert by_document["duration_s"].null_count() == by_document.height
    for row in (survival(found), median_life(found)):
        assert row.select("n_lives", "median_life_s", "median_life_reason").rows() == [
            (0, None, "made_id")
        ]
    curve = survival(found).row(0, named=True)
    assert {curve[f"median_life_{end}_reason"] for end in ("lower", "upper")} == {"made_id"}
    sent = events.with_columns(event_id=pl.Series([f"e{n // 2}" for n in range(25)]))
    both = event_lifecycles(pl.concat([sent, events.with_columns(symbol=pl.lit("C_D"))]), 0, 2_000)
    reasons = survival(both, ["symbol"]).select("symbol", "median_life_s", "median_life_reason")
    assert reasons.rows() == [("A_B", 40.0, None), ("C_D", None, "made_id")]
