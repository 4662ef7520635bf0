"""Webhook deliveries: published vectors, another library's judgement, malice and bodies."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import json
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from toolkit.errors import InputError, WireError
from toolkit.market import EventFamily
from toolkit.service.events.archive import EventArchive
from toolkit.service.market.simulator import Simulated
from toolkit.service.transports.courier import new_secret, signed_headers
from toolkit.wire.event_log import document_frame, read_document
from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS
from toolkit.wire.signatures import (
    Genuine,
    HmacSignature,
    Rejected,
    StandardWebhooks,
    Verifier,
    read_delivery,
)

NOW = 1_795_000_000
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"schema":"svc.spread.v1"}'


def clock() -> float:
    return NOW + 0.5


def raw(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]


def standard(body: bytes = BODY, secret: str = SECRET, **changed: str) -> list[tuple[bytes, bytes]]:
    """The headers that the service would send now, with some changed."""
    headers = signed_headers(secret, "msg_1", NOW, body)
    return raw(headers | {name.replace("_", "-"): value for name, value in changed.items()})


def hexadecimal(secret: str, signed: bytes) -> str:
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def stripe(secret: str, ts: int = NOW, body: bytes = BODY) -> list[tuple[bytes, bytes]]:
    signature = hexadecimal(secret, f"{ts}.".encode() + body)
    return raw({"Webhook-Signature": f"t={ts},v1={signature}"})


def github(secret: str, body: bytes = BODY) -> list[tuple[bytes, bytes]]:
    return raw({"X-Hub-Signature-256": "sha256=" + hexadecimal(secret, body)})


TIMESTAMPED = {
    "header": "Webhook-Signature",
    "signed": "{timestamp}.{body}",
    "written": "t={timestamp},v1={signature}",
}
"""The form that Stripe made common; GitHub's is the default."""


def timestamped(held: list[str], at: Callable[[], float] = clock) -> HmacSignature:
    return HmacSignature(held, **TIMESTAMPED, clock=at)


@dataclass(frozen=True)
class Scheme:
    """How a verifier is made, what is sent with a body signed by a secret, and two secrets."""

    make: Callable[[list[str]], Verifier]
    sign: Callable[[str, bytes], list[tuple[bytes, bytes]]]
    one: str = "the first secret"
    two: str = "the second secret"


SCHEMES = {
    "standard": Scheme(
        lambda held: StandardWebhooks(held, clock),
        lambda secret, body: standard(body, secret),
        SECRET,
        new_secret(),
    ),
    "timestamped": Scheme(timestamped, lambda secret, body: stripe(secret, body=body)),
    "body": Scheme(HmacSignature, github),
}
each_scheme = pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)


def test_the_standard_webhooks_library_verifies_what_the_service_signs() -> None:
    for number in range(500):
        secret, body = new_secret(), secrets.token_hex(number).encode()
        headers = signed_headers(secret, f"msg_{number}", int(time.time()), body)
        Webhook(secret).verify(body, headers, json_parse=False)
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(body + b" ", headers, json_parse=False)


def test_our_verifier_agrees_with_the_standard_webhooks_library_on_what_it_signs() -> None:
    for number in range(500):
        secret, body = new_secret(), secrets.token_hex(number)
        moment = dt.datetime.fromtimestamp(NOW, dt.UTC)
        headers = {
            "Webhook-Id": f"msg_{number}",
            "Webhook-Timestamp": str(NOW),
            "Webhook-Signature": Webhook(secret).sign(f"msg_{number}", moment, body),
        }
        scheme = StandardWebhooks([secret], clock)
        assert scheme.check(raw(headers), body.encode()) == Genuine(f"msg_{number}")
        assert isinstance(scheme.check(raw(headers), body.encode() + b" "), Rejected)


def test_a_secret_without_prefix_or_padding_is_the_same_secret() -> None:
    key = base64.b64encode(b"k" * 25).decode()
    for held in (key, key.rstrip("="), f"whsec_{key}", f"whsec_{key}".rstrip("=")):
        found = StandardWebhooks([held], clock).check(standard(secret=f"whsec_{key}"), BODY)
        assert found == Genuine("msg_1")


def test_svix_headers_are_read_as_those_of_the_standard_which_come_first() -> None:
    svix = [(name.replace(b"webhook", b"Svix"), value) for name, value in standard()]
    scheme = StandardWebhooks([SECRET], clock)
    assert scheme.check(svix, BODY) == Genuine("msg_1")
    assert scheme.check(svix[:2], BODY) == Rejected("svix-signature is missing")
    forged = standard(webhook_signature="v1,AAAA")
    assert isinstance(scheme.check([*svix, *forged], BODY), Rejected)


@each_scheme
def test_each_of_several_secrets_may_have_signed_and_the_id_is_the_same(scheme: Scheme) -> None:
    one, two = scheme.one, scheme.two
    ids = set()
    for held, signing in ([one], one), ([one, two], one), ([one, two], two):
        found = scheme.make(held).check(scheme.sign(signing, BODY), BODY)
        assert isinstance(found, Genuine)
        ids.add(found)
    assert len(ids) == 1
    assert isinstance(scheme.make([two]).check(scheme.sign(one, BODY), BODY), Rejected)


@each_scheme
@given(body=st.binary(max_size=200), place=st.integers(0), bit=st.integers(0, 7))
def test_one_changed_bit_of_the_body_is_refused(
    *, scheme: Scheme, body: bytes, place: int, bit: int
) -> None:
    verifier, headers = scheme.make([scheme.two, scheme.one]), scheme.sign(scheme.one, body)
    assert isinstance(verifier.check(headers, body), Genuine)
    changed = bytearray(body or b" ")
    changed[place % len(changed)] ^= 1 << bit if body else 0
    assert isinstance(verifier.check(headers, bytes(changed)), Rejected)


@pytest.mark.parametrize("away_s", [-301, -300, 0, 300, 301])
def test_a_time_more_than_five_minutes_from_the_clock_is_refused(away_s: int) -> None:
    def exactly() -> float:
        return float(NOW - away_s)

    for scheme, headers in [
        (StandardWebhooks([SECRET], exactly), standard()),
        (timestamped(["one"], exactly), stripe("one")),
    ]:
        assert isinstance(scheme.check(headers, BODY), Genuine) is (abs(away_s) <= 300)


def test_a_body_signature_alone_is_genuine_at_any_time_and_known_again_by_its_body() -> None:
    found = HmacSignature(["one"]).check(github("one"), BODY)
    assert found == Genuine("sha256:" + hashlib.sha256(BODY).hexdigest())


def test_a_signature_in_base64_under_no_name_is_met_by_its_parameters() -> None:
    digest = hmac.new(b"one", BODY, hashlib.sha256).digest()
    scheme = HmacSignature(["one"], header="X-Hmac", written="{signature}", encoding="base64")
    headers = raw({"x-hmac": base64.b64encode(digest).decode()})
    assert isinstance(scheme.check(headers, BODY), Genuine)
    assert isinstance(scheme.check(headers, BODY + b" "), Rejected)
    assert isinstance(scheme.check(raw({"x-hmac": digest.hex()}), BODY), Rejected)


@pytest.mark.parametrize(
    ("parameter", "given"),
    [
        ("encoding", {"encoding": "rot13"}),
        ("signed", {"signed": "{timestamp}"}),
        ("written", {"written": "sha256="}),
        ("written", {"written": "t={timestamp},v1={signature}"}),
        ("written", {"signed": "{timestamp}.{body}"}),
    ],
)
def test_a_form_that_cannot_be_checked_is_an_input_error(
    parameter: str, given: dict[str, str]
) -> None:
    with pytest.raises(InputError) as refused:
        HmacSignature(["secretly"], **given)
    assert refused.value.parameter == parameter
    assert "secretly" not in str(refused.value)


def test_an_unsigned_id_is_not_believed() -> None:
    named = [*github("one"), (b"x-github-delivery", b"another"), (b"webhook-id", b"another")]
    found = HmacSignature(["one"]).check(named, BODY)
    assert isinstance(found, Genuine)
    assert "another" not in found.delivery_id


def test_an_id_cannot_take_the_time_into_itself() -> None:
    genuine = dict(signed_headers(SECRET, "msg_1", NOW, b"5.{}"))
    moved = genuine | {"webhook-id": f"msg_1.{NOW}", "webhook-timestamp": "5"}
    scheme = StandardWebhooks([SECRET], clock=lambda: 5.0)
    assert scheme.check(raw(moved), b"{}") == Rejected("webhook-id has a full stop in it")


@pytest.mark.parametrize(
    ("signature", "genuine"),
    [
        ("{good}", True),
        ("v1,AAAA {good}", True),
        ("v1a,AAAA v2,BBBB {good}", True),
        ("{good} {good}", True),
        (" {good} ", True),
        ("v1a,{digest}", False),
        ("V1,{digest}", False),
        ("{digest}", False),
        ("v1,", False),
        ("v1", False),
        (",", False),
        ("v1,{digest}x", False),
        ("v1,\xe9\xff", False),
        ("v1," + "A" * 43 + " {good}", True),
        ("v1,AAAA " * 40 + "{good}", False),
    ],
)
def test_one_good_signature_of_the_first_32_is_enough(signature: str, genuine: bool) -> None:
    good = signed_headers(SECRET, "msg_1", NOW, BODY)["webhook-signature"]
    sent = signature.format(good=good, digest=good.removeprefix("v1,"))
    found = StandardWebhooks([SECRET], clock).check(standard(webhook_signature=sent), BODY)
    assert isinstance(found, Genuine) is genuine


@pytest.mark.parametrize(
    "moment", ["", "1e9", f"{NOW}.0", f"+{NOW}", f" {NOW} x", "-5", "\u0665", "9" * 16]
)
def test_a_time_that_is_no_whole_number_of_seconds_is_refused(moment: str) -> None:
    sent = [pair for pair in standard() if pair[0] != b"webhook-timestamp"]
    sent.append((b"webhook-timestamp", moment.encode()))
    assert isinstance(StandardWebhooks([SECRET], clock).check(sent, BODY), Rejected)
    header = raw({"Webhook-Signature": "x"})[0][0], f"t={moment},v1=00".encode()
    assert isinstance(timestamped(["one"]).check([header], BODY), Rejected)


@pytest.mark.parametrize("missing", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_header_that_is_missing_or_sent_twice_is_refused(missing: str) -> None:
    scheme, headers = StandardWebhooks([SECRET], clock), standard()
    rest = [pair for pair in headers if pair[0].decode() != missing]
    assert scheme.check(rest, BODY) == Rejected(f"{missing} is missing")
    twice = [*headers, *(pair for pair in headers if pair[0].decode() == missing)]
    assert scheme.check(twice, BODY) == Rejected(f"{missing} is sent more than once")


NAMES = [b"webhook-id", b"Webhook-Timestamp", b"webhook-signature", b"X-Hub-Signature-256", b"\xff"]
PIECES = [b"t=", b"v1=", b"v1,", b"sha256=", str(NOW).encode(), b",", b"=", b".", b" ", b"ab" * 32]
VALUES = st.binary(max_size=40) | st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join)


@given(
    headers=st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=8),
    body=st.binary(max_size=40),
)
def test_malformed_headers_are_refused_and_never_raise(
    headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    for scheme in SCHEMES.values():
        assert isinstance(scheme.make([scheme.one, scheme.two]).check(headers, body), Rejected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: StandardWebhooks([]),
        lambda: StandardWebhooks("whsec_secretly"),
        lambda: StandardWebhooks(["whsec_secretly"]),
        lambda: StandardWebhooks(["whsec_secretly" + "A" * 100]),
        lambda: StandardWebhooks(["whsec_\xe9secretly"]),
        lambda: HmacSignature(["secretly", ""]),
        lambda: HmacSignature("secretly"),
        lambda: StandardWebhooks([SECRET], window_s=0),
        lambda: HmacSignature(["secretly"], window_s=-1),
    ],
)
def test_an_unusable_secret_or_window_is_an_input_error_that_does_not_show_it(
    make: Callable[[], Verifier],
) -> None:
    with pytest.raises(InputError) as refused:
        make()
    assert "secretly" not in str(refused.value) + repr(refused.value)


@each_scheme
def test_no_secret_stands_in_a_repr_or_a_log(
    scheme: Scheme, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = scheme.one, scheme.two
    with caplog.at_level(logging.DEBUG):
        verifier = scheme.make([one, two])
        found = [
            verifier.check(scheme.sign(one, BODY), BODY),
            verifier.check(scheme.sign(two, BODY + b" "), BODY),
        ]
    for secret in (one, two, one.removeprefix("whsec_")):
        assert secret not in f"{verifier!r} {found!r} {caplog.text}"


DAY = 20_786 * 86_400


@pytest.mark.parametrize("family", EventFamily)
@pytest.mark.slow
def test_a_document_of_each_family_is_read_as_the_archive_s_is(family: EventFamily) -> None:
    for _, body in EventArchive(Simulated(7)).documents(family, DAY, DAY + 86_400):
        found = read_delivery(BUILT_IN_EVENTS, body)
        assert found.row == read_document(BUILT_IN_EVENTS[family], body, [])
        assert found.findings == ()
        assert found.body.encode() == body


def test_a_delivery_keeps_its_columns_where_the_profile_says() -> None:
    route = BUILT_IN_EVENTS[EventFamily.SPLASH]
    routes = BUILT_IN_EVENTS | {
        EventFamily.SPLASH: replace(route, paths=route.paths | {"magnitude_pct": ("size.percent",)})
    }
    row = read_delivery(routes, b'{"schema":"svc.splash.v1","ts":60,"size":{"percent":2.5}}').row
    assert row is not None
    assert row["magnitude_pct"] == 2.5


@pytest.mark.parametrize(
    ("body", "family"),
    [
        ('{"schema":"svc.spread.v1","ts":60}', "spread"),
        ('{"schema":"svc.spread.v2","ts":60}', "spread"),
        ('{"event_type":"funding.opened","ts":60}', "funding"),
        ('{"schema":"svc.splash.v1","event_type":"spread.opened","ts":60}', "splash"),
        ('{"schema":"svc.spreads.v1","ts":60}', None),
        ('{"schema":"svc.spread.v1"}', None),
        ('{"schema":"svc.spread.v1","ts":true}', None),
        ('{"schema":"svc.spread.v1","ts":4000000000000000000}', None),
        ('{"schema":"svc.splash.v1","ts":60,"pct":1' + "0" * 400 + "}", "splash"),
        ('{"schema":"svc.splash.v1","ts":60,"ts_ms":1' + "0" * 400 + "}", "splash"),
        ('{"schema":"svc.splash.v1","ts":60,"pct":1e999}', "splash"),
        ('{"schema":7,"ts":60}', None),
        ('{"type":"webhook.test"}', None),
        ("{}", None),
    ],
)
def test_the_family_is_the_one_that_the_schema_or_else_the_type_names(
    body: str, family: str | None
) -> None:
    row = read_delivery(BUILT_IN_EVENTS, body.encode()).row
    assert (row["family"] if row else None) == family


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'"x"', b"null", b"{", b"\xff{}", b'{"a":NaN', b"[" * 10**5]
)
def test_a_body_that_is_no_json_object_is_a_wire_error(body: bytes) -> None:
    with pytest.raises(WireError):
        read_delivery(BUILT_IN_EVENTS, body)


def test_a_delivery_with_a_value_that_is_not_json_is_the_event_without_it() -> None:
    body = b'{"schema":"svc.splash.v1","event_id":7,"ts":60,"pct":NaN,"note":"cut \\ud83d"}'
    found = read_delivery(BUILT_IN_EVENTS, body)
    assert found.row is not None
    assert (found.row["event_id"], found.row["magnitude_pct"]) == ("7", None)
    assert found.body == body.decode().replace("NaN", "null").replace('"cut \\ud83d"', "null")
    assert [each.where for each in found.findings] == ["webhook.pct", "webhook.note"]


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
FIELDS = ["schema", "event_type", "event_id", "ts", "ts_ms", "pct", "spread", "instrument", "buy"]
KNOWN = st.sampled_from(["svc.splash.v1", "spread.opened", "funding", 60, -1, 2**61, 1.5, 10**400])


@given(st.dictionaries(st.sampled_from(FIELDS), KNOWN | ANY))
def test_whatever_the_fields_hold_the_columns_take_it_or_the_document_is_kept_whole(
    document: dict[str, Any],
) -> None:
    body = json.dumps(document).encode()
    found = read_delivery(BUILT_IN_EVENTS, body)
    assert found.body.encode() == body
    if found.row is not None:
        assert document_frame([found.row]).height == 1
