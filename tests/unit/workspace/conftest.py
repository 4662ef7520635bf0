"""A service over three days of a small market, its clock at their end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import miniature
from toolkit.service import Clock, Config, running


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    config = Config(miniature.source(), port=0, clock=Clock(fixed_at=miniature.END))
    with running(config) as found:
        yield found.base_url
