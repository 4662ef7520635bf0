"""Snapshots: items that are understood, those of another shape, and dashboards as rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import InputError
from toolkit.market import SnapshotKind, Stream
from toolkit.wire.exchange import Response
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.profile.user_profile import UserProfile
from toolkit.wire.rows.snapshot_rows import (
    SplitSnapshot,
    activity_of_day,
    rebuilt_snapshot,
    snapshot_items,
    split_snapshot,
)

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
    names = ("buy_price", "sell_price", "spread_pct", "opened_at")
    assert row.values == {name: SPREAD[name] for name in names}
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
    for odd in ({"sell_exchange": "X", "sell_market": "spot"}, {"symbol": "BTCUSD"}):
        assert words(SPREAD | odd) == {"legs that are none": 1}
    assert words("text") == {"items that are not objects": 1}


def test_an_item_with_an_odd_value_is_a_row_without_it_so_that_its_pair_is_known_to_be_there() -> (
    None
):
    odd = SPREAD | {"symbol": "ETH_USD", "spread_pct": "1.5", "opened_at": 1.5}
    split = split_snapshot(SnapshotKind.SPREAD, json.dumps({"items": [SPREAD, odd]}).encode())
    assert split.rows[1].values["spread_pct"] is None
    assert json.loads(split.rows[1].extra or "") == {"spread_pct": "1.5", "opened_at": 1.5}
    assert [finding.says for finding in split.findings] == ["spread_pct of another type"]


ITEM = {name: value for name, value in SPREAD.items() if not name.endswith(("price", "type"))}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"items": []}, ""),
        ({"items": [ITEM]}, ""),
        ({"items": [ITEM | {"spread_pct": 1, "opened_at": 60, "more": []}]}, ""),
        ({"rows": [ITEM]}, "not understood: no list of items"),
        ([ITEM], "not understood: no list of items"),
        ({"items": None}, "not understood: no list of items"),
        ({"items": ["text"]}, "not understood: items that are not objects"),
        ({"items": [ITEM | {"spread_pct": "1.5"}]}, "not understood: spread_pct of another type"),
        (
            {"items": [ITEM, ITEM | {"symbol": None}]},
            "1 of 2 not understood: symbol of another type",
        ),
    ],
)
def test_a_spread_dashboard_is_understood_or_what_is_not_is_named(answer, words) -> None:
    assert snapshot_items("spread", json.dumps(answer)).words == words


def test_a_renamed_field_makes_nothing_understood() -> None:
    del (item := ITEM | {"since": 60})["opened_at"]
    found = snapshot_items("spread", json.dumps({"items": [item] * 3}))
    assert (found.nothing, found.odd, found.why) == (True, 3, "no opened_at")


def test_a_rate_without_its_next_time_is_understood() -> None:
    del (rate := dict(RATE))["next_funding_time"]
    assert snapshot_items("funding", json.dumps({"items": [rate]})).words == ""
    assert snapshot_items("funding", json.dumps({"items": [rate | {"rate": "0.01"}]})).nothing


def test_no_json_is_not_understood_and_an_activity_without_counts_neither() -> None:
    assert snapshot_items("spread", "<html>").words == "not understood: no JSON"
    assert snapshot_items("activity", "{}").words == "not understood: no counts of a day"


def test_an_item_whose_name_is_not_printable_or_too_long_is_odd() -> None:
    symbols = ("A\u202e_B", "A" * 65, "--store=x", "A_B")
    document = json.dumps({"items": [RATE | {"symbol": symbol} for symbol in symbols]})
    found = snapshot_items("funding", document)
    assert [item["symbol"] for item in found.understood] == ["A_B"]
    assert found.words == "3 of 4 not understood: symbol that is not a name"


@pytest.mark.parametrize(
    "document",
    [
        "no json",
        "[]",
        '{"windows": null}',
        '{"windows": [1, {"window_s": 3600, "spread": 1, "splash": 1, "funding": 1}]}',
        '{"windows": [{"window_s": 86400, "spread": 1, "splash": 1}]}',
        '{"windows": [{"window_s": 86400, "spread": "1", "splash": 1, "funding": 1}]}',
        '{"windows": [{"window_s": 86400, "spread": -1, "splash": 1, "funding": true}]}',
    ],
)
def test_counts_of_a_day_that_are_not_understood_are_none_and_never_zero(document: str) -> None:
    assert activity_of_day(document) is None


HOURLY = """
[snapshots.funding]
items = "rates"
fields.rate = { wire = "r", unit = "percent_per_hour", reversed = true }
fields.interval_hours = { wire = "h" }
fields.next_funding_time = { wire = "due", unit = "iso" }
"""
LEG = {"symbol": "A_B", "exchange": "X", "market": "futures"}


def ours(text: str, kind: str, answer: object) -> Any:
    shape = UserProfile.parsed(Path("p.toml"), text).applied(BUILT_IN).shapes[kind]
    return json.loads(shape.ours(Response(200, {}, json.dumps(answer).encode())).body)


def test_a_rate_of_an_hour_is_that_of_its_interval_with_the_sign_turned() -> None:
    item = {**LEG, "r": 0.25, "h": 8, "due": "1970-01-01T08:00:00Z", "mood": {}}
    found = ours(HOURLY, "funding", {"rates": [item], "ts": 7})
    rate = {"rate": -0.02, "interval_hours": 8, "next_funding_time": 28_800, "rest": {"mood": {}}}
    assert found == {"items": [LEG | rate], "rest": {"ts": 7}}


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"r": 0.25}, "not understood: no rate, no interval_hours"),
        ({"r": "0.25", "h": 8}, "not understood: rate of another type"),
        ({"h": 8}, "not understood: no rate"),
        ({"r": 0.25, "h": 8, "due": 28_800}, "not understood: next_funding_time of another type"),
        ({"r": 0.25, "h": 8, "due": "soon"}, "not understood: next_funding_time of another type"),
    ],
)
def test_what_is_not_there_or_of_another_type_is_not_understood(item, words) -> None:
    found = ours(HOURLY, "funding", {"rates": [LEG | item]})
    assert snapshot_items("funding", json.dumps(found)).words == words


def test_hours_that_no_item_has_stand_in_the_file() -> None:
    said = HOURLY.replace('{ wire = "h" }', "4")
    (found,) = ours(said, "funding", {"rates": [LEG | {"r": 0.25}]})["items"]
    assert (found["rate"], found["interval_hours"]) == (-0.01, 4.0)


PAIR = """
[snapshots.spread]
leg = "{buy_exchange}.{buy_market}>{sell_exchange}.{sell_market}"
"""


def test_both_legs_of_one_text_are_read_and_a_text_that_is_none_stays_beside() -> None:
    names = [f"{side}_{part}" for side in ("buy", "sell") for part in ("exchange", "market")]
    said = PAIR + "\n".join(f'fields.{name} = {{ wire = "route" }}' for name in names)
    texts = ["KRAKEN.spot>BYBIT.futures", "KRAKEN.spot"]
    found = ours(said, "spread", {"items": [{"route": text} for text in texts]})["items"]
    assert [found[0][name] for name in names] == ["KRAKEN", "spot", "BYBIT", "futures"]
    assert found[1] == {"rest": {"route": "KRAKEN.spot"}}


@pytest.mark.parametrize("answer", [{"items": [LEG]}, [LEG], {"rates": 3}, "text"])
def test_an_answer_without_the_items_stays_as_it_is(answer) -> None:
    assert ours(HOURLY, "funding", answer) == answer


@pytest.mark.parametrize("deep", [40, 400, 900])
def test_what_is_nested_deep_is_kept(deep: int) -> None:
    found = ours(HOURLY, "funding", {"rates": [{**LEG, "r": 0.5, "h": 8, "x": nested(deep)}]})
    assert json.dumps(found).count("[") > deep


def nested(deep: int) -> list[object]:
    value: list[object] = [1]
    for _ in range(deep):
        value = [value, 2]
    return value


def test_names_of_another_spelling_are_ours_without_a_section() -> None:
    spelled = '[spelling]\nexchange_case = "lower"\nmarkets = { futures = "PERP" }'
    item = LEG | {"exchange": "x", "market": "PERP", "rate": 0.5}
    assert ours(spelled, "funding", {"items": [item]})["items"] == [LEG | {"rate": 0.5}]


@pytest.mark.parametrize(
    "text",
    [
        '[snapshots.symbols]\nitems = "rows"',
        "[snapshots.spread]\nfields.price = { wire = 'p' }",
        "[snapshots.spread]\nfields.spread_pct = { wire = '' }",
        "[snapshots.spread]\nfields.spread_pct = { unit = 'hours' }",
        "[snapshots.spread]\nleg = '{exchange}'",
    ],
)
def test_a_section_that_cannot_be_meant_is_refused_by_name(text: str) -> None:
    with pytest.raises(InputError, match="allowed: "):
        ours(text, "spread", {})
