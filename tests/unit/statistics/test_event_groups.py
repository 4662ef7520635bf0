"""Groups, detections, losses and parts of event documents, by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from toolkit.errors import InputError
from toolkit.statistics import events
from toolkit.statistics.core.categories import in_order
from toolkit.statistics.events.documents import detections
from toolkit.statistics.events.exposure import BEFORE_S, with_groups, with_losses
from toolkit.statistics.events.lifecycles import whole_events


def lives(sizes, legs="X.spot → Y.spot", opened=0):
    frame = pl.DataFrame({"size": sizes}, schema={"size": pl.Float64})
    return frame.with_columns(t_open=pl.lit(opened, pl.Int64), legs=pl.lit(legs, pl.String))


def band(size: float) -> float:
    """Find the band by exact fractions, one step at a time."""
    edges = [Fraction(step) * Fraction(10) ** power for power in range(-4, 6) for step in (1, 2, 5)]
    below = [edge for edge in edges if float(edge) <= abs(size)]
    return float(below[-1]) if below else 0.0


def test_a_band_begins_at_one_two_or_five_of_each_power_of_ten():
    rng = np.random.default_rng(7)
    exact = [step * 10.0**power for power in range(-4, 5) for step in (1, 2, 5)]
    sizes = [*exact, *(10 ** rng.uniform(-6, 5, 2_000)), -3.0, 0.0, 0.2, 0.3, 1_000.0]
    found = with_groups(lives(sizes))["size_from"].to_list()
    assert found == [band(size) for size in sizes]


def test_without_a_size_there_is_no_band():
    assert with_groups(lives([None, 2.0]))["size_from"].to_list() == [None, 2.0]
    assert with_groups(lives([])).is_empty()


def test_both_exchanges_are_one_group_in_any_order():
    legs = [
        "X.spot → Y.spot",
        "Y.futures → X.spot",
        "X.spot → X.futures",
        "X.spot",
        None,
        "A.B.dex",
    ]
    frame = pl.DataFrame({"legs": legs, "t_open": [0, 3_600, 86_399, 86_400, None, 7_200]})
    found = with_groups(frame.with_columns(size=pl.lit(None, pl.Float64)))
    assert found["exchange"].to_list() == ["X + Y", "X + Y", "X", "X", None, "A.B"]
    assert found["hour"].to_list() == [0, 1, 23, 0, None, 2]


def test_a_column_that_is_missing_is_named():
    with pytest.raises(InputError, match="legs"):
        with_groups(lives([1.0]).drop("legs"))


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


OPENED, CLOSED, KNOWN = 100_000, 100_600, 200_000
SPREAD = {
    "family": "spread",
    "symbol": "A_B",
    "legs": "X.spot → Y.futures",
    "since": OPENED,
    "t_close": CLOSED,
    "known_until": KNOWN,
}


def near(lost, life=SPREAD, status="lost"):
    rows = [(*each, status) for each in lost]
    columns = ["stream", "start_ts", "end_ts", "cause", "status"]
    schema = dict(zip(columns, [pl.String, pl.Int64, pl.Int64, pl.String, pl.String], strict=True))
    types = {"symbol": pl.String, "legs": pl.String, "t_close": pl.Int64}
    lives = pl.DataFrame([life], schema_overrides=types)
    return with_losses(lives, pl.DataFrame(rows, schema, orient="row"))["near_lost"][0]


@pytest.mark.parametrize(
    ("start", "end", "is_near"),
    [
        (OPENED - BEFORE_S - 60, OPENED - BEFORE_S, True),
        (OPENED - BEFORE_S - 60, OPENED - BEFORE_S - 1, False),
        (OPENED + 60, OPENED + 120, True),
        (CLOSED, CLOSED + 60, True),
        (CLOSED + 1, CLOSED + 60, False),
        (0, KNOWN, True),
    ],
)
def test_a_loss_is_near_from_an_hour_before_the_event_to_its_close(start, end, is_near):
    why = near([("A_B:X.spot", start, end, "no answer")])
    assert why == ("no answer" if is_near else None)


def test_an_event_that_is_still_open_lasts_until_the_log_is_known():
    lost = [("A_B:X.spot", KNOWN - 60, KNOWN, "no answer")]
    assert near(lost) is None
    assert near(lost, SPREAD | {"t_close": None}) == "no answer"


@pytest.mark.parametrize(
    ("stream", "counts"),
    [
        ("A_B:X.spot", True),
        ("A_B:Y.futures", True),
        ("A_B:Y.futures:X.spot", True),
        ("A_B:Y.spot", False),
        ("C_B:X.spot", False),
        ("A_B:X.spot:Z.spot", False),
        ("funding/A_B:X.spot:Y.futures", False),
    ],
)
def test_the_rows_are_those_of_the_events_own_legs(stream, counts):
    assert (near([(stream, OPENED, CLOSED, "no answer")]) is not None) == counts


def test_funding_events_take_losses_of_funding_and_splashes_have_one_leg():
    funding = SPREAD | {"family": "funding"}
    assert near([("A_B:X.spot", OPENED, CLOSED, "no answer")], funding) is None
    assert near([("funding/A_B:X.spot:Y.futures", OPENED, CLOSED, "late")], funding) == "late"
    splash = SPREAD | {"family": "splash", "legs": "X.spot"}
    assert near([("A_B:X.spot", OPENED, CLOSED, "no answer")], splash) == "no answer"
    assert near([("A_B:X.spot:Y.futures", OPENED, CLOSED, "no answer")], splash) is None


def test_the_first_reason_counts_and_other_gaps_and_unnamed_legs_do_not():
    lost = [("A_B:X.spot", OPENED + 60, OPENED + 90, "b"), ("A_B:X.spot", OPENED, OPENED + 30, "a")]
    assert near(lost) == "a"
    assert near(lost, status="open") is None
    assert near(lost, SPREAD | {"legs": None}) is None
    assert near(lost, SPREAD | {"symbol": None}) is None
    assert near([]) is None


def test_the_rows_keep_their_order_and_their_number():
    lives = pl.DataFrame([SPREAD | {"since": since} for since in (OPENED, 5, OPENED + 1)])
    row = ("A_B:X.spot", OPENED, OPENED + 60, "a", "lost")
    columns = ["stream", "start_ts", "end_ts", "cause", "status"]
    gaps = pl.DataFrame([row, row], columns, orient="row")
    found = with_losses(lives, gaps)
    assert found.drop("near_lost").equals(lives)
    assert found["near_lost"].to_list() == ["a", "a", "a"]


def _documents(count: int) -> pl.DataFrame:
    rng = np.random.default_rng(20261126)
    kinds = ["spread.opened", "spread.updated", "spread.closed"]
    ts = np.sort(rng.integers(0, 50_000, count))
    return pl.DataFrame(
        {
            "family": ["spread"] * count,
            "event_id": [f"e{number}" for number in rng.integers(0, count // 3, count)],
            "event_type": rng.choice(kinds, count).tolist(),
            "lifecycle": pl.Series([None] * count, dtype=pl.String),
            "ts": ts,
            "ts_ms": 1000 * ts,
            "arrival": np.arange(count),
            "magnitude_pct": rng.exponential(size=count),
        }
    )


def test_parts_split_no_event_lose_no_document_and_keep_their_order():
    documents = _documents(3_000)
    parts = list(whole_events(documents.iter_slices(500), "event_id", 100))
    assert len(parts) > 10
    assert max(part.height for part in parts) < 3_000 / 5
    assert all(part["arrival"].is_sorted() for part in parts)
    assert pl.concat(parts).sort("arrival").equals(documents)
    of_part = pl.concat(part.select("event_id").unique() for part in parts)
    assert not of_part["event_id"].is_duplicated().any()


def test_a_log_of_several_parts_has_the_lifecycles_that_its_events_have_one_by_one():
    log = pl.concat(
        [_documents(300_000), _documents(900).with_columns(event_id="few-" + pl.col("event_id"))]
    )
    found = events.lifecycles(log, 0, 60_000, magnitude="magnitude_pct")
    few = log.filter(pl.col("event_id").str.starts_with("few-"))
    alone = events.lifecycles(few, 0, 60_000, magnitude="magnitude_pct")
    assert alone.height > 300
    assert found.filter(pl.col("event_id").str.starts_with("few-")).equals(alone)
    assert found.select("family", "event_id").equals(
        found.select("family", "event_id").sort("family", "event_id")
    )
    assert found["n"].sum() + found["n_duplicates"].sum() == log.height


def test_a_frame_given_is_left_as_it_was():
    log = _documents(100)
    before = log.clone()
    events.lifecycles(log)
    assert log.equals(before)
    arrivals = log.with_columns(arrived_ms=pl.col("ts_ms") + 5)
    events.channels({"archive": arrivals, "socket": arrivals})
    assert arrivals.drop("arrived_ms").equals(before)


def test_rows_sorted_some_at_a_time_with_words_kept_once_are_those_sorted_at_once():
    at = np.arange(70_000)
    rows = pl.DataFrame({"event": [f"e{number}" for number in at]}).with_columns(
        ts=pl.Series(at * 7 % 60_000),
        symbol=pl.Series(["C_D", "A_B", None]).gather(at % 3).cast(pl.Categorical),
        event_id="event",
        late=pl.when(pl.col("event") != "e9").then("event"),
        none=pl.lit(None, pl.Categorical),
    )
    expected = rows.cast({pl.Categorical: pl.String}).sort("ts", "event", descending=[True, False])
    found = in_order(rows.clone(), {"ts": True, "event": False}, as_words=True)
    assert_frame_equal(found, expected)
    assert found.head(0).equals(in_order(rows.clear(), {"ts": True}, as_words=True))
