"""What is read of event logs that are asked about: lifecycles, and when the logs are held."""

from __future__ import annotations

from polars.testing import assert_frame_equal

from toolkit.intervals import Interval, clip, total_s
from toolkit.market import EventFamily, EventLog
from toolkit.statistics import events as event_statistics
from toolkit.store import Store
from toolkit.workspace import open_workspace
from toolkit.workspace.events.event_selection import EventSelection

from .conftest import NOW, WINDOW


def test_what_is_held_is_what_the_ledger_was_answered_for_until_the_log_is_known(
    held: Store,
) -> None:
    read = EventSelection.of(held, None, *WINDOW).events
    lives, stretches = read.lives, read.held
    for family in EventFamily:
        known = held.ledger([EventLog(family)])[EventLog(family)]
        mine = stretches.filter(family=family.value)
        parts = [Interval(*each) for each in mine.select("start_ts", "end_ts").iter_rows()]
        assert total_s(parts) >= total_s(known.answered)
        rates = event_statistics.rates(lives.filter(family=family.value), held=stretches)
        assert rates["held_s"].item() == total_s(clip(parts, WINDOW))
    everything = event_statistics.survival(lives)
    assert_frame_equal(event_statistics.survival(lives, held=stretches), everything)


def test_a_series_and_its_log_are_held_for_the_same_time(held: Store) -> None:
    asked = EventSelection.of(held, EventFamily.SPREAD, *WINDOW)
    events = open_workspace(held.path).events("spread", *WINDOW)
    assert_frame_equal(events.held, asked.events.held)
    assert asked.share == events.coverage()["coverage"].item()


def test_without_a_window_it_is_that_of_the_logs(held: Store) -> None:
    asked = EventSelection.of(held).window
    ledger = held.ledger([EventLog(family) for family in EventFamily])
    assert asked.start == min(each.answered[0].start for each in ledger.values())
    alone = EventSelection.of(held, EventFamily.SPREAD).window
    assert alone == open_workspace(held.path).events("spread").window
    day = EventSelection.of(held, None, "2026-11-03", "2026-11-04").window
    assert day == Interval(NOW - 86_400, NOW)
