"""The sockets' part of the wire profile: where they are, and what their messages are called.

Built in is docs/interface.md. The user's file has the last word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolkit.market import EventFamily, Family

_ACTIONS = (
    *(f"history/{family}" for family in Family),
    *(f"history/{family}-events" for family in EventFamily),
)


@dataclass(frozen=True, slots=True)
class StreamNames:
    """Paths of the sockets, and the words of the market socket's messages.

    ``fields`` names the parts of a message: action, id, channel, type, item. ``words`` names the
    values in them: the actions subscribe and unsubscribe, the type error, and the actions that ask
    for a page of a history or an event log.

    >>> BUILT_IN_STREAMS.events[EventFamily.SPLASH], BUILT_IN_STREAMS.channels[Family.SPREAD]
    ('/api/v1/xbot/ws', 'spread')
    """

    market: str = "/api/v1/data/ws"
    events: Mapping[EventFamily, str] = field(
        default_factory=lambda: {
            EventFamily.SPREAD: "/api/v1/spreadbot/ws",
            EventFamily.SPLASH: "/api/v1/xbot/ws",
            EventFamily.FUNDING: "/api/v1/fundingbot/ws",
        }
    )
    channels: Mapping[Family, str] = field(
        default_factory=lambda: {family: family.value for family in Family}
    )
    fields: Mapping[str, str] = field(
        default_factory=lambda: {name: name for name in ("action", "id", "channel", "type", "item")}
    )
    words: Mapping[str, str] = field(
        default_factory=lambda: {
            name: name for name in ("subscribe", "unsubscribe", "error", *_ACTIONS)
        }
    )


BUILT_IN_STREAMS = StreamNames()
"""The sockets of docs/interface.md."""
