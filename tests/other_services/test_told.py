"""Refusals told with status 200 lose no row: what was refused is asked for again."""

from __future__ import annotations

import pytest

from tests.other_services.data import NOW, START, TRAJECTORIES, sample
from tests.other_services.kinds import profile_of, users
from tests.other_services.nested import Nested
from tests.other_services.server import API_KEY, Answer, Question, serving
from tests.other_services.service import Held
from toolkit.client import Client
from toolkit.errors import QuotaError
from toolkit.intervals import Interval, total_s
from toolkit.loader import sync
from toolkit.market import Trajectory
from toolkit.store import Store

PRICE = Trajectory.parse(TRAJECTORIES[0])
WINDOW = Interval(START, NOW - 120)
PROFILE = profile_of("nested").read_text().replace("limit = 1000", "limit = 50")


class Spent(Nested):
    """A service whose quota is spent after so many pages."""

    pages = 2

    def history(self, trajectory: Trajectory, held: Held, question: Question) -> Answer:
        """Return a page, or that there were too many requests."""
        self.pages -= 1
        if self.pages < 0:
            return Answer({"code": "50011", "msg": "Too Many Requests", "result": {"data": []}})
        return super().history(trajectory, held, question)


def test_what_a_spent_quota_left_out_is_not_answered_for_and_comes_with_the_next_load(tmp_path):
    service, store = Spent(sample()), Store(tmp_path / "rail.duckdb")
    with (
        serving(service) as base_url,
        Client(base_url, API_KEY, profile=users(PROFILE), sleep=lambda _: None) as client,
    ):
        with pytest.raises(QuotaError, match=r"Too Many Requests \(code 50011, told with status"):
            sync(client, store, [PRICE], WINDOW, workers=1)
        answered = total_s(store.ledger([PRICE], WINDOW)[PRICE].answered)
        assert 0 < answered < WINDOW.length_s / 2
        service.pages = 1_000
        sync(client, store, [PRICE], WINDOW)
    assert store.counts(WINDOW)[PRICE] == WINDOW.length_s // 60
    assert total_s(store.ledger([PRICE], WINDOW)[PRICE].answered) == WINDOW.length_s
