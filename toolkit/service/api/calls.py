"""What an answer is made from: the service, and one call."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

from toolkit.service.accounts.owners import Owner
from toolkit.service.accounts.policy import Policy
from toolkit.service.accounts.quotas import Quotas
from toolkit.service.accounts.sessions import Sessions
from toolkit.service.api.pages import Pages
from toolkit.service.events.archive import EventArchive
from toolkit.service.market.clock import WALL_CLOCK, Clock
from toolkit.service.market.source import MarketSource

Q_co = TypeVar("Q_co", covariant=True)


@dataclass(eq=False)
class Service:
    """A source, a clock, a policy and event logs: all transports answer from these."""

    source: MarketSource
    clock: Clock = WALL_CLOCK
    policy: Policy = field(default_factory=Policy)
    event_logs: EventArchive | None = None
    sessions: Sessions = field(default_factory=Sessions)

    @cached_property
    def archive(self) -> EventArchive:
        """The source's event logs: those given, or all that the detectors find."""
        return self.event_logs or EventArchive(self.source)

    @cached_property
    def pages(self) -> Pages:
        """The source's trajectories as pages."""
        return Pages(self.source)

    @cached_property
    def quotas(self) -> Quotas:
        """The request counts of each owner."""
        return Quotas()


@dataclass(frozen=True, slots=True)
class Call(Generic[Q_co]):
    """One request: the owner, the query, and what the owner's plan shows.

    An answer has at most ``limit`` items. It has nothing after ``now`` (s, the service's clock less
    the plan's delay) and nothing before ``since`` (s, None: without limit).
    """

    service: Service
    owner: Owner
    query: Q_co
    limit: int
    now: int
    since: int | None = None
