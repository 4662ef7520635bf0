"""Layers of a profile make one document; an entry that cannot be meant is told by its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.errors import InputError
from toolkit.market import Family
from toolkit.tables import EVENT, SERIES, SNAPSHOT_SERIES
from toolkit.wire.profile.layers import BUILT_IN_DOCUMENT, merged
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.profile.user_profile import UserProfile

FILE = """# my service
[history.spread]
path = "/v9/spreads"
parameters = { end_time = "before" }

[history.price]
# asked by a key
ask = { key = "{symbol}", before = "{end_time}" }
fields.ts = { wire = "t", unit = "ms" }

[spelling]
markets.futures = "PERP"
"""


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        ('"{symbol}"', '"{symbl}"', "line 8, history.price.ask: '{symbl}' is not allowed"),
        ('unit = "ms"', 'unit = "weeks"', "line 9, history.price.fields.ts.unit: 'weeks'"),
        ('unit = "ms"', 'units = "ms"', "line 9, history.price.fields.ts: 'units'"),
        ("fields.ts", "fields.time", "line 9, history.price.fields: 'time' is not allowed"),
        ("[history.spread]", "[histories.spread]", "line 2: 'histories' is not allowed; allowed:"),
        ("[history.spread]", "[history.spreads]", "nearest: spread"),
        ('"/v9/spreads"', '"http://h/spreads"', "line 3, history.spread.path: 'http://h/spreads'"),
        ("end_time =", "end =", "line 4, history.spread.parameters: 'end' is not allowed"),
        ("markets.futures", "markets.perp", "line 12, spelling.markets: 'perp' is not allowed"),
        ("parameters = {", "key = [1] #", "line 4, history.spread.key: [1] is not allowed"),
        ("parameters = {", "limit = 0 #", "history.spread.limit: 0 is not allowed"),
        ("[history.spread]", "[ok]\nplace = 'code'\n[history.spread]", "line 2, ok: "),
        ("[history.spread]", "ok = { place = 'code', value = 0.5 }\n[a]", "line 2, ok.value: 0.5"),
        ("parameters = {", "fields.buy_price = 8 #", "line 4, history.spread.fields.buy_price: 8"),
        ("parameters = {", "order = true #", "allowed: newest_first, oldest_first"),
        ("parameters = {", 'ask = "x" #', "line 4, history.spread.ask: 'x' is not allowed"),
        ("parameters = {", "ask = { a = 1 } #", "line 4, history.spread.ask.a: 1 is not allowed"),
    ],
)
def test_what_cannot_be_meant_is_told_with_file_and_line(was: str, now: str, told: str) -> None:
    UserProfile.parsed(Path("my.toml"), FILE)
    with pytest.raises(InputError) as refused:
        UserProfile.parsed(Path("my.toml"), FILE.replace(was, now))
    assert str(refused.value).startswith("profile my.toml line ")
    assert told in str(refused.value)


def test_layers_are_laid_one_over_the_other_and_an_ask_counts_whole() -> None:
    first = {"history": {"price": {"ask": {"a": "{symbol}"}, "next": "older"}}}
    second = {"history": {"price": {"ask": {"b": "{symbol}"}}}, "snapshots": {"spread": "/o"}}
    both = BUILT_IN.over(first).over(second)
    route = both.histories[Family.PRICE]
    assert (route.ask, route.next, both.snapshots["spread"]) == ({"b": "{symbol}"}, "older", "/o")
    assert both == BUILT_IN.over(merged(first, second))
    assert BUILT_IN.histories[Family.PRICE].ask == {}


def test_what_is_built_in_has_the_units_of_the_columns() -> None:
    for family, table in SERIES.items():
        for rule in BUILT_IN.histories[family].fields:
            assert (rule.unit, rule.factor) == (rule.wanted, 1.0)
            assert rule.column in table.names
    units = {column.name: column.unit for column in EVENT.columns}
    for said in BUILT_IN_DOCUMENT["events"].values():
        assert said["units"].items() <= units.items()
        assert said["paths"].keys() <= units.keys()
    for kind in ("spread", "funding"):
        fields = BUILT_IN_DOCUMENT["snapshots"][kind]["fields"]
        for column in SNAPSHOT_SERIES[f"snapshot-{kind}"].values:
            assert column.name == "extra" or fields[column.name]["unit"] == column.unit


def test_a_file_may_say_that_a_log_reaches_all_of_time() -> None:
    found = UserProfile.parsed(Path("my.toml"), "[events.spread]\nretention_s = inf\n")
    log, *others = found.applied(BUILT_IN).events.values()
    assert [log.retention_s, *(each.retention_s for each in others)] == [None, 2592000, 2592000]
