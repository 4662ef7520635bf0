"""What exchanges are asked, when, and what an outage, a leg that goes and a late row come to."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.exchanges.told import START, WANTED, Desk, Told, exchanges, per_minute, truth_of
from tests.exchanges.truth import HOUR_S, Truth
from toolkit.errors import ExchangeOutageError as Outage
from toolkit.errors import ExchangeRefusedError as Refused
from toolkit.market import Leg, Market
from toolkit.service.market.exchanges import LegKey, WantedLegs
from toolkit.service.market.exchanges.archive import Archive
from toolkit.service.market.exchanges.polling import Poller
from toolkit.service.market.source import Clock, SpedClock

ONE = WantedLegs(("BTC_USDT",))
BINANCE = LegKey("BTC_USDT", Leg.parse("BINANCE.spot"))


@pytest.fixture
def desk_of(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """A desk over some exchanges, whose archive is closed at the end."""
    made: list[Desk] = []

    def desk(*found: Told, start: int = START, wanted: WantedLegs = ONE) -> Desk:
        made.append(Desk(tmp_path / "real.duckdb", list(found) or exchanges(), start, wanted))
        return made[-1]

    yield desk
    for each in made:
        each.archive.close()


def run(desk: Desk, until: float) -> None:
    for _ in desk.run(until):
        pass


def jump(desk: Desk, ts: float) -> None:
    desk.move(ts)
    desk.catch_up()
    desk.worst_lag_s = 0.0


def test_a_leg_is_asked_once_a_minute_some_seconds_after_it_and_once_an_hour_again(desk_of):
    binance = Told("BINANCE", (Market.SPOT,))
    desk = desk_of(binance, start=START - 7200)
    jump(desk, START + 3300)
    binance.asked.clear()
    run(desk, START + 3600 + 630)
    assert sorted(per_minute(binance.asked).values()) == [*[1] * 15, 2]
    assert {round(ts) % 60 for ts in binance.asked} == {5}
    assert desk.worst_lag_s <= 150


def test_rows_of_an_outage_are_lost_the_clock_goes_on_and_they_come_late(desk_of) -> None:
    binance, okx = Told("BINANCE", (Market.SPOT,)), Told("OKX", (Market.SPOT,))
    desk = desk_of(binance, okx)
    jump(desk, START + 900)
    okx.down = Outage("connection reset")
    heard, documents = desk.rows(heard=True), desk.documents()
    run(desk, START + 900 + 300)
    assert desk.now - desk.archive.known_until <= 150
    run(desk, START + 900 + 1800)
    (lost,) = desk.lost()
    assert lost[0] == "BTC_USDT:OKX.spot"
    assert 27 <= (lost[3] - lost[2]) // 60 <= 30
    assert desk.told[0].startswith("OKX: no answer for 90 s: connection reset")
    found = desk.documents()
    okx.down = None
    run(desk, START + 900 + 2000)
    assert desk.lost() == []
    assert desk.rows() == truth_of(desk, binance.truth)
    (name,) = [each for each in heard if "OKX" in each]
    late = {row[0] for row in desk.rows()[name]} - {row[0] for row in desk.rows(heard=True)[name]}
    assert late
    assert all(lost[2] <= ts < lost[3] for ts in late)
    after = desk.documents()
    assert all(after[family][: len(found[family])] == found[family] for family in found)
    assert all(after[family][: len(documents[family])] == documents[family] for family in found)
    assert desk.told[1:] == ["OKX answers again; what was lost is read again"]


def test_a_machine_that_slept_or_a_service_that_was_stopped_catches_up(desk_of) -> None:
    binance = Told("BINANCE", (Market.SPOT,))
    desk = desk_of(binance)
    run(desk, START + 600)
    binance.down = Outage("no network")
    run(desk, START + 660)
    desk.move(START + 20_000)
    binance.down = None
    desk.catch_up()
    assert desk.lost() == []
    assert desk.rows() == truth_of(desk, binance.truth)


def test_an_exchange_that_names_a_time_is_not_asked_before_it_and_its_rows_are_lost_meanwhile(
    desk_of,
) -> None:
    binance = Told("BINANCE", (Market.SPOT,))
    desk = desk_of(binance, wanted=WANTED)
    run(desk, START + 600)
    asked = len(binance.asked)
    binance.down = Outage("too many requests", retry_after_s=400.0)
    run(desk, START + 980)
    assert len(binance.asked) == asked + 1
    assert desk.now - desk.archive.known_until <= 150


@pytest.mark.parametrize("fault", [Outage("internal error"), TypeError("not what ccxt expects")])
def test_one_broken_market_does_not_hold_the_others_of_its_exchange(desk_of, fault) -> None:
    class Partly(Told):
        def _answer(self, leg: object = None) -> None:
            super()._answer()
            if leg is not None and leg.key.symbol == "SOL_USDT" and self.ts > START + 600:
                raise fault

    binance = Partly("BINANCE", (Market.SPOT,))
    desk = desk_of(binance, wanted=WANTED)
    run(desk, START + 1200)
    assert {lost[0] for lost in desk.lost()} == {"SOL_USDT:BINANCE.spot"}
    assert desk.now - desk.archive.known_until <= 150
    assert max(per_minute(binance.asked).values()) <= 10


def test_an_exchange_whose_clock_is_a_minute_behind_or_ahead_is_read_by_its_own(desk_of) -> None:
    binance = Told("BINANCE", (Market.SPOT,))
    behind = Told("OKX", (Market.FUTURES,), skew_s=-60.0)
    ahead = Told("HYPERLIQUID", (Market.FUTURES,), skew_s=60.0)
    desk = desk_of(binance, behind, ahead, start=START - 3600)
    jump(desk, START - 300)
    for _ in desk.run(START + 200):
        assert desk.archive.known_until <= behind.now()
    assert desk.rows() == truth_of(desk, binance.truth)
    assert desk.lost() == []
    assert desk.worst_lag_s <= 150 + 60


def test_what_is_beyond_reach_is_lost_and_asked_for_once(desk_of) -> None:
    binance = Told("BINANCE", (Market.SPOT,), reach_s=3600)
    desk = desk_of(binance, start=START - 7200)
    desk.catch_up()
    (lost,) = desk.lost()
    assert (lost[2], lost[3]) == (START - 7200, START - 3600 + 120)
    assert desk.archive.known_until == START - 60
    asked = len(binance.asked)
    run(desk, START + 300)
    assert len(binance.asked) - asked <= 8
    assert desk.lost() == [lost]


def test_a_leg_that_goes_ends_and_holds_the_clock_no_more(desk_of) -> None:
    binance = Told("BINANCE", (Market.SPOT,))
    desk = desk_of(binance, wanted=WANTED)
    run(desk, START + 600)
    binance.gone.add("SOL_USDT")
    run(desk, START + 900)
    ended = {key.symbol: leg.ended_at for key, leg in desk.archive.legs.items()}
    assert ended == {"BTC_USDT": None, "SOL_USDT": START + 605}
    assert desk.now - desk.archive.known_until <= 150
    assert desk.told == ["BINANCE lists SOL_USDT no more; its rows end"]
    asked = len(binance.asked)
    run(desk, START + 1200)
    assert len(binance.asked) - asked == 5


def test_a_market_that_is_not_listed_any_more_but_answers_ends_within_a_day(desk_of) -> None:
    class Polite(Told):
        def _answer(self, *_: object) -> None:
            super()._answer()

    binance = Polite("BINANCE", (Market.SPOT,))
    desk = desk_of(binance)
    binance.gone.add("BTC_USDT")
    desk.move(START + 86_400)
    desk.catch_up()
    assert desk.archive.legs[BINANCE].ended_at == START + 86_400


def test_a_settlement_is_waited_for_and_then_lost_and_found_late(desk_of) -> None:
    okx = Told("HYPERLIQUID", (Market.FUTURES,), published_late_s=20)
    desk = desk_of(okx, start=START - 7200)
    jump(desk, START + 3500)
    okx.published_late_s = 600
    hour = START + 3600
    known = [(desk.now, desk.archive.known_until) for _ in desk.run(hour + 240)]
    assert max(until for now, until in known if now < hour + 130) == hour - 1
    assert desk.worst_lag_s <= 150
    (lost,) = desk.lost()
    assert (lost[1], lost[2]) == ("funding", START + 3600)
    jump(desk, START + 7200 + 140)
    run(desk, START + 7200 + 300)
    assert [each[2] for each in desk.lost()] == [START + 7200]
    assert (START + 3600) in {row[0] for row in desk.rows()["BTC_USDT:HYPERLIQUID.futures funding"]}


def test_a_leg_added_later_is_read_from_the_start_and_changes_no_document(desk_of) -> None:
    found = Told("BINANCE", (Market.SPOT,)), Told("OKX", (Market.FUTURES,))
    desk = desk_of(*found, wanted=WANTED)
    jump(desk, START + 1500)
    before, known_until = desk.documents(), desk.archive.known_until
    desk.archive.close()
    desk.exchanges.append(Told("HYPERLIQUID", (Market.FUTURES,), ts=desk.now))
    desk.open()
    desk.catch_up()
    assert desk.archive.known_until >= known_until
    assert desk.rows() == truth_of(desk, desk.exchanges[0].truth)
    for hours in range(1, 12):
        jump(desk, START + 3600 * hours)
    after = desk.documents()
    assert all(after[family][: len(before[family])] == before[family] for family in before)
    assert any("HYPERLIQUID" in str(document) for document in after["spread"])
    assert len(after["spread"]) > len(before["spread"])


def test_the_first_bar_stays_where_an_exchange_changes_it_afterwards(desk_of) -> None:
    binance = Told("BINANCE", (Market.SPOT,))
    desk = desk_of(binance, start=START - 7200)
    jump(desk, START + 3500)
    before = desk.rows()
    binance.unlike = 1.01
    run(desk, START + 3600 + 300)
    rows = desk.rows()["BTC_USDT:BINANCE.spot"]
    assert rows[: len(before["BTC_USDT:BINANCE.spot"])] == before["BTC_USDT:BINANCE.spot"]
    query = "SELECT count(*), min(read / served), max(ts), min(ts) FROM difference "
    query += "WHERE named = 'price'"
    count, ratio, last, first = desk.archive._connection.execute(query).fetchall()[0]
    assert (count > 50, round(ratio, 6)) == (True, 1.01)
    assert START - 3600 <= first < last < START


def test_an_answer_of_which_no_row_can_be_used_is_told_once(desk_of) -> None:
    binance = Told("BINANCE", (Market.SPOT,), unlike=-1.0)
    desk = desk_of(binance)
    run(desk, START + 300)
    assert desk.told == ["BTC_USDT of BINANCE: a price of 0 or less"]
    query = "SELECT why, sum(n) FROM refused GROUP BY why"
    (refused,) = desk.archive._connection.execute(query).fetchall()
    assert refused == ("a price of 0 or less", 4)


def test_an_exchange_that_refuses_all_is_lost_and_its_legs_do_not_end(desk_of) -> None:
    binance = Told("BINANCE", (Market.SPOT,))
    desk = desk_of(binance)
    run(desk, START + 600)
    binance.down = Refused("451: not from here")
    run(desk, START + 1200)
    assert desk.archive.legs[BINANCE].ended_at is None
    assert desk.now - desk.archive.known_until <= 150


def test_threads_catch_up_tell_their_progress_and_end_at_once(tmp_path: Path) -> None:
    found = exchanges()
    legs = [leg for each in found for leg in each.list(WANTED)]
    archive = Archive.open(tmp_path / "real.duckdb", start=START - 7200, legs=legs)
    progress, threads = dict[str, float](), threading.active_count()
    with Poller(archive, found, SpedClock(start=START, speed=60.0), WANTED) as poller:
        poller.catch_up(progress.__setitem__)
    assert progress == {"BINANCE": 1.0, "OKX": 1.0, "HYPERLIQUID": 1.0}
    assert threading.active_count() == threads
    assert archive.known_until >= START - 150
    archive.close()
    with Poller(archive, found, Clock(), WANTED, stopping=(stopped := threading.Event())) as poller:
        stopped.set()
        poller.catch_up()


EVENTFUL = Truth(hours={("SOL_USDT", "OKX.futures"): [(START, 1)]})
"""SOL settles on OKX every hour from the start on, which nobody expects."""


def at_once(path: Path, _: float, end: float) -> Desk:
    desk = Desk(path, exchanges(EVENTFUL), START - 2 * HOUR_S)
    desk.move(end)
    desk.catch_up()
    return desk


def by_minutes(path: Path, begin: float, end: float) -> Desk:
    """Read each minute from ``begin`` on, and hold that nothing is taken back or changed."""
    desk = Desk(path, exchanges(EVENTFUL), START - 2 * HOUR_S)
    desk.move(begin)
    desk.catch_up()
    desk.worst_lag_s = 0.0
    served: dict[str, Any] = {}
    for number, _ in enumerate(desk.run(end)):
        if number % 40 == 0:
            served = kept(served, desk)
    assert desk.worst_lag_s <= 150
    return desk


def at_random(path: Path, begin: float, end: float, seed: int = 0) -> Desk:
    """Read at random moments, and open the archive again between some of them."""
    desk, draw = Desk(path, exchanges(EVENTFUL), START - 2 * HOUR_S), random.Random(seed)
    desk.move(begin)
    served: dict[str, Any] = {}
    while desk.now < end:
        desk.move(min(desk.now + draw.choice([1.0, 7.5, 61.0, 600.0, 1800.0, 5000.0]), end))
        desk.catch_up()
        served = kept(served, desk)
        if draw.random() < 0.4:
            desk.restart()
    desk.catch_up()
    return desk


def kept(before: dict[str, Any], desk: Desk) -> dict[str, Any]:
    """Hold that what was served before begins what is served now."""
    found = {**desk.rows(), **desk.documents()}
    for name, rows in before.items():
        assert found[name][: len(rows)] == rows, name
    return found


def hold_law(folder: Path, begin: float, end: float, seeds: range) -> None:
    desks = [read(folder / read.__name__, begin, end) for read in (at_once, by_minutes)]
    desks += [at_random(folder / str(seed), begin, end, seed) for seed in seeds]
    least = min(desk.archive.known_until for desk in desks)
    assert least >= end - 150
    contents = []
    for desk in desks:
        assert desk.rows() == truth_of(desk, EVENTFUL)
        desk.archive.known_until = least  # compared up to where each of them knows
        contents.append(desk.content())
        desk.archive.close()
    for content in contents[1:]:
        assert content == contents[0]
    assert contents[0]["spread"]


def test_all_ways_of_reading_give_the_same_and_nothing_early(tmp_path: Path) -> None:
    hold_law(tmp_path, START + 3_200, START + 4_000, range(1))


@pytest.mark.slow
def test_all_ways_of_reading_for_hours_give_the_same_and_nothing_early(tmp_path: Path) -> None:
    hold_law(tmp_path, START - 6_000, START + 7_500, range(3))
