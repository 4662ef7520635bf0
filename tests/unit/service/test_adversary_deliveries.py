"""The plan of deliveries under an adversary."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest

from tests.adversary import WebhookSwitches
from tests.adversary.deliveries import FaultyMessage, befall
from toolkit.errors import InputError
from toolkit.service import WebhookSettings

MANY = [FaultyMessage(f"m{number}", b"{}") for number in range(20_000)]


def test_without_switches_deliveries_stay_as_they_are() -> None:
    assert befall(MANY, WebhookSwitches(), random.Random(1)) == MANY


@pytest.mark.slow
def test_the_shares_are_those_asked_for_and_nothing_is_left_out() -> None:
    switches = WebhookSwitches(duplicated=0.05, reordered=0.05, replayed=0.02, tampered=0.01)
    made = befall(MANY, switches, random.Random(1))
    times = Counter(delivery.identity for delivery in made if not delivery.replayed)
    assert len(times) == len(MANY)
    assert sum(n == 2 for n in times.values()) == pytest.approx(1000, rel=0.15)
    assert sum(delivery.tampered for delivery in made) == pytest.approx(200, rel=0.3)
    assert sum(delivery.replayed for delivery in made) == pytest.approx(400, rel=0.25)


@pytest.mark.slow
def test_reordered_deliveries_come_after_some_that_followed_them() -> None:
    made = befall(MANY, WebhookSwitches(reordered=0.05), random.Random(1))
    turns = [int(delivery.identity[1:]) for delivery in made]
    assert sorted(turns) == list(range(len(MANY)))
    late = sum(now < before for before, now in pairwise(turns))
    assert late == pytest.approx(1000, rel=0.15)
    assert max(place - turn for place, turn in enumerate(turns)) <= 100


def test_how_many_are_tampered_does_not_depend_on_how_they_came_together() -> None:
    switches = WebhookSwitches(tampered=0.1)
    draw = random.Random(5)
    parts = [
        d for first in range(0, 1000, 7) for d in befall(MANY[first : first + 7], switches, draw)
    ]
    whole = befall(MANY[: len(parts)], switches, random.Random(5))
    assert [delivery.tampered for delivery in parts] == [delivery.tampered for delivery in whole]


@pytest.mark.parametrize("share", [-0.1, 1.1])
@pytest.mark.parametrize("name", ["duplicated", "reordered", "replayed", "tampered"])
def test_a_share_outside_0_to_1_is_an_input_error(name: str, share: float) -> None:
    with pytest.raises(InputError):
        WebhookSwitches(**{name: share})


@pytest.mark.parametrize(
    "options", [{"in_flight": 0}, {"timeout_s": 0.0}, {"retries_s": (1.0, -1.0)}]
)
def test_settings_that_make_no_sense_are_an_input_error(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        WebhookSettings(**options)
