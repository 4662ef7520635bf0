"""The mark of a follow: who sees that one runs, and that none does after it ended, however."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from toolkit.store.writing.follows import FollowMark, follow_mark, running_follow

HOLDS = """
import sys
from pathlib import Path
from toolkit.store.writing.follows import FollowMark
with FollowMark(Path(sys.argv[1])) as mark:
    mark.evaluated()
    print("holding", flush=True)
    sys.stdin.readline()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "holding\n"
    return process


def test_a_follow_of_another_process_is_known_and_gone_when_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "rail.duckdb"
    with holder(path) as process:
        found = running_follow(path)
        assert found
        assert found.pid == process.pid
        assert found.evaluated_at == follow_mark(path).stat().st_mtime
        process.kill()
        process.wait()
        assert running_follow(path) is None
        assert not follow_mark(path).exists()


def test_a_follow_after_a_killed_one_takes_over_its_mark(tmp_path: Path) -> None:
    path = tmp_path / "rail.duckdb"
    with holder(path) as process:
        process.kill()
    with FollowMark(path):
        found = running_follow(path)
        assert found == (os.getpid(), None)
        assert not follow_mark(path, 1).exists()


def test_two_follows_of_one_store_are_one_until_both_have_ended(tmp_path: Path) -> None:
    path = tmp_path / "rail.duckdb"
    with FollowMark(path) as mine:
        with FollowMark(path) as second:
            second.evaluated()
            assert running_follow(path) == (os.getpid(), follow_mark(path, 1).stat().st_mtime)
        mine.evaluated()
        assert running_follow(path) == (os.getpid(), follow_mark(path).stat().st_mtime)
    assert running_follow(path) is None


def test_a_mark_of_one_store_is_none_of_the_store_beside_it(tmp_path: Path) -> None:
    with FollowMark(tmp_path / "rail.duckdb"):
        assert running_follow(tmp_path / "other.duckdb") is None


def test_a_store_in_a_folder_that_cannot_be_written_is_followed_without_a_mark(
    tmp_path: Path,
) -> None:
    path = tmp_path / "none" / "rail.duckdb"
    with FollowMark(path) as mark:
        mark.evaluated()
        assert running_follow(path) is None
