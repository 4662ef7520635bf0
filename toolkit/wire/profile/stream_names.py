"""The sockets' part of the wire profile: where they are, and what their messages are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolkit.wire.profile.layers import BUILT_IN_DOCUMENT


@dataclass(frozen=True, slots=True)
class StreamNames:
    """Paths of the sockets, and the words of the market socket's messages.

    ``events`` and ``channels`` are by family. ``fields`` names the parts of a message: action, id,
    channel, type, item. ``words`` names the values in them: the actions subscribe and unsubscribe,
    the type error, and the actions that ask for a page of a history or an event log.

    >>> BUILT_IN_STREAMS.events["splash"], BUILT_IN_STREAMS.channels["spread"]
    ('/api/v1/xbot/ws', 'spread')
    """

    market: str
    events: Mapping[str, str]
    channels: Mapping[str, str]
    fields: Mapping[str, str]
    words: Mapping[str, str]


BUILT_IN_STREAMS = StreamNames(**BUILT_IN_DOCUMENT["streams"])
"""The sockets of docs/interface.md."""
