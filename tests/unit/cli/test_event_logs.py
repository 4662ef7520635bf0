"""What a command reads of event logs: documents, lifecycles, and when the logs are held."""

from __future__ import annotations

from polars.testing import assert_frame_equal

from toolkit.cli.event_logs import Logs, event_window
from toolkit.intervals import Interval, clip, total_s
from toolkit.market import EventFamily, EventLog
from toolkit.statistics import events as event_statistics
from toolkit.store import Store
from toolkit.workspace import open_workspace

from .conftest import NOW, WINDOW


def test_what_is_held_is_what_the_ledger_was_answered_for_until_the_log_is_known(
    held: Store,
) -> None:
    read = Logs.read(held, WINDOW)
    lives, stretches = read.lives(), read.held
    for family in EventFamily:
        known = held.ledger([EventLog(family)])[EventLog(family)]
        mine = stretches.filter(family=family.value)
        parts = [Interval(*each) for each in mine.select("start_ts", "end_ts").iter_rows()]
        assert total_s(parts) >= total_s(known.answered)
        rates = event_statistics.rates(lives.filter(family=family.value), held=stretches)
        assert rates["held_s"].item() == total_s(clip(parts, WINDOW))
    everything = event_statistics.survival(lives)
    assert_frame_equal(event_statistics.survival(lives, held=stretches), everything)


def test_a_series_asks_what_the_command_asks(held: Store) -> None:
    read = Logs.read(held, WINDOW, [EventFamily.SPREAD])
    events = open_workspace(held.path).events("spread", *WINDOW)
    by = ["exchange", "size_from"]
    expected = event_statistics.survival(read.lives(), by, held=read.held)
    assert_frame_equal(events.survival(by), expected)
    assert_frame_equal(events.held, read.held)


def test_without_a_window_it_is_that_of_all_logs(held: Store) -> None:
    asked = event_window(held, None, None)
    ledger = held.ledger([EventLog(family) for family in EventFamily])
    assert asked.start == min(each.answered[0].start for each in ledger.values())
    assert event_window(held, "2026-11-03", "2026-11-04") == Interval(NOW - 86_400, NOW)
