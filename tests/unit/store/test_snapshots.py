"""Snapshots in the file: series of rows, and the answers rebuilt from them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import duckdb
import msgspec
import pytest

from toolkit.errors import InputError, UnknownTrajectoryError
from toolkit.intervals import Interval
from toolkit.market import SnapshotKind, SnapshotLog, Stream
from toolkit.store import Batch, Edge, Snapshot, Store
from toolkit.store.reading.snapshots import read_snapshots

from .conftest import ORIGIN, writer_of

PAIR = "snapshot-spread/BTC_USD:X.spot:Y.futures"
OTHER = "snapshot-spread/ETH_USD:X.spot:Y.futures"
LEG = "snapshot-funding/BTC_USD:X.futures"


def spread(symbol: str = "BTC_USD", pct: float = 1.5, **more: object) -> dict[str, object]:
    legs = {"buy_exchange": "X", "buy_market": "spot", "sell_exchange": "Y"}
    item = {"symbol": symbol, **legs, "sell_market": "futures", "spread_pct": pct}
    return item | {"opened_at": None} | more


def rate(value: float) -> dict[str, object]:
    leg = {"symbol": "BTC_USD", "exchange": "X", "market": "futures"}
    return leg | {"rate": value, "interval_hours": 8, "next_funding_time": 28_800}


@pytest.fixture
def poll(store: Store) -> Callable[..., int]:
    """Commits one answer under a load of its own, and returns the load's number."""
    writer = writer_of(store)

    def committed(at: int, answer: object, kind: str = "spread", period_s: int | None = None):
        log, batch = SnapshotLog.named(kind), Batch()
        document = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        batch.add_snapshot(Snapshot(log, at, document, period_s), Edge(at))
        load_id = writer.start_load(ORIGIN)
        writer.commit(load_id, batch)
        return load_id

    return committed


def test_an_answer_feeds_the_series_of_its_pairs_and_is_given_back(store: Store, poll) -> None:
    sent = [{"ts": t, "items": [spread("ETH_USD", t), spread(pct=1 / t, mood=t)]} for t in (60, 90)]
    for answer in sent:
        poll(answer["ts"], answer)
    poll(90, {"items": [rate(1e-4)]}, "funding")

    assert store.series(PAIR).select("ts", "spread_pct").rows() == [(60, 1 / 60), (90, 1 / 90)]
    assert store.series(LEG).row(0) == (LEG, 90, 1e-4, 8.0, 28_800)
    kept = store.snapshots("spread")
    assert [json.loads(each) for each in kept["document"]] == sent[::-1]
    assert store.snapshots("spread", Interval(0, 90))["served_at"].to_list() == [60]
    streams = store.catalogue().select("stream", "kind", "rows", "first_ts", "last_ts", "step_s")
    assert streams.rows() == [
        ("snapshot/funding", "snapshot", 1, 90, 90, None),
        ("snapshot/spread", "snapshot", 2, 60, 90, None),
        (LEG, "snapshot-funding", 1, 90, 90, None),
        (PAIR, "snapshot-spread", 2, 60, 90, 30),
        (OTHER, "snapshot-spread", 2, 60, 90, 30),
    ]


def test_a_window_of_answers_is_half_open_may_be_text_and_is_all_that_is_read(
    store: Store, poll
) -> None:
    for at in (0, 60, 120):
        poll(at, {"ts": at, "items": [spread(pct=at)]})
    with duckdb.connect(str(store.path)) as connection:
        # an answer that cannot be rebuilt: who reads it fails
        connection.execute("UPDATE snapshot SET document = 'no JSON' WHERE served_at = 120")

    kept = store.snapshots("spread", ("1970-01-01T00:01", "1970-01-01T00:02"))

    assert [json.loads(each)["ts"] for each in kept["document"]] == [60]
    with pytest.raises(InputError, match="a start before its end"):
        store.snapshots("spread", (60, 60))
    with pytest.raises(msgspec.DecodeError):
        store.snapshots("spread")


def test_items_are_not_kept_twice(store: Store, poll) -> None:
    poll(60, {"items": [spread()] * 1})
    with duckdb.connect(str(store.path), read_only=True) as connection:
        assert connection.execute("SELECT document, tracked FROM snapshot").fetchall() == [
            ('{"items":[]}', 1)
        ]


def test_of_two_answers_of_one_second_both_are_kept_and_the_later_one_is_read(
    store: Store, poll
) -> None:
    answers = [{"items": [spread(pct=pct)]} for pct in (1.0, 2.0)]
    loads = [poll(60, answer) for answer in answers]
    assert store.series(PAIR)["spread_pct"].to_list() == [2.0]
    kept = store.snapshots("spread").sort("load_id")
    assert kept["load_id"].to_list() == loads
    assert [json.loads(each) for each in kept["document"]] == answers
    assert store.polls("spread").rows() == [(60, None)]


def test_a_period_that_was_set_is_the_step_and_else_the_commonest_spacing(
    store: Store, poll
) -> None:
    for at in (0, 30, 60, 120):
        poll(at, {"items": [spread()]})
    assert store.polls("spread")["period_s"].to_list() == [30] * 4
    assert store.catalogue().filter(stream=PAIR)["step_s"].to_list() == [30]
    poll(180, {"items": []}, period_s=60)
    assert store.polls("spread")["period_s"].to_list() == [30, 30, 30, 30, 60]
    assert store.catalogue().filter(stream=PAIR)["step_s"].to_list() == [60]


def test_an_answer_that_is_no_list_is_kept_and_is_no_poll_that_was_answered(
    store: Store, poll
) -> None:
    poll(30, {"items": [spread()]})
    poll(60, b"<html>")
    poll(90, {"items": [{"pair": "BTC_USD"}]})
    poll(120, {"items": []})
    assert store.polls("spread")["ts"].to_list() == [30, 120]
    assert store.snapshots("spread")["document"].to_list()[2] == "<html>"


def test_a_series_is_held_around_each_answer_also_where_the_pair_is_not_tracked(
    store: Store, poll
) -> None:
    for at, shown in ((0, [spread()]), (30, []), (60, [spread()]), (180, [spread()])):
        poll(at, {"items": shown}, period_s=30)
    assert store.coverage(Stream.parse(PAIR), Interval(-30, 240)).rows() == [
        (-30, 0, "unrecoverable"),
        (0, 90, "held"),
        (90, 180, "unrecoverable"),
        (180, 210, "held"),
        (210, 240, "not yet known"),
    ]


def test_a_pair_that_was_never_shown_is_unknown_and_its_other_way_round_is_named(
    store: Store, poll
) -> None:
    poll(60, {"items": [spread()]})
    with pytest.raises(UnknownTrajectoryError, match=re.escape(PAIR)):
        store.series("snapshot-spread/BTC_USD:Y.futures:X.spot")
    with pytest.raises(InputError, match="snapshot-spread"):
        store.scan("snapshot", Interval(0, 90))
    rows = store.scan("snapshot-spread", Interval(0, 90)).collect()
    assert rows.select("trajectory", "ts").rows() == [(PAIR, 60)]


def test_the_view_has_the_log_spread(store: Store, poll) -> None:
    poll(60, {"items": [spread(buy_price=100.0, sell_price=101.0)]})
    found = store.sql("FROM snapshot_spreads SELECT trajectory, ts, spread_bps, spread_basis")
    assert found.row(0) == pytest.approx((PAIR, 60, 100.0, "legs"))


def test_of_many_answers_the_last_of_each_stretch_is_read_whole(store: Store, poll) -> None:
    for at in (0, 10, 59, 60, 130, 200):
        poll(at, {"items": [spread(spread_pct=float(at))]})
    with store.reading() as connection:
        found = read_snapshots(connection, SnapshotKind.SPREAD, Interval(10, 200), every_s=60)
    assert found["served_at"].to_list() == [130, 60, 59]
    items = [json.loads(document)["items"][0] for document in found["document"]]
    assert [item["spread_pct"] for item in items] == [130.0, 60.0, 59.0]
