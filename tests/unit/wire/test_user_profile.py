"""The user's profile has the last word, and nonsense in it is refused before anything is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolkit.market import EventFamily, Family, Trajectory
from toolkit.wire.exchange import Response
from toolkit.wire.profile.history_route import HistoryRoute
from toolkit.wire.profile.profile import BUILT_IN, with_schemas
from toolkit.wire.profile.user_profile import UserProfile
from toolkit.wire.rows.rows import read_history_page

SPREAD = Trajectory.parse("BTC_USD:COINBASE.spot:KRAKEN.spot")


def written(text: str) -> UserProfile:
    return UserProfile.parsed(Path("profile.toml"), text)


def over_schemas(users: UserProfile, fields: dict[str, dict[str, str]]) -> HistoryRoute:
    """Return the spread route of a file over schemas that describe these fields."""
    tool = {"route": "/api/v1/data/history/spread", "record": {"fields": fields}}
    schemas = json.dumps({"source": {"id": "x"}, "tools": {"t": tool}}).encode()
    return users.applied(with_schemas(users.applied(BUILT_IN), schemas)).histories[Family.SPREAD]


def test_every_path_is_the_users() -> None:
    users = written(
        """
        schemas_path = "/s"
        symbols_path = "/l"
        mcp_path = "/m"
        [history.price]
        path = "/h"
        [events.splash]
        path = "/e"
        [snapshots]
        spread = "/o"
        """,
    )
    found = users.applied(BUILT_IN)
    assert (found.schemas_path, found.symbols_path, found.mcp_path) == ("/s", "/l", "/m")
    assert (found.histories[Family.PRICE].path, found.events[EventFamily.SPLASH].path) == (
        "/h",
        "/e",
    )
    assert found.snapshots["spread"] == "/o"
    assert found.snapshots["funding"] == BUILT_IN.snapshots["funding"]


def test_the_file_stands_over_what_schemas_say() -> None:
    users = written('[history.spread]\nfields.spread_pct = { unit = "fraction" }\n')
    route = over_schemas(users, {"ts": {"unit": "s"}, "spread_pct": {"unit": "bananas"}})
    assert (route.rule("spread_pct").unit, route.rule("spread_pct").factor) == ("fraction", 100.0)


@pytest.mark.parametrize("key", [["ts", "seq"], []])
def test_key_and_sign_of_the_file_stand_over_those_of_schemas(key: list[str]) -> None:
    section = f"[history.spread]\nkey = {json.dumps(key)}\n"
    users = written(f"{section}fields.spread_pct = {{ reversed = false }}\n")
    fields = {"ts": {"unit": "s"}, "spread_pct": {"unit": "percent", "sign": "buy / sell - 1"}}
    tool = {"route": "/api/v1/data/history/spread", "record": {"key": ["ts"], "fields": fields}}
    declared = with_schemas(BUILT_IN, json.dumps({"tools": {"t": tool}}).encode())
    before, after = (each.histories[Family.SPREAD] for each in (declared, users.applied(declared)))
    assert (before.key, before.rule("spread_pct").factor) == (("ts",), -1.0)
    assert (after.key, after.rule("spread_pct").factor) == (tuple(key), 1.0)


def test_schemas_give_the_unit_of_a_field_that_the_file_renames() -> None:
    users = written('[history.spread]\nfields.spread_pct = { wire = "s" }\n')
    route = over_schemas(users, {"ts": {"unit": "s"}, "s": {"unit": "bps"}})
    assert (route.rule("spread_pct").wire, route.rule("spread_pct").unit) == ("s", "bps")


def test_every_parameter_of_a_route_can_be_renamed_once_and_again() -> None:
    for section, routes in (("history", BUILT_IN.histories), ("events", BUILT_IN.events)):
        for family, route in routes.items():
            named = ", ".join(f"{role} = 'x_{role}'" for role in route.parameters)
            users = written(f"[{section}.{family}]\nparameters = {{ {named} }}\n")
            found = users.applied(users.applied(BUILT_IN))
            assert getattr(found, "histories" if section == "history" else "events")[
                family
            ].parameters == {role: f"x_{role}" for role in route.parameters}


def test_numbers_as_text_are_read_where_the_file_has_it() -> None:
    users = written("[history.spread]\nnumbers = 'text'\nfields.spread_pct = { unit = 'bps' }\n")
    route = over_schemas(users, {"ts": {"unit": "ms"}})
    rows = [
        {"ts": "1700000040000", "buy_price": "1e2", "sell_price": "99.95", "spread_pct": "-5"},
        {"ts": 1_700_000_100_000, "buy_price": 100.5, "sell_price": None, "spread_pct": "0.50"},
    ]
    body = json.dumps({"items": rows, "next_end_time": 1_700_000_040}).encode()
    page = read_history_page(route, SPREAD, Response(200, {}, body))
    assert page.frame.rows() == [
        (1_700_000_040, 100.0, 99.95, -0.05, None),
        (1_700_000_100, 100.5, None, 0.005, None),
    ]
    assert page.findings == ()


@pytest.mark.parametrize("text", ["97,6", "nan", "inf", "1_0", "+1", ".5", "", "null", "x"])
def test_text_that_is_no_number_stays_in_extra(text: str) -> None:
    users = written("[history.spread]\nnumbers = 'text'\n")
    row = {"ts": 60, "buy_price": "100.0", "sell_price": 101.0, "spread_pct": text}
    body = json.dumps({"items": [row], "next_end_time": None}).encode()
    page = read_history_page(
        users.applied(BUILT_IN).histories[Family.SPREAD], SPREAD, Response(200, {}, body)
    )
    assert page.frame.row(0)[:4] == (60, 100.0, 101.0, None)
    assert json.loads(page.frame["extra"][0]) == {"spread_pct": text}
    assert [f.kind for f in page.findings] == ["type_changed"]


def test_event_paths_and_cursor_names_are_the_users() -> None:
    users = written(
        """
        [events.splash]
        next = "token"
        more = "further"
        volatile = ["trace", "sent_at"]
        paths.magnitude_pct = ["size.percent"]
        """,
    )
    route = users.applied(BUILT_IN).events[EventFamily.SPLASH]
    assert (route.next, route.more, route.volatile) == ("token", "further", ("trace", "sent_at"))
    assert route.paths["magnitude_pct"] == ("size.percent",)
    assert route.paths["symbol"] == BUILT_IN.events[EventFamily.SPLASH].paths["symbol"]
