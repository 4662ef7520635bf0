"""A published store of spreads and funding, whose workspace every test of the cluster opens."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import toolkit as tk
from benchmarks._walks import START, fill_store, funding_rows, spread_rows
from toolkit.store import Store
from toolkit.store.publish import publish
from toolkit.workspace import Workspace

SPREADS, MINUTES = 12, 600
END = START + 60 * MINUTES


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with a publication: spreads and funding."""
    folder = tmp_path_factory.mktemp("published")
    fill_store(folder, [spread_rows(range(SPREADS), MINUTES), funding_rows(range(3), 96)])
    publish(Store(folder / "rail.duckdb"), folder / "archive")
    return folder / "archive"


@pytest.fixture(scope="session")
def opened(archive: Path) -> Path:
    """A cache in which the publication has been opened."""
    cache = archive.parent / "cache"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(cache))
        tk.open(archive).close()
    return cache


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def rail(archive: Path, opened: Path, tmp_path: Path) -> Iterator[Workspace]:
    """A workspace of the publication."""
    shutil.copytree(opened, tmp_path / "cache")
    with tk.open(archive) as found:
        yield found
