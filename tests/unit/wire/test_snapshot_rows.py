"""Dashboards as rows and a rest: together they are what was sent, and what is odd is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.market import SnapshotKind, Stream
from toolkit.wire.rows.snapshot_rows import SplitSnapshot, rebuilt_snapshot, split_snapshot

SPREAD = {
    "symbol": "BTC_USD",
    "spread_type": "spot/futures",
    "buy_exchange": "X",
    "buy_market": "spot",
    "buy_price": 100.0,
    "sell_exchange": "Y",
    "sell_market": "futures",
    "sell_price": 101.5,
    "spread_pct": 1.5,
    "opened_at": None,
}
RATE = {
    "symbol": "BTC_USD",
    "exchange": "X",
    "market": "futures",
    "rate": 1e-4,
    "interval_hours": 8,
    "next_funding_time": 1_700_000_000,
}
ITEMS = {SnapshotKind.SPREAD: SPREAD, SnapshotKind.FUNDING: RATE}

NUMBERS = st.integers(-(10**25), 10**25) | st.floats(allow_nan=False, allow_infinity=False)
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
EXCHANGES = st.sampled_from(["X", "Y", "DEX-ETH", "x", "a b", ""])
MARKETS = st.sampled_from(["spot", "futures", "dex", "option"])


@st.composite
def items(draw: st.DrawFn, kind: SnapshotKind) -> object:
    """An item as a service sends it, often with a field changed, added or left out."""
    item = dict(ITEMS[kind]) | {"symbol": draw(st.sampled_from(["BTC_USD", "ETH_USD", "nothing"]))}
    for name in item:
        if name.endswith("exchange"):
            item[name] = draw(EXCHANGES)
        elif name.endswith("market"):
            item[name] = draw(MARKETS)
        elif name != "symbol" and draw(st.booleans()):
            item[name] = draw(NUMBERS)
    names = st.sampled_from([*item, "volume"])
    item |= draw(st.dictionaries(names, ANYTHING, max_size=1))
    if draw(st.integers(0, 9)) == 0:
        del item[draw(st.sampled_from(list(item)))]
    return item if draw(st.integers(0, 19)) else draw(ANYTHING)


def strict(value: Any) -> Any:
    """A JSON value in which true is not 1, and 1.0 is 1."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list):
        return [strict(each) for each in value]
    if isinstance(value, dict):
        return {name: strict(each) for name, each in value.items()}
    return value


def rebuilt(kind: SnapshotKind, split: SplitSnapshot) -> Any:
    """The answer from its two parts, the rows in another order than they came in."""
    if split.fields is None:
        return json.loads(split.document)
    rows = split.rows[::-1]
    return json.loads(rebuilt_snapshot(kind, split.document, split.fields, rows))


@given(st.data(), st.sampled_from(list(ITEMS)))
def test_rows_and_rest_are_the_answer_that_was_sent(data: st.DataObject, kind) -> None:
    sent = {"type": "dashboard", "items": data.draw(st.lists(items(kind), max_size=8))}
    sent |= data.draw(st.dictionaries(st.text(max_size=4), ANYTHING, max_size=2))
    split = split_snapshot(kind, json.dumps(sent).encode())
    assert strict(rebuilt(kind, split)) == strict(sent)
    streams = [row.stream for row in split.rows]
    assert len(set(streams)) == len(streams)
    assert [Stream.parse(str(stream)) for stream in streams] == streams
    if split.understood and not split.findings:
        assert len(streams) == len(sent["items"])


@given(st.binary(max_size=20) | ANYTHING.map(lambda value: json.dumps(value).encode()))
def test_what_is_no_dashboard_stays_whole(document: bytes) -> None:
    try:
        whole = document.decode()
    except UnicodeDecodeError:
        return
    for kind in ITEMS:
        split = split_snapshot(kind, document)
        assert (split.document, split.fields, list(split.rows)) == (whole, None, [])
        assert not split.understood
        assert [finding.kind for finding in split.findings] == ["odd_item"]


@pytest.mark.parametrize("kind", [SnapshotKind.SYMBOLS, SnapshotKind.ACTIVITY])
def test_other_kinds_are_not_read(kind: SnapshotKind) -> None:
    assert split_snapshot(kind, b"\n[1]") == SplitSnapshot("\n[1]")


def test_a_whole_item_leaves_nothing_but_the_head_of_the_answer() -> None:
    sent = {"type": "spread_dashboard", "ts": 7, "items": [SPREAD]}
    split = split_snapshot(SnapshotKind.SPREAD, json.dumps(sent).encode())
    (row,) = split.rows
    assert json.loads(split.document) == {"type": "spread_dashboard", "ts": 7, "items": []}
    assert row.stream.key == "snapshot-spread/BTC_USD:X.spot:Y.futures"
    assert row.values == {
        "buy_price": 100.0,
        "sell_price": 101.5,
        "spread_pct": 1.5,
        "opened_at": None,
    }
    assert (row.place, row.extra, split.findings) == (0, None, {})


def test_legs_the_other_way_round_are_another_series() -> None:
    other = SPREAD | {"buy_exchange": "Y", "buy_market": "futures"}
    other |= {"sell_exchange": "X", "sell_market": "spot", "spread_type": "futures/spot"}
    split = split_snapshot(SnapshotKind.SPREAD, json.dumps({"items": [SPREAD, other]}).encode())
    assert [row.stream.legs_key for row in split.rows] == [
        "BTC_USD:X.spot:Y.futures",
        "BTC_USD:Y.futures:X.spot",
    ]


def words(*odd: object) -> dict[str, int]:
    split = split_snapshot(SnapshotKind.SPREAD, json.dumps({"items": [SPREAD, *odd]}).encode())
    assert {finding.where for finding in split.findings} <= {"snapshot/spread"}
    return {finding.says: times for finding, times in split.findings.items()}


def test_odd_items_are_named_and_counted() -> None:
    assert words() == {}
    assert words(SPREAD, SPREAD) == {"the same pair twice": 2}
    assert words(SPREAD | {"sell_exchange": "X", "sell_market": "spot"}) == {
        "legs that are none": 1
    }
    assert words(SPREAD | {"symbol": "BTCUSD"}) == {"legs that are none": 1}
    assert words("text") == {"items that are not objects": 1}


def test_an_item_with_an_odd_value_is_a_row_without_it_so_that_its_pair_is_known_to_be_there() -> (
    None
):
    odd = SPREAD | {"symbol": "ETH_USD", "spread_pct": "1.5", "opened_at": 1.5}
    split = split_snapshot(SnapshotKind.SPREAD, json.dumps({"items": [SPREAD, odd]}).encode())
    assert split.rows[1].values["spread_pct"] is None
    assert json.loads(split.rows[1].extra or "") == {"spread_pct": "1.5", "opened_at": 1.5}
    assert [finding.says for finding in split.findings] == ["spread_pct of another type"]
