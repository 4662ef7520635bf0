"""Slices of one trajectory: what one worker brings, several bring as well, and no more is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.loader import LoadResult, sync
from toolkit.loader.sync.sync import Run
from toolkit.loader.sync.tasks import LogTask, Piece, TrajectoryTask
from toolkit.market import EventLog, Source, Trajectory
from toolkit.service import Clock, Config
from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter
from toolkit.wire.event_log import document_frame
from toolkit.wire.profile.user_profile import UserProfile

from .conftest import Line, client_of

PRICE = Trajectory.parse("BTC_USDT:AURORA.spot")
FIRST, BARS, PAGE = 600_000, 2_000, 20
END = FIRST + 60 * BARS
HOLES = (70, 71, 72, 400, 1_000, *range(1_200, 1_400))


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    profile = UserProfile.parsed(Path("p.toml"), f"[history.price]\nlimit = {PAGE}\n")
    config = Config(
        Line(BARS, first=FIRST, without=HOLES),
        port=0,
        clock=Clock(fixed_at=END + 10**6),
        quota=10**6,
    )
    with client_of(config, profile=profile) as found:
        yield found


def loaded(
    client: Client, path: Path, workers: int, start: int = FIRST
) -> tuple[Store, LoadResult]:
    store = Store(path)
    return store, sync(client, store, [PRICE], Interval(start, END), workers=workers)


@pytest.mark.slow
def test_many_workers_bring_what_one_brings_and_the_same_ledger(
    client: Client, tmp_path: Path
) -> None:
    (one, alone), (many, together) = (
        loaded(client, tmp_path / f"{workers}.duckdb", workers) for workers in (1, 8)
    )
    assert together.rows == alone.rows
    assert (alone.rows.new, alone.rows.repeated) == (BARS - len(HOLES), 0)
    assert together.pages == alone.pages
    assert many.series(PRICE).equals(one.series(PRICE))
    assert many.ledger()[PRICE].settled == one.ledger()[PRICE].settled
    window = Interval(FIRST, END)
    assert many.coverage(PRICE, window).equals(one.coverage(PRICE, window))


def test_a_regular_stretch_costs_no_more_pages_in_slices(client: Client, store: Store) -> None:
    _, done = loaded(client, store.path, 4, FIRST + 60 * 1_400)
    assert done.rows.new == 600
    assert done.pages <= -(-600 // (PAGE - 1)) + 1


def test_below_the_beginning_that_one_slice_finds_the_others_ask_for_nothing(
    client: Client, store: Store
) -> None:
    _, done = loaded(client, store.path, 1, 0)
    assert done.rows.new == BARS - len(HOLES)
    answered = store.ledger([PRICE], Interval(0, END))[PRICE].answered
    assert sum(part.length_s for part in answered) == END
    *_, oldest = first_piece(client)[1].others
    assert oldest.beginning is not None
    oldest.beginning.ts = oldest.stretch.end
    with Client("http://127.0.0.1:1", "nobody-answers") as silent:
        (piece,) = oldest.fetch(silent)
    assert (piece.pages, piece.rows, piece.answered_s) == (0, 0, oldest.asked_s)


def test_a_slice_brings_its_rows_even_after_an_older_one_found_the_beginning(
    client: Client,
) -> None:
    first = TrajectoryTask(PRICE, Interval(0, END), Edge(client.served_at(), delay_s=0), PAGE)
    pieces = list(first.fetch(client))
    slices = [other for piece in pieces for other in piece.others]
    oldest_first = [piece for each in reversed(slices) for piece in each.fetch(client)]
    found = {ts for each in (*pieces, *oldest_first) for ts in _times(each)}
    assert len(found) == BARS - len(HOLES)


@pytest.mark.parametrize("keeps_pages", [True, False])
def test_pages_come_with_their_rows_only_where_they_are_kept(
    client: Client, keeps_pages: bool
) -> None:
    edge = Edge(client.served_at(), delay_s=0)
    task = TrajectoryTask(PRICE, Interval(0, END), edge, PAGE, keeps_pages=keeps_pages)
    batch = Batch()
    next(task.fetch(client)).put(batch)
    assert (len(batch.pages), bool(batch.rows)) == (int(keeps_pages), True)


def _times(piece: Piece) -> list[int]:
    batch = Batch()
    piece.put(batch)
    return [ts for frames in batch.rows.values() for frame in frames for ts in frame["ts"]]


def test_slices_and_what_is_left_make_up_the_stretch(client: Client) -> None:
    task, first = first_piece(client)
    slices = [task.stretch, *(other.stretch for other in first.others)]
    assert len(slices) > 8
    assert slices[0].end == END
    assert slices[-1].start == 0
    assert all(newer.start == older.end for newer, older in pairwise(slices))


def first_piece(client: Client) -> tuple[TrajectoryTask, Piece]:
    edge = Edge(client.served_at(), delay_s=0)
    task = TrajectoryTask(PRICE, Interval(0, END), edge, PAGE)
    return task, next(iter(task.fetch(client)))


class Filled(LogTask):
    """A window of a log with pages of very many documents, as far as they are counted."""

    def fetch(self, client: Client) -> Iterator[Piece]:
        del client
        page = (self.stream, document_frame([]), None, self.edge)
        for _ in range(6):
            yield Piece(lambda batch: batch.add_documents(*page), 10_000, 0, row_size=10)


def test_documents_are_committed_sooner_than_rows_for_they_are_larger(store: Store) -> None:
    writer, commits = StoreWriter(store), list[float]()
    writer.bind(Source("replay", "x"))
    load_id = writer.start_load(LoadOrigin("http://127.0.0.1:1", END, None, "0"))
    task = Filled(EventLog.of("spread"), Interval(FIRST, END), Edge(END))
    with Client("http://127.0.0.1:1", "demo-pro") as nobody:
        Run(writer, load_id, [task], None, lambda: commits.append(time.time())).carry_out(nobody, 1)
    assert len(commits) >= 2
