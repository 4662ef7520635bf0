"""Sockets without the socket: the life of a stream, its messages, and history actions.

`lasting` is one stream as a generator of steps to carry out and of what happened. Time comes from a
given clock. Source: docs/design.md, "Live capture".
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from toolkit.errors import InputError, ServiceError, WireError
from toolkit.market import Trajectory
from toolkit.wire.exchange import (
    ANSWERED,
    HEADER,
    UNREADABLE,
    Request,
    Response,
    Wait,
    decoded,
    refusal,
    retry_after_s,
)
from toolkit.wire.findings import Finding
from toolkit.wire.limits import LIMITS
from toolkit.wire.profile.event_routes import EventRoute
from toolkit.wire.profile.history_route import HistoryRoute
from toolkit.wire.profile.profile import Profile
from toolkit.wire.profile.shapes import StreamNames
from toolkit.wire.rows.conversion import name_of
from toolkit.wire.rows.mending import check_text, read_mended

_POLICY_VIOLATION = 1008
_PRIVATE_CODES = range(4000, 5000)


@dataclass(frozen=True, slots=True)
class Open:
    """A stream's step: open a socket at this path. Send back None, or the `Loss`."""

    path: str


@dataclass(frozen=True, slots=True)
class Say:
    """A stream's step: send this message. Send back None, or the `Loss`."""

    message: bytes


@dataclass(frozen=True, slots=True)
class Listen:
    """A stream's step: receive a message. Send back None after so many seconds, or the `Loss`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Ping:
    """A stream's step: wait so many seconds for the answer to a ping. Send back None or `Loss`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Renew:
    """A stream's step: open a second socket at this path and use it in place of the first.

    The old one is closed, and read to its end when the new one is first listened to. Send back
    None, or the new one's `Loss`, which keeps the old one in use.
    """

    path: str


@dataclass(frozen=True, slots=True)
class Joined:
    """The stream is open and delivers what happens from now on."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message came."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The stream is not open. ``was_open`` if it had been."""

    why: str
    was_open: bool


@dataclass(frozen=True, slots=True)
class Loss:
    """Why a socket is gone: in words, with the service's answer or close code if any."""

    why: str
    url: str = ""
    answer: Response | None = None
    code: int | None = None


StreamStep = Open | Say | Listen | Ping | Renew | Wait
StreamItem = Joined | Received | Interrupted
_Outcome = Loss | bytes | None
_Stream = Generator[StreamStep | StreamItem, _Outcome, None]


@dataclass(frozen=True, slots=True)
class ReconnectPolicy:
    """When to reopen a lost stream, and when it counts as silent.

    The n-th wait in a row is a random part (between half and all) of ``first_wait_s * 2**n``, at
    most ``longest_wait_s`` and at least ``Retry-After``, which over ``longest_asked_s`` ends the
    stream with the error of its status. The count restarts after a connection of ``stable_s`` with
    a message.

    After ``ping_s`` without a message a ping must be answered within ``pong_s``, repeatedly, or the
    connection is lost. As a mute connection may answer pings, after ``silence_s`` another is opened
    before it is closed.

    >>> ReconnectPolicy(silence_s=0)
    Traceback (most recent call last):
    toolkit.errors.InputError: silence_s: 0 is not allowed; allowed: seconds above 0
    """

    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0
    longest_asked_s: float = LIMITS.asked_wait_s
    stable_s: float = 60.0
    ping_s: float = 20.0
    silence_s: float = 600.0
    pong_s: float = 10.0
    fraction: Callable[[], float] = field(default=random.random, repr=False)

    def __post_init__(self) -> None:
        for name in ("first_wait_s", "longest_wait_s", "ping_s", "silence_s", "pong_s"):
            if getattr(self, name) <= 0:
                raise InputError(name, getattr(self, name), "seconds above 0")


class Backoff:
    """The wait before the next attempt. `clock` gives seconds that only grow.

    >>> waits = Backoff(ReconnectPolicy(fraction=lambda: 1.0), clock=lambda: 0.0)
    >>> [waits.after(Loss("closed with 1011")) for _ in range(3)]
    [0.5, 1.0, 2.0]
    """

    def __init__(self, policy: ReconnectPolicy, clock: Callable[[], float]) -> None:
        self._policy = policy
        self._clock = clock
        self._failures = 0
        self._opened_at: float | None = None
        self._heard = False

    def opened(self) -> None:
        """Note that a connection is open."""
        self._opened_at, self._heard = self._clock(), False

    def heard(self) -> None:
        """Note that a message came."""
        self._heard = True

    def after(self, loss: Loss) -> float:
        """Return the seconds to wait after a loss. Raises if a retry is useless."""
        asked_s = retry_after_s(loss.answer) if loss.answer else None
        if is_fatal(loss) or (asked_s or 0.0) > self._policy.longest_asked_s:
            if loss.answer is not None:
                raise refusal(loss.answer)
            ended = f"{loss.url}: the service ended the stream ({loss.why})"
            raise ServiceError(ended, url=loss.url)
        lasted_s = 0.0 if self._opened_at is None else self._clock() - self._opened_at
        if self._heard and lasted_s >= self._policy.stable_s:
            self._failures = 0
        self._opened_at, self._heard = None, False
        policy = self._policy
        whole_s = min(policy.longest_wait_s, policy.first_wait_s * 2.0 ** min(self._failures, 60))
        self._failures += 1
        return max(whole_s * (0.5 + 0.5 * policy.fraction()), asked_s or 0.0)


def is_fatal(loss: Loss) -> bool:
    """Check for a refusal that is not about load, or close code 1008 or 4xxx.

    >>> is_fatal(Loss("closed", code=4401)), is_fatal(Loss("closed", code=1013))
    (True, False)
    """
    if loss.answer is not None:
        return loss.answer.status != 429 and loss.answer.status < 500
    return loss.code == _POLICY_VIOLATION or loss.code in _PRIVATE_CODES


def lasting(
    path: str, greetings: Sequence[bytes], policy: ReconnectPolicy, clock: Callable[[], float]
) -> _Stream:
    """Keep one stream open: open it, send the greetings, listen, reopen after a loss.

    Yields each `StreamStep` to carry out, and `Joined`, `Received` and `Interrupted`. Never
    returns. Raises what `Backoff.after` raises, after the `Interrupted`.
    """
    backoff = Backoff(policy, clock)
    while True:
        refused = yield Open(path)
        if isinstance(refused, Loss):
            loss = refused
        else:
            backoff.opened()
            loss = yield from _conversation(path, greetings, policy, clock, backoff)
        yield Interrupted(loss.why, was_open=not isinstance(refused, Loss))
        yield Wait(backoff.after(loss))


def _conversation(
    path: str,
    greetings: Sequence[bytes],
    policy: ReconnectPolicy,
    clock: Callable[[], float],
    backoff: Backoff,
) -> Generator[StreamStep | StreamItem, _Outcome, Loss]:
    """Run a connection until it is lost, renewing a quiet one that is alive."""
    if loss := (yield from _greeted(greetings)):
        return loss
    yield Joined()
    heard_at = answered_at = clock()
    while True:
        left_s = min(heard_at + policy.silence_s, answered_at + policy.ping_s) - clock()
        if left_s > 0:
            outcome = yield Listen(left_s)
            if isinstance(outcome, Loss):
                return outcome
            if outcome is not None:
                heard_at = answered_at = clock()
                backoff.heard()
                yield Received(outcome)
            continue
        if isinstance((yield Ping(policy.pong_s)), Loss):
            quiet_s = min(policy.ping_s, policy.silence_s)
            return Loss(f"silent for {quiet_s:g} s, also to a ping")
        answered_at = clock()
        if answered_at < heard_at + policy.silence_s:
            continue
        renewed = not isinstance((yield Renew(path)), Loss)
        if renewed and (loss := (yield from _greeted(greetings))):
            return loss
        heard_at = answered_at = clock()


def _greeted(
    greetings: Sequence[bytes],
) -> Generator[StreamStep | StreamItem, _Outcome, Loss | None]:
    """Send the greetings, and return a loss."""
    for greeting in greetings:
        outcome = yield Say(greeting)
        if isinstance(outcome, Loss):
            return outcome
    return None


def subscription(
    names: StreamNames, route: HistoryRoute, trajectory: Trajectory, identity: int
) -> bytes:
    """Encode the message that subscribes to a trajectory under an id.

    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> key = Trajectory.parse("BTC_USD:KRAKEN.spot")
    >>> subscription(BUILT_IN.streams, BUILT_IN.histories["price"], key, 7)
    b'{"action":"subscribe","id":7,"channel":"price","symbol":"BTC_USD","exchange":"KRAKEN",...}'
    """
    head = {
        names.fields["action"]: names.words["subscribe"],
        names.fields["id"]: identity,
        names.fields["channel"]: names.channels[trajectory.family],
    }
    return msgspec.json.encode(head | route.trajectory_query(trajectory))


@dataclass(frozen=True, slots=True)
class Item:
    """A record of a subscription: its id, and its bytes unchanged."""

    identity: int
    record: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """A refused subscription, by its id. ``answer`` is that of REST."""

    identity: int | None
    answer: Response


def read_market_message(
    names: StreamNames, body: bytes, findings: list[Finding]
) -> Item | Refused | None:
    """Read a message of the market socket, None if it only confirms something.

    A value that is not JSON, such as NaN, is null and a finding. Raises `WireError` unless it is a
    JSON object.

    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> read_market_message(BUILT_IN.streams, b'{"type":"price","id":"7","item":{"ts":60}}', [])
    Item(identity=7, record=b'{"ts":60}')
    """
    try:
        message = read_mended(_fields, body, names.market, findings)
    except UNREADABLE as error:
        raise WireError(
            f"{names.market} sent a message that is not a JSON object ({error})"
        ) from None
    identity = _value(message, names.fields["id"], int)
    if _value(message, names.fields["type"], str) == names.words["error"]:
        status = _value(message, "status", int)
        return Refused(identity, Response(status or 500, {}, body, names.market))
    record = message.get(names.fields["item"])
    return None if record is None or identity is None else Item(identity, bytes(record))


def _fields(body: bytes) -> dict[str, msgspec.Raw]:
    check_text(body)
    return msgspec.json.decode(body, type=dict[str, msgspec.Raw])


class RecentlyDelivered:
    """The last ``capacity`` contents delivered under each key, to recognise repeats.

    The one received longest ago is forgotten first.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise InputError("capacity", capacity, "1 or more")
        self._capacity = capacity
        self._known: OrderedDict[tuple[Hashable, Hashable], None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def is_new(self, key: Hashable, content: Hashable) -> bool:
        """Check whether a content is new under its key, and remember it.

        >>> RecentlyDelivered(1).is_new("event 1", "opened")
        True
        """
        known = (key, content) in self._known
        self._known[key, content] = None
        self._known.move_to_end((key, content))
        if len(self._known) > self._capacity:
            self._known.popitem(last=False)
        return not known


_NUMBERS = ("start_time", "end_time", "limit")
_WAITS = ("retry_after_s", "retry_after")


def action_of(profile: Profile, request: Request, identity: int) -> bytes | None:
    """Encode a history request as a message with an id of ours.

    None if the request is not of a history or event log, or is paged by headers, which messages
    lack. A route and its action have the same fields and answers.

    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> asked = Request.get("/api/v1/data/history/price", {"symbol": "BTC_USD", "end_time": 60})
    >>> action_of(BUILT_IN, asked, 7)
    b'{"action":"history/price","id":7,"symbol":"BTC_USD","end_time":60}'
    """
    names = profile.streams
    logs = {f"history/{of}-events": route for of, route in profile.events.items()}
    routes = {f"history/{of}": route for of, route in profile.histories.items()} | logs
    named = {route.path: (word, route) for word, route in routes.items()}
    if request.path not in named:
        return None
    word, route = named[request.path]
    places = [*route.ask, route.next, *([route.more] if isinstance(route, EventRoute) else [])]
    if any(place.startswith(HEADER) for place in places):
        return None
    asked = {template: name for name, template in route.ask.items()}
    numbers = {asked.get(f"{{{role}}}", route.parameters.get(role, role)) for role in _NUMBERS}
    query = {k: int(v) if k in numbers and v.isdecimal() else v for k, v in request.query}
    head = {names.fields["action"]: names.words[word], names.fields["id"]: identity}
    return msgspec.json.encode(head | query)


def answer_of(names: StreamNames, message: bytes, identity: int) -> tuple[int, float | None] | None:
    """Read whether a message answers our request: its status, and the seconds it asks to wait.

    None for another id, and for a record of a subscription. One without an id is the answer, since
    a connection has one request at a time. A page is 200, the type error its problem's status, or
    500 without one. A message that is not a JSON object is 200: the page's reader raises.

    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> answer_of(BUILT_IN.streams, b'{"items":[],"id":"7"}', 7)
    (200, None)
    >>> answer_of(BUILT_IN.streams, b'{"type":"error","id":7,"status":429,"retry_after_s":3}', 7)
    (429, 3.0)
    """
    try:
        said = msgspec.json.decode(message, type=dict[str, msgspec.Raw])
    except UNREADABLE:
        return 200, None
    said_id = name_of(_value(said, names.fields["id"]))
    if names.fields["item"] in said or said_id not in (None, str(identity)):
        return None
    if _value(said, names.fields["type"]) != names.words["error"]:
        return 200, None
    status = _value(said, "status")
    waits = [_value(said, name) for name in _WAITS]
    wait_s = next((float(each) for each in waits if type(each) in (int, float)), None)
    return status if type(status) is int and status not in ANSWERED else 500, wait_s


def _value(said: Mapping[str, msgspec.Raw], name: str, kind: Any = Any) -> Any:
    """Return a value of a kind, or None. A number may be text."""
    return decoded(said.get(name, b"null"), kind, strict=kind is Any)
