from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import (
    InputError,
    QuotaError,
    ServiceError,
    UnavailableError,
    WireError,
)
from toolkit.market import EventFamily, Family, Trajectory
from toolkit.wire.exchange import Response, Wait
from toolkit.wire.findings import Finding
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.profile.user_profile import UserProfile
from toolkit.wire.socket_steps import (
    Backoff,
    Interrupted,
    Item,
    Joined,
    Listen,
    Loss,
    Open,
    Ping,
    Received,
    RecentlyDelivered,
    ReconnectPolicy,
    Refused,
    Renew,
    Say,
    StreamItem,
    StreamStep,
    lasting,
    read_market_message,
    subscription,
)

STEADY = ReconnectPolicy(fraction=lambda: 1.0)
DROPPED = Loss("closed with 1011", code=1011)


class World:
    """A service and a clock, on paper: what each opening and each listening gives.

    A connection is a list of what is heard on it, one thing after another ``apart_s`` seconds; a
    loss ends it, and where the list ends it is mute.
    """

    def __init__(
        self,
        openings: Sequence[Loss | list[bytes | Loss]],
        apart_s: float = 1.0,
        *,
        alive: bool = False,
    ) -> None:
        self._alive = alive  # whether a connection answers pings
        self.now = 0.0
        self.said: list[bytes] = []
        self.opened_at: list[float] = []
        self._openings = list(openings)
        self._apart_s = apart_s
        self._heard: list[bytes | Loss] = []

    def clock(self) -> float:
        return self.now

    def live(self, policy: ReconnectPolicy, *, until_s: float, greetings: Sequence[bytes] = ()):
        """What a stream tells until a moment."""
        flow = lasting("/ws", greetings, policy, self.clock)
        told: list[StreamItem] = []
        outcome: Loss | bytes | None = None
        while self.now < until_s:
            step = flow.send(outcome)
            outcome = None
            if isinstance(step, Joined | Received | Interrupted):
                told.append(step)
            else:
                outcome = self._carried_out(step)
        return told

    def _carried_out(self, step: StreamStep) -> Loss | bytes | None:
        match step:
            case Ping(seconds):
                if not self._alive:
                    self.now += seconds
                    return Loss("a ping was not answered")
            case Open() | Renew():
                self.opened_at.append(self.now)
                repeats = len(self._openings) == 1
                given_ = self._openings[0] if repeats else self._openings.pop(0)
                if isinstance(given_, Loss):
                    return given_
                self._heard = list(given_)
            case Say(message):
                self.said.append(message)
            case Wait(seconds):
                self.now += seconds
            case Listen(seconds) if not self._heard or seconds < self._apart_s:
                self.now += seconds
            case Listen():
                self.now += self._apart_s
                return self._heard.pop(0)
        return None


def test_greetings_are_said_at_each_opening_before_anything_is_heard() -> None:
    world = World([[DROPPED], [b"1"]])
    world.live(STEADY, until_s=5, greetings=[b"hello"])
    assert world.said == [b"hello", b"hello"]


PATIENT = ReconnectPolicy(silence_s=30.0, pong_s=2.0, fraction=lambda: 1.0)


def test_a_connection_silent_to_a_ping_too_is_lost_after_exactly_the_time_allowed() -> None:
    world = World([[b"1"], [b"2"]])
    told = world.live(PATIENT, until_s=36)
    assert told[2] == Interrupted("silent for 20 s, also to a ping", was_open=True)
    assert world.opened_at == [0.0, 23.5]  # heard at 1, silent until 21, the ping, the first wait


def test_a_quiet_connection_that_answers_a_ping_is_renewed_and_never_lost() -> None:
    world = World([[b"1"], [], [b"2"]], alive=True)
    told = world.live(PATIENT, until_s=70, greetings=[b"hello"])
    assert told == [Joined(), Received(b"1"), Received(b"2")]
    assert world.opened_at == [0.0, 31.0, 61.0]
    assert world.said == [b"hello"] * 3


def test_a_quiet_connection_stays_where_no_other_can_be_opened() -> None:
    world = World([[b"1"], Loss("refused with 503")], alive=True)
    told = world.live(PATIENT, until_s=100)
    assert told == [Joined(), Received(b"1")]
    assert world.opened_at == [0.0, 31.0, 61.0, 91.0]


def test_a_message_now_and_then_is_no_silence() -> None:
    world = World([[b"."] * 100], apart_s=19.0)
    told = world.live(ReconnectPolicy(silence_s=30.0), until_s=1_000)
    assert not [item for item in told if isinstance(item, Interrupted)]


@pytest.mark.parametrize("heard", [[], [b"hello"]])
def test_accepted_and_closed_at_once_it_tries_fewer_than_twenty_times_a_minute(
    heard: list[bytes],
) -> None:
    world = World([[*heard, DROPPED]], apart_s=0.001)
    world.live(ReconnectPolicy(), until_s=600)
    for minute in range(10):
        assert sum(60 * minute <= at < 60 * minute + 60 for at in world.opened_at) < 20


def test_waits_grow_to_the_longest_and_begin_anew_after_a_stable_spell_with_a_message() -> None:
    world = World([])
    waits = Backoff(replace(STEADY, longest_wait_s=3.0), world.clock)
    assert [waits.after(DROPPED) for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    waits.opened()
    waits.heard()
    world.now += STEADY.stable_s
    assert waits.after(DROPPED) == 0.5
    half = Backoff(ReconnectPolicy(fraction=lambda: 0.0), lambda: 0.0)
    assert half.after(DROPPED) == 0.25, "half of a wait is left to chance"


@pytest.mark.parametrize(("lasted_s", "heard"), [(59.9, True), (3_600.0, False)])
def test_a_short_or_silent_spell_does_not(lasted_s: float, heard: bool) -> None:
    world = World([])
    waits = Backoff(STEADY, world.clock)
    waits.after(DROPPED)
    waits.opened()
    if heard:
        waits.heard()
    world.now += lasted_s
    assert waits.after(DROPPED) == 1.0


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_waited_for_where_it_is_longer(status: int) -> None:
    loss = Loss("refused", answer=Response(status, {"retry-after": "17"}, b""))
    assert Backoff(STEADY, lambda: 0.0).after(loss) == 17.0


@pytest.mark.parametrize(
    "name", ["first_wait_s", "longest_wait_s", "ping_s", "silence_s", "pong_s"]
)
def test_a_policy_without_time_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=name):
        ReconnectPolicy(**{name: 0.0})


@pytest.mark.parametrize("renamed", [{}, {"symbol": "pair", "buy_exchange": "long"}])
def test_a_subscription_names_the_trajectory_as_the_route_does(renamed: dict[str, str]) -> None:
    key = Trajectory.parse("BTC_USDT:ALPHA.spot:BETA.futures")
    found = BUILT_IN.over({"history": {"spread": {"parameters": renamed}}})
    route = found.histories[Family.SPREAD]
    said = msgspec.json.decode(subscription(BUILT_IN.streams, route, key, 3))
    assert said == {
        "action": "subscribe",
        "id": 3,
        "channel": "spread",
        renamed.get("symbol", "symbol"): "BTC_USDT",
        renamed.get("buy_exchange", "buy_exchange"): "ALPHA",
        "buy_market": "spot",
        "sell_exchange": "BETA",
        "sell_market": "futures",
    }


def test_a_record_keeps_its_bytes() -> None:
    body = b'{"item": {"price": 1.10, "ts": 60 }, "id": 7, "type": "price"}'
    assert read_market_message(BUILT_IN.streams, body, []) == Item(7, b'{"price": 1.10, "ts": 60 }')


def test_a_refusal_is_read_as_the_answer_that_rest_would_have_given() -> None:
    body = b'{"type":"error","id":7,"status":403,"detail":"no"}'
    found = read_market_message(BUILT_IN.streams, body, [])
    assert isinstance(found, Refused)
    assert (found.identity, found.answer.status, found.answer.body) == (7, 403, body)


@pytest.mark.parametrize("odd", [b"NaN", b"-Infinity", b'"\\ud83d"', b'"\xf0\x9f"'])
def test_a_value_of_a_message_that_is_not_json_costs_that_value_alone(odd: bytes) -> None:
    findings: list[Finding] = []
    body = b'{"id":7,"item":{"ts":60,"price":1.5,"mark_price":%b}}' % odd
    found = read_market_message(BUILT_IN.streams, body, findings)
    assert found == Item(7, b'{"ts":60,"price":1.5,"mark_price":null}')
    where = f"{BUILT_IN.streams.market}.mark_price"
    assert [(each.kind, each.where) for each in findings] == [("not_json", where)]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 5_000])
def test_what_is_no_object_is_a_wire_error(body: bytes) -> None:
    with pytest.raises(WireError, match="not a JSON object"):
        read_market_message(BUILT_IN.streams, body, [])


@pytest.mark.parametrize(
    "body", [b"{}", b'{"type":"subscribed","id":1}', b'{"item":{}}', b'{"id":"x","item":{}}']
)
def test_what_belongs_to_no_subscription_is_no_record(body: bytes) -> None:
    assert read_market_message(BUILT_IN.streams, body, []) is None


DELIVERIES = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 2)), max_size=60)


@given(DELIVERIES)
def test_of_any_deliveries_each_content_is_handed_on_exactly_once(
    deliveries: list[tuple[int, int]],
) -> None:
    seen = RecentlyDelivered(capacity=1_000)
    handed_on = [each for each in deliveries if seen.is_new(*each)]
    assert handed_on == list(dict.fromkeys(deliveries))


@given(DELIVERIES, st.integers(1, 10))
def test_a_small_memory_never_loses_a_content_and_never_outgrows_its_size(
    deliveries: list[tuple[int, int]], capacity: int
) -> None:
    seen = RecentlyDelivered(capacity)
    handed_on = []
    for each in deliveries:
        if seen.is_new(*each):
            handed_on.append(each)
        assert len(seen) <= capacity
    assert {*handed_on} == {*deliveries}


def test_what_is_heard_of_again_is_remembered_longer() -> None:
    seen = RecentlyDelivered(capacity=2)
    for key in ("a", "b", "a", "c"):
        seen.is_new(key, "")
    assert not seen.is_new("a", "")
    assert seen.is_new("b", "")


def test_a_memory_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="capacity"):
        RecentlyDelivered(0)


def test_the_users_file_has_the_last_word_on_paths_and_words() -> None:
    said = (
        '[streams]\nmarket = "/v2/ws"\nevents.splash = "/v2/splash"\nchannels.price = "ticker"\n'
        'fields = { action = "op", item = "data" }\n'
        'words = { subscribe = "sub", error = "failed" }\n'
    )
    names = UserProfile.parsed(Path("p.toml"), said).applied(BUILT_IN).streams
    sent = subscription(names, BUILT_IN.histories[Family.PRICE], Trajectory.parse("A_B:X.spot"), 3)
    assert sent.startswith(b'{"op":"sub","id":3,"channel":"ticker",')
    assert read_market_message(names, b'{"id":3,"data":{"ts":1}}', []) == Item(3, b'{"ts":1}')
    assert isinstance(read_market_message(names, b'{"type":"failed","id":3}', []), Refused)
    assert (names.market, names.events[EventFamily.SPLASH]) == ("/v2/ws", "/v2/splash")
    assert names.events[EventFamily.SPREAD] == BUILT_IN.streams.events[EventFamily.SPREAD]
    assert (names.channels[Family.PRICE], names.channels[Family.SPREAD]) == ("ticker", "spread")


@pytest.mark.parametrize(("status", "kind"), [(429, QuotaError), (503, UnavailableError)])
def test_a_wait_of_a_year_ends_the_stream_and_is_named(
    status: int, kind: type[ServiceError]
) -> None:
    answer = Response(status, {"retry-after": "31536000"}, b"", "http://h/ws")
    world = World([Loss("refused", answer=answer)])
    with pytest.raises(kind, match="asks to wait 31536000 s"):
        world.live(STEADY, until_s=1e9)
    assert world.now == 0.0


def test_a_wait_of_an_hour_is_kept_and_the_ceiling_can_be_set() -> None:
    asked = {"retry-after": "3600"}
    loss = Loss("refused", answer=Response(429, asked, b"", "http://h/ws"))
    assert Backoff(STEADY, lambda: 0.0).after(loss) == 3600.0
    with pytest.raises(QuotaError):
        Backoff(replace(STEADY, longest_asked_s=3599.0), lambda: 0.0).after(loss)
