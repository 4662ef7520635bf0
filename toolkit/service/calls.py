"""What an answer is made from: the service itself, and one call upon it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from toolkit.service.clock import Clock
from toolkit.service.pages import Pages
from toolkit.service.policy import Owner, Policy
from toolkit.service.source import Source

__all__ = ["Call", "Service"]

Q = TypeVar("Q")


@dataclass(frozen=True)
class Service:
    """A source, a clock and a policy: what all transports answer from.

    Examples
    --------
    >>> from toolkit.service import miniature
    >>> from toolkit.service.policy import DEMO_OWNERS
    >>> Service(miniature.source(), Clock(), Policy(DEMO_OWNERS)).source.kind
    'simulated'
    """

    source: Source
    clock: Clock
    policy: Policy

    @cached_property
    def pages(self) -> Pages:
        """The source's trajectories as pages."""
        return Pages(self.source)


@dataclass(frozen=True, slots=True)
class Call(Generic[Q]):
    """One question: who asks, what, how many items at most, and when (s, the service's clock).

    Examples
    --------
    >>> from toolkit.service import miniature
    >>> from toolkit.service.policy import DEMO_OWNERS
    >>> service = Service(miniature.source(), Clock(fixed_at=60), Policy(DEMO_OWNERS, 3600))
    >>> Call(service, DEMO_OWNERS[0], None, limit=500, now=service.clock.now()).since
    -3540
    """

    service: Service
    owner: Owner
    query: Q
    limit: int
    now: int

    @property
    def since(self) -> int | None:
        """The first second still answered for (s); None where everything is."""
        retention_s = self.service.policy.retention_s
        return None if retention_s is None else self.now - retention_s
