"""Exchanges as a person reads them: `rail serve`, `tk.open`, `rail demo`, the check of each."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import toolkit as tk
from tests.docs.exchanges_table import PAGE, TABLE, exchanges_table
from tests.exchanges.fake import Fake
from tests.journeys.conftest import RAIL
from toolkit.client import Client
from toolkit.errors import InputError
from toolkit.store import Store
from toolkit.workspace import Workspace

pytest.importorskip("ccxt")
Rail = Callable[..., subprocess.CompletedProcess[str]]
LEGS = [
    f"{exchange}.{market}" for exchange in ("BINANCE", "BYBIT") for market in ("spot", "futures")
]
FEW = ("--exchanges", "binance,bybit", "--symbols", "BTC_USDT")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, workdir: Path) -> Iterator[Fake]:
    """The fake on the wall clock, for this process and those that it starts, in an empty folder."""
    with Fake() as fake:
        monkeypatch.setenv("RAIL_EXCHANGES_AT", fake.at)
        monkeypatch.setenv("XDG_DATA_HOME", str(workdir / "data"))
        monkeypatch.setenv("PYTHONUNBUFFERED", "1")
        yield fake


@contextmanager
def started(*arguments: str, until: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Give a `rail serve` that has said so much, and what it said."""
    argv = [RAIL, "serve", "--port", "0", *arguments]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    said = ""
    try:
        for line in process.stdout:
            said += line
            if until in line:
                break
        assert until in said, said
        yield process, said
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_a_service_on_exchanges_serves_what_they_show_to_the_last_bit(fake: Fake) -> None:
    with started(*FEW, "--days", "1", until="listening at") as (process, said):
        assert "BINANCE: 100% read" in said
        assert re.search(r"Live exchanges, by ccxt, \w{8}: 1 symbol, 4 legs", said)
        assert "SIMULATED" not in said
        base_url = re.findall(r"http://[\d.:]+", said)[0]
        told = httpx.get(f"{base_url}/api/v1/data/schemas", headers={"apikey": "demo-pro"}).json()
        assert told["source"]["kind"] == "live"
        assert told["source"]["exchanges"] == ["BINANCE", "BYBIT"]
        with Workspace(Client(base_url, "demo-pro"), Store("s.duckdb")) as workspace:
            workspace.sync("BTC_USDT:*", "6h", progress=False)
            assert "exchanges, by ccxt" in workspace.prices("BTC_USDT:BYBIT.spot").source.label
            for leg in LEGS:
                held = workspace.prices(f"BTC_USDT:{leg}", "6h").df
                shown = fake.truth.bars("BTC_USDT", leg, held["ts"][0], held["ts"][-1] + 1)
                assert held["ts"].to_list() == [bar.ts for bar in shown]
                assert held["price"].to_list() == [bar.close for bar in shown]
                assert held.height > 300
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert Path("rail.exchanges.duckdb").exists()


@pytest.mark.slow
def test_the_same_call_goes_on_from_the_archive_beside_the_store(fake: Fake) -> None:
    asked = []
    for _ in range(2):
        before = len(fake.requests)
        with tk.open("real.duckdb", exchanges=["binance"], symbols=["BTC_USDT"]) as opened:
            again = tk.open("real.duckdb", exchanges="binance", symbols="BTC_USDT")
            assert again.client.base_url == opened.client.base_url
            again.close()
            opened.sync("BTC_USDT:*", "3h", progress=False)
            assert opened.prices("BTC_USDT:BINANCE.spot", "3h").df.height > 120
        asked.append(len(fake.requests) - before)
    assert asked[1] < asked[0] / 2
    assert Path("real.exchanges.duckdb").exists()
    with tk.open("real.duckdb") as alone, pytest.raises(InputError, match="exchanges=") as refused:
        alone.symbols()
    assert "exchanges, by ccxt" in str(refused.value)


@pytest.mark.slow
def test_more_days_than_an_archive_began_with_are_told_not_to_be_read(fake: Fake) -> None:
    assert fake.at
    few = (*FEW, "--archive", "a.duckdb")
    with started(*few, "--days", "1", until="listening at") as (_, said):
        assert "begins at" not in said
    with started(*few, "--days", "9", until="listening at") as (_, said):
        assert re.search(r"a\.duckdb begins at \d{4}-.+, and nothing before it is read", said)


@pytest.mark.slow
def test_an_exchange_that_is_silent_at_a_start_keeps_its_legs_and_is_asked_on(fake: Fake) -> None:
    with started(*FEW, "--days", "1", until="listening at"):
        pass
    fake.trouble["BYBIT"].down = "reset"
    with started(*FEW, "--days", "1", until="BINANCE: 100% read") as (process, said):
        fake.trouble["BYBIT"].down = ""
        assert "BYBIT: no answer: " in said
        assert process.stdout is not None
        read, label = process.stdout.readline(), process.stdout.readline()
    assert read == "BYBIT: 100% read\n"
    assert ": 1 symbol, 4 legs; " in label


@pytest.mark.slow
def test_ctrl_c_before_all_is_read_ends_in_one_line_that_says_what_is_kept(fake: Fake) -> None:
    fake.trouble["BYBIT"].down, fake.trouble["BYBIT"].only = "silence", "kline"
    with started(*FEW, "--days", "1", until="BINANCE: 100% read") as (process, _):
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        said = process.stdout.read()
        assert process.wait(60) == 130
    stopped = "rail: stopped; rail.exchanges.duckdb keeps what was read, the same command goes on"
    assert said.splitlines()[-1].startswith(stopped), said
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_check_shows_what_each_exchange_answers_and_what_to_do(fake: Fake, rail: Rail) -> None:
    fake.trouble["BYBIT"].down, fake.trouble["OKX"].status = "reset", 451
    exchanges = ("--check-exchanges", "--exchanges", "binance,bybit,okx,kraken")
    found = rail("serve", *exchanges, "--symbols", "BTC_USDT", "--save", "answers.jsonl")
    assert found.returncode == 1, found.stderr
    rows = {line.split()[0]: line.split()[1:] for line in found.stdout.splitlines()}
    assert rows["BINANCE"][0] == "2"
    assert rows["BINANCE"][2:5] == ["7", "d", "3"]
    assert rows["BYBIT"][:5] == rows["OKX"][:5] == ["–"] * 5
    assert "\nKRAKEN: minutes go back 11 h, what is older will be lost\n" in found.stdout
    assert "OKX: HTTP 451" in found.stdout
    assert "leave it out" in found.stdout
    assert "BYBIT: " in found.stdout
    assert "rail serve --exchanges binance,kraken\n" in found.stdout
    assert "cookie" not in Path("answers.jsonl").read_text(encoding="utf-8").lower()


@pytest.mark.usefixtures("fake")
@pytest.mark.slow
def test_raw_answers_of_a_check_play_back_as_the_exchange(rail, monkeypatch) -> None:
    check = (
        "serve",
        "--check-exchanges",
        "--exchanges",
        "bybit,hyperliquid",
        "--rename",
        "USDC=USDT",
    )
    saved = rail(*check, "--save", "answers.jsonl")
    assert saved.returncode == 0, saved.stderr
    with Fake.replaying(Path("answers.jsonl")) as replay:
        monkeypatch.setenv("RAIL_EXCHANGES_AT", replay.at)
        again = rail(*check)
    counts = [
        re.findall(r"(?m)^(BYBIT|HYPERLIQUID) +(\d+) +(\d+)", it.stdout) for it in (saved, again)
    ]
    assert counts[0] == counts[1] != []


@pytest.mark.usefixtures("fake")
@pytest.mark.slow
def test_the_demo_of_exchanges_loads_a_week_and_never_says_simulated(rail: Rail) -> None:
    for _ in range(2):
        shown = rail("demo", *FEW, "--once")
        assert "begins at" not in shown.stderr
        assert shown.returncode == 0, shown.stderr
        assert "market: Live exchanges, by ccxt, " in shown.stdout
        assert "SIMULATED" not in shown.stdout + shown.stderr
    names = sorted(path.name for path in Path("data/machine-rail").glob("*.duckdb"))
    assert names == ["real.duckdb", "real.exchanges.duckdb"]


@pytest.mark.slow
def test_where_no_exchange_answers_one_line_says_what_to_do(fake: Fake, rail: Rail) -> None:
    fake.trouble["BYBIT"].status = 451
    found = rail("serve", "--port", "0", "--exchanges", "bybit")
    assert found.returncode == 1
    first, last = found.stderr.splitlines()
    assert first.startswith("BYBIT: left out: HTTP 451")
    assert last.startswith("rail: no exchange is left to read; `rail serve --check-exchanges`")


def test_the_page_has_the_facts_that_the_code_has() -> None:
    found = TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    assert found[0] == exchanges_table(), "`make docs` writes the table"
