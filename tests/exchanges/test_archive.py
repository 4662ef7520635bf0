"""The archive: what it keeps, what it refuses, and that a kill leaves it whole."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from toolkit.errors import InputError
from toolkit.market import Leg
from toolkit.service.market.exchanges import BarAnswer, LegKey, ListedLeg, RateAnswer
from toolkit.service.market.exchanges.archive import Archive, Exchanges
from toolkit.service.market.source import Bars, LostRows, MarketSource, SettledRates

START = 1_795_651_200
SPOT = ListedLeg(
    LegKey("BTC_USDT", Leg.parse("KRAKEN.spot")), "kraken", "BTC/USDT", 1.0, 1.0, funding=False
)
FUTURES = ListedLeg(
    LegKey("BTC_USDT", Leg.parse("OKX.futures")), "okx", "BTC/USDT:USDT", 1.0, None, funding=True
)


def bars(first: int, prices: Sequence[float], until: int | None = None) -> BarAnswer:
    """An answer with a bar each minute from ``first`` minutes after the start on."""
    ts = START + 60 * np.arange(first, first + len(prices))
    known_until = START + 60 * (first + len(prices) if until is None else until)
    found = Bars(ts, np.array(prices), 60, volume=np.full(len(ts), 2.0))
    return BarAnswer(found, known_until, {})


def rates(hours: Sequence[int], known_until: int) -> RateAnswer:
    """An answer with a settlement at each of some hours after the start."""
    ts = START + 3600 * np.array(hours, dtype=np.int64)
    found = SettledRates(ts, np.full(len(ts), 1e-4), np.full(len(ts), 1))
    return RateAnswer(found, known_until, {})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "real.duckdb"


@pytest.fixture
def archive(path: Path) -> Iterator[Archive]:
    held = Archive.open(path, start=START + 59, legs=[SPOT, FUTURES])
    yield held
    held.close()


def test_the_first_bar_stays_and_a_later_reading_records_where_it_differs(archive: Archive) -> None:
    archive.accept(SPOT.key, bars(0, [1.0, 2.0, 3.0]))
    archive.accept(SPOT.key, bars(1, [9.0, 9.0, 4.0]))
    assert archive.bars(SPOT.key, 0, 1 << 40, heard=True).price.tolist() == [1.0, 2.0, 3.0, 4.0]
    for _ in range(2):
        archive.compare(SPOT.key, START, bars(0, [1.0, 9.0, 3.0], until=4))
    found = archive._connection.execute("SELECT named, ts, served, read FROM difference").fetchall()
    minutes = [(named, (ts - START) // 60, served, read) for named, ts, served, read in found]
    assert sorted(minutes) == [
        ("price", 1, 2.0, 9.0),
        ("price", 3, 4.0, None),
        ("volume", 3, 2.0, None),
    ]


def test_the_clock_is_that_of_the_leg_known_least_and_waits_for_settlements(archive) -> None:
    archive.accept(SPOT.key, bars(0, [1.0] * 90))
    assert archive.known_until == START
    archive.accept(FUTURES.key, bars(0, [1.0] * 80))
    assert archive.known_until == START
    archive.accept(FUTURES.key, rates([0], START + 3599))
    assert archive.known_until == START + 3599
    archive.accept(FUTURES.key, rates([1], START + 7199))
    assert archive.known_until == START + 80 * 60


def test_what_was_lost_and_came_late_is_served_and_not_heard(path: Path) -> None:
    archive = Archive.open(path, start=START, legs=[SPOT])
    source = Exchanges(archive)
    archive.accept(SPOT.key, bars(0, [1.0, 2.0]))
    for until in (4, 5):
        archive.lose(SPOT.key, "bars", START + 60 * until, "no answer")
    archive.accept(SPOT.key, bars(5, [6.0]))
    leg = SPOT.key.leg
    assert source.lost("BTC_USDT", leg, 0, START, "bars") == []
    (lost,) = source.lost("BTC_USDT", leg, 0, START + 121, "bars")
    assert lost == LostRows(START + 120, START + 300, "no answer")
    before = source.revision, source.known_until
    archive.find_late(SPOT.key, lost, lost.start, bars(2, [3.0, 4.0]))
    assert (source.revision, source.known_until) == (before[0] + 1, before[1])
    served = source.bars("BTC_USDT", leg).between(0, 1 << 40)
    heard = source.heard.bars("BTC_USDT", leg).between(0, 1 << 40)
    assert served.price.tolist() == [1.0, 2.0, 3.0, 4.0, 6.0]
    assert heard.price.tolist() == [1.0, 2.0, 6.0]
    (lost,) = source.lost("BTC_USDT", leg, 0, 1 << 40, "bars")
    assert lost == LostRows(START + 240, START + 300, "no answer")
    archive.close()


def test_an_answer_that_begins_within_a_lost_stretch_leaves_both_of_its_sides(archive) -> None:
    archive.lose(SPOT.key, "bars", START + 600, "beyond reach")
    (lost,) = archive.legs[SPOT.key].lost["bars"]
    archive.find_late(SPOT.key, lost, START + 120, bars(2, [3.0, 4.0]))
    ends = [(each.start - START, each.end - START) for each in archive.legs[SPOT.key].lost["bars"]]
    assert ends == [(0, 120), (240, 600)]


def test_a_settlement_that_was_due_and_not_published_is_lost_until_it_is(archive: Archive) -> None:
    told = rates([0], START + 7000)._replace(missing=(START + 3600,))
    archive.accept(FUTURES.key, told)
    (lost,) = archive.legs[FUTURES.key].lost["funding"]
    assert (lost.start, lost.end) == (START + 3600, START + 7200)
    archive.find_late(FUTURES.key, lost, lost.start, told)
    assert archive.legs[FUTURES.key].lost["funding"] == [lost]
    archive.find_late(FUTURES.key, lost, lost.start, rates([1], START + 9000))
    assert archive.legs[FUTURES.key].lost["funding"] == []
    found = (
        archive.settlements(FUTURES.key, heard=False),
        archive.settlements(FUTURES.key, heard=True),
    )
    assert [len(each.ts) for each in found] == [2, 1]
    assert found[0].next_after(START + 3599) == START + 3600


def test_a_leg_added_later_has_its_history_and_is_heard_from_then_on(path: Path) -> None:
    archive = Archive.open(path, start=START, legs=[SPOT])
    archive.accept(SPOT.key, bars(0, [1.0] * 10))
    archive.close()
    archive = Archive.open(path, start=0, legs=[SPOT, replace(FUTURES, funding=False)])
    assert (archive.start, archive.known_until) == (START, START + 600)
    revision = archive.revision
    archive.accept(FUTURES.key, bars(0, [2.0] * 12))
    assert archive.revision > revision
    archive.accept(SPOT.key, bars(10, [1.0] * 2))
    served, heard = (archive.bars(FUTURES.key, 0, 1 << 40, heard=each) for each in (False, True))
    assert (len(served.ts), len(heard.ts)) == (12, 2)
    assert archive.known_until == START + 720
    archive.close()


def test_a_leg_that_goes_holds_the_clock_no_more_and_one_that_comes_back_lost_the_time_between(
    path: Path,
) -> None:
    archive = Archive.open(path, start=START, legs=[SPOT, replace(FUTURES, funding=False)])
    archive.accept(SPOT.key, bars(0, [1.0] * 10))
    archive.accept(FUTURES.key, bars(0, [2.0] * 4))
    archive.end(FUTURES.key, START + 300)
    assert archive.known_until == START + 600
    archive.close()
    archive = Archive.open(path, start=START, legs=[SPOT, FUTURES])
    (lost,) = archive.legs[FUTURES.key].lost["bars"]
    assert (lost.start, lost.end) == (START + 240, START + 600)
    assert archive.known_until == START + 600
    archive.close()
    Archive.open(path, start=START, legs=[]).close()
    archive = Archive.open(path, start=START, legs=[FUTURES])
    assert archive.known_until == START + 600
    archive.close()


def test_legs_of_an_exchange_that_did_not_say_what_it_lists_go_on(path: Path) -> None:
    with closing(Archive.open(path, start=START, legs=[SPOT])) as archive:
        archive.accept(SPOT.key, bars(0, [1.0] * 10))
    silent = {SPOT.key.leg.exchange}
    with closing(Archive.open(path, start=START, legs=[], silent=silent)) as archive:
        assert archive.legs[SPOT.key].ended_at is None
        archive.accept(SPOT.key, bars(10, [1.0]))
        assert archive.known_until == START + 660
        assert archive.legs[SPOT.key].lost["bars"] == []


def test_what_is_kept_is_there_when_it_is_opened_again(path: Path) -> None:
    archive = Archive.open(path, start=START, legs=[SPOT, FUTURES])
    archive.accept(SPOT.key, bars(0, [1.0, 2.0]))
    archive.accept(FUTURES.key, rates([0], START + 3599))
    before = (archive.id, archive.start, archive.revision, archive.known_until, archive.legs)
    archive.close()
    again = Archive.open(path, start=START, legs=[SPOT, FUTURES])
    assert (again.id, again.start, again.revision, again.known_until, again.legs) == before
    assert Exchanges(again) == Exchanges(archive) != Exchanges(archive).heard
    again.close()


def test_sources_of_an_archive_are_what_the_service_serves(archive: Archive) -> None:
    source: MarketSource = Exchanges(archive)
    assert (source.kind, source.id[:18]) == ("live", "exchanges-by-ccxt-")
    assert {symbol: list(map(str, legs)) for symbol, legs in source.listing.items()} == {
        "BTC_USDT": ["KRAKEN.spot", "OKX.futures"]
    }
    spot, futures = source.listing["BTC_USDT"]
    assert source.funding("BTC_USDT", spot) is None
    with pytest.raises(KeyError):
        source.bars("ETH_USDT", spot)
    archive.accept(FUTURES.key, bars(0, [1.0]))
    assert source.bars("BTC_USDT", futures).between(0, 1 << 40).volume is None
    assert source.bars("BTC_USDT", futures).parts(START).price.tolist() == [1.0]
    assert len(source.bars("BTC_USDT", spot).between(START, START + 60).ts) == 0


def test_threads_read_whole_rows_while_another_writes(archive: Archive) -> None:
    source, written = Exchanges(archive), threading.Event()

    def write() -> None:
        for minute in range(30):
            archive.accept(SPOT.key, bars(minute, [float(minute + 1)]))
            archive.accept(FUTURES.key, bars(minute, [1.0]))
            archive.accept(FUTURES.key, rates([minute], START + 3600 * (minute + 1) - 1))
        written.set()

    def read() -> int:
        looks = 0
        while not written.is_set() or not looks:
            known_until = source.known_until
            found = source.heard.bars("BTC_USDT", SPOT.key.leg).between(START, known_until - 59)
            assert found.price.tolist() == [1.0 + n for n in range((known_until - START) // 60)]
            looks += 1
        return looks

    with ThreadPoolExecutor(4) as pool:
        reading = [pool.submit(read) for _ in range(3)]
        pool.submit(write).result()
        assert all(each.result() > 0 for each in reading)


HOLD = """
import sys, duckdb
held = duckdb.connect(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_or_a_second_use_gets_one_line_that_says_who_holds_it(path: Path) -> None:
    Archive.open(path, start=0, legs=[]).close()
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as it:
        assert it.stdout is not None
        assert it.stdout.readline() == "held\n"
        with pytest.raises(InputError, match=f"process {it.pid} holds it"):
            Archive.open(path, start=0, legs=[])
        it.kill()
    archive = Archive.open(path, start=0, legs=[])
    with pytest.raises(InputError, match="holds it") as caught:
        Archive.open(path, start=0, legs=[])
    assert "\n" not in str(caught.value)
    archive.close()


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"\0" * 4096])
def test_a_foreign_file_is_one_line_and_stays_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError, match="an archive of exchanges") as caught:
        Archive.open(path, start=0, legs=[])
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


def test_a_database_of_others_and_a_damaged_archive_are_one_line(path: Path) -> None:
    with duckdb.connect(path) as other:
        other.execute("CREATE TABLE meta (id VARCHAR)")
    with pytest.raises(InputError, match="an archive of exchanges"):
        Archive.open(path, start=0, legs=[])
    path.unlink()
    archive = Archive.open(path, start=START, legs=[SPOT])
    archive.accept(SPOT.key, bars(0, [1.0] * 5000))
    archive.close()
    whole = path.read_bytes()
    for place in range(4096, len(whole), len(whole) // 3):
        path.write_bytes(whole[:place] + b"\xff" * 2048 + whole[place + 2048 :])
        with suppress(InputError):
            archive = Archive.open(path, start=START, legs=[SPOT])
            with closing(archive):
                archive.bars(SPOT.key, 0, 1 << 40, heard=True)


def test_another_market_under_the_same_name_is_refused(path: Path) -> None:
    Archive.open(path, start=START, legs=[SPOT]).close()
    with pytest.raises(InputError, match="BTC/USDT of kraken"):
        Archive.open(path, start=START, legs=[replace(SPOT, market="BTC/USDC")])
