"""A seed's endless market: through the command line, and the same bytes after a restart."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx
import msgspec
import polars as pl
import pytest

from toolkit.market import Family, Trajectory, parse_ts
from toolkit.store import Store

from .conftest import serving

Rail = Callable[..., subprocess.CompletedProcess[str]]
SERVING = ("--seed", "7", "--now", "2026-11-20")
SPREAD = "BTC_USDT:AURORA.spot:BOREAS.spot"
FUNDING = "funding/BTC_USDT:AURORA.futures:BOREAS.futures"
WINDOW = ("--start", "2026-11-17", "--end", "2026-11-19")
EVENTS = ("events/spread", "events/splash", "events/funding")


@pytest.fixture(scope="module")
def seeded() -> Iterator[str]:
    with serving(*SERVING) as base_url:
        yield base_url


def test_one_sync_brings_spreads_funding_events_and_snapshots_and_they_are_measured(
    rail: Rail, seeded: str, tmp_path: Path
) -> None:
    loading = ("sync", SPREAD, FUNDING, *EVENTS, "snapshot/activity", *WINDOW)
    first, again = rail(*loading, base_url=seeded), rail(*loading, base_url=seeded)
    assert first.returncode == again.returncode == 0, first.stderr + again.stderr
    # Only the snapshot is asked for again: it is of another moment.
    counts = "1 new, 0 held already; 1 page, 2 trajectories, 3 event logs, 1 snapshot, "
    assert again.stdout.startswith(counts)
    store = Store(tmp_path / "rail.duckdb")
    assert store.snapshots("activity").height == 2
    assert (
        store.series(Trajectory.parse(FUNDING, Family.FUNDING)).height == 7
    )  # the one at the end too
    funding = rail("stats", "funding", FUNDING, *WINDOW)
    events = rail("stats", "events", *WINDOW, "--format", "json")
    assert "SIMULATED" in funding.stdout
    assert "funding APR (%)" in funding.stdout
    counted = {row["family"]: row for row in map(json.loads, events.stdout.splitlines())}
    assert set(counted) == {"spread", "splash", "funding"}
    for row in counted.values():
        assert row["n"] == row["closed"] + row["open"] + row["reopened"] + row["orphans"]
        assert "SIMULATED" in row["source"]


def test_two_services_of_one_seed_are_one_source(rail: Rail, seeded: str, tmp_path: Path) -> None:
    assert rail("sync", SPREAD, *WINDOW, base_url=seeded).returncode == 0
    before = Store(tmp_path / "rail.duckdb").series(Trajectory.parse(SPREAD))
    with serving(*SERVING) as restarted:
        done = rail(
            "sync", SPREAD, "--start", "2026-11-16", "--end", "2026-11-19", base_url=restarted
        )
    assert done.returncode == 0, done.stderr
    after = Store(tmp_path / "rail.duckdb").series(Trajectory.parse(SPREAD))
    assert after.filter(pl.col("ts") >= before["ts"][0]).equals(before)
    assert after.height > before.height
    with serving("--seed", "8", "--now", "2026-11-20") as other:
        refused = rail("sync", SPREAD, *WINDOW, base_url=other)
    assert "never mixes sources" in refused.stderr


def test_a_key_taken_from_the_owners_file_is_refused_at_once(rail: Rail, tmp_path: Path) -> None:
    owners = tmp_path / "owners.toml"
    owners.write_text('[owners.ann]\nplan = "pro"\nkeys = ["one", "two"]\n')
    with serving("--owners", str(owners), "--now", "2026-11-20") as base_url:
        sync = ("sync", "BTC_USDT:AURORA.spot", "--start", "2026-11-18", "--end", "2026-11-19")
        assert rail(*sync, base_url=base_url, api_key="one").returncode == 0
        owners.write_text('[owners.ann]\nplan = "pro"\nkeys = ["two"]\nrevoked = ["one"]\n')
        gone = rail(*sync, base_url=base_url, api_key="one")
        assert rail(*sync, base_url=base_url, api_key="two").returncode == 0
    assert "refused the key (401)" in gone.stderr


END = parse_ts("2026-11-20")
LEGS = {
    "symbol": "BTC_USDT",
    "buy_exchange": "AURORA",
    "buy_market": "futures",
    "sell_exchange": "BOREAS",
    "sell_market": "futures",
}
PRICE = {"symbol": "BTC_USDT", "exchange": "BOREAS", "market": "spot"}
LOGGED = {"start_time": END - 7 * 86_400, "end_time": END, "limit": 500}
QUESTIONS: list[tuple[str, dict[str, str | int]]] = [
    *(("history/price", PRICE | {"limit": 3_000, "end_time": END - d * 86_400}) for d in (0, 12)),
    *(("history/spread", LEGS | {"limit": 3_000, "end_time": END - d * 86_400}) for d in (0, 12)),
    ("history/funding", LEGS | {"limit": 500}),
    *((f"history/{family}-events", LOGGED) for family in ("splash", "funding", "spread")),
]


def ask(base_url: str, questions: Sequence[tuple[str, dict[str, str | int]]]) -> list[bytes]:
    headers = {"apikey": "demo-pro"}
    with httpx.Client(base_url=f"{base_url}/api/v1/data/", headers=headers, timeout=300) as client:
        answers = [client.get(path, params=query) for path, query in questions]
    assert {answer.status_code for answer in answers} == {200}
    assert all(len(answer.json()["items"]) > 50 for answer in answers)
    return [answer.content for answer in answers]


def test_another_process_answers_in_the_same_bytes_and_goes_on_with_a_cursor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    with serving(*SERVING) as one:
        first = ask(one, QUESTIONS)
        cursor = msgspec.json.decode(first[-1])["next_cursor"]
        older = [(QUESTIONS[-1][0], QUESTIONS[-1][1] | {"cursor": cursor})]
        following = ask(one, older)
    monkeypatch.setenv("PYTHONHASHSEED", "2")
    with serving(*SERVING) as restarted:
        assert ask(restarted, older) == following
        assert ask(restarted, QUESTIONS[::-1])[::-1] == first
