"""Whatever stands in any field of an event document, it is read, and the store can hold it."""

from __future__ import annotations

import copy
import functools
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.empty_store import empty_store
from toolkit.loader.follow.reader import Message, Messages
from toolkit.market import EventFamily, EventLog, Source
from toolkit.service.events.archive import EventArchive
from toolkit.service.market.simulator import Simulated
from toolkit.store import Batch, LoadOrigin, StoreWriter
from toolkit.tables import EVENT
from toolkit.wire.event_log import document_frame, lasting_content, read_document
from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.signatures import read_delivery

DAY = 20_786 * 86_400


@functools.cache
def sent() -> dict[EventFamily, dict[str, Any]]:
    """A document of each family."""
    archive = EventArchive(Simulated(7))
    return {
        family: json.loads(archive.documents(family, DAY, DAY + 86_400)[0][1])
        for family in EventFamily
    }


def paths(document: dict[str, Any], above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Where a document has values: every field, and every field of its objects."""
    found = []
    for name, value in document.items():
        found.append((*above, name))
        if isinstance(value, dict):
            found += paths(value, (*above, name))
    return found


@functools.cache
def places() -> list[tuple[EventFamily, tuple[str, ...]]]:
    """Where the document of each family has values."""
    return [(family, path) for family, document in sent().items() for path in paths(document)]


EDGES = [10**400, -(10**400), 2**63, 2**63 - 1, -(2**63) - 1, 2**61, 1e308, -1, 0, 1.5, "\0", ""]
VALUES = st.recursive(
    st.sampled_from(EDGES)
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


def changed(family: EventFamily, changes: dict[tuple[str, ...], Any]) -> bytes:
    """The document of a family with other values in some of its fields."""
    document = copy.deepcopy(sent()[family])
    for (*above, name), value in changes.items():
        at: Any = document
        for step in above:
            at = at.get(step) if isinstance(at, dict) else None
        if isinstance(at, dict):
            at[name] = value
    return json.dumps(document).encode()


def read_by_all(family: EventFamily, body: bytes) -> dict[str, Any]:
    """The row, after a stream and a webhook have taken the document in as well."""
    route = BUILT_IN_EVENTS[family]
    row = read_document(route, body, [])
    assert row["document"].encode() == body
    assert lasting_content(route, body) == lasting_content(route, b" " + body)
    pending = Messages(BUILT_IN)
    pending.add(Message(EventLog(family), body))
    batch, _, findings = pending.batch_of_all()
    heard = [text for frame in batch.documents for text in frame["document"]]
    kept = [finding.says for finding in findings if finding.kind == "without_time"]
    assert heard + kept == [body.decode()]
    assert read_delivery(BUILT_IN_EVENTS, body).body.encode() == body
    return row


@pytest.mark.parametrize("value", EDGES, ids=lambda value: repr(value)[:12])
def test_a_value_in_any_one_field_never_breaks_the_reading(value: object) -> None:
    for family, path in places():
        row = read_by_all(family, changed(family, {path: value}))
        assert document_frame([row]).height == 1


@settings(deadline=None)
@given(st.sampled_from(EventFamily), st.data())
@pytest.mark.slow
def test_values_in_many_fields_never_break_the_reading(
    family: EventFamily, data: st.DataObject
) -> None:
    known = st.sampled_from([path for of, path in places() if of is family])
    body = changed(family, data.draw(st.dictionaries(known, VALUES, max_size=8)))
    row = read_by_all(family, body)
    assert (row["ts"] is None) is (row["ts_ms"] is None)
    if row["ts"] is not None:
        assert document_frame([row]).height == 1


def test_the_store_takes_every_document_that_could_be_read(tmp_path: Path) -> None:
    changes = [
        (family, path, value)
        for family, path in places()
        for value in [*EDGES, None, 253_402_300_799]
    ]
    bodies = [  # events of their own, since of one event a hundred versions are kept
        (family, changed(family, {("event_id",): str(number), path: value}))
        for number, (family, path, value) in enumerate(changes)
    ]
    rows = [read_document(BUILT_IN_EVENTS[family], body, []) for family, body in bodies]
    batch = Batch()
    batch.documents.append(document_frame([row for row in rows if row["ts"] is not None]))
    store = empty_store(tmp_path / "s.duckdb", Source("simulated", "x"))
    writer = StoreWriter(store)
    writer.commit(writer.start_load(LoadOrigin("test", 0, None, "0")), batch)
    with store.reading() as connection:
        held: pl.DataFrame = connection.sql(f"SELECT document FROM {EVENT.name}").pl()
    assert set(held["document"]) == {body.decode() for _, body in bodies}
