"""The simulator's listing, its identity and what it refuses."""

from __future__ import annotations

import pytest

from toolkit.errors import InputError, UnknownTrajectoryError
from toolkit.market import Leg, Market
from toolkit.service.market.simulator import MARKETS, Simulator, simulator
from toolkit.service.market.simulator.catalogue import TURNS, Deviation, Instrument, Listing
from toolkit.service.market.simulator.processes import END, EPOCH, day_of

AURORA = Leg.parse("AURORA.spot")


def test_the_catalogue_is_as_wide_as_promised() -> None:
    listing = Simulator(1).listing
    legs = {leg for each in listing.values() for leg in each}
    exchanges = {leg.exchange for leg in legs}
    assert len(listing) >= 12
    assert len(exchanges) >= 6
    assert sum(exchange.startswith("DEX-") for exchange in exchanges) == 2
    assert {leg.market for leg in legs} == set(Market)
    assert all((leg.market is Market.DEX) == leg.exchange.startswith("DEX-") for leg in legs)
    assert list(listing) == sorted(listing)
    assert all(list(each) == sorted(each) and AURORA in each for each in listing.values())


def test_futures_and_nothing_else_have_a_funding_rule() -> None:
    for legs in MARKETS.values():
        for each in legs:
            assert (each.funding is not None) == (each.leg.market is Market.FUTURES)


def test_the_legs_that_take_turns_are_listed_and_neighbouring_turns_share_no_symbol() -> None:
    symbols = [{name.partition(":")[0] for name in names} for names in TURNS]
    assert not symbols[0] & symbols[1]
    for name in (*TURNS[0], *TURNS[1]):
        symbol, leg = name.split(":")
        listing = {each.leg: each for each in MARKETS[symbol]}[Leg.parse(leg)]
        assert listing.quiet_share == listing.stale_share == 0.0
        assert not listing.outages


def test_the_identity_names_seed_and_catalogue() -> None:
    one = Simulator(1)
    assert one.kind == "simulated"
    assert one.id == Simulator(1).id
    assert one.id.startswith("seed-1-")
    assert len({one.id, Simulator(2).id, Simulator(1, markets={}).id}) == 3


def test_another_generator_is_another_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Simulator(1).id
    monkeypatch.setattr(simulator, "GENERATOR", simulator.GENERATOR + 1)
    assert Simulator(1).id != before


@pytest.mark.parametrize("seed", [-1, 1.0, "7", True, None])
def test_a_seed_that_is_no_whole_number_is_refused(seed: object) -> None:
    with pytest.raises(InputError, match=r"seed: .* allowed: a whole number of 0 or more"):
        Simulator(seed)


def test_what_is_not_listed_is_refused_with_what_is() -> None:
    simulator = Simulator(1)
    elsewhere = Leg.parse("DRACO.spot")
    for ask in (
        lambda: simulator.day("BTC_USDT", elsewhere, 20_777),
        lambda: simulator.within("BTC_USDT", elsewhere, EPOCH),
        lambda: simulator.settlements("BTC_USDT", elsewhere, EPOCH, EPOCH),
        lambda: simulator.next_settlement("BTC_USDT", elsewhere, EPOCH),
    ):
        with pytest.raises(UnknownTrajectoryError, match=r"nearest: BTC_USDT:AURORA\.futures"):
            ask()
    with pytest.raises(UnknownTrajectoryError, match=r"BTC_USX:AURORA\.spot is not listed"):
        simulator.day("BTC_USX", AURORA, 20_777)


def test_times_outside_the_simulated_ones_are_refused() -> None:
    simulator = Simulator(1)
    for day in (day_of(EPOCH) - 1, day_of(END)):
        with pytest.raises(InputError, match="day: "):
            simulator.day("BTC_USDT", AURORA, day)
    for start, end in ((EPOCH - 1, EPOCH + 1), (END - 1, END + 1), (EPOCH + 2, EPOCH + 1)):
        with pytest.raises(InputError, match="window: "):
            simulator.settlements("BTC_USDT", Leg.parse("AURORA.futures"), start, end)
    for ts in (EPOCH - 1, END - 59):
        with pytest.raises(InputError, match="window: "):
            simulator.within("BTC_USDT", AURORA, ts)


def test_the_first_and_the_last_second_are_there() -> None:
    simulator = Simulator(1)
    for ts in (EPOCH, END - 60):
        assert simulator.within("BTC_USDT", AURORA, ts).ts.tolist() == [*range(ts, ts + 60)]


def test_shares_outside_their_range_are_refused() -> None:
    instrument = MARKETS["BTC_USDT"][0].instrument
    assert isinstance(instrument, Instrument)
    for wrong in (-0.1, 1.0):
        with pytest.raises(InputError, match="noise_share"):
            Deviation(0.0, 1.0, 600.0, noise_share=wrong)
        with pytest.raises(InputError, match="slow_share"):
            Deviation(0.0, 1.0, 600.0, slow_share=wrong)
        with pytest.raises(InputError, match="lag"):
            Listing(AURORA, instrument, lag=wrong)
        with pytest.raises(InputError, match="quiet_share"):
            Listing(AURORA, instrument, quiet_share=wrong)
        with pytest.raises(InputError, match="stale_share"):
            Listing(AURORA, instrument, stale_share=wrong)


def test_the_market_of_a_seed_keeps_its_identity_so_that_stores_of_it_still_open() -> None:
    assert Simulator(7).id == "seed-7-2701ceaf8055"
