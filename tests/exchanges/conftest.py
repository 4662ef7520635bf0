"""A fake of exchanges whose clock tests set, far from the machine's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.exchanges.fake import Fake
from tests.exchanges.truth import Truth

DAY = 1_795_651_200


class Clocked(Fake):
    """A fake that is at ``moment`` (s)."""

    moment = DAY + 30 * 3_600 + 17.0  # in the middle of a minute

    def __init__(self, truth: Truth) -> None:
        super().__init__(truth, now=lambda: self.moment)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clocked]:
    with Clocked(Truth.eventful(DAY)) as fake:
        monkeypatch.setenv("RAIL_EXCHANGES_AT", fake.at)
        yield fake
