"""A disk that fills up at any moment of a load, a follow or a publication.

One line says so, what was there is whole, and the next run equals one that was never disturbed.

The limit of a file's size stands in for the disk: the files of the process get no longer. Its
moments are spread over the growth of what is written: one of each kind of work, 20 with RAIL_KILLS
at 20 or more (`make kill-loop`).
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from toolkit.market import format_ts
from toolkit.store import Store
from toolkit.store.file.maintenance import verify
from toolkit.store.publish import import_store, publish
from toolkit.store.writing.pages import pages_path
from toolkit.store.writing.remap import remap

from .conftest import RAIL, serving
from .kill_loop import KILLS, check_same, content, write_market

MOMENTS = 20 if KILLS >= 20 else 1
START, DAYS = 1_767_225_600, 20 if KILLS >= 20 else 4
HALF, END = (format_ts(START + days * 86_400) for days in (DAYS // 2, DAYS))
LOADING = ["sync", "--all-prices", "--all-spreads", "--start", "2026-01-01", "--end"]
FOLLOWING = ["follow", "AAA_USDT:*", "--once", "--since", "2026-01-01"]
FULL = r"rail: \S+ cannot be written: the disk is full, [^\n]*; free space in [^\n]*\n"

LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class Commands:
    """`rail` commands against one service, with room on the disk or without."""

    base_url: str

    def run(self, *arguments: object, room: int | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command of which no file gets longer than ``room`` bytes."""
        limit = [] if room is None else [sys.executable, "-c", LIMITED, room]
        return subprocess.run(
            list(map(str, [*limit, RAIL, *arguments])),
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
            env=os.environ | {"RAIL_BASE_URL": self.base_url},
        )

    def finish(self, *arguments: object) -> None:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr

    def fill(self, *arguments: object, room: int) -> None:
        """Run a command that the disk has no room for: it says so in one line."""
        done = self.run(*arguments, room=room)
        assert done.returncode == 1, (room, done.stdout, done.stderr)
        assert re.fullmatch(FULL, done.stderr), done.stderr


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """A service whose legs have ever more digits, so that published files get ever larger."""
    market = write_market(tmp_path_factory.mktemp("market"), START, DAYS, [2, 3, 4, 6])
    with serving("--replay", str(market), "--now", END) as base_url:
        yield Commands(base_url)


@pytest.fixture(scope="module")
def whole(commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The store of a load that had room."""
    path = tmp_path_factory.mktemp("whole") / "rail.duckdb"
    commands.finish(*LOADING, END, "--store", path)
    return Store(path)


def rooms(size: int, seed: int) -> Iterator[int]:
    """Yield lengths up to ``size`` bytes, one at random of each of as many equal parts of it."""
    moments = random.Random(seed)
    return (int(size * (part + moments.random()) / MOMENTS) for part in range(MOMENTS))


@pytest.mark.parametrize("arguments", [[*LOADING, END], FOLLOWING], ids=["load", "follow"])
def test_a_load_that_finds_the_disk_full_is_resumed_and_equals_an_undisturbed_one(
    commands: Commands, whole: Store, tmp_path: Path, arguments: Sequence[str]
) -> None:
    wanted = content(whole)
    for number, room in enumerate(rooms(whole.path.stat().st_size, 20_261_130)):
        store = Store(tmp_path / str(number) / "rail.duckdb")
        store.path.parent.mkdir()
        commands.fill(*arguments, "--store", store.path, room=room)
        if store.path.exists():
            assert verify(store) == []
        commands.finish(*arguments, "--store", store.path)
        check_same(wanted, content(store))
        assert verify(store) == []
        assert set(store.path.parent.iterdir()) == {store.path, pages_path(store.path)}
        remap(store, None)
        check_same(wanted, content(store))


def test_a_publication_that_finds_the_disk_full_leaves_the_last_one_until_the_next_is_whole(
    commands: Commands, whole: Store, tmp_path: Path
) -> None:
    half = Store(tmp_path / "half.duckdb")
    commands.finish(*LOADING, HALF, "--store", half.path)
    publish(whole, tmp_path / "sizes")
    size = max(path.stat().st_size for path in (tmp_path / "sizes").glob("*/*.parquet"))
    for number, room in enumerate(rooms(size, 20_261_131)):
        where = tmp_path / f"archive-{number}"
        publish(half, where)
        publishing = ["store", "publish", where, "--store", whole.path]
        commands.fill(*publishing, room=room)
        check_same(content(half), content(import_store(where, tmp_path / f"half-{number}.duckdb")))
        commands.finish(*publishing)
        made = import_store(where, tmp_path / f"whole-{number}.duckdb")
        check_same(content(whole), content(made))
        assert verify(made) == []
        assert publish(whole, where).uploaded_bytes == 0
