"""What events would have paid: by walking through rows as they became known, and on decays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from toolkit.errors import InputError
from toolkit.statistics.events.positions import positions
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.spread import turned, with_spread

from .event_lives import lives

START, END, KNOWN_UNTIL = 10_000, 90_000, 80_000
KEYS = [f"A_B:X.spot:{leg}.spot" for leg in "YZ"]
LEGS = {key: f"X.spot → {key[-6:]}" for key in KEYS}
STRETCHES = [(0, 30_000), (34_000, 61_000), (65_000, 95_000)]
STALE_S = 100
FIGURES = ("entry_ts", "exit_ts", "gross_bps", "ended_by", "position_reason")


class Asked(NamedTuple):
    """What ends a position, and the stretches in which the log is held."""

    limit: int | None
    level: float | None
    late: int
    stretches: list[tuple[int, int]]


def events_of(rows: list[dict]) -> pl.DataFrame:
    """Lifecycles of one window from their opening, close, kind and trajectory."""
    lasted = [(row["t_close"] or KNOWN_UNTIL) - (row["t_open"] or 0) for row in rows]
    found = lives(
        lasted,
        [int(row["kind"] == "closed") for row in rows],
        opened=0,
        t_close=pl.Series([row["t_close"] for row in rows], dtype=pl.Int64),
        event=[f"event {number:03}" for number in range(len(rows))],
        symbol=["A_B"] * len(rows),
        legs=[LEGS.get(row["key"], "X.spot → W.spot") for row in rows],
    )
    edges = {"known_until": KNOWN_UNTIL, "window_start": START, "window_end": END}
    return found.with_columns(
        pl.Series("t_open", [row["t_open"] for row in rows], dtype=pl.Int64),
        pl.Series("kind", [row["kind"] for row in rows], dtype=pl.String),
        *(pl.lit(edge, pl.Int64).alias(name) for name, edge in edges.items()),
    )


def spreads_of(rng: np.random.Generator) -> pl.DataFrame:
    """Minutes of two spreads, of which some are absent, some null, and a stretch is missing."""
    parts = []
    for key in KEYS:
        ts = 60 * np.arange(1_600)
        kept = (rng.random(ts.size) > 0.1) & ~((ts > 40_000) & (ts < 43_000))
        values = 40 + np.cumsum(rng.normal(0, 6, ts.size)) % 80
        values = np.where(rng.random(ts.size) < 0.05, np.nan, values)
        frame = {"trajectory": key, "ts": ts[kept], "spread_log_bps": values[kept]}
        parts.append(pl.DataFrame(frame).with_columns(pl.col("spread_log_bps").fill_nan(None)))
    return pl.concat(parts)


def drawn(rng: np.random.Generator, count: int) -> list[dict]:
    """Events of every kind, some of a trajectory without rows, some that opened before."""
    rows = []
    for kind in rng.choice(["closed"] * 6 + ["open"] * 3 + ["reopened", "orphan_close"], count):
        opened = int(rng.integers(START - 4_000, KNOWN_UNTIL))
        lasted = int(np.exp(rng.normal(6, 1.5)))
        rows.append(
            {
                "kind": str(kind),
                "key": str(rng.choice([*KEYS, "A_B:X.spot:W.spot"])),
                "t_open": None if kind == "orphan_close" else opened,
                "t_close": opened + lasted if kind in ("closed", "orphan_close") else None,
            }
        )
    return rows


def never_taken(event: dict, known: list) -> str | None:
    if event["t_open"] is None or event["t_open"] < START:
        return "opened_before"
    if event["kind"] == "reopened":
        return "close_lost"
    return None if known else "no_rows"


def row_after(known: list, at: int, *, itself: bool = False) -> tuple[int, float] | None:
    """The first row known after a time, or also at the time itself, if that is soon enough."""
    first = next(((ts, value) for ts, value in known if ts > at or (itself and ts == at)), None)
    return first if first is not None and first[0] <= at + STALE_S else None


def possible_ends(event: dict, known: list, entered: int, asked: Asked) -> list:
    """What can end a position, with when, the first of equal times first."""
    ends = [] if event["t_close"] is None else [(event["t_close"] + asked.late, 0, "close")]
    if asked.level is not None:
        low = [ts for ts, value in known if ts > entered and value <= asked.level]
        ends += [(low[0] + asked.late, 1, "return")] if low else []
    return sorted(ends if asked.limit is None else [*ends, (entered + asked.limit, 2, "limit")])


def walked(event: dict, known: list, delay: int, asked: Asked) -> dict:
    """Take one event as somebody would who sees each row when it becomes known."""
    found = dict.fromkeys(FIGURES)
    opened, closed = event["t_open"], event["t_close"]
    entry = row_after(known, (opened or 0) + delay)
    entered = (opened or 0) + delay if entry is None else entry[0]
    reason = never_taken(event, known)
    if reason is None and closed is not None and closed + asked.late <= entered:
        reason = "closed_before"
    if reason or entry is None:
        return found | {"position_reason": reason or "no_entry"}
    found["entry_ts"] = entered
    if asked.level is not None and entry[1] <= asked.level:
        return found | {"position_reason": "returned_before"}
    ends = possible_ends(event, known, entered, asked)
    if closed is None:
        until = next((high for low, high in asked.stretches if low <= opened < high), opened)
        if not ends or ends[0][0] > min(until, KNOWN_UNTIL) + asked.late:
            return found | {"position_reason": "log_gap" if until < KNOWN_UNTIL else "open"}
    end, _, way = ends[0]
    leave = row_after(known, end, itself=way != "close")
    if leave is None:
        return found | {"position_reason": "no_exit"}
    return found | {"exit_ts": leave[0], "gross_bps": entry[1] - leave[1], "ended_by": way}


@pytest.mark.parametrize(
    ("limit", "level", "late", "gaps"),
    [
        (None, None, 0, False),
        (1_500, None, 200, True),
        (None, 60.0, 200, False),
        (1_500, 60.0, 0, True),
    ],
)
def test_each_position_is_that_of_a_walk_through_the_rows_as_they_became_known(
    limit, level, late, gaps
):
    rng = np.random.default_rng(71)
    rows, spreads = drawn(rng, 200), spreads_of(rng)
    held = pl.DataFrame(STRETCHES, schema=["start_ts", "end_ts"], orient="row")
    held = held.with_columns(family=pl.lit("spread"))
    found = positions(
        events_of(rows),
        spreads.sample(fraction=1, shuffle=True, seed=1),
        delays_s=[900, 0, 70],
        limit_s=limit,
        exit_bps=level,
        exit_delay_s=late,
        held=held if gaps else None,
        known_after_s=45,
        max_stale_s=STALE_S,
    )
    assert found.height == 3 * len(rows)
    known = {
        key: [(ts + 45, value) for ts, value in part.drop_nulls().iter_rows()]
        for (key,), part in spreads.partition_by(
            "trajectory", as_dict=True, include_key=False
        ).items()
    }
    asked = Asked(limit, level, late, STRETCHES if gaps else [(0, END)])
    reasons = set()
    for row in found.iter_rows(named=True):
        event = rows[int(row["event"][-3:])]
        expected = walked(event, known.get(event["key"], []), row["delay_s"], asked)
        assert {name: row[name] for name in FIGURES} == expected, (row, event)
        reasons.add(row["position_reason"])
        if row["position_reason"] is None:
            assert row["held_s"] == row["exit_ts"] - row["entry_ts"] > 0
            left = row["entry_spread_log_bps"] - row["exit_spread_log_bps"]
            assert row["gross_bps"] == left
        assert row["net_reason"] == (row["position_reason"] or "unknown_fee")
    always = {"opened_before", "close_lost", "no_rows", "closed_before", "no_entry", "no_exit"}
    assert reasons >= always | {None} | ({"log_gap"} if gaps else set())
    assert reasons >= ({"open"} if level is None else {"returned_before"})


def decays(count: int = 30, life_s: int = 1_200, height: float = 120.0) -> pl.DataFrame:
    """A spread of minutes that jumps to 120 bps each hour and falls in a line to 0 in 20 min."""
    ts = 60 * np.arange(count * 60)
    age = ts % 3_600
    values = np.where(age < life_s, height * (1 - age / life_s), 0.0)
    return pl.DataFrame({"trajectory": KEYS[0], "ts": ts, "spread_log_bps": values})


def hourly(count: int = 20) -> pl.DataFrame:
    """The events of these jumps, from the jump to the end of the fall."""
    times = START - START % 3_600 + 3_600 * np.arange(1, count)
    events = [
        {"kind": "closed", "key": KEYS[0], "t_open": int(at), "t_close": int(at) + 1_200}
        for at in times
    ]
    return events_of(events)


def test_of_a_spread_that_falls_in_a_line_each_minute_of_delay_costs_the_same():
    found = positions(hourly(), decays(), delays_s=[0, 60, 600, 1_200], known_after_s=0)
    means = found.group_by("delay_s").agg(pl.col("gross_bps").mean()).sort("delay_s")
    # a spread of the very second of the opening is not yet known after it
    assert means["gross_bps"].to_list()[:3] == pytest.approx([114.0, 108.0, 54.0])
    late = found.filter(delay_s=1_200)
    assert late["position_reason"].unique().to_list() == ["closed_before"]
    half = positions(hourly(), decays(), delays_s=[0], known_after_s=0, limit_s=600)
    assert half["gross_bps"].to_numpy() == pytest.approx(60.0)
    back = positions(hourly(), decays(), delays_s=[0], known_after_s=0, exit_bps=30.0)
    assert back.select("gross_bps", "held_s").unique().rows() == [(84.0, 840)]


@pytest.mark.parametrize("delay_s", [0, 59])
def test_a_bar_is_entered_at_its_end_and_none_that_ended_with_the_opening(delay_s):
    """The bar that ends in the second of the opening is the one before the jump."""
    found = positions(hourly(), decays(), delays_s=[delay_s])
    assert (found["entry_ts"] == found["t_open"] + 60).all()
    assert (found["entry_spread_log_bps"] == 120).all()


def test_the_same_position_the_other_way_round_pays_the_opposite():
    rng = np.random.default_rng(6)
    ts = 60 * np.arange(1_600)
    prices = {side: np.exp(rng.normal(0, 1e-3, ts.size).cumsum()) for side in ("buy", "sell")}
    frame = pl.DataFrame(
        {"trajectory": KEYS[0], "ts": ts, **{f"{side}_price": p for side, p in prices.items()}}
    )
    rows = [row | {"key": KEYS[0]} for row in drawn(rng, 100)]
    here = positions(events_of(rows), frame, delays_s=[60])
    other_way = "A_B:Y.spot:X.spot"
    there = positions(
        events_of(rows).with_columns(legs=pl.lit("Y.spot → X.spot")),
        with_spread(turned(frame, other_way)),
        delays_s=[60],
    )
    both = here.join(there, on="event", suffix="_there").drop_nulls("gross_bps")
    assert both.height > 30
    assert (both["gross_bps"] + both["gross_bps_there"]).abs().max() < 1e-9


FEES = """
name = "mine"
[[fee]]
exchange = "X"
valid_from = 1970-01-01
taker_bps = 1.0
slippage_bps = 0.0
[[fee]]
exchange = "Y"
valid_from = 1970-01-01
valid_to = 1970-01-01T12:00:00Z
taker_bps = 2.0
slippage_bps = 0.0
[[fee]]
exchange = "Y"
valid_from = 1970-01-01T12:00:00Z
taker_bps = 4.0
slippage_bps = 0.0
"""


def test_the_cost_is_that_in_force_at_the_entry_and_an_unknown_one_has_its_reason():
    rng = np.random.default_rng(7)
    rows, fees = drawn(rng, 200), FeeModel.parse(FEES)
    found = positions(events_of(rows), spreads_of(rng), delays_s=[0], fees=fees, notional=5e3)
    taken = found.drop_nulls("gross_bps")
    for row in taken.iter_rows(named=True):
        cost = fees.round_trip_bps(row["trajectory"], 5e3, at=row["entry_ts"])
        assert row["cost_bps"] == cost
        assert row["net_bps"] == (None if cost is None else row["gross_bps"] - cost)
        assert row["net_reason"] == ("unknown_fee" if cost is None else None)
    assert set(taken["cost_bps"]) == {6.0, 10.0, None}
    assert found.filter(pl.col("gross_bps").is_null())["cost_bps"].null_count() > 0
    assert found.select("style", "notional", "fee_model").unique().rows() == [
        ("taker", 5e3, "mine")
    ]


def test_events_and_rows_that_are_none_give_an_empty_frame_of_the_same_columns():
    spreads = decays()
    some, none = positions(hourly(), spreads), positions(hourly().clear(), spreads)
    assert (none.height, none.schema) == (0, some.schema)
    absent = positions(hourly(), spreads.clear(), step_s=60, exit_bps=1.0)
    assert absent["position_reason"].unique().to_list() == ["no_rows"]
    splash = positions(hourly().with_columns(family=pl.lit("splash")), spreads)
    assert_frame_equal(splash, none)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"delays_s": []}, "delays_s"),
        ({"delays_s": "60"}, "delays_s"),
        ({"delays_s": [60, 60]}, "delays_s"),
        ({"delays_s": [-1]}, "delays_s"),
        ({"limit_s": 0}, "limit_s"),
        ({"exit_bps": float("nan")}, "exit_bps"),
        ({"exit_delay_s": -1}, "exit_delay_s"),
        ({"notional": 0}, "notional"),
        ({"fees": "mine"}, "fees"),
        ({"style": "transfer"}, "opens and closes a position"),
        ({"max_stale_s": 0}, "max_stale_s"),
    ],
)
def test_what_is_no_question_is_refused(options, match):
    with pytest.raises(InputError, match=match):
        positions(hourly(), decays(), **options)


def test_frames_that_lack_a_column_are_refused():
    with pytest.raises(InputError, match="t_close"):
        positions(hourly().drop("t_close"), decays())
    with pytest.raises(InputError, match="no buy_price"):
        positions(hourly(), decays().drop("spread_log_bps"))
    with pytest.raises(InputError, match="one window"):
        positions(pl.concat([hourly(), hourly().with_columns(pl.col("window_end") + 1)]), decays())
