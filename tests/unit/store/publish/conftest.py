"""The full store, published once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from toolkit.store import Store
from toolkit.store.publish import publish


@pytest.fixture(scope="session")
def published(full_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The full store in a folder, to be read only."""
    folder = tmp_path_factory.mktemp("published")
    publish(Store(full_file), folder)
    return folder


@pytest.fixture
def archive(published: Path, tmp_path: Path) -> Path:
    """A copy of `published`."""
    return Path(shutil.copytree(published, tmp_path / "published"))
