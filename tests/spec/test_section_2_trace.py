"""machine-rail.md, section 2: a trace is kept intact, a cursor is not looked into."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.adversary import Adversary, RestSwitches, adverse
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.loader.follow.messages import Messages
from toolkit.loader.follow.reader import Message
from toolkit.market import EventFamily, EventLog, Trajectory
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Store
from toolkit.wire.events.events import event_pages
from toolkit.wire.exchange import Answer, RetryPolicy, Send
from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.webhooks.deliveries import read_delivery

NOW = 1_795_953_607
TRACED = b'{ "schema":"svc.splash.v1", "ts":60, "trace":"k\\u00e9y-7", "event_id":"e1" }'


@pytest.fixture
def marked() -> Config:
    """A service that puts a trace into every record and document, which the live one does not."""
    switches = RestSwitches(extra_fields={"trace": "of-ann"})
    return Config(
        Simulated(7),
        port=0,
        clock=Clock(fixed_at=NOW),
        application=adverse(Adversary(rest=switches)),
    )


@pytest.mark.slow
def test_a_trace_in_the_retained_documents_is_in_the_store_as_it_came(
    marked: Config, tmp_path: Path
) -> None:
    store = Store(tmp_path / "rail.duckdb")
    with running(marked) as service, Client(service.base_url, "demo-pro") as client:
        sync(client, store, [EventLog(EventFamily.FUNDING)], Interval(NOW - 86_400, NOW))
        held = store.events(EventFamily.FUNDING, Interval(NOW - 86_400, NOW))
    assert held.height > 5
    assert {json.loads(text)["trace"] for text in held["document"]} == {"of-ann"}


@pytest.mark.slow
def test_a_trace_in_a_record_is_kept_beside_its_columns(marked: Config) -> None:
    with running(marked) as service, Client(service.base_url, "demo-pro") as client:
        one = Trajectory.parse("BTC_USDT:AURORA.spot")
        rows = client.history(one, NOW - 600, NOW)
    assert rows.height > 5
    assert {json.loads(text)["trace"] for text in rows["extra"]} == {"of-ann"}


def test_a_trace_on_a_stream_or_in_a_webhook_is_kept_to_the_byte() -> None:
    pending = Messages(BUILT_IN)
    pending.add(Message(EventLog(EventFamily.SPLASH), TRACED))
    batch, _, _ = pending.batch_of_all()
    assert batch.documents[0]["document"].to_list() == [TRACED.decode()]
    assert read_delivery(BUILT_IN_EVENTS, TRACED).body.encode() == TRACED


@pytest.mark.parametrize("cursor", ["a_-b", "not base64 ~%é", "{}", "0" * 2_000])
def test_next_cursor_is_sent_back_as_cursor_undecoded_and_all_else_unchanged(cursor: str) -> None:
    page = {"items": [json.loads(TRACED)], "has_more": True, "next_cursor": cursor}
    route = BUILT_IN_EVENTS[EventFamily.SPLASH]
    flow = event_pages(route, Interval(0, 120), RetryPolicy(attempts=1))
    first = next(flow)
    flow.send(Answer(200, {}, json.dumps(page).encode()))
    second = next(flow)
    assert isinstance(first, Send)
    assert isinstance(second, Send)
    assert dict(second.request.query) == {**dict(first.request.query), "cursor": cursor}
