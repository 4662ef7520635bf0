"""What event logs and snapshots can be asked."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from toolkit.charts import Figure
from toolkit.errors import InputError
from toolkit.statistics.events import (
    audit,
    audited,
    event_lifecycles,
    league,
    rates,
    study,
    survival,
    with_groups,
)
from toolkit.workspace import Workspace

from .conftest import NOW, PAIR, WINDOW


def test_events_are_counted_paired_and_drawn_over_the_series_own_window(rail: Workspace) -> None:
    events = rail.events("spread", *WINDOW)
    assert events.df["ts"].is_between(*WINDOW, closed="left").all()
    paired = events.lifecycles()
    own = event_lifecycles(events.rows, *WINDOW, logs=events.logs)
    assert_frame_equal(paired, own.with_columns(near_lost=pl.lit(None, pl.String)))
    row = events.summary().row(0, named=True)
    kinds = paired["kind"].to_list()
    assert (row["n"], row["closed"]) == (len(kinds), kinds.count("closed"))
    assert events.coverage().select("n", "coverage").row(0) == (
        len(events),
        pytest.approx(1, abs=0.1),
    )
    assert isinstance(events.plot(), Figure)
    assert isinstance(events.plot_activity(), Figure)


def test_the_common_questions_are_one_call(rail: Workspace) -> None:
    events = rail.events("spread", *WINDOW)
    lives = with_groups(events.lifecycles())
    assert_frame_equal(events.survival(), survival(lives, held=events.held))
    assert_frame_equal(events.rates("exchange"), rates(lives, "exchange", held=events.held))
    assert_frame_equal(events.league(), league(lives, ["legs"], held=events.held))
    start, end = events.held.select("start_ts", "end_ts").row(0)
    assert start <= WINDOW[0] < end
    with pytest.raises(InputError, match="nearest: symbol"):
        events.survival(["symbl"])


def test_a_log_is_audited_and_studied_with_rows(rail: Workspace) -> None:
    events = rail.events("spread", *WINDOW)
    rows = rail.spread(PAIR, *WINDOW).df
    of_lives = events.lifecycles()
    expected = audited(of_lives, rows, *WINDOW, held=events.held, enter_bps=100)
    assert_frame_equal(events.audited(rows, enter_bps=100), expected)
    assert_frame_equal(events.audit(rows, enter_bps=100), audit(expected))
    path = events.study(rows, every_s=600)
    found = study(events.detections(), rows, column="spread_log_bps", every_s=600)
    assert_frame_equal(path, found)
    with pytest.raises(InputError, match="nearest: enter_bps"):
        events.audit(rows, enter=1)


def test_a_documents_time_has_its_milliseconds(rail: Workspace) -> None:
    frame = rail.events("spread").df
    assert (frame["time"].dt.epoch("ms") == frame["ts_ms"]).all()


def test_the_items_of_the_newest_snapshot_are_rows(rail: Workspace) -> None:
    snapshots = rail.snapshots("spread")
    items = snapshots.items()
    assert items["ts"].unique().to_list() == [NOW]
    assert {"symbol", "spread_pct"} <= set(items.columns)
    assert f"items {items.height:,}" in repr(snapshots)
