"""What the body of a delivery is taken for."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import WireError
from toolkit.market import EventFamily
from toolkit.service.events.archive import EventArchive
from toolkit.service.market.simulator import Simulated
from toolkit.wire.event_log import document_frame, read_document
from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS
from toolkit.wire.signatures import read_delivery

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


VALUES = st.recursive(
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


@given(st.dictionaries(st.sampled_from(FIELDS), KNOWN | VALUES))
def test_whatever_the_fields_hold_the_columns_take_it_or_the_document_is_kept_whole(
    document: dict[str, Any],
) -> None:
    body = json.dumps(document).encode()
    found = read_delivery(BUILT_IN_EVENTS, body)
    assert found.body.encode() == body
    if found.row is not None:
        assert document_frame([found.row]).height == 1
