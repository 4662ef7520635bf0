"""The body of a webhook delivery: an event document of one of the families, or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from toolkit.errors import WireError
from toolkit.market import EventFamily
from toolkit.wire.events.events import read_document
from toolkit.wire.exchange import UNREADABLE
from toolkit.wire.profile.event_routes import EventRoute
from toolkit.wire.profile.profile import Finding
from toolkit.wire.rows.doubled import doubled_fields
from toolkit.wire.rows.mending import checked_json, read_mended


@dataclass(frozen=True, slots=True)
class Delivery:
    """A body, and the columns of the event document that it is. None where it is none."""

    body: str
    row: Mapping[str, Any] | None
    findings: tuple[Finding, ...] = ()


def read_delivery(routes: Mapping[EventFamily, EventRoute], body: bytes) -> Delivery:
    """Read a delivery's body. Raises `WireError` where it is not a JSON object.

    The family is the word that the document's schema (``svc.splash.v1``) or else its event type
    (``splash.pump``) names, each found by the family's route. A JSON object that names
    none, or has no time of use, is not an event document. Nor is one that is larger than
    ``document_bytes`` of the routes' limits, which is a finding.

    >>> from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS
    >>> read_delivery(BUILT_IN_EVENTS, b'{"schema":"svc.splash.v2","ts":60,"pct":2}').row["family"]
    'splash'
    >>> read_delivery(BUILT_IN_EVENTS, b'{"hello":1}').row is None
    True
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
