"""Nothing about a stream reaches past the stream's own last answer, in whatever order they came."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.empty_store import empty_store
from toolkit.dashboard.pages.overview.spreads import open_now
from toolkit.dashboard.parts.event_tables import count_events, open_events
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Source
from toolkit.statistics.events import documents_window, event_lifecycles
from toolkit.statistics.events.documents import identified
from toolkit.store import Batch, Edge, LoadOrigin, StoreWriter, event_logs
from toolkit.store.ledger.ledger import SETTLE_S
from toolkit.wire.event_log import document_frame

from ..conftest import examples

FAMILIES = {EventFamily.SPREAD: ("opened", "closed"), EventFamily.SPLASH: ("pump", "faded")}
EVERY_S, LASTS_S, DAY_S = 600, 240, 86_400
SYNCS = st.lists(
    st.tuples(st.sampled_from(list(FAMILIES)), st.integers(SETTLE_S + 1, 20_000)),
    min_size=1,
    max_size=6,
)


def documents(family: EventFamily, until: int) -> pl.DataFrame:
    """An event every ten minutes that lasts four, as a log shows it at a time."""
    opens, closes = FAMILIES[family]
    rows = [
        {
            "family": family.value,
            "event_id": f"{family}-{opened}",
            "event_type": f"{family}.{word}",
            "ts": ts,
            "ts_ms": 1_000 * ts,
            "symbol": "A_B",
            "buy_exchange": "X",
            "buy_market": "spot",
            "sell_exchange": "Y",
            "sell_market": "dex",
            "magnitude_pct": 2.0,
            "document": "{}",
        }
        for opened in range(0, until, EVERY_S)
        for ts, word in ((opened, opens), (opened + LASTS_S, closes))
        if ts < until
    ]
    return document_frame(rows)


@pytest.mark.slow
@given(SYNCS)
@examples(30)
def test_open_events_ages_and_counts_are_those_at_the_log_s_own_last_answer(syncs) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = empty_store(Path(folder) / "rail.duckdb", Source("replay", "events"))
        writer, clock, last = StoreWriter(store), 0, {}
        for family, later in syncs:
            clock += later
            last[family] = clock
            batch = Batch()
            batch.add_documents(
                EventLog(family),
                documents(family, clock),
                Interval(0, clock),
                Edge(clock, step_s=0),
            )
            writer.commit(writer.start_load(LoadOrigin("http://x", clock, None, "0")), batch)
        logs = event_logs(store.catalogue())
        read = documents_window(Interval(0, clock + DAY_S))
        events = identified(pl.concat(store.events(family, read) for family in EventFamily))
    found = event_lifecycles(events, 0, clock + DAY_S, logs=logs)
    assert dict(logs.select("family", "known_until").rows()) == {f.value: last[f] for f in last}
    for family, at in last.items():
        mine = found.filter(family=family.value)
        assert mine["known_until"].to_list() == [at] * mine.height
        still = at % EVERY_S if 0 < at % EVERY_S <= LASTS_S else None
        of_open = mine.filter(kind="open")
        assert of_open["duration_s"].to_list() == ([] if still is None else [still])
        opened = open_events(events, found, family)
        now = open_now(None, opened, at)
        assert now is not None
        assert (now.at, now.rows.height) == (at, of_open.height)
        (count,) = count_events(events, found, {family.value: Interval(at - DAY_S, at)})
        begun = [ts for ts in range(0, at, EVERY_S) if ts >= at - DAY_S]
        assert count.events == len(begun)
