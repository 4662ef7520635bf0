"""What a service does otherwise than assumed, as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something the service does otherwise than assumed. It is recorded, counted and shown."""

    kind: str
    where: str
    says: str
