"""Levels and changes against a loop over the rows, on random walks with gaps and absent values."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.alerts import AlertRule
from toolkit.alerts.evaluation import (
    MARKS,
    event_marks,
    funding_values,
    level_marks,
    spread_values,
    threshold_marks,
    transitions,
)
from toolkit.statistics.families import FAMILIES
from toolkit.statistics.fees import FeeModel
from toolkit.tables import EVENT

from ...conftest import examples

STEP_S = 60
PAIR = "BTC_USDT:BINANCE.spot:KRAKEN.spot"


def rule_of(level: float, clear: float, for_s: int) -> AlertRule:
    table = {"name": "a", "kind": "spread", "above_bps": level, "clear_bps": clear}
    return AlertRule.of(table | ({"for": for_s} if for_s else {}))


def looped(
    rows: list[tuple[int, float | None]], rule: AlertRule, *, is_open: bool
) -> list[tuple[int, str]]:
    """What opens and clears, by one row after the other."""
    found, above_since, last = [], None, None
    for ts, value in rows:
        known = value is not None and math.isfinite(value)
        if last is None or ts - last > 1.5 * STEP_S:
            above_since = None
        if known and value > rule.level:
            above_since = ts if above_since is None else above_since
        else:
            above_since = None
        last = ts
        if not is_open and above_since is not None and ts - above_since >= rule.for_s:
            is_open = True
            found.append((ts, "opened"))
        elif is_open and known and value <= rule.clear:
            is_open = False
            found.append((ts, "cleared"))
    return found


def walk(seed: int, n: int) -> list[tuple[int, float | None]]:
    """A random walk once a minute, with minutes left out, nulls and values that are no number."""
    random = np.random.default_rng(seed)
    values = np.abs(np.cumsum(random.normal(0, 4, n)))
    ts = np.cumsum(random.choice([60, 60, 60, 60, 60, 120, 600], n))
    odd = random.random(n)
    return [
        (int(t), None if o < 0.02 else (math.nan if o < 0.04 else float(v)))
        for t, v, o in zip(ts, values, odd, strict=True)
    ]


@given(
    st.integers(0, 10**6),
    st.integers(1, 200),
    st.sampled_from([0, 60, 120, 300]),
    st.sampled_from([0.5, 0.8, 1.0]),
    st.booleans(),
)
@examples(200)
def test_changes_are_those_of_a_loop_over_the_rows(
    seed: int, n: int, for_s: int, share: float, is_open: bool
) -> None:
    rule = rule_of(10.0, 10.0 * share, for_s)
    rows = walk(seed, n)
    values = pl.DataFrame(
        [("s", ts, value) for ts, value in rows],
        schema={"stream": pl.String, "ts": pl.Int64, "value": pl.Float64},
        orient="row",
    )
    marks = level_marks(values.sample(fraction=1, shuffle=True, seed=1), rule, {"s": 90.0})
    found = transitions(marks, {"s"} if is_open else set())
    assert found.select("ts", "change").rows() == looped(rows, rule, is_open=is_open)


@given(st.integers(0, 10**6), st.integers(2, 150), st.data())
@examples(100)
def test_rows_that_come_in_parts_give_what_all_rows_give(
    seed: int, n: int, data: st.DataObject
) -> None:
    """As `rail follow` does it: each part with the rows before it that its level looks back at."""
    rule, rows = rule_of(10.0, 8.0, 180), walk(seed, n)
    cuts = sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=6)))
    frame = pl.DataFrame(
        [("s", ts, value) for ts, value in rows],
        schema={"stream": pl.String, "ts": pl.Int64, "value": pl.Float64},
        orient="row",
    )
    changes: list[tuple[int, str]] = []
    opened: set[str] = set()
    for low, high in zip([0, *cuts], [*cuts, n], strict=True):
        until = frame["ts"][low - 1] if low else -1
        seen = frame[:high].filter(pl.col("ts") > until - rule.for_s - 90)
        marks = level_marks(seen, rule, {"s": 90.0}).filter(pl.col("ts") > until)
        found = transitions(marks, opened)
        changes += found.select("ts", "change").rows()
        if found.height:
            opened = {"s"} if found["change"][-1] == "opened" else set()
    assert changes == looped(rows, rule, is_open=False)


def test_streams_are_judged_each_by_its_own_rows_and_step() -> None:
    rule = rule_of(10.0, 8.0, 120)
    rows = [(s, t, 20.0) for s in ("minutes", "hours") for t in (0, 3_600, 7_200)]
    values = pl.DataFrame(rows, schema=["stream", "ts", "value"], orient="row")
    marks = level_marks(values, rule, {"hours": 5_400.0, "minutes": 90.0})
    assert marks.select("subject", "ts").rows() == [("hours", 3_600), ("hours", 7_200)]


def test_a_time_without_rows_is_no_time_above() -> None:
    rule = rule_of(10.0, 8.0, 300)
    whole = pl.DataFrame({"stream": "s", "ts": range(0, 420, 60), "value": 20.0})
    assert level_marks(whole, rule, {"s": 90.0})["ts"].to_list() == [300, 360]
    with_gap = whole.filter(~pl.col("ts").is_in([120]))
    assert level_marks(with_gap, rule, {"s": 90.0}).is_empty()


def test_nothing_gives_no_marks() -> None:
    empty = pl.DataFrame(schema={"stream": pl.String, "ts": pl.Int64, "value": pl.Float64})
    assert level_marks(empty, rule_of(1, 1, 0), {}).schema == MARKS
    assert transitions(MARKS.to_frame(), {"s"}).is_empty()


def spreads(key: str, buy: float, sell: float) -> pl.DataFrame:
    rows = {"trajectory": key, "ts": 1_700_000_000, "buy_price": buy, "sell_price": sell}
    ready: pl.DataFrame = FAMILIES["spread"].ready(pl.DataFrame(rows))
    return ready


def test_a_net_spread_is_less_the_cost_of_a_round_trip_and_null_where_that_is_unknown() -> None:
    net = AlertRule.of({"name": "a", "kind": "spread", "above_bps": 1, "net": True})
    fees = FeeModel.example()
    cost = fees.round_trip_bps(PAIR, 10_000, "taker", at=1_700_000_000)
    found = spread_values(spreads(PAIR, 100.0, 101.0), net, fees)
    assert found["value"].to_list() == pytest.approx([100.0 - cost])
    unknown = PAIR.replace("KRAKEN", "NOBODY")
    for table, key in ((fees, unknown), (None, PAIR)):
        assert spread_values(spreads(key, 100.0, 101.0), net, table)["value"].to_list() == [None]


def test_a_funding_differential_is_the_services_or_that_of_the_last_rates() -> None:
    rows = pl.DataFrame(
        {
            "trajectory": ["funding/a"] * 3,
            "ts": [0, 3_600, 7_200],
            "buy_rate": [1e-4, None, None],
            "sell_rate": [None, 2e-4, 3e-4],
            "buy_interval_hours": [8.0] * 3,
            "sell_interval_hours": [1.0] * 3,
            "differential_pct_8h": [None, None, -0.1],
        }
    )
    yearly = 365 * 24 * 100
    expected = [None, (2e-4 - 1e-4 / 8) * yearly, 0.1 * 3 * 365]
    assert funding_values(rows)["value"].to_list() == pytest.approx(expected)


def documents(*rows: tuple[str, str, int, float]) -> pl.DataFrame:
    named = [
        {
            "family": kind.split(".")[0],
            "event_id": event,
            "event_type": kind,
            "ts": ts,
            "magnitude_pct": size,
            "symbol": "BTC_USDT",
        }
        for event, kind, ts, size in rows
    ]
    return pl.DataFrame(named, schema=EVENT.schema)


def test_an_event_is_open_from_its_size_to_its_close() -> None:
    rule = AlertRule.of({"name": "a", "kind": "event", "at_least_pct": 5})
    marks = event_marks(
        documents(
            ("e1", "splash.pump", 0, 6.0),
            ("e1", "splash.faded", 60, 6.0),
            ("e2", "splash.pump", 0, 4.9),
            ("e2", "splash.faded", 60, 4.9),
            ("e3", "spread.opened", 0, 1.0),
            ("e3", "spread.updated", 30, 5.0),
            ("e3", "spread.closed", 90, 2.0),
        ),
        rule,
    )
    found = transitions(marks, set()).select("subject", "ts", "change").rows()
    assert found == [
        ("e1", 0, "opened"),
        ("e3", 30, "opened"),
        ("e1", 60, "cleared"),
        ("e3", 90, "cleared"),
    ]
    assert marks["about"][0] == "BTC_USDT splash.pump"
    others = AlertRule.of({"name": "a", "kind": "event", "at_least_pct": 5, "symbols": ["X_Y"]})
    assert event_marks(documents(("e1", "splash.pump", 0, 6.0)), others).is_empty()


def test_ages_and_losses_open_and_clear_at_their_level() -> None:
    loss = AlertRule.of({"name": "a", "kind": "loss", "within": "1h"})
    marks = threshold_marks({"near": 3_600.0, "far": 3_601.0}, loss, 7)
    assert marks.select("subject", "opens", "clears").rows() == [
        ("near", True, False),
        ("far", False, True),
    ]
