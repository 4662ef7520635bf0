"""An empty store, and a client of a service that runs for the length of a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from toolkit.client import Client
from toolkit.service import Config, running
from toolkit.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store that is not there yet."""
    return Store(tmp_path / "rail.duckdb")


@contextmanager
def client_of(config: Config, key: str = "demo-pro", **options: Any) -> Iterator[Client]:
    """A client of a running service."""
    with running(config) as service, Client(service.base_url, key, **options) as client:
        yield client
