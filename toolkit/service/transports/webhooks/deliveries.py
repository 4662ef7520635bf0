"""Deliveries: what is brought to an endpoint, how it is signed, and what may befall it.

Source: the Standard Webhooks specification 1.0. It is our choice: the interface names no scheme.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace

from toolkit.service.adversary.webhooks import WebhookSwitches

__all__ = ["REPLAYED_S", "Delivery", "befall", "new_secret", "signed_headers"]

REPLAYED_S = 3_600
"""How old a replayed delivery is (s)."""

_PREFIX = "whsec_"
_MOVED_BY = 100


@dataclass(frozen=True, slots=True)
class Delivery:
    """A body and its id, the attempts that failed, and whether something is done to it.

    Examples
    --------
    >>> Delivery.of("ann", b"{}") == Delivery.of("ann", b"{}") != Delivery.of("bob", b"{}")
    True
    """

    identity: str
    body: bytes
    failed: int = 0
    tampered: bool = False
    replayed: bool = False

    @classmethod
    def of(cls, owner: str, body: bytes) -> Delivery:
        """The delivery of a body to an owner, always under the same id.

        Examples
        --------
        >>> Delivery.of("ann", b"{}").identity
        'msg_7450f96c91288376f11dbd9f'
        """
        digest = hashlib.blake2b(owner.encode() + b"\n" + body, digest_size=12)
        return cls(f"msg_{digest.hexdigest()}", body)


def new_secret() -> str:
    """A secret for signatures: ``whsec_`` and the base64 of 32 random bytes.

    Examples
    --------
    >>> len(new_secret()), new_secret() == new_secret()
    (50, False)
    """
    return _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signed_headers(secret: str, identity: str, ts: int, body: bytes) -> dict[str, str]:
    """The three headers of a delivery whose attempt is made at ``ts`` (s).

    Examples
    --------
    >>> key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    >>> body = b'{"test": 2432232314}'
    >>> signed_headers(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)["webhook-signature"]
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    digest = hmac.digest(key, f"{identity}.{ts}.".encode() + body, "sha256")
    return {
        "webhook-id": identity,
        "webhook-timestamp": str(ts),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def befall(
    deliveries: Iterable[Delivery], switches: WebhookSwitches, draw: random.Random
) -> list[Delivery]:
    """Deliveries in the order they are made, with what an adversary does to them.

    The draws depend on how many deliveries went before, not on how they came together.

    Examples
    --------
    >>> twice = befall([Delivery("a", b"{}")], WebhookSwitches(duplicated=1.0), random.Random(1))
    >>> [delivery.identity for delivery in twice]
    ['a', 'a']
    """
    placed: list[tuple[float, Delivery]] = []
    for turn, delivery in enumerate(deliveries):
        tampered, duplicated, reordered, replayed = (draw.random() for _ in range(4))
        changed = replace(delivery, tampered=tampered < switches.tampered)
        late = turn + (_MOVED_BY * draw.random() if reordered < switches.reordered else 0.0)
        placed.append((late, changed))
        if duplicated < switches.duplicated:
            placed.append((turn + _MOVED_BY * draw.random(), delivery))
        if replayed < switches.replayed:
            placed.append((turn + 0.5, replace(delivery, replayed=True)))
    return [delivery for _, delivery in sorted(placed, key=lambda pair: pair[0])]
