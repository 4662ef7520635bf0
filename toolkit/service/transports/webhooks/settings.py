"""Settings of webhook deliveries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import InputError

RETRIES_S = (5.0, 30.0, 120.0, 600.0, 3600.0)
"""The waits (s) before each further attempt of a failed delivery."""


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """How deliveries are retried and limited, and whether they may go to this machine.

    Endpoints are https and public. With ``loopback`` loopback addresses are allowed as well, over
    http or https, but no other private ones. ``retries_s`` (s) are the waits before further
    attempts, ``timeout_s`` (s) the longest that one may take, ``in_flight`` the most concurrent
    ones per endpoint. ``authorities`` is a PEM file of certificate authorities trusted beside the
    system's.

    >>> WebhookSettings(in_flight=0)
    Traceback (most recent call last):
    toolkit.errors.InputError: in_flight: 0 is not allowed; allowed: 1 or more
    """

    loopback: bool = False
    retries_s: tuple[float, ...] = RETRIES_S
    timeout_s: float = 15.0
    in_flight: int = 16
    authorities: Path | None = None

    def __post_init__(self) -> None:
        if self.in_flight < 1:
            raise InputError("in_flight", self.in_flight, "1 or more")
        if self.timeout_s <= 0:
            raise InputError("timeout_s", self.timeout_s, "seconds above 0")
        if any(wait_s < 0 for wait_s in self.retries_s):
            raise InputError("retries_s", self.retries_s, "seconds, none below 0")
