"""Event logs of a market that goes on being read: what is out stays, and nothing is out early."""

from __future__ import annotations

import threading
from functools import cache

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adversary import ArchiveSettings, FaultyArchive
from toolkit.market import EventFamily
from toolkit.service.events.archive import EventArchive
from toolkit.service.market.source import LostRows

from ....conftest import examples
from ..revealed import END, LEGS, START, Revealed

HOUR_S, DAY_S = 3_600, 86_400
NOON = START + DAY_S + 12 * HOUR_S
OUTAGE = LostRows(START + 30 * HOUR_S, START + 32 * HOUR_S, "no answer for 90 s")
OUT = {(("BTC_USDT", LEGS[1]), "bars"): (OUTAGE,)}

FAULTY = ArchiveSettings(lost_close_share=0.2, orphan_close_share=0.2, burst=3)


def told(archive: EventArchive, until: int) -> list[tuple[str, bytes]]:
    """Every document that is out at a moment."""
    return [each for family in EventFamily for each in archive.documents(family, START, until)]


def open_lives(archive: EventArchive, ts: int) -> list[dict[str, int]]:
    return [archive.open_at(family, ts) for family in EventFamily]


def test_a_day_that_was_asked_for_at_noon_holds_all_of_its_first_13_hours_at_13() -> None:
    source = Revealed(NOON)
    archive = EventArchive(source)
    told(archive, NOON)
    source.known_until = NOON + HOUR_S
    expected = told(EventArchive(Revealed(END + DAY_S)), NOON + HOUR_S)
    assert told(archive, NOON + HOUR_S) == expected


@cache
def whole(settings: ArchiveSettings, *, out: bool) -> tuple[list[tuple[int, bytes]], FaultyArchive]:
    """The documents of the whole truth with their moments, by family and time, and their log."""
    archive = FaultyArchive(Revealed(END + DAY_S, lost_rows=OUT if out else {}), settings)
    found = [body for _, body in told(archive, END)]
    return [(msgspec.json.decode(body)["ts"], body) for body in found], archive


@pytest.mark.parametrize("settings", [ArchiveSettings(), FAULTY])
@examples(40)
@given(
    steps=st.lists(st.integers(1, 54_000), min_size=1, max_size=8),
    ahead=st.sampled_from([0, 60, 5_400]),
    out=st.booleans(),
)
def test_documents_and_open_lives_of_any_step_are_those_of_the_whole_truth(
    settings: ArchiveSettings, steps: list[int], ahead: int, out: bool
) -> None:
    documents, complete = whole(settings, out=out)
    source = Revealed(ahead_s={LEGS[0]: ahead}, lost_rows=OUT if out else {})
    archive = FaultyArchive(source, settings)
    for now in (START + np.cumsum(steps)).tolist():
        source.known_until = now
        assert [body for _, body in told(archive, now)] == [b for ts, b in documents if ts < now]
        assert open_lives(archive, now) == open_lives(complete, now)


def test_what_comes_late_is_no_event_and_changes_none() -> None:
    source = Revealed(NOON, lost_rows=OUT)
    archive = EventArchive(source)
    before = told(archive, NOON)
    assert before != told(EventArchive(Revealed(NOON)), NOON)
    source.find(OUTAGE)
    assert told(archive, NOON) == before
    source.known_until = NOON + HOUR_S
    assert told(archive, NOON) == told(EventArchive(source), NOON) == before


def test_a_leg_that_is_added_changes_no_document_and_has_its_own_from_then_on() -> None:
    key = ("ETH_USDT", LEGS[1])
    source = Revealed(NOON, added={key: NOON})
    archive = EventArchive(source)
    before = told(archive, NOON)
    source.known_until = END
    assert told(archive, NOON) == before
    assert any(
        b'"ETH_USDT"' in body and b'"ALPHA","market":"spot"' in body
        for _, body in told(archive, END)[len(before) :]
    )


def test_many_who_ask_in_one_minute_have_its_day_detected_once() -> None:
    source = Revealed(NOON)
    EventArchive(source).documents(EventFamily.SPREAD, NOON - HOUR_S, NOON)
    once, archive, source.reads = source.reads, EventArchive(source), 0
    threads = [
        threading.Thread(target=archive.documents, args=(EventFamily.SPREAD, NOON - HOUR_S, NOON))
        for _ in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert source.reads == once
