"""A snapshot of another shape is put into ours by the user's profile, and keeps what it had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolkit.errors import InputError
from toolkit.wire.exchange import Response
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.profile.user_profile import UserProfile
from toolkit.wire.rows.snapshot_rows import snapshot_items

HOURLY = """
[snapshots.funding]
items = "rates"
fields.rate = { wire = "r", unit = "percent_per_hour", reversed = true }
fields.interval_hours = { wire = "h" }
fields.next_funding_time = { wire = "due", unit = "iso" }
"""
LEG = {"symbol": "A_B", "exchange": "X", "market": "futures"}


@pytest.fixture
def ours(tmp_path: Path):
    def read(text: str, kind: str, answer: object):
        path = tmp_path / "profile.toml"
        path.write_text(text)
        shape = UserProfile.read(path).applied(BUILT_IN).shapes[kind]
        return json.loads(shape.ours(Response(200, {}, json.dumps(answer).encode())).body)

    return read


def test_a_rate_of_an_hour_is_that_of_its_interval_with_the_sign_turned(ours) -> None:
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
def test_what_is_not_there_or_of_another_type_is_not_understood(ours, item, words) -> None:
    found = ours(HOURLY, "funding", {"rates": [LEG | item]})
    assert snapshot_items("funding", json.dumps(found)).words == words


def test_hours_that_no_item_has_stand_in_the_file(ours) -> None:
    said = HOURLY.replace('{ wire = "h" }', "4")
    (found,) = ours(said, "funding", {"rates": [LEG | {"r": 0.25}]})["items"]
    assert (found["rate"], found["interval_hours"]) == (-0.01, 4.0)


PAIR = """
[snapshots.spread]
leg = "{buy_exchange}.{buy_market}>{sell_exchange}.{sell_market}"
"""


def test_both_legs_of_one_text_are_read_and_a_text_that_is_none_stays_beside(ours) -> None:
    names = [f"{side}_{part}" for side in ("buy", "sell") for part in ("exchange", "market")]
    said = PAIR + "\n".join(f'fields.{name} = {{ wire = "route" }}' for name in names)
    texts = ["KRAKEN.spot>BYBIT.futures", "KRAKEN.spot"]
    found = ours(said, "spread", {"items": [{"route": text} for text in texts]})["items"]
    assert [found[0][name] for name in names] == ["KRAKEN", "spot", "BYBIT", "futures"]
    assert found[1] == {"rest": {"route": "KRAKEN.spot"}}


@pytest.mark.parametrize("answer", [{"items": [LEG]}, [LEG], {"rates": 3}, "text"])
def test_an_answer_without_the_items_stays_as_it_is(ours, answer) -> None:
    assert ours(HOURLY, "funding", answer) == answer


@pytest.mark.parametrize("deep", [40, 400, 900])
def test_what_is_nested_deep_is_kept(ours, deep: int) -> None:
    found = ours(HOURLY, "funding", {"rates": [{**LEG, "r": 0.5, "h": 8, "x": nested(deep)}]})
    assert json.dumps(found).count("[") > deep


def nested(deep: int) -> list[object]:
    value: list[object] = [1]
    for _ in range(deep):
        value = [value, 2]
    return value


def test_names_of_another_spelling_are_ours_without_a_section(ours) -> None:
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
def test_a_section_that_cannot_be_meant_is_refused_by_name(ours, text: str) -> None:
    with pytest.raises(InputError, match="allowed: "):
        ours(text, "spread", {})
