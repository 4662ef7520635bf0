"""What `rail follow` refuses before it connects, lists, brings once, and says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.adversary import Adversary, adverse
from toolkit.service import Config, Simulated, SpedClock, running
from toolkit.store import Store
from toolkit.workspace.rail_toml import EXAMPLE

from .conftest import LOADED, Rail

PRICE, SPREAD = LOADED[0].key, LOADED[1].key


def test_the_example_is_printed_as_it_can_be_kept_and_followed(rail: Rail, service: str) -> None:
    example = rail("follow", "--example").stdout
    assert example == EXAMPLE
    Path("rail.toml").write_text(example, encoding="utf-8")
    done = rail("follow", "--list", "--format", "json", base_url=service, api_key="demo-pro")
    assert done.returncode == 0, done.stderr
    rules = " ".join(json.loads(line)["rule"] for line in done.stdout.splitlines())
    for rule in ("streams", "symbols", "open_now", "top_open", "events_above_pct", "snapshots"):
        assert rule in rules


def test_the_list_has_each_stream_with_the_rule_that_names_it(rail: Rail, service: str) -> None:
    Path("rail.toml").write_text(
        f'[follow]\nstreams = ["{PRICE}", "events/*"]\nsnapshots = ["funding"]\n', encoding="utf-8"
    )
    done = rail("follow", "--list", "--format", "json", base_url=service, api_key="demo-pro")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["stream"]: row["rule"] for row in rows} == {
        PRICE: f"streams {PRICE}",
        **dict.fromkeys(["events/spread", "events/splash", "events/funding"], "streams events/*"),
        "snapshot/funding": "snapshots funding",
    }
    table = rail("follow", "--list", base_url=service, api_key="demo-pro").stdout
    assert re.match(r"5 streams of \S+rail.toml follow · SIMULATED market", table)
    assert not Path("rail.duckdb").exists()


def test_once_brings_everything_up_to_now_and_a_second_one_finds_it_there(
    rail: Rail, service: str
) -> None:
    words = ("follow", "--once", PRICE, SPREAD, "events/splash", "snapshot/spread", "--since", "2h")
    first = rail(*words, base_url=service, api_key="demo-pro")
    assert first.returncode == 0, first.stderr
    assert re.match(r"[1-9]\d* new, .* 1 sweep of the archive, 1 snapshot, no gaps", first.stdout)
    store = Store("rail.duckdb")
    assert store.catalogue().filter(stream=PRICE)["rows"].item() == 120
    again = rail(*words, base_url=service, api_key="demo-pro")
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith("1 new, 0 revised")  # the snapshot
    assert store.loads()["finished_at"].null_count() == 0


@pytest.mark.slow
def test_a_key_without_sockets_polls_and_says_so_once(rail: Rail, service: str) -> None:
    done = rail(
        *("follow", PRICE, "events/splash", "--since", "1h", "--for", "3s"),
        base_url=service,
        api_key="demo-free",
    )
    assert done.returncode == 0, done.stderr
    polled = [line for line in done.stderr.splitlines() if "the archive is asked instead" in line]
    assert len(polled) == 2
    assert "\x1b" not in done.stderr
    assert "demo-free" not in done.stderr
    assert Store("rail.duckdb").catalogue().filter(stream=PRICE)["rows"].item() == 60


def test_once_exits_3_where_some_are_refused_and_1_where_all_are(rail: Rail, service: str) -> None:
    words = ("follow", "--once", "--since", "1h", "snapshot/spread")
    some = rail(*words, PRICE, base_url=service, api_key="demo-free")
    assert some.returncode == 3, some.stderr
    assert "snapshot/spread: it is not asked for" in some.stderr
    every = rail(*words, base_url=service, api_key="demo-free")
    assert every.returncode == 1
    assert "is not in the key's plan (403)" in every.stderr.splitlines()[-1]


@pytest.mark.slow
def test_each_gap_that_was_recorded_is_counted_at_the_end(rail: Rail) -> None:
    config = Config(
        Simulated(7),
        port=0,
        clock=SpedClock(start=1_795_046_400, speed=1.0),
        application=adverse(Adversary(accept_then_close=1001)),
    )
    with running(config) as service:
        done = rail(
            *("follow", "events/splash", "--for", "2s", "--since", "1h"),
            base_url=service.base_url,
            api_key="demo-pro",
        )
    assert done.returncode == 0, done.stderr
    gaps = Store("rail.duckdb").gaps()
    assert set(gaps["cause"]) == {"closed with 1001"}
    assert re.search(rf"{gaps.height} gaps? \(", done.stdout)
