"""How a service may differ from the interface: switches for tests, all off by default."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolkit.errors import InputError
from toolkit.service.adversary.rest import RestSwitches
from toolkit.service.adversary.webhooks import WebhookSwitches


@dataclass(frozen=True, slots=True)
class Adversary:
    """What goes wrong, and how often. The same ``seed`` draws the same accidents.

    WebSockets: with ``accept_then_close`` each socket is accepted and closed at once with that
    code. The first ``mute_sockets`` sockets accepted never send a message. Each socket is closed
    (1011) after a time drawn from ``drop_after_s`` (s, the machine's clock), and what was not sent
    is lost. Of the event documents that sockets send, ``duplicate_share`` are sent again later, and
    ``reorder_share`` are sent after their followers. The event logs show a document
    ``archive_lag_s`` (s, the service's clock) after the sockets do.

    ``rest`` has the switches of the REST routes, ``webhooks`` those of deliveries.

    >>> Adversary(duplicate_share=2.0)
    Traceback (most recent call last):
    toolkit.errors.InputError: duplicate_share: 2.0 is not allowed; allowed: 0 to 1
    """

    seed: int = 0
    accept_then_close: int | None = None
    mute_sockets: int = 0
    drop_after_s: tuple[float, float] | None = None
    duplicate_share: float = 0.0
    reorder_share: float = 0.0
    archive_lag_s: int = 0
    rest: RestSwitches = field(default_factory=RestSwitches)
    webhooks: WebhookSwitches = field(default_factory=WebhookSwitches)

    def __post_init__(self) -> None:
        for name in ("duplicate_share", "reorder_share"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise InputError(name, getattr(self, name), "0 to 1")
        for name in ("mute_sockets", "archive_lag_s"):
            if getattr(self, name) < 0:
                raise InputError(name, getattr(self, name), "0 or more")


KIND = Adversary()
"""All switches off."""


@dataclass(slots=True)
class ActiveSwitches:
    """The switches in force, which the control route may change while the service runs."""

    adversary: Adversary = KIND
