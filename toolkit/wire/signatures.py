"""Webhook deliveries: their signatures, and the event document in the body.

Malformed headers raise nothing, comparison takes constant time, and only signed data is believed:
with an unsigned id a repeated delivery could claim another's.

Sources: the Standard Webhooks specification 1.0 (symmetric signatures, ``v1``), Stripe's
timestamped form ``t=...,v1=...``, GitHub's body signature.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from toolkit.errors import InputError, WireError
from toolkit.market import EventFamily
from toolkit.wire.event_log import read_document
from toolkit.wire.exchange import UNREADABLE
from toolkit.wire.findings import Finding
from toolkit.wire.profile.event_routes import EventRoute
from toolkit.wire.rows.mending import checked_json, doubled_fields, read_mended

REPLAY_WINDOW_S = 300
"""How far a delivery's time may be from the receiver's clock, either way (s)."""

Headers = Iterable[tuple[bytes, bytes]]
"""Names and values as they came, in any case."""

_BODY, _SIGNATURE, _TIMESTAMP = "{body}", "{signature}", "{timestamp}"
_PREFIX = "whsec_"
_STANDARD = [
    (f"{scheme}-id", f"{scheme}-timestamp", f"{scheme}-signature") for scheme in ("webhook", "svix")
]
_KEY_BYTES = range(24, 65)
_SIGNATURES_AT_MOST = 32
_TIME = re.compile(r"[0-9]{1,15}")
_HEX = re.compile(r"[0-9A-Fa-f]{64}")


@dataclass(frozen=True, slots=True)
class Genuine:
    """A delivery signed by a holder of a secret. Its repeats have the same id."""

    delivery_id: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """A delivery that is not shown to be genuine, and why."""

    reason: str


class Verifier(Protocol):
    """A signature scheme together with its valid secrets."""

    def check(self, headers: Headers, body: bytes) -> Genuine | Rejected:
        """Check that the body's exact bytes are genuine. Headers never make it raise."""


@dataclass(frozen=True, slots=True)
class StandardWebhooks:
    """The scheme of Standard Webhooks: HMAC-SHA256 over ``id.timestamp.body``.

    ``secrets`` are ``whsec_`` (optional) and the base64 of 24 to 64 bytes. Any of them may have
    signed, so that a new one can be added before the old one is removed. One matching signature is
    enough; other versions are ignored. An id with a full stop is refused, since the signed text
    would be ambiguous. Without ``webhook-...`` headers ``svix-id`` and so on are read.

    >>> scheme = StandardWebhooks(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"], clock=lambda: 0.0)
    >>> scheme.check([(b"webhook-id", b"msg_1"), (b"webhook-timestamp", b"0")], b"{}")
    Rejected(reason='webhook-signature is missing')
    >>> scheme
    StandardWebhooks(window_s=300)
    """

    secrets: Sequence[str] = field(repr=False)
    clock: Callable[[], float] = field(default=time.time, repr=False)
    window_s: int = REPLAY_WINDOW_S
    _keys: tuple[bytes, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check(self.secrets, self.window_s)
        object.__setattr__(self, "_keys", tuple(map(_standard_key, self.secrets)))

    def check(self, headers: Headers, body: bytes) -> Genuine | Rejected:
        """Check a delivery. The id is the signed ``webhook-id``."""
        headers = list(headers)
        sent = {name.decode("latin-1").lower() for name, _ in headers}
        names = next((names for names in _STANDARD if not sent.isdisjoint(names)), _STANDARD[0])
        found = _single(headers, names)
        if isinstance(found, Rejected):
            return found
        identity, moment, offered = found
        if "." in identity:
            return Rejected(f"{names[0]} has a full stop in it")
        if wrong := _moment_fault(names[1], moment, self.clock(), self.window_s):
            return wrong
        signed = f"{identity}.{moment}.".encode() + body
        given = [s.removeprefix("v1,") for s in offered.split(" ") if s.startswith("v1,")]
        if not _any_signs(self._keys, signed, given, _base64):
            return Rejected(f"no signature in {names[2]} is that of a known secret")
        return Genuine(identity)

    def headers(self, identity: str, body: bytes) -> dict[str, str]:
        """Return the headers for a delivery of a body that is sent now, signed by each secret.

        >>> scheme = StandardWebhooks(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        ...     clock=lambda: 1614265330.0)
        >>> headers = scheme.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}')
        >>> headers["webhook-signature"]
        'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
        """
        moment = str(int(self.clock()))
        signed = f"{identity}.{moment}.".encode() + body
        digests = [base64.b64encode(hmac.digest(key, signed, "sha256")) for key in self._keys]
        return {
            "webhook-id": identity,
            "webhook-timestamp": moment,
            "webhook-signature": " ".join(f"v1,{digest.decode()}" for digest in digests),
        }


@dataclass(frozen=True, slots=True)
class HmacSignature:
    """HMAC-SHA256 in one header, in the form that a sender documents.

    ``signed`` is the signed text, with ``{body}`` and, if the time is signed, ``{timestamp}``.
    ``written`` is the header: parts separated by commas, one with ``{signature}`` and, if signed,
    one with ``{timestamp}``. ``encoding`` is ``hex`` or ``base64``. The defaults are GitHub's form.

    A delivery without a signed time can be replayed at any time. Its id is the hash of its body,
    since no id is signed.

    >>> scheme = HmacSignature(["It's a Secret to Everybody"])
    >>> signature = b"757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    >>> headers = [(b"X-Hub-Signature-256", b"sha256=" + signature)]
    >>> scheme.check(headers, b"Hello, World!").delivery_id[:14]
    'sha256:dffd602'
    >>> stripe = HmacSignature(["shared"], header="Stripe-Signature",
    ...     signed="{timestamp}.{body}", written="t={timestamp},v1={signature}")
    >>> stripe.check([(b"stripe-signature", b"v1=00")], b"{}")
    Rejected(reason='Stripe-Signature has no one time in it')
    """

    secrets: Sequence[str] = field(repr=False)
    header: str = "X-Hub-Signature-256"
    signed: str = "{body}"
    written: str = "sha256={signature}"
    encoding: str = "hex"
    clock: Callable[[], float] = field(default=time.time, repr=False)
    window_s: int = REPLAY_WINDOW_S

    def __post_init__(self) -> None:
        _check(self.secrets, self.window_s)
        if self.encoding not in _ENCODINGS:
            raise InputError("encoding", self.encoding, ", ".join(_ENCODINGS))
        if self.signed.count(_BODY) != 1:
            raise InputError("signed", self.signed, f"a text with one {_BODY} in it")
        timed = _TIMESTAMP in self.signed
        if self._prefix(_SIGNATURE) is None or timed is (self._prefix(_TIMESTAMP) is None):
            allowed = f"parts that end in {_SIGNATURE}, and in {_TIMESTAMP} where it is signed"
            raise InputError("written", self.written, allowed)

    def _prefix(self, ending: str) -> str | None:
        """Return the text before a field in the header's form, None without it."""
        found = [p.removesuffix(ending) for p in self.written.split(",") if p.endswith(ending)]
        return found[0] if len(found) == 1 and "{" not in found[0] else None

    def check(self, headers: Headers, body: bytes) -> Genuine | Rejected:
        """Check a delivery. See `Verifier.check`."""
        found = _single(headers, (self.header,))
        if isinstance(found, Rejected):
            return found
        parts = [part.strip() for part in found[0].split(",")]
        moment, prefix = "", self._prefix(_TIMESTAMP)
        if prefix is not None:
            times = [part.removeprefix(prefix) for part in parts if part.startswith(prefix)]
            if len(times) != 1:
                return Rejected(f"{self.header} has no one time in it")
            moment = times[0]
            if wrong := _moment_fault(self.header, moment, self.clock(), self.window_s):
                return wrong
        prefix = self._prefix(_SIGNATURE) or ""
        given = [part.removeprefix(prefix) for part in parts if part.startswith(prefix)]
        head, _, tail = self.signed.replace(_TIMESTAMP, moment).partition(_BODY)
        signed = head.encode() + body + tail.encode()
        keys, decode = [secret.encode() for secret in self.secrets], _ENCODINGS[self.encoding]
        if not _any_signs(keys, signed, given, decode):
            return Rejected(f"no signature in {self.header} is that of a known secret")
        return Genuine("sha256:" + hashlib.sha256(body).hexdigest())


def _check(secrets: Sequence[str], window_s: int) -> None:
    if window_s <= 0:
        raise InputError("window_s", window_s, "whole seconds above zero")
    if isinstance(secrets, str) or not secrets or not all(secrets):
        raise InputError("secrets", "***", "a list of one secret or more, none of them empty")


def _standard_key(secret: str) -> bytes:
    text = secret.removeprefix(_PREFIX)
    key = _base64(text + "=" * (-len(text) % 4))
    if key is None or len(key) not in _KEY_BYTES:
        raise InputError("secrets", "***", f"{_PREFIX} and the base64 of 24 to 64 bytes")
    return key


def _base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return None


def _single(headers: Headers, names: Sequence[str]) -> list[str] | Rejected:
    """Return each header's value, stripped. A missing or repeated one is rejected."""
    wanted: dict[str, list[str]] = {name.lower(): [] for name in names}
    for sent, value in headers:
        if (values := wanted.get(sent.decode("latin-1").lower())) is not None:
            values.append(value.decode("latin-1").strip())
    for name in names:
        found = wanted[name.lower()]
        if len(found) != 1 or not found[0]:
            return Rejected(f"{name} is {'sent more than once' if len(found) > 1 else 'missing'}")
    return [wanted[name.lower()][0] for name in names]


def _moment_fault(name: str, text: str, now: float, window_s: int) -> Rejected | None:
    if _TIME.fullmatch(text) is None:
        return Rejected(f"{name} is not a whole number of seconds")
    if abs(now - int(text)) > window_s:
        return Rejected(f"the time in {name} is more than {window_s} s from this clock")
    return None


def _any_signs(
    keys: Iterable[bytes],
    signed: bytes,
    given: Sequence[str],
    decode: Callable[[str], bytes | None],
) -> bool:
    """Check that a key made one of the first signatures, comparing every pair."""
    signatures = [s for each in given[:_SIGNATURES_AT_MOST] if (s := decode(each)) is not None]
    found = False
    for key in keys:
        right = hmac.digest(key, signed, "sha256")
        for signature in signatures:
            found |= hmac.compare_digest(right, signature)
    return found


_ENCODINGS: dict[str, Callable[[str], bytes | None]] = {
    "hex": lambda text: bytes.fromhex(text) if _HEX.fullmatch(text) else None,
    "base64": _base64,
}


@dataclass(frozen=True, slots=True)
class Delivery:
    """A body, and the columns of its event document, None if it has none."""

    body: str
    row: Mapping[str, Any] | None
    findings: tuple[Finding, ...] = ()


def read_delivery(routes: Mapping[EventFamily, EventRoute], body: bytes) -> Delivery:
    """Read a delivery's body. Raises `WireError` unless it is a JSON object.

    The family is a word of the document's schema (``svc.splash.v1``), or else of its event type
    (``splash.pump``). An object without one, or without a usable time, is not an event document,
    nor is one over ``document_bytes`` of the routes' limits, which is a finding.

    >>> from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS
    >>> read_delivery(BUILT_IN_EVENTS, b'{"schema":"svc.splash.v2","ts":60,"pct":2}').row["family"]
    'splash'
    """
    mended: list[Finding] = []
    try:
        body = read_mended(checked_json, body, "webhook", mended)
        msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except UNREADABLE as error:
        raise WireError(f"the body is not a JSON object ({error})") from None
    text = body.decode()
    for route in routes.values():
        findings = list(mended)
        try:
            row = read_document(route, body, findings)
        except WireError:
            continue
        named = row["schema_id"] or row["event_type"] or ""
        if route.family.value in named.split(".") and row["ts_ms"] is not None:
            findings += doubled_fields([body], route.path)
            return Delivery(text, row, tuple(findings))
    most = min(route.limits.document_bytes for route in routes.values())
    if len(body) > most:
        says = f"more than {most:,} bytes; kept whole, and not as an event"
        return Delivery(text, None, (*mended, Finding("document_too_large", "webhook", says)))
    return Delivery(text, None, tuple(mended))
