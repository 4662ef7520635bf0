"""One version: the change log's newest, the project's, and the installed toolkit's."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import toolkit

ROOT = Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
RELEASES = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (.+)$", CHANGELOG, flags=re.MULTILINE)
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def test_the_newest_version_is_the_project_s_and_the_installed_toolkit_s() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    newest = RELEASES[0][0]
    assert newest == project["version"]
    assert newest == version("machine-rail-toolkit")
    assert newest == toolkit.__version__


def test_every_second_level_heading_is_a_release() -> None:
    assert len(re.findall(r"^## ", CHANGELOG, flags=re.MULTILINE)) == len(RELEASES)


def test_releases_run_from_the_newest_down_and_only_the_newest_may_be_unreleased() -> None:
    versions = [tuple(map(int, number.split("."))) for number, _ in RELEASES]
    assert versions == sorted(set(versions), reverse=True)
    dates = [date for _, date in RELEASES if date != "Unreleased"]
    assert len(RELEASES) - len(dates) <= 1
    assert "Unreleased" not in [date for _, date in RELEASES[1:]]
    assert dates == sorted(dates, reverse=True)
    for date in dates:
        assert dt.date.fromisoformat(date)


def test_entries_stand_under_the_kinds_of_keep_a_changelog() -> None:
    kinds = re.findall(r"^### (.+)$", CHANGELOG, flags=re.MULTILINE)
    assert kinds
    assert set(kinds) <= set(KINDS)
    for section in re.split(r"^###? .+$", CHANGELOG, flags=re.MULTILINE)[2:]:
        for line in section.strip().splitlines():
            assert line.startswith(("- ", "  ")), line
