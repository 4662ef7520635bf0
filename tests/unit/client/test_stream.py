from __future__ import annotations

import contextlib
import itertools
import logging
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from http import HTTPStatus

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from tests.listening import listening
from toolkit.client import Client
from toolkit.client.stream import discreet_logger, socket_to, stream
from toolkit.errors import KeyRefusedError, PlanRefusedError, ServiceError, UnreachableError
from toolkit.market import EventFamily, Trajectory
from toolkit.service import Config, Simulated, SpedClock, running
from toolkit.wire.limits import Limits
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.socket_steps import (
    Interrupted,
    Item,
    Joined,
    Received,
    ReconnectPolicy,
    StreamItem,
    read_market_message,
)

KEY = "k9-very-secret-0042"
QUICK = ReconnectPolicy(first_wait_s=0.01, longest_wait_s=0.02)
START = 1_795_046_400


class Scripted:
    """A WebSocket server that treats its connections as it is told, one after the other."""

    def __init__(self) -> None:
        self.treatments: list[Callable[[ServerConnection], object]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.requests: list[Request] = []
        self.base_url = ""

    def admit(self, connection: ServerConnection, request: Request) -> Response | None:
        self.requests.append(request)
        if not self.answers:
            return None
        status, headers = self.answers.pop(0)
        response = connection.respond(HTTPStatus(status), f"no, {KEY}\n")
        for name, value in headers.items():
            response.headers[name] = value
        return response

    def treat(self, connection: ServerConnection) -> None:
        if self.treatments:
            self.treatments.pop(0)(connection)
        else:
            connection.recv()


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    script = Scripted()
    server = serve(script.treat, "127.0.0.1", 0, process_request=script.admit)
    with listening(server) as script.base_url:
        yield script


class Bare(Client):
    """A client that takes the built-in profile for granted: the scripted server has no REST."""

    def profile(self):
        return BUILT_IN


@pytest.fixture
def client(scripted: Scripted) -> Iterator[Client]:
    with Bare(scripted.base_url, KEY) as client:
        yield client


def deaf(socket: ServerConnection) -> None:
    """Keep a connection open and read nothing from it, so that no ping is answered."""
    with socket.protocol_mutex:
        threading.Event().wait(1.5)


def first(client: Client, count: int, **options: object) -> list[StreamItem]:
    said = stream(client, EventFamily.SPREAD, **{"policy": QUICK, **options})
    return list(itertools.islice(said, count))


def test_messages_come_as_they_were_sent_over_lost_connections(
    scripted: Scripted, client: Client
) -> None:
    scripted.treatments = [
        lambda socket: (socket.send('{"a": 1.10}'), socket.close(1011, "tired")),
        lambda socket: (socket.send(b"\x00"), socket.recv()),
    ]
    assert first(client, 5) == [
        Joined(),
        Received(b'{"a": 1.10}'),
        Interrupted("closed with 1011: tired", was_open=True),
        Joined(),
        Received(b"\x00"),
    ]
    assert [request.path for request in scripted.requests] == ["/api/v1/spreadbot/ws"] * 2
    assert {request.headers["Authorization"] for request in scripted.requests} == {f"Bearer {KEY}"}


def test_a_connection_that_breaks_without_a_word_is_lost_too(
    scripted: Scripted, client: Client
) -> None:
    scripted.treatments = [lambda socket: socket.socket.shutdown(2)]
    assert first(client, 2) == [Joined(), Interrupted("the connection broke", was_open=True)]


REFUSALS = {
    "refused with 401": (401, KeyRefusedError),
    "refused with 403": (403, PlanRefusedError),
    "closed with 1008: go away": (1008, ServiceError),
    "closed with 4003: go away": (4003, ServiceError),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_a_refusal_or_a_close_that_is_meant_ends_the_stream_after_telling_of_it(
    scripted: Scripted, client: Client, why: str
) -> None:
    code, error = REFUSALS[why]
    scripted.answers = [(code, {})] if code < 1000 else []
    scripted.treatments = [lambda socket: socket.close(code, "go away")]
    told: list[StreamItem] = []
    with pytest.raises(error) as refused:
        told.extend(stream(client, EventFamily.SPREAD, policy=QUICK))
    assert told[-1] == Interrupted(why, was_open=code >= 1000)
    assert refused.value.status == (code if code < 1000 else None)
    assert code < 1000 or f"ended the stream ({why})" in str(refused.value)
    assert len(scripted.requests) == 1


@pytest.mark.parametrize("elsewhere", ["", "http://[::1", "ws://127.0.0.1:9/", "other://x"])
def test_a_redirect_is_not_followed_wherever_it_leads(
    scripted: Scripted, client: Client, elsewhere: str
) -> None:
    location = elsewhere or f"{scripted.base_url}/elsewhere"
    scripted.answers = [(307, {"Location": location})]
    with pytest.raises(ServiceError, match="307"):
        first(client, 9, policy=replace(QUICK, silence_s=0.1))
    assert [request.path for request in scripted.requests] == ["/api/v1/spreadbot/ws"]


def test_too_many_requests_is_waited_out(scripted: Scripted, client: Client) -> None:
    scripted.answers = [(429, {"Retry-After": "0"}), (503, {})]
    assert first(client, 3) == [
        Interrupted("refused with 429", was_open=False),
        Interrupted("refused with 503", was_open=False),
        Joined(),
    ]


def test_where_nothing_listens_it_goes_on_trying() -> None:
    with Bare("http://127.0.0.1:9", KEY) as client:
        told = first(client, 3)
    assert [item.was_open for item in told if isinstance(item, Interrupted)] == [False] * 3


def test_it_ends_soon_after_it_is_told_to_while_it_listens(client: Client) -> None:
    stop = threading.Event()
    said = stream(client, EventFamily.SPREAD, stop=stop)
    assert next(said) == Joined()
    stop.set()
    assert list(said) == []


def test_it_ends_soon_after_it_is_told_to_while_it_waits(
    scripted: Scripted, client: Client
) -> None:
    stop = threading.Event()
    scripted.treatments = [lambda socket: socket.close(1011)]
    said = stream(client, EventFamily.SPREAD, stop=stop, policy=ReconnectPolicy(first_wait_s=600))
    assert [next(said), next(said)] == [Joined(), Interrupted("closed with 1011", was_open=True)]
    stop.set()
    assert list(said) == []


def test_what_came_on_a_quiet_connection_while_another_opened_is_received(
    scripted: Scripted, client: Client
) -> None:
    opened, sent, done = threading.Event(), threading.Event(), threading.Event()
    scripted.treatments = [
        lambda socket: (opened.wait(5), socket.send("late"), sent.set(), done.wait(5)),
        lambda _: (opened.set(), done.wait(5)),
    ]
    admissions = itertools.count()
    said = stream(
        client,
        EventFamily.SPREAD,
        policy=replace(QUICK, silence_s=0.3),
        admitted=lambda: next(admissions) and sent.wait(5),
    )
    with contextlib.closing(said):
        assert list(itertools.islice(said, 2)) == [Joined(), Received(b"late")]
    done.set()


def test_a_connection_that_is_silent_to_a_ping_too_is_lost(
    scripted: Scripted, client: Client
) -> None:
    scripted.treatments = [deaf]
    policy = ReconnectPolicy(first_wait_s=0.01, silence_s=0.3, pong_s=0.2)
    assert first(client, 3, policy=policy) == [
        Joined(),
        Interrupted("silent for 0.3 s, also to a ping", was_open=True),
        Joined(),
    ]


def test_the_library_sends_no_pings_of_its_own_beside_ours(client: Client) -> None:
    with socket_to(client, "/", 1_000, discreet_logger(str)) as socket:
        assert socket.keepalive_thread is None


def test_many_messages_before_the_answer_to_a_ping_are_an_answer_too(
    scripted: Scripted, client: Client
) -> None:
    def bursts(socket: ServerConnection) -> None:
        with socket.protocol_mutex:
            threading.Event().wait(0.6)  # the ping waits unread
        for number in range(3 * client.limits.socket_messages):
            socket.send(f"{number}")
        socket.recv()

    scripted.treatments = [bursts]
    policy = replace(QUICK, ping_s=0.2)
    said = first(client, 1 + 3 * client.limits.socket_messages, policy=policy)
    assert said == [Joined(), *(Received(b"%d" % n) for n in range(len(said) - 1))]


def test_a_connection_that_is_not_admitted_is_given_up_before_it_is_heard(
    scripted: Scripted, client: Client
) -> None:
    refusals: list[Exception] = [UnreachableError("the archive does not answer")]

    def admitted() -> None:
        if refusals:
            raise refusals.pop()

    scripted.treatments = [lambda socket: (socket.send("x"), socket.recv())] * 2
    assert first(client, 3, admitted=admitted) == [
        Interrupted("the archive does not answer", was_open=False),
        Joined(),
        Received(b"x"),
    ]


def test_at_debug_level_neither_logs_nor_errors_show_the_key(
    scripted: Scripted, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    scripted.treatments = [lambda socket: socket.close(1011, KEY)]
    scripted.answers = [(503, {"X-Echo": KEY})]
    said = first(client, 4)
    scripted.answers = [(401, {"X-Echo": KEY})]
    with pytest.raises(KeyRefusedError) as refused:
        first(client, 9)
    ours = [record for record in caplog.records if record.name == "websockets.client"]
    logged = "\n".join(record.getMessage() for record in ours)
    assert "Authorization: Bearer ***" in logged
    shown = logged + repr(said) + "".join(traceback.format_exception(refused.value))
    assert KEY not in shown + repr(client) + str(refused.value.detail)
    theirs = [record for record in caplog.records if record not in ours]
    sent = [record for record in theirs if record.name != "websockets.server"]
    assert not [record for record in sent if KEY in record.getMessage()]


def test_trajectories_are_subscribed_to_by_their_place_and_again_after_a_loss() -> None:
    clock = SpedClock(start=START, speed=600.0)
    wanted = [
        Trajectory.parse("BTC_USDT:AURORA.spot"),
        Trajectory.parse("BTC_USDT:AURORA.spot:DRACO.futures"),
    ]
    with (
        running(Config(Simulated(7), port=0, clock=clock)) as service,
        Client(service.base_url, "demo-pro") as client,
    ):
        names = client.profile().streams
        found: dict[int, bytes] = {}
        for item in stream(client, wanted):
            if isinstance(item, Received):
                said = read_market_message(names, item.body, [])
                if isinstance(said, Item):
                    found[said.identity] = said.record
            if len(found) == 2:
                break
    assert b'"mark_price"' in found[0]
    assert b'"spread_pct"' in found[1]


def test_a_message_over_the_limit_is_a_named_loss_and_the_stream_goes_on(
    scripted: Scripted,
) -> None:
    scripted.treatments = [
        lambda socket: (socket.send("ok"), socket.send("x" * 5_000), socket.recv()),
        lambda socket: (socket.send("again"), socket.recv()),
    ]
    with Bare(scripted.base_url, KEY, limits=Limits(message_bytes=4_096)) as client:
        told = first(client, 5)
    why = "a message came that is larger than 4,096 bytes; message_bytes of the limits allows more"
    assert told == [
        Joined(),
        Received(b"ok"),
        Interrupted(why, was_open=True),
        Joined(),
        Received(b"again"),
    ]


def test_the_key_is_struck_out_of_messages(
    scripted: Scripted, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    escaped = "".join(f"\\u{ord(c):04x}" for c in KEY)
    scripted.treatments = [
        lambda socket: (
            socket.send(f'{{"trace": "{KEY}"}}'),
            socket.send(f'{{"trace": "{escaped}"}}'),
            socket.recv(),
        )
    ]
    assert first(client, 3) == [Joined(), *[Received(b'{"trace": "***"}')] * 2]
    (warned,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "sends the key back" in warned.getMessage()


FLOODED = """
import re, sys, time
from toolkit.client import Client
from toolkit.client.stream import discreet_logger, socket_to, stream
from toolkit.market import EventFamily
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.socket_steps import Interrupted, Received, ReconnectPolicy
with Client(sys.argv[1], "key") as client:
    client.speak(BUILT_IN)
    policy = ReconnectPolicy(first_wait_s=0.01, longest_wait_s=0.01)
    seen = []
    for item in stream(client, EventFamily.SPREAD, policy=policy):
        seen.append(item.why if isinstance(item, Interrupted) else len(getattr(item, "body", "")))
        if isinstance(item, Received):
            time.sleep(0.02)  # slower than they come
        if len(seen) == 30:
            break
peak_mb = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024 / 1e6
print(round(peak_mb), *dict.fromkeys(seen), sep="|")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "shown"), [(15 * 10**6, "larger than 4,194,304 bytes"), (4 * 10**6, "|4000000")]
)
def test_a_flood_of_large_frames_takes_no_more_than_300_mb(
    scripted: Scripted, size: int, shown: str
) -> None:
    def flood(socket: ServerConnection) -> None:
        frame = "x" * size
        with contextlib.suppress(ConnectionClosed):
            while True:
                socket.send(frame)

    scripted.treatments = [flood] * 60
    command = [sys.executable, "-c", FLOODED, scripted.base_url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert shown in done.stdout
    assert int(done.stdout.partition("|")[0]) <= 300, done.stdout
