"""Deliveries: what is sent to an endpoint, and how it is signed.

Source: the Standard Webhooks specification 1.0. It is our choice: the interface names no scheme.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass

_PREFIX = "whsec_"


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """A body and its id, the number of failed attempts, and whether it is retried."""

    identity: str
    body: bytes
    failed: int = 0
    retried: bool = True

    @classmethod
    def of(cls, owner: str, body: bytes) -> WebhookMessage:
        """Make the delivery of a body to an owner, always with the same id.

        >>> WebhookMessage.of("ann", b"{}").identity
        'msg_7450f96c91288376f11dbd9f'
        """
        digest = hashlib.blake2b(owner.encode() + b"\n" + body, digest_size=12)
        return cls(f"msg_{digest.hexdigest()}", body)

    def request(self, secret: str, ts: int) -> tuple[dict[str, str], bytes]:
        """Return the headers and the body of an attempt at ``ts`` (s), signed with the secret.

        >>> WebhookMessage("a", b"{}").request(new_secret(), 60)[1]
        b'{}'
        """
        return signed_headers(secret, self.identity, ts, self.body), self.body


def new_secret() -> str:
    """Return a secret for signatures: ``whsec_`` and the base64 of 32 random bytes.

    >>> len(new_secret()), new_secret() == new_secret()
    (50, False)
    """
    return _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signed_headers(secret: str, identity: str, ts: int, body: bytes) -> dict[str, str]:
    """Return the three headers of a delivery that is attempted at ``ts`` (s).

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
