"""At any time somebody who looks at the simulated market finds a spread open."""

from __future__ import annotations

import numpy as np
import pytest

from toolkit.service.events.detectors import spread_lives
from toolkit.service.events.lives import DAY_S
from toolkit.service.market.simulator import Simulated

pytestmark = pytest.mark.slow

DAYS = range(20_777, 20_791)


@pytest.mark.parametrize("seed", [7, 1])
def test_in_every_second_of_two_weeks_at_least_one_spread_event_is_open(seed: int) -> None:
    source = Simulated(seed)
    for day in DAYS:
        begin = day * DAY_S
        change = np.zeros(DAY_S + 1, dtype=np.int64)
        for life in spread_lives(source, day):
            closed_at = begin + DAY_S if life.closed_at is None else life.closed_at
            change[max(life.opened_at - begin, 0)] += 1
            change[closed_at - begin] -= 1
        assert np.cumsum(change)[:-1].min() >= 1, day


def test_what_is_open_is_of_one_coin_and_no_wider_than_thin_legs_are() -> None:
    source = Simulated(7)
    for day in DAYS:
        for life in spread_lives(source, day):
            for document in life.documents:
                assert not life.key.startswith("SUN_USDT"), life.key
                assert document.magnitude_pct < 20, life.key
