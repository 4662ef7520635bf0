"""When events became known: one row per opening, in the trajectory it was seen in."""

from __future__ import annotations

import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.events.documents import detections

BUY, SELL = ("X", "spot"), ("Y", "futures")


def document(family, kind, event_id, ts, *, sell=(None, None), size=2.0):
    return {
        "family": family,
        "event_id": event_id,
        "event_type": f"{family}.{kind}",
        "lifecycle": None,
        "symbol": "A_USDT",
        "ts": ts,
        "buy_exchange": BUY[0],
        "buy_market": BUY[1],
        "sell_exchange": sell[0],
        "sell_market": sell[1],
        "magnitude_pct": size,
    }


def frame(*documents):
    return pl.DataFrame(documents, infer_schema_length=None)


def test_each_family_is_looked_for_in_its_own_trajectory():
    found = detections(
        frame(
            document("spread", "opened", "s1", 30, sell=SELL),
            document("funding", "opened", "f1", 20, sell=SELL),
            document("splash", "dump", "p1", 10),
            document("splash", "pump", "p2", 40),
        )
    )
    assert found.select("trajectory", "ts", "direction").rows() == [
        ("A_USDT:X.spot", 10, -1.0),
        ("funding/A_USDT:X.spot:Y.futures", 20, 1.0),
        ("A_USDT:X.spot:Y.futures", 30, 1.0),
        ("A_USDT:X.spot", 40, 1.0),
    ]


def test_updates_closes_and_copies_are_no_detections_and_an_event_may_open_again():
    documents = [
        document("spread", "opened", "s1", 10, sell=SELL, size=1.0),
        document("spread", "opened", "s1", 10, sell=SELL, size=1.0),
        document("spread", "updated", "s1", 20, sell=SELL, size=9.0),
        document("spread", "closed", "s1", 30, sell=SELL),
        document("spread", "closed", "s2", 35, sell=SELL),
        document("spread", "opened", "s1", 40, sell=SELL, size=3.0),
    ]
    assert detections(frame(*documents)).select("ts", "size").rows() == [(10, 1.0), (40, 3.0)]


def test_a_spread_event_without_its_second_leg_is_left_out():
    assert detections(frame(document("spread", "opened", "s1", 10))).is_empty()


def test_a_frame_of_something_else_is_refused():
    with pytest.raises(InputError, match="event_id"):
        detections(pl.DataFrame({"ts": [1]}))
