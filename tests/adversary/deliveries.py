"""Webhook deliveries that are repeated, out of order, late or changed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.adversary.settings import ActiveSwitches, WebhookSwitches
from toolkit.service.transports.courier import Courier, WebhookMessage, signed_headers

_REPLAYED_S = 3_600  # how old the signature of a replayed delivery is
_MOVED_BY = 100


@dataclass(frozen=True, slots=True)
class FaultyMessage(WebhookMessage):
    """A delivery that may be tampered with at its first attempt, or replayed.

    >>> FaultyMessage("a", b"{}", tampered=True).request("whsec_", 60)[1]
    b'{ }'
    """

    tampered: bool = False
    replayed: bool = False

    def request(self, secret: str, ts: int) -> tuple[dict[str, str], bytes]:
        """Return an attempt's headers and body. The body may differ from the signed one."""
        signed_at = ts - _REPLAYED_S if self.replayed else ts
        headers = signed_headers(secret, self.identity, signed_at, self.body)
        changed = self.tampered and not self.failed
        return headers, self.body[:-1] + b" }" if changed else self.body


class FaultyCourier(Courier):
    """A courier that changes its deliveries by the switches."""

    def __init__(self, *of_courier: Any, active: ActiveSwitches, **options: Any) -> None:
        super().__init__(*of_courier, **options)
        self._active = active
        self._draw = random.Random(active.adversary.seed)

    def _planned(self, deliveries: Sequence[WebhookMessage]) -> Sequence[WebhookMessage]:
        return befall(deliveries, self._active.adversary.webhooks, self._draw)


def befall(
    deliveries: Iterable[WebhookMessage], switches: WebhookSwitches, draw: random.Random
) -> list[FaultyMessage]:
    """Return the deliveries in the order they are made, changed by the switches.

    The draws depend on how many deliveries came before, not on how they are grouped.

    >>> always, draw = WebhookSwitches(duplicated=1.0), random.Random(1)
    >>> twice = befall([WebhookMessage("a", b"{}")], always, draw)
    >>> [delivery.identity for delivery in twice]
    ['a', 'a']
    """
    placed: list[tuple[float, FaultyMessage]] = []
    for turn, planned in enumerate(deliveries):
        delivery = FaultyMessage(planned.identity, planned.body)
        tampered, duplicated, reordered, replayed = (draw.random() for _ in range(4))
        changed = replace(delivery, tampered=tampered < switches.tampered)
        late = turn + (_MOVED_BY * draw.random() if reordered < switches.reordered else 0.0)
        placed.append((late, changed))
        if duplicated < switches.duplicated:
            placed.append((turn + _MOVED_BY * draw.random(), delivery))
        if replayed < switches.replayed:
            placed.append((turn + 0.5, replace(delivery, replayed=True, retried=False)))
    return [delivery for _, delivery in sorted(placed, key=lambda pair: pair[0])]
