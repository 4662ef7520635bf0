"""The event logs: pages, filters, what is withheld, and that only (source, window) decides."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adversary import ArchiveSettings, FaultyArchive
from toolkit.errors import InputError, RailError
from toolkit.market import EventFamily
from toolkit.service.events.archive import (
    EventArchive,
    EventFilters,
    Position,
    open_,
    seal,
    secret_of,
)
from toolkit.service.market.simulator import Simulated

from ....conftest import examples

DAY_S, NEVER = 86_400, 2**40


@pytest.fixture(scope="module")
def archive(source: Simulated) -> EventArchive:
    return EventArchive(source)


@pytest.fixture(scope="module")
def burst(source: Simulated) -> EventArchive:
    """700 more openings in the second of each day's first."""
    return FaultyArchive(source, ArchiveSettings(burst=700))


def walk(
    archive: EventArchive,
    family: EventFamily,
    start: int,
    end: int,
    *,
    limit: int = 500,
    until: int = NEVER,
    filters: EventFilters | None = None,
) -> list[list[bytes]]:
    """All pages of a window."""
    pages, after = [], None
    while True:
        page, after = archive.page(
            family, start, end, filters=filters, limit=limit, after=after, visible_until=until
        )
        pages.append(page)
        if after is None:
            return pages


def documents(pages: list[list[bytes]]) -> list[dict[str, Any]]:
    return [msgspec.json.decode(body) for page in pages for body in page]


def place(document: dict[str, Any]) -> tuple[int, str, str]:
    return document["ts_ms"], document["event_id"], document["event_type"]


@pytest.mark.parametrize("family", EventFamily)
@pytest.mark.slow
def test_a_window_holds_what_the_detectors_found_in_it_newest_first(archive, lives_of, day, family):
    start, end = day * DAY_S + 4_000, (day + 2) * DAY_S - 4_000
    detected = [
        document
        for lives in lives_of(family, 2).values()
        for life in lives
        for document in life.documents
        if start <= document.ts < end
    ]
    wanted = sorted(
        detected, key=lambda each: (each.ts_ms, each.event_id, each.event_type), reverse=True
    )
    pages = walk(archive, family, start, end)
    assert wanted
    assert [body for page in pages for body in page] == [msgspec.json.encode(e) for e in wanted]


@given(limit=st.integers(1, 900), offset=st.integers(0, 2 * DAY_S), length=st.integers(0, DAY_S))
@examples(60)
def test_any_limit_gives_every_document_once_in_order(burst, day, limit, offset, length) -> None:
    start, end = day * DAY_S + offset, day * DAY_S + offset + length
    (whole,) = walk(burst, EventFamily.SPREAD, start, end, limit=100_000)
    pages = walk(burst, EventFamily.SPREAD, start, end, limit=limit)
    assert [body for page in pages for body in page] == whole
    assert {len(page) for page in pages[:-1]} <= {limit}
    assert pages[-1] or len(pages) == 1


def test_paging_goes_on_undisturbed_while_new_documents_become_visible(archive, day) -> None:
    start, now = day * DAY_S, day * DAY_S + 40_000
    (wanted,) = walk(archive, EventFamily.SPREAD, start, NEVER, limit=100_000, until=now)
    found: list[bytes] = []
    after: Position | None = None
    while True:
        page, after = archive.page(
            EventFamily.SPREAD, start, start + DAY_S, limit=50, after=after, visible_until=now
        )
        found += page
        now += 60
        if after is None:
            break
    assert found == wanted


def test_nothing_of_the_moment_that_is_not_yet_visible_is_shown(archive, day) -> None:
    start, end = day * DAY_S, (day + 1) * DAY_S
    everything = documents(walk(archive, EventFamily.SPREAD, start, end))
    edge = everything[len(everything) // 2]["ts"]
    shown = documents(walk(archive, EventFamily.SPREAD, start, end, until=edge))
    assert shown == [document for document in everything if document["ts"] < edge]
    assert len(shown) < len(everything)


def test_lost_closes_leave_the_opening_and_orphans_leave_the_close(source, archive, day) -> None:
    window = (day * DAY_S, (day + 1) * DAY_S)
    failing = FaultyArchive(source, ArchiveSettings(lost_close_share=0.2, orphan_close_share=0.3))
    told, whole = (
        Counter(
            (each["event_id"], each["lifecycle"])
            for each in documents(walk(one, EventFamily.SPREAD, *window))
        )
        for one in (failing, archive)
    )
    ids = {identity for identity, _ in whole}
    both = [i for i in ids if (i, "open") in whole and (i, "closed") in whole]
    lost = [i for i in both if (i, "closed") not in told]
    orphaned = [i for i in both if (i, "open") not in told]
    assert not set(lost) & set(orphaned)
    assert all(told[i, "open"] == whole[i, "open"] for i in lost)
    assert len(lost) / len(both) == pytest.approx(0.2, abs=0.06)
    assert len(orphaned) / len(both) == pytest.approx(0.3, abs=0.06)


def test_what_is_open_is_what_the_log_opened_and_did_not_close(archive, day) -> None:
    """Over three days, longer than any spread event lasts."""
    start, most = day * DAY_S, 0
    for ts in (start + 2 * DAY_S, start + 2 * DAY_S + 45_678, start + 3 * DAY_S):
        newest_first = documents(walk(archive, EventFamily.SPREAD, start, ts))
        standing: dict[str, int] = {}
        for document in reversed(newest_first):
            legs = [
                f"{document[leg]['exchange']}.{document[leg]['market']}" for leg in ("buy", "sell")
            ]
            key = ":".join([document["instrument"]["symbol"], *legs])
            if document["lifecycle"] == "open":
                standing[key] = document["opened_at"]
            else:
                standing.pop(key, None)
        assert archive.open_at(EventFamily.SPREAD, ts) == standing
        most = max(most, len(standing))
    assert most


def test_an_opening_and_a_close_are_known_from_the_next_second_on(archive, lives_of, day) -> None:
    begun = [each for each in lives_of(EventFamily.SPREAD)[day] if each.opened_at >= day * DAY_S]
    for life in begun[:20]:
        if life.closed_at is None:
            continue
        for ts, known in (
            (life.opened_at, False),
            (life.opened_at + 1, True),
            (life.closed_at, True),
            (life.closed_at + 1, False),
        ):
            found = archive.open_at(EventFamily.SPREAD, ts)
            assert (found.get(life.key) == life.opened_at) == known


def test_a_page_of_no_documents_is_refused(archive: EventArchive) -> None:
    with pytest.raises(InputError, match=r"^limit: 0"):
        archive.page(EventFamily.SPREAD, 0, 60, limit=0, visible_until=60)


def test_before_the_first_moment_of_a_source_there_is_nothing(archive: EventArchive) -> None:
    assert archive.page(EventFamily.FUNDING, 0, 7 * DAY_S, limit=9, visible_until=NEVER) == (
        [],
        None,
    )
    assert archive.open_at(EventFamily.SPREAD, 0) == {}


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"lost_close_share": -0.1}, "shares"),
        ({"lost_close_share": 0.6, "orphan_close_share": 0.6}, "shares"),
        ({"burst": -1}, "burst"),
    ],
)
def test_archive_settings_that_make_no_sense_are_refused(options, name) -> None:
    with pytest.raises(InputError, match=f"^{name}:"):
        ArchiveSettings(**options)


PROGRAM = """
import hashlib, sys
from toolkit.market import EventFamily
from toolkit.service.events.archive import EventArchive
from toolkit.service.market.simulator import Simulated
archive = EventArchive(Simulated(7))
for day in map(int, sys.argv[1:]):
    for family in EventFamily:
        window = (day * 86_400, (day + 1) * 86_400)
        page, _ = archive.page(family, *window, limit=100_000, visible_until=window[1])
        print(day, family, hashlib.sha256(b"\\n".join(page)).hexdigest())
"""


@pytest.mark.slow
def test_a_window_has_the_same_bytes_in_every_process_whatever_was_asked_before(archive, day):
    days = [day, day + 3]
    here = {
        f"{number} {family} "
        + hashlib.sha256(
            b"\n".join(
                walk(archive, family, number * DAY_S, (number + 1) * DAY_S, limit=100_000)[0]
            )
        ).hexdigest()
        for number in days
        for family in EventFamily
    }
    for order in (days, days[::-1]):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", PROGRAM, *map(str, order)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert set(done.stdout.splitlines()) == here


SECRET = secret_of("seed-7")

positions = st.builds(Position, st.integers(0, 2**53), st.text(max_size=30), st.text(max_size=30))
BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@given(positions, st.binary(max_size=60))
def test_a_cursor_gives_back_the_position_it_was_made_from(position, bound) -> None:
    assert open_(seal(position, bound, SECRET), bound, SECRET) == position


@given(positions, st.binary(max_size=60))
def test_a_cursor_is_base64url_without_padding(position: Position, bound: bytes) -> None:
    assert set(seal(position, bound, SECRET)) <= set(BASE64URL)


@given(positions, st.binary(max_size=20), st.binary(max_size=20))
def test_a_cursor_of_another_question_is_refused(position, bound, other) -> None:
    cursor = seal(position, bound, SECRET)
    if bound != other:
        with pytest.raises(ValueError, match=r"^cursor: "):
            open_(cursor, other, SECRET)


@given(positions, st.integers(0), st.sampled_from([*BASE64URL, "=", "+", "/", " ", "é", ""]))
def test_a_cursor_with_one_character_changed_is_refused(position, place, character) -> None:
    cursor = seal(position, b"", SECRET)
    place %= len(cursor)
    changed = cursor[:place] + character + cursor[place + 1 :]
    if changed != cursor:
        with pytest.raises(ValueError, match=r"^cursor: "):
            open_(changed, b"", SECRET)


@given(st.text(max_size=80) | st.text(BASE64URL, max_size=80))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(RailError, match=r"^cursor: "):
        open_(text, b"", SECRET)


@pytest.mark.parametrize("tail", ["=", "==", "\n", " ", "A"])
def test_another_spelling_of_a_cursor_is_refused(tail: str) -> None:
    cursor = seal(Position(1, "a", "b"), b"", SECRET)
    with pytest.raises(ValueError, match=r"^cursor: "):
        open_(cursor + tail, b"", SECRET)


@pytest.mark.parametrize("moved", [b" ", b"X", b"[1"])
def test_what_is_bound_and_what_is_sealed_do_not_run_into_one_another(moved: bytes) -> None:
    """The end of what was bound, put before the position instead, does not fit the seal."""
    content = urlsafe_b64decode(seal(Position(1, "ab", ""), moved, SECRET) + "==")
    forged = urlsafe_b64encode(content[:16] + moved + content[16:]).rstrip(b"=").decode()
    with pytest.raises(ValueError, match=r"^cursor: "):
        open_(forged, b"", SECRET)


def test_a_cursor_outlives_a_restart_but_not_a_change_of_source() -> None:
    cursor = seal(Position(1, "a", "b"), b"", secret_of("seed-7"))
    assert open_(cursor, b"", secret_of("seed-7")) == (1, "a", "b")
    assert secret_of("seed-7").hex().startswith("f8d8580e1f023598"), "the same in every process"
    with pytest.raises(ValueError, match=r"^cursor: "):
        open_(cursor, b"", secret_of("seed-8"))
