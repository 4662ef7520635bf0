"""History actions of the data socket: a route's question as a message, and its answer.

The service gives the query fields of a route and of its action as the same, and their answers too.
Which action a route has, and how messages name it, is in
`toolkit.wire.profile.stream_names`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from toolkit.wire.exchange import ANSWERED, HEADER, UNREADABLE, Request
from toolkit.wire.profile.event_routes import EventRoute
from toolkit.wire.profile.profile import Profile
from toolkit.wire.profile.stream_names import StreamNames
from toolkit.wire.rows.conversion import name_of

_NUMBERS = ("start_time", "end_time", "limit")
_WAITS = ("retry_after_s", "retry_after")


def action_of(profile: Profile, request: Request, identity: int) -> bytes | None:
    """Encode a question as a message with an id of ours.

    It is None where the question is of no history or log, or of one that is paged by headers, which
    messages do not have.

    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> asked = Request.get("/api/v1/data/history/price", {"symbol": "BTC_USD", "end_time": 60})
    >>> action_of(BUILT_IN, asked, 7)
    b'{"action":"history/price","id":7,"symbol":"BTC_USD","end_time":60}'
    >>> action_of(BUILT_IN, Request("/api/v1/data/schemas"), 7) is None
    True
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
    """Read whether a message answers our question: its status, and the wait it asks for (s).

    A message with another id, or a record of a subscription, is None. One without an id is taken as
    the answer, since a connection has one question at a time. A page is 200. A message of the type
    error has the status of its problem, 500 where it has none. What is not a JSON object is a page
    that cannot be read, which the reader of the page says.

    >>> from toolkit.wire.profile.stream_names import BUILT_IN_STREAMS
    >>> answer_of(BUILT_IN_STREAMS, b'{"items":[],"id":"7"}', 7)
    (200, None)
    >>> answer_of(BUILT_IN_STREAMS, b'{"type":"error","id":7,"status":429,"retry_after_s":3}', 7)
    (429, 3.0)
    >>> answer_of(BUILT_IN_STREAMS, b'{"items":[],"id":6}', 7) is None
    True
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


def _value(said: Mapping[str, msgspec.Raw], name: str) -> Any:
    try:
        return msgspec.json.decode(said.get(name, b"null"))
    except UNREADABLE:
        return None
