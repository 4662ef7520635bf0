"""Levels and changes against a loop over the rows, on random walks with gaps and absent values."""

from __future__ import annotations

import math
import tomllib
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.alerts import AlertKind, AlertRule, read_alerts
from toolkit.alerts.evaluation import (
    MARKS,
    event_marks,
    funding_values,
    level_marks,
    spread_values,
    threshold_marks,
    transitions,
)
from toolkit.alerts.rules import EXAMPLE
from toolkit.errors import InputError
from toolkit.market import Stream
from toolkit.statistics.families import FAMILIES
from toolkit.statistics.fees import FeeModel
from toolkit.tables import EVENT

from ...conftest import examples
from .conftest import event_rows

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
    return pl.DataFrame(event_rows(*rows), schema=EVENT.schema)


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


WIDE = {"name": "wide", "kind": "spread", "above_bps": 50}


def test_the_example_has_a_rule_of_each_kind() -> None:
    rules = read_alerts(tomllib.loads(EXAMPLE)["alert"])
    assert [rule.kind for rule in rules] == list(AlertKind)
    assert rules[0].for_s == 300
    assert rules[0].clear == 40.0


def test_every_field_of_the_example_that_is_commented_out_is_allowed() -> None:
    text = EXAMPLE.replace("\n# ", "\n").replace("Alerts of", "# Alerts of")
    rule = read_alerts(tomllib.loads(text)["alert"])[0]
    assert (rule.net, rule.clear, rule.send, rule.late_s) == (True, 40, ("webhook",), 3_600)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"above_bps": None}, r"wide above_bps: nothing is given.*a number above 0"),
        ({"above_bps": -1}, r"wide above_bps: -1 .* a number above 0"),
        ({"above_bps": float("nan")}, r"wide above_bps: nan"),
        ({"clear_bps": 51}, r"wide clear_bps: 51 .* at most above_bps \(50\)"),
        ({"for": "5 minutes"}, r"wide for: '5 minutes' .* such as 90s, 5m"),
        ({"above_apr_pct": 1}, r"wide \(spread\): 'above_apr_pct' .* nearest: above_bps"),
        ({"kind": "spred"}, r"wide kind: 'spred' .* spread, funding, event"),
        ({"name": ""}, r"name: '' .* a name of its own"),
        ({"net": 1}, r"wide net: 1 .* true or false"),
        ({"style": "fast"}, r"wide style: 'fast'"),
        ({"send": ["mail"]}, r"wide send: 'mail' .* webhook, chat"),
        ({"streams": ["BTC_USDT"]}, r"wide streams: 'BTC_USDT'"),
        ({"streams": ["events/splash"]}, r"wide streams: 'events/splash' .* kind spread"),
        ({"streams": []}, r"wide streams: \[\] .* one key or pattern"),
    ],
)
def test_a_mistake_names_the_rule_the_field_and_what_is_allowed(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=f"rail.toml alert {message}"):
        AlertRule.of(WIDE | changes, "rail.toml alert")


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="a name that no other rule has"):
        read_alerts([WIDE, WIDE])


@pytest.mark.parametrize(
    ("kind", "level", "stream", "watched"),
    [
        ("stale", {"older_than": "1m"}, "snapshot/spread", True),
        ("stale", {"older_than": "1m"}, "BTC_USD:A.spot", True),
        ("loss", {"within": "1d"}, "events/spread", True),
        ("loss", {"within": "1d"}, "snapshot/spread", False),
        ("event", {"at_least_pct": 1}, "events/spread", True),
        ("event", {"at_least_pct": 1}, "BTC_USD:A.spot:B.spot", False),
        ("funding", {"above_apr_pct": 1}, "funding/BTC_USD:A.futures:B.futures", True),
        ("funding", {"above_apr_pct": 1}, "BTC_USD:A.futures:B.futures", False),
        ("spread", {"above_bps": 50, "symbols": ["ETH_USD"]}, "ETH_USD:A.spot:B.spot", True),
        ("spread", {"above_bps": 50, "symbols": ["ETH_USD"]}, "BTC_USD:A.spot:B.spot", False),
    ],
)
def test_a_rule_watches_streams_of_its_kind(
    kind: str, level: dict[str, Any], stream: str, watched: bool
) -> None:
    rule = AlertRule.of({"name": "a", "kind": kind, **level})
    assert rule.matches(Stream.parse(stream)) is watched


@pytest.mark.parametrize("kind", ["spread", "funding"])
def test_what_snapshots_keep_is_watched_where_a_pattern_names_it(kind: str) -> None:
    level = {"spread": {"above_bps": 1}, "funding": {"above_apr_pct": 1}}[kind]
    legs = {"spread": "BTC_USD:A.spot:B.spot", "funding": "BTC_USD:A.futures"}[kind]
    kept = Stream.parse(f"snapshot-{kind}/{legs}")
    named = AlertRule.of(
        {"name": "a", "kind": kind, **level, "streams": [f"snapshot-{kind}/BTC_USD:*"]}
    )
    everything = AlertRule.of({"name": "a", "kind": kind, **level})
    assert (named.matches(kept), everything.matches(kept)) == (True, kind == "spread")
    turned = AlertRule.of(
        WIDE | {"streams": ["snapshot-spread/BTC_USD:B.spot:A.spot"], "symbols": ["BTC_USD"]}
    )
    assert turned.matches(kept) is (kind == "spread")


def test_a_rule_without_streams_watches_what_snapshots_show_of_pairs_that_nobody_follows() -> None:
    rule = AlertRule.of({"name": "a", "kind": "spread", "above_bps": 50})
    followed = frozenset([Stream.parse("BTC_USD:A.spot:B.spot")])
    shown = [
        Stream.parse(f"snapshot-spread/BTC_USD:{legs}")
        for legs in ("A.spot:B.spot", "B.spot:A.spot", "A.spot:C.spot")
    ]
    assert [rule.matches(each, followed) for each in shown] == [False, False, True]
    assert rule.matches(shown[0])
    rates = AlertRule.of({"name": "b", "kind": "funding", "above_apr_pct": 50})
    assert not rates.matches(Stream.parse("snapshot-funding/BTC_USD:A.futures"))
    some = AlertRule.of({"name": "c", "kind": "spread", "above_bps": 50, "streams": ["ETH_USD:*"]})
    assert not some.matches(shown[2], followed)
