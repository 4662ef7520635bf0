"""A service that differs in kind is read by a profile alone: shapes, words, units, cursors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolkit.errors import InputError, WireError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Family, Trajectory
from toolkit.wire.event_log import read_document
from toolkit.wire.exchange import Response, RetryPolicy
from toolkit.wire.history_page import check_needed
from toolkit.wire.listing import list_symbols
from toolkit.wire.profile.profile import BUILT_IN, Profile, timed, with_schemas
from toolkit.wire.profile.user_profile import UserProfile
from toolkit.wire.rows.rows import read_history_page

PRICE = Trajectory.parse("BTC_USDT:KRAKEN.spot")
SPREAD = Trajectory.parse("BTC_USDT:COINBASE.spot:KRAKEN.futures")
FUNDING = Trajectory.parse("funding/BTC_USDT:BINANCE.futures:BYBIT.futures")
SPELLED = """
[spelling]
exchange_case = "lower"
symbol = "{base}-{quote}"
markets = { spot = "SPOT", futures = "PERP" }
"""


def profile(text: str, before: Profile = BUILT_IN) -> Profile:
    return UserProfile.parsed(Path("profile.toml"), text).applied(before)


def body(document: object) -> bytes:
    return json.dumps(document).encode()


def test_one_composed_key_is_asked_for_in_the_words_of_the_service() -> None:
    route = profile(
        SPELLED
        + """
        [history.spread]
        ask = { key = "{symbol}|{buy.exchange}:{buy.market}|{sell.exchange}:{sell.market}",
                before = "{end_time}", size = "{limit}", every = "1m" }
        times = "iso"
        limit = 7
        """.replace(",\n", ",")
    ).histories[Family.SPREAD]
    assert route.query(SPREAD, 1_700_000_040) == {
        "key": "BTC-USDT|coinbase:SPOT|kraken:PERP",
        "before": "2023-11-14T22:14:00Z",
        "size": "7",
        "every": "1m",
    }


def test_exchanges_and_symbols_are_spelled_as_the_file_has_it_both_ways() -> None:
    found = profile(
        """
        [spelling]
        exchange_case = "lower"
        symbol_case = "lower"
        exchanges = { COINBASE = "cb" }
        symbols = { ETH_USDT = "ether" }
        """
    )
    route, listed = found.histories[Family.SPREAD], []
    for key in ("BTC_USDT:COINBASE.spot:KRAKEN.futures", "ETH_USDT:KRAKEN.spot:COINBASE.spot"):
        query = route.query(Trajectory.parse(key), 60)
        asked = [query[name] for name in ("symbol", "buy_exchange", "sell_exchange")]
        listed.append(asked)
        venues = [{"exchange": exchange, "market": "spot"} for exchange in asked[1:]]
        flow = list_symbols(found, "x", RetryPolicy())
        next(flow)
        with pytest.raises(StopIteration) as ended:
            flow.send(Response(200, {}, body({"items": [{"symbol": asked[0], "venues": venues}]})))
        (symbol,) = ended.value.value.legs
        legs = {leg.exchange for leg in ended.value.value.legs[symbol]}
        assert (str(symbol), legs) == (key.partition(":")[0], {"COINBASE", "KRAKEN"})
    assert listed == [["btc_usdt", "cb", "kraken"], ["ether", "kraken", "cb"]]


def test_an_open_state_is_asked_for_by_name_and_word_of_the_service() -> None:
    said = '[events.splash]\nparameters = { lifecycle = "state" }\nwords = { open = "BORN" }\n'
    route = profile(said).events[EventFamily.SPLASH].filtered("open")
    query = route.query(Interval(60, 120), None)
    assert (query["state"], "lifecycle" in query) == ("BORN", False)


@pytest.mark.parametrize(
    ("unit", "sent", "rate"),
    [
        ("percent_per_interval", 0.01, 0.0001),
        ("bps_per_interval", 1.0, 0.0001),
        ("percent_per_hour", 0.01, 0.0004),
        ("fraction_per_8h", 0.0001, 0.00005),
        ("fraction_per_year", 0.876, 0.0004),
    ],
)
def test_rates_of_any_time_become_those_of_their_interval(unit, sent, rate) -> None:
    route = profile(f'[history.funding]\nfields.buy_rate = {{ unit = "{unit}" }}\n')
    row = {"ts": 60, "buy_rate": sent, "sell_rate": None, "differential_pct_8h": None}
    row |= {"buy_interval_hours": 4, "sell_interval_hours": 4}
    answer = Response(200, {}, body({"items": [row], "next_end_time": None}))
    read = read_history_page(route.histories[Family.FUNDING], FUNDING, answer)
    assert read.frame["buy_rate"][0] == pytest.approx(rate, rel=1e-15)


@pytest.mark.parametrize("unit", ["percent_per_hour", "fraction_per_8h", "bps_per_year"])
@pytest.mark.parametrize("numbers", ["json", "text"])
def test_a_rate_of_nothing_is_nothing_in_every_unit(unit: str, numbers: str) -> None:
    found = profile(
        f'[history.funding]\nnumbers = "{numbers}"\nfields.buy_rate = {{ unit = "{unit}" }}\n'
    ).histories[Family.FUNDING]
    row = {"ts": 60, "buy_rate": 0, "sell_rate": 0.5, "differential_pct_8h": None}
    row |= {"buy_interval_hours": None, "sell_interval_hours": 8}
    row |= {"buy_rate": "0.0"} if numbers == "text" else {}
    answer = Response(200, {}, body({"items": [row], "next_end_time": None}))
    read = read_history_page(found, FUNDING, answer)
    assert (read.frame["buy_rate"].to_list(), read.findings) == ([0.0], ())
    check_needed(found, read.frame, answer)


def test_hours_of_an_interval_that_no_row_has_stand_in_the_file() -> None:
    rate = 'fields.buy_rate = { unit = "percent_per_hour" }\n'
    row = {"ts": 60, "buy_rate": 0.01, "sell_rate": 0.5, "differential_pct_8h": None}
    rows = [row | {"sell_interval_hours": 8}, row | {"ts": 0, "buy_rate": None}]
    answer = Response(200, {}, body({"items": rows, "next_end_time": None}))
    without = profile(f"[history.funding]\n{rate}").histories[Family.FUNDING]
    unread = read_history_page(without, FUNDING, answer)
    assert "interval_missing" in [each.kind for each in unread.findings]
    assert unread.frame["buy_rate"].to_list() == [None, None]
    with pytest.raises(WireError, match=r"fields.buy_interval_hours = 8"):
        check_needed(without, unread.frame, answer)
    found = profile(f"[history.funding]\n{rate}fields.buy_interval_hours = 8\n")
    read = read_history_page(found.histories[Family.FUNDING], FUNDING, answer)
    assert read.frame["buy_interval_hours"].to_list() == [8.0, 8.0]
    assert read.frame["buy_rate"].to_list() == [pytest.approx(0.0008), None]
    assert {each.where.rpartition(".")[2] for each in read.findings} == {"sell_interval_hours"}


@pytest.mark.parametrize("said", ["fields.buy_rate = 8", "fields.buy_interval_hours = 0"])
def test_a_constant_is_the_hours_of_an_interval_alone(said: str) -> None:
    with pytest.raises(InputError, match="hours above 0"):
        profile(f"[history.funding]\n{said}\n")


PAIR_TEMPLATE = "{buy_exchange}.{buy_market}>{sell_exchange}.{sell_market}"


def read_route(leg: str, text: object) -> tuple[list[object], list[tuple[str, str]]]:
    """Return the four columns of legs that a template reads of one text, and the findings."""
    names = [f"{side}_{part}" for side in ("buy", "sell") for part in ("exchange", "market")]
    paths = "\n".join(f'paths.{name} = ["route"]' for name in names)
    route = profile(f'[events.spread]\nleg = "{leg}"\n{paths}\n').events[EventFamily.SPREAD]
    findings: list = []
    row = read_document(route, body({"ts": 60, "event_id": "e1", "route": text}), findings)
    return [row[name] for name in names], [(each.kind, each.says) for each in findings]


def test_a_template_may_name_both_legs() -> None:
    found = read_route(PAIR_TEMPLATE, "KRAKEN.spot>BYBIT.futures")
    assert found == (["KRAKEN", "spot", "BYBIT", "futures"], [])


@pytest.mark.parametrize(
    ("leg", "text"),
    [
        ("{exchange}.{market}", "KRAKEN.spot>BYBIT.futures"),
        ("{exchange}.{market}", "KRAKEN>BYBIT.futures"),
        ("{exchange}.{market}", "KRAKEN.perp"),
        ("{exchange}:{market}", "KRAKEN.spot"),
        (PAIR_TEMPLATE, "KRAKEN.spot"),
        (PAIR_TEMPLATE, "KRAKEN.spot>BYBIT.futures>OKX.spot"),
    ],
)
def test_a_leg_that_its_template_cannot_read_is_a_finding_and_null(leg, text) -> None:
    found = read_route(leg, text)
    assert found == ([None] * 4, [("leg_unreadable", text)] * 4)


def test_an_exchange_that_is_a_number_is_spelled_as_the_file_has_it() -> None:
    said = '[spelling]\nexchanges = { KRAKEN = "12" }\n'
    found = profile(said)
    row = read_document(
        found.events[EventFamily.SPLASH], b'{"ts":60,"exchange":12,"market":"spot"}', []
    )
    assert row["buy_exchange"] == "KRAKEN"
    flow = list_symbols(found, "BTC", RetryPolicy())
    next(flow)
    item = {"symbol": "BTC_USDT", "venues": [{"exchange": 12, "market": "spot"}]}
    with pytest.raises(StopIteration) as ended:
        flow.send(Response(200, {}, body({"items": [item], "truncated": False})))
    assert [str(leg) for leg in next(iter(ended.value.value.legs.values()))] == ["KRAKEN.spot"]


def test_a_log_is_asked_by_templates_and_one_without_a_value_is_left_out() -> None:
    ask = 'from = "{start_time}", to = "{end_time}", size = "{limit}", after = "{cursor}"'
    said = f'[events.spread]\nask = {{ {ask} }}\ntimes = "ms"\n'
    route = profile(said).events[EventFamily.SPREAD]
    first = route.query(Interval(60, 120), None)
    assert first == {"from": "60000", "to": "120000", "size": "500"}
    assert route.query(Interval(60, 120), "c7")["after"] == "c7"


def test_a_log_s_longest_window_its_depth_and_its_delay_are_the_file_s() -> None:
    said = "window_s = 86400\nretention_s = 604800\ndelay_s = 300\n"
    route = profile(f"[events.splash]\n{said}").events[EventFamily.SPLASH]
    assert (route.window_s, route.retention_s, route.delay_s) == (86_400, 604_800, 300)
    assert profile("[history.price]\ndelay_s = 0\n").histories[Family.PRICE].delay_s == 0


def test_the_legs_of_a_listing_may_be_the_names_of_an_object() -> None:
    found = profile(f'{SPELLED}\n[listing]\nleg = "{{exchange}}/{{market}}"\nq = "search"\n')
    flow = list_symbols(found, "BTC", RetryPolicy())
    assert next(flow).request.query[0] == ("search", "BTC")
    venues = {"kraken/SPOT": {}, "binance/PERP": {"x": 1}}
    with pytest.raises(StopIteration) as ended:
        flow.send(Response(200, {}, body({"items": [{"symbol": "BTC-USDT", "venues": venues}]})))
    listing = ended.value.value
    assert {str(s): list(map(str, legs)) for s, legs in listing.legs.items()} == {
        "BTC_USDT": ["KRAKEN.spot", "BINANCE.futures"]
    }
    assert listing.findings == ()


def test_a_listing_that_is_whole_in_its_own_words_is_not_searched_further() -> None:
    found = profile('[listing]\ntruncated = "state.more"\n')
    flow = list_symbols(found, "", RetryPolicy())
    next(flow)
    venue = {"exchange": "KRAKEN", "market": "spot"}
    page = {"items": [{"symbol": "BTC_USDT", "venues": [venue]}], "state": {"more": False}}
    with pytest.raises(StopIteration) as ended:
        flow.send(Response(200, {}, body(page)))
    assert (ended.value.value.truncated, ended.value.value.findings) == (False, ())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[history.price]\nask = { key = "{buy.exchange}" }', "{buy.exchange}"),
        ('[history.price]\nask = { key = "{symbol" }', "{symbol"),
        ('[history.price]\nask = { key = "{symbol}/{limit}" }', "not of both"),
        ('[history.price]\nask = { a = "b" }\nparameters = { limit = "n" }', "either ask or"),
        ('[history.price]\ntimes = "days"', "times"),
        ('[spelling]\nsymbol = "{base}-USDT"', "{base} and {quote}"),
        ('[history.price]\npath = "/{limit}/x"', "a template of {symbol}, {base}, {quote}"),
        ('[events.spread]\npath = "/{symbol}/x"', "a path below"),
        ("[history.funding]\nfields.sell_rate = { wire = 'buy_rate' }", "than that of buy_rate"),
        ('[spelling]\nexchanges = { A = "x", B = "x" }', "of its own"),
        ('[listing]\nleg = "{exchange}"', "{exchange}:{market}"),
        ('[listing]\nsymbols = "x"', "symbols"),
        ('[events.spread]\nunits = { magnitude_pct = "s" }', "same dimension"),
        ('[events.spread]\nunits = { symbol = "s" }', "symbol"),
        ('[history.price]\nfields.price = { unit = "percent_per_week" }', "_per_year"),
        ("[history.spread", "TOML"),
        ("[history.spread]\nroute = '/x'", "route"),
        ("[history.spread]\nlimit = 'many'", "limit"),
        ("[history.spread]\nfields.spread_pct = { unit = 'hours' }", "same dimension"),
        ("schemas_path = '//elsewhere.example'", "a path below"),
        ('mcp_path = "http://elsewhere/mcp"', "a path below"),
        ("[events.spread]\npaths.size = ['x']", "magnitude_pct"),
        ("[history.spread]\nparameters = { exchange = 'v' }", "buy_exchange, buy_market"),
        ("[events.splash]\nparameters = { end = 'to' }", "start_time, end_time, limit, cursor"),
        ("[history.price]\nnumbers = 'roman'", "numbers"),
        ("[snapshots]\nweather = '/x'", "symbols, activity, spread, funding"),
        ('[tools]\nprices = "x"', "price_history"),
        ("[tools]\nsymbols = 5", "tools.symbols"),
        ('[streams]\nmarket = "http://elsewhere/ws"', "a path below"),
        ('[streams]\nfields.thing = "x"', "item"),
        ('[streams]\nwords.dance = "x"', "subscribe"),
        ("[streams]\nevents.x = 1", "splash"),
    ],
)
def test_what_a_profile_cannot_say_is_refused_before_anything_is_asked(
    text: str, words: str
) -> None:
    with pytest.raises(InputError) as refused:
        profile(text)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) <= 400


def test_a_time_of_a_unit_that_schemas_invent_is_read_where_the_file_names_it() -> None:
    fields = {"ts": {"unit": "ticks"}, "price": {}, "mark_price": {}, "volume": {}}
    tool = {"route": "/api/v1/data/history/price", "record": {"fields": fields}}
    found = with_schemas(BUILT_IN, body({"source": {"id": "x"}, "tools": {"t": tool}}))
    with pytest.raises(WireError, match=r"fields.ts = \{ unit = \"s\" \} in \[history.price\]"):
        timed(found)
    said = profile('[history.price]\nfields.ts = { unit = "ms" }\n', found)
    assert timed(said).histories[Family.PRICE].rule("ts").factor == 0.001
