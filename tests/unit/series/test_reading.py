"""Which window a series is read over, and as known when."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from toolkit.client import Client
from toolkit.errors import EmptyWindowError, InputError, UnknownTrajectoryError
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Store
from toolkit.workspace import Workspace

from .conftest import NOW, PAIR, PRICE, WINDOW


def test_a_named_window_is_relative_to_the_services_clock(rail: Workspace) -> None:
    hour = rail.prices(PRICE, "2h").window
    assert hour.length_s == 7_200
    assert 0 <= hour.end - NOW < 600  # the time since the load goes on
    assert rail.prices(PRICE, "yesterday").window == (NOW - 86_400, NOW)
    assert rail.prices(PRICE, "2026-11").window == (NOW - 3 * 86_400, NOW + 27 * 86_400)


@pytest.mark.parametrize("start", ["7 days", "last week", "2026-13", "BTC", 1_793_750_400_000, 0.5])
def test_what_is_no_time_and_no_window_is_refused_with_both_forms(
    rail: Workspace, start: object
) -> None:
    with pytest.raises(InputError, match=r"start: .*2023-03-01.*7d, 12h, today"):
        rail.prices(PRICE, start)  # type: ignore[arg-type]  # what is refused


def test_a_window_of_which_nothing_is_known_names_what_is_held(rail: Workspace) -> None:
    with pytest.raises(EmptyWindowError, match=r"held: 2026-11-03 18:00 to .*` asks"):
        rail.spread(PAIR, "2026-01-01", "2026-01-02")


def test_a_log_that_was_never_asked_for_is_not_an_empty_one(rail: Workspace) -> None:
    with pytest.raises(UnknownTrajectoryError, match=r"events/splash is not held.*rail sync"):
        rail.events("splash")


@pytest.mark.slow
def test_rows_are_those_that_were_known_as_of_a_time(tmp_path: Path) -> None:
    store = Store(tmp_path / "rail.duckdb")
    before = int(time.time()) - 5
    config = Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=10**6)
    with running(config) as service, Workspace(Client(service.base_url, "demo-pro"), store) as rail:
        rail.sync([PRICE, "events/splash"], WINDOW[0], WINDOW[0] + 3_600, progress=False)
        between = int(time.time())
        while int(time.time()) == between:
            time.sleep(0.05)
        rail.sync([PRICE, "events/splash"], *WINDOW, progress=False)

        then, now = rail.as_of(between), rail
        assert len(then.prices(PRICE, *WINDOW)) == 60 < len(now.prices(PRICE, *WINDOW))
        assert len(then.events("splash", *WINDOW)) <= len(now.events("splash", *WINDOW))
        assert "as of" in repr(then.prices(PRICE, *WINDOW))
        with pytest.raises(EmptyWindowError, match=r"held nothing as of .*the first load began"):
            rail.as_of(before).prices(PRICE)
        with pytest.raises(InputError, match="as_of"):
            then.sync(PRICE)
        with pytest.raises(InputError, match="as_of"):
            then.prices(PRICE, *WINDOW).gaps()
