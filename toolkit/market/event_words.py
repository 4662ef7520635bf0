"""The words of event documents: what opens, updates and closes an event."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class EventRole(StrEnum):
    """What a document does to its event."""

    OPENS = "opens"
    UPDATES = "updates"
    CLOSES = "closes"


TYPE_ROLES: Mapping[str, EventRole] = MappingProxyType(
    {
        "opened": EventRole.OPENS,
        "pump": EventRole.OPENS,
        "dump": EventRole.OPENS,
        "updated": EventRole.UPDATES,
        "closed": EventRole.CLOSES,
        "faded": EventRole.CLOSES,
    }
)
"""By the last part of the event type: ``spread.opened`` opens an event."""

LIFECYCLE_ROLES: Mapping[str, EventRole] = MappingProxyType(
    {"open": EventRole.UPDATES, "closed": EventRole.CLOSES}
)
"""By the lifecycle, for a document with an event type of another ending."""
