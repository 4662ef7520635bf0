"""Switches of webhooks: deliveries that are repeated, out of order, late or changed."""

from __future__ import annotations

from dataclasses import dataclass, fields

from toolkit.errors import InputError


@dataclass(frozen=True, slots=True)
class WebhookSwitches:
    """The shares of deliveries with each fault, all 0 by default.

    ``duplicated`` are made twice, the second up to 100 deliveries later. ``reordered`` are made up
    to 100 deliveries later than their turn. ``replayed`` are made a second time with a signature
    that is one hour old. ``tampered`` have their body changed after it was signed, at the first
    attempt only.

    >>> WebhookSwitches(tampered=1.5)
    Traceback (most recent call last):
    toolkit.errors.InputError: tampered: 1.5 is not allowed; allowed: 0 to 1
    """

    duplicated: float = 0.0
    reordered: float = 0.0
    replayed: float = 0.0
    tampered: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if not 0.0 <= getattr(self, field.name) <= 1.0:
                raise InputError(field.name, getattr(self, field.name), "0 to 1")
