"""`rail stats`: the tables, the same numbers as JSON, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable

import pytest

from toolkit.statistics import funding, spread
from toolkit.store import Store

from .conftest import LOADED, SETTLED, WINDOW, refused

Rail = Callable[..., subprocess.CompletedProcess[str]]
_, PAIR, FUNDING = LOADED
FUNDING_KEY = FUNDING.key.removeprefix("funding/")


def printed(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def as_json(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in printed(done).splitlines()]


@pytest.mark.usefixtures("held")
def test_spreads_are_printed_with_window_source_and_units(rail: Rail) -> None:
    shown = printed(rail("stats", "spread"))

    assert "SIMULATED" in shown.splitlines()[0]
    assert "[2026-11-03 12:00 UTC, 2026-11-04 00:00 UTC)" in shown.splitlines()[0]
    assert re.search(r"buy AURORA.spot\s+sell CORONA.futures", shown)
    assert re.search(r"rows with a spread\s+\d+", shown)
    assert re.search(r"covered\s+\d+\.\d\d%", shown)
    assert re.search(r"mean bps\s+-?\d+\.\d\d", shown)


def test_the_json_of_a_spread_is_what_the_statistics_say_of_the_store(
    rail: Rail, held: Store
) -> None:
    (row,) = as_json(rail("stats", "spread", PAIR.key, "--json"))

    measured = spread.summary(held.series(PAIR), *WINDOW)
    assert row.pop("source") == held.source.label
    assert row == measured.to_dicts()[0]


@pytest.mark.usefixtures("held")
def test_a_narrower_window_measures_less(rail: Rail) -> None:
    times = ("--start", "2026-11-03T13:00:00Z", "--end", "2026-11-03T14:00:00Z")

    (whole,) = as_json(rail("stats", "spread", PAIR.key, "--json"))
    (hour,) = as_json(rail("stats", "spread", PAIR.key, "--json", *times))

    assert 0 < hour["n"] <= 60 < whole["n"]


def test_funding_is_printed_and_its_json_is_what_the_statistics_say(
    rail: Rail, held: Store
) -> None:
    window = ("--start", str(SETTLED.start), "--end", str(SETTLED.end))

    shown = printed(rail("stats", "funding", *window))
    (row,) = as_json(rail("stats", "funding", FUNDING_KEY, *window, "--json"))

    assert shown.startswith("Funding received over ")
    assert re.search(r"carry, received on both bps\s+-?\d+\.\d\d", shown)
    assert row.pop("source") == held.source.label
    assert row == funding.summary(held.series(FUNDING), *SETTLED).to_dicts()[0]


@pytest.mark.usefixtures("held")
def test_events_are_counted_by_family_and_their_parts_add_up(rail: Rail) -> None:
    shown = printed(rail("stats", "events"))
    rows = as_json(rail("stats", "events", "--json"))

    assert {row["family"] for row in rows} == {"spread", "splash", "funding"}
    for row in rows:
        assert f"{row['n']:,}" in shown
        assert row["n"] == row["closed"] + row["open"] + row["reopened"] + row["orphans"]


@pytest.mark.parametrize("command", ["spread", "funding", "events"])
def test_a_store_that_is_not_there_is_refused(rail: Rail, command: str) -> None:
    assert "`rail sync` makes one" in refused(rail("stats", command))


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("command", ["spread", "funding"])
def test_a_key_of_one_leg_is_refused(rail: Rail, command: str) -> None:
    line = refused(rail("stats", command, "BTC_USDT:AURORA.spot"))

    assert "two legs: SYMBOL:BUY.market:SELL.market" in line


@pytest.mark.usefixtures("held")
def test_a_spread_that_was_never_loaded_is_refused_with_what_is_held(rail: Rail) -> None:
    line = refused(rail("stats", "spread", "BTC_USDT:AURORA.spot:BOREAS.spot"))

    assert PAIR.key in line
    assert "`rail sync BTC_USDT:AURORA.spot:BOREAS.spot` asks for it" in line


@pytest.mark.usefixtures("held")
def test_a_window_with_nothing_in_it_is_refused(rail: Rail) -> None:
    times = ("--start", "2026-10-01", "--end", "2026-10-02")

    assert PAIR.key in refused(rail("stats", "spread", *times))


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("end", ["2026-11-01", "yesterday"])
def test_a_window_that_is_none_is_refused(rail: Rail, end: str) -> None:
    window = ("--start", "2026-11-02", "--end", end)

    assert "allowed: " in refused(rail("stats", "spread", *window))
