"""Which events are near a time that was lost at the source, and why."""

import polars as pl
import pytest

from toolkit.statistics.events.exposure import BEFORE_S, with_losses

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
