"""Documents of event logs are paired in parts, and a frame given is left as it was."""

from __future__ import annotations

import numpy as np
import polars as pl
from polars.testing import assert_frame_equal

from toolkit.statistics import events
from toolkit.statistics.core.categories import in_order
from toolkit.statistics.events.pairing import whole_events


def _documents(count: int) -> pl.DataFrame:
    rng = np.random.default_rng(20261126)
    kinds = ["spread.opened", "spread.updated", "spread.closed"]
    ts = np.sort(rng.integers(0, 50_000, count))
    return pl.DataFrame(
        {
            "family": ["spread"] * count,
            "event_id": [f"e{number}" for number in rng.integers(0, count // 3, count)],
            "event_type": rng.choice(kinds, count).tolist(),
            "lifecycle": pl.Series([None] * count, dtype=pl.String),
            "ts": ts,
            "ts_ms": 1000 * ts,
            "arrival": np.arange(count),
            "magnitude_pct": rng.exponential(size=count),
        }
    )


def test_parts_split_no_event_lose_no_document_and_keep_their_order():
    documents = _documents(3_000)
    parts = list(whole_events(documents.iter_slices(500), "event_id", 100))
    assert len(parts) > 10
    assert max(part.height for part in parts) < 3_000 / 5
    assert all(part["arrival"].is_sorted() for part in parts)
    assert pl.concat(parts).sort("arrival").equals(documents)
    of_part = pl.concat(part.select("event_id").unique() for part in parts)
    assert not of_part["event_id"].is_duplicated().any()


def test_a_log_of_several_parts_has_the_lifecycles_that_its_events_have_one_by_one():
    log = pl.concat(
        [_documents(300_000), _documents(900).with_columns(event_id="few-" + pl.col("event_id"))]
    )
    found = events.lifecycles(log, 0, 60_000, magnitude="magnitude_pct")
    few = log.filter(pl.col("event_id").str.starts_with("few-"))
    alone = events.lifecycles(few, 0, 60_000, magnitude="magnitude_pct")
    assert alone.height > 300
    assert found.filter(pl.col("event_id").str.starts_with("few-")).equals(alone)
    assert found.select("family", "event_id").equals(
        found.select("family", "event_id").sort("family", "event_id")
    )
    assert found["n"].sum() + found["n_duplicates"].sum() == log.height


def test_a_frame_given_is_left_as_it_was():
    log = _documents(100)
    before = log.clone()
    events.lifecycles(log)
    assert log.equals(before)
    arrivals = log.with_columns(arrived_ms=pl.col("ts_ms") + 5)
    events.channels({"archive": arrivals, "socket": arrivals})
    assert arrivals.drop("arrived_ms").equals(before)


def test_rows_sorted_some_at_a_time_with_words_kept_once_are_those_sorted_at_once():
    at = np.arange(70_000)
    rows = pl.DataFrame({"event": [f"e{number}" for number in at]}).with_columns(
        ts=pl.Series(at * 7 % 60_000),
        symbol=pl.Series(["C_D", "A_B", None]).gather(at % 3).cast(pl.Categorical),
        event_id="event",
        late=pl.when(pl.col("event") != "e9").then("event"),
        none=pl.lit(None, pl.Categorical),
    )
    expected = rows.cast({pl.Categorical: pl.String}).sort("ts", "event", descending=[True, False])
    found = in_order(rows.clone(), {"ts": True, "event": False}, as_words=True)
    assert_frame_equal(found, expected)
    assert found.head(0).equals(in_order(rows.clear(), {"ts": True}, as_words=True))
