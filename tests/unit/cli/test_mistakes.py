"""What is mistyped on the command line: one line each, and none of it a library's."""

from __future__ import annotations

import shlex

import pytest

from toolkit.store import Store

from ..mistakes.judged import LONGEST, RAW
from .conftest import Rail

KEY = "BTC_USDT:AURORA.spot"
PAIR = "BTC_USDT:AURORA.spot:CORONA.futures"

MISTAKES: list[tuple[str, tuple[str, ...]]] = [
    # keys
    ("sync BTC_USDT:AURORRA.spot", ("is not listed", f"nearest: {KEY}")),
    ("sync BTC_USDX:AURORA.spot", ("is not listed", f"nearest: {KEY}")),
    ("sync btc_usdt", ("'btc_usdt'", "SYMBOL:EXCHANGE.market")),
    ("sync btc_usdt:aurora.spot", ("exchange: 'aurora'", "nearest: AURORA")),
    ("sync BTC_USDT:AURORA.perp", ("market: 'perp'", "spot, futures, dex")),
    ("sync events/spreads", ("'spreads'", "nearest: spread")),
    ("sync event/spread", ("'event/spread'", "nearest: events/spread")),
    ("sync snapshot/symbol", ("'symbol'", "nearest: symbols")),
    ("sync ''", ("SYMBOL:EXCHANGE.market",)),
    ("sync", ("--all-prices",)),
    ("sync --all-prices --symbol BTC_USDX", ("'BTC_USDX'", "BTC_USDT")),
    (f"sync {KEY} --symbol BTC_USDT", ("--all",)),
    (f"stats spread {KEY}", ("two legs",)),
    ("stats spread BTC_USDT:AURORA.spot:CORONNA.futures", (PAIR, "rail sync")),
    ("stats funding BTC_USDT:AURORA.futures:CORONNA.futures", ("CORONA", "rail sync")),
    # times
    (f"sync {KEY} --start 1793750400000", ("--start", "milliseconds")),
    (f"sync {KEY} --start 2026-11-02 --end 2026-11-01", ("a start before its end",)),
    (f"sync {KEY} --start 2026-11-02 --end 2026-11-02", ("a start before its end",)),
    (f"sync {KEY} --start 'last week'", ("'last week'", "2023-03-01")),
    (f"sync {KEY} --start 2026-11-02 --end yesterday", ("--end: 'yesterday'", "2023-03-01")),
    (f"sync {KEY} --end 2026-11", ("--end: '2026-11'", "2023-03-01")),
    (f"sync {KEY} --start 2030-01-01 --end 2030-01-02", ("nothing in", "its clock reads")),
    (f"stats spread {PAIR} --start 1793750400000", ("--start", "milliseconds")),
    (f"stats spread {PAIR} --start 2020-01-01 --end 2020-01-02", ("holds nothing in", PAIR)),
    ("stats events --start soon", ("--start: 'soon'", "2023-03-01")),
    # options
    (f"sync {KEY} --workers 0", ("--workers",)),
    (f"sync {KEY} --workers four", ("--workers",)),
    (f"sync {KEY} --strat 2026-11-02", ("--strat", "--start")),
    ("sink", ("No such command 'sink'",)),
    ("stats spreads", ("'spreads'", "spread")),
    ("stats funding --min-coverage 95", ("min_coverage: 95", "0 to 1")),
    ("stats funding --min-coverage most", ("--min-coverage", "number")),
    # places and services
    ("status --store none.duckdb", ("no store at", "rail sync")),
    ("stats spread --store nowhere/none.duckdb", ("no store at",)),
    ("status --store notes.txt", ("is not a store of this toolkit",)),
    ("status --store .", ("is a directory",)),
    (f"sync {KEY} --store notes.txt/x.duckdb", ("notes.txt is not a directory",)),
    (f"sync {KEY} --store /proc/x.duckdb", ("/proc/x.duckdb",)),
    (f"sync {KEY} --base-url 127.0.0.1:8700", ("http://HOST",)),
    (f"sync {KEY} --base-url http://rail.example", ("api_key", "RAIL_API_KEY")),
    ("symbols --base-url ftp://127.0.0.1", ("http://HOST",)),
]


@pytest.mark.parametrize(("typed", "words"), MISTAKES, ids=[typed for typed, _ in MISTAKES])
def test_a_mistake_is_one_line_that_says_what_is_right(
    rail: Rail, service: str, held: Store, typed: str, words: tuple[str, ...]
) -> None:
    held.path.with_name("notes.txt").write_text("ts,price\n")
    done = rail(*shlex.split(typed), base_url=service)
    assert done.returncode in (1, 2), done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("rail: ")
    assert len(line) <= LONGEST
    assert not RAW.search(line), line
    assert [word for word in words if word not in line] == [], line
