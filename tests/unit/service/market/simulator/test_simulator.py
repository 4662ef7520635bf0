"""The simulator's listing, its identity and what it refuses."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from toolkit.errors import InputError, UnknownTrajectoryError
from toolkit.market import Leg, Market
from toolkit.service.market import simulator
from toolkit.service.market.simulator import MARKETS, Simulated
from toolkit.service.market.simulator.catalogue import TURNS, Deviation, QuotedAsset, SimulatedLeg
from toolkit.service.market.simulator.processes import DAY_S, END, EPOCH, MINUTE_S, day_of, weekday

from ...truth import Truth

AURORA = Leg.parse("AURORA.spot")


def test_the_catalogue_is_as_wide_as_promised() -> None:
    listing = Simulated(1).listing
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
    one = Simulated(1)
    assert one.kind == "simulated"
    assert one.id == Simulated(1).id
    assert one.id.startswith("seed-1-")
    assert len({one.id, Simulated(2).id, Simulated(1, markets={}).id}) == 3


def test_another_generator_is_another_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Simulated(1).id
    monkeypatch.setattr(simulator, "GENERATOR", simulator.GENERATOR + 1)
    assert Simulated(1).id != before


@pytest.mark.parametrize("seed", [-1, 1.0, "7", True, None])
def test_a_seed_that_is_no_whole_number_is_refused(seed: object) -> None:
    with pytest.raises(InputError, match=r"seed: .* allowed: a whole number of 0 or more"):
        Simulated(seed)


def test_what_is_not_listed_is_refused_with_what_is() -> None:
    simulator = Simulated(1)
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
    simulator = Simulated(1)
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
    simulator = Simulated(1)
    for ts in (EPOCH, END - 60):
        assert simulator.within("BTC_USDT", AURORA, ts).ts.tolist() == [*range(ts, ts + 60)]


def test_shares_outside_their_range_are_refused() -> None:
    instrument = MARKETS["BTC_USDT"][0].instrument
    assert isinstance(instrument, QuotedAsset)
    for wrong in (-0.1, 1.0):
        with pytest.raises(InputError, match="noise_share"):
            Deviation(0.0, 1.0, 600.0, noise_share=wrong)
        with pytest.raises(InputError, match="slow_share"):
            Deviation(0.0, 1.0, 600.0, slow_share=wrong)
        with pytest.raises(InputError, match="lag"):
            SimulatedLeg(AURORA, instrument, lag=wrong)
        with pytest.raises(InputError, match="quiet_share"):
            SimulatedLeg(AURORA, instrument, quiet_share=wrong)
        with pytest.raises(InputError, match="stale_share"):
            SimulatedLeg(AURORA, instrument, stale_share=wrong)


def test_the_market_of_a_seed_keeps_its_identity_so_that_stores_of_it_still_open() -> None:
    assert Simulated(7).id == "seed-7-2701ceaf8055"


BOREAS = Leg.parse("BOREAS.spot")
CORONA = Leg.parse("CORONA.futures")
FORNAX = Leg.parse("FORNAX.spot")
LISTED = [(symbol, each) for symbol, legs in MARKETS.items() for each in legs]


@pytest.mark.parametrize("day", [20_454, 20_777, day_of(END) - 1])
@pytest.mark.slow
def test_every_leg_has_finite_positive_prices_on_its_tick_in_order_of_time(day: int) -> None:
    simulator = Simulated(2)
    for symbol, listing in LISTED:
        bars = simulator.day(symbol, listing.leg, day)
        assert (np.diff(bars.ts) > 0).all()
        assert (bars.ts % MINUTE_S == 0).all()
        assert (bars.ts // DAY_S == day).all()
        futures = listing.leg.market is Market.FUTURES
        assert (bars.mark_price is not None) == futures
        for price in [bars.price, bars.mark_price] if futures else [bars.price]:
            assert np.isfinite(price).all()
            assert (price > 0).all()
            assert (price == price.round(listing.instrument.decimals)).all()
            assert 10.0**-listing.instrument.decimals / price.min() < 2e-4
        assert np.isfinite(bars.volume).all()
        assert (bars.volume >= 0).all()


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("BTC_USDT", "AURORA.spot"),
        ("ETH_USDT", "BOREAS.spot"),
        ("BTC_USDT", "FORNAX.spot"),
        ("SOL_USDT", "DEX-LUNARIS.dex"),
        ("1000PEPE_USDT", "DRACO.futures"),
        ("BTC_USDT", "CORONA.futures"),
    ],
)
def test_seconds_run_straight_from_the_close_before_to_a_minutes_own(symbol, name) -> None:
    simulator, leg, day = Simulated(1), Leg.parse(name), 20_600
    minutes = simulator.day(symbol, leg, day)
    present = dict(zip(minutes.ts.tolist(), minutes.price.tolist(), strict=True))
    for ts in range(day * DAY_S + MINUTE_S, (day + 1) * DAY_S, 7 * MINUTE_S):
        seconds = simulator.within(symbol, leg, ts)
        if ts not in present:
            assert len(seconds.ts) == 0
            continue
        assert seconds.ts.tolist() == [*range(ts, ts + MINUTE_S)]
        assert seconds.interval_s == 1
        assert seconds.price[-1] == present[ts]
        steps = np.diff(seconds.price)
        assert (steps >= 0).all() or (steps <= 0).all()
        before = present.get(ts - MINUTE_S, seconds.price[0])
        assert min(before, present[ts]) <= seconds.price[0] <= max(before, present[ts])


def test_boreas_leaves_its_share_of_minutes_out_and_nothing_else_does() -> None:
    simulator, truth, days = Simulated(6), Truth(6), range(20_700, 20_720)
    minutes = len(days) * 1_440
    for symbol, listing in LISTED:
        if listing.outages or symbol not in {"BTC_USDT", "TON_USDT"}:
            continue
        seen = sum(len(simulator.day(symbol, listing.leg, day).ts) for day in days)
        share = truth.listing(symbol, listing.leg).quiet_share
        assert (share > 0) == (listing.leg == BOREAS)
        assert abs(1 - seen / minutes - share) <= 4 * (share * (1 - share) / minutes) ** 0.5


def test_fornax_repeats_the_close_before_with_volume_0_in_its_share_of_minutes() -> None:
    simulator, truth, days = Simulated(7), Truth(7), range(20_700, 20_720)
    share, stale = truth.listing("BTC_USDT", FORNAX).stale_share, 0
    for day in days:
        bars = simulator.day("BTC_USDT", FORNAX, day)
        repeats = bars.volume == 0.0
        assert not repeats[0]
        assert (bars.price[repeats] == bars.price[np.flatnonzero(repeats) - 1]).all()
        stale += int(repeats.sum())
    minutes = len(days) * 1_439
    assert abs(stale / minutes - share) < 4 * (share * (1 - share) / minutes) ** 0.5
    assert all((simulator.day("BTC_USDT", AURORA, day).volume > 0).all() for day in days)


def test_an_outage_takes_exactly_its_minutes() -> None:
    simulator, truth, days = Simulated(8), Truth(8), range(20_750, 20_780)
    window = (days.start * DAY_S, days.stop * DAY_S)
    outages = truth.outages("BTC_USDT", CORONA, *window)
    assert 2 <= len(outages) <= 4
    assert all(30 * 60 <= each.end - each.start <= 5 * 3_600 for each in outages)
    expected = np.arange(*window, MINUTE_S)
    for each in outages:
        expected = expected[(expected < each.start) | (expected >= each.end)]
    seen = np.concatenate([simulator.day("BTC_USDT", CORONA, day).ts for day in days])
    assert (seen == expected).all()


def test_a_mark_price_has_neither_the_legs_noise_nor_its_own_shocks() -> None:
    simulator, truth = Simulated(9), Truth(9)
    days = range(20_700, 20_760)
    window = (days.start * DAY_S, days.stop * DAY_S)
    leg = CORONA
    alone = [
        shock.pulse
        for shock in truth.shocks("1000PEPE_USDT", leg, *window)
        if shock.leg and abs(shock.pulse.peak_bps) > 500
    ]
    assert alone
    for pulse in alone:
        top = pulse.start + pulse.rise_s
        bars = simulator.day("1000PEPE_USDT", leg, day_of(top))
        at = np.searchsorted(bars.ts, top - MINUTE_S)
        apart = 1e4 * np.log(bars.price[at] / bars.mark_price[at])
        height = pulse.height_bps(bars.ts[at : at + 1] + MINUTE_S)[0]
        assert abs(apart - height) < 0.5 * abs(height)


def test_pepe_and_1000pepe_are_one_asset_a_thousandfold_apart() -> None:
    simulator = Simulated(10)
    one = simulator.day("PEPE_USDT", AURORA, 20_777).price
    thousand = simulator.day("1000PEPE_USDT", AURORA, 20_777).price
    assert one.max() < 1e-4
    assert np.allclose(thousand / one, 1_000.0, rtol=2e-5)


def test_sun_on_fornax_is_another_coin_of_the_same_name() -> None:
    simulator, truth = Simulated(10), Truth(10)
    ours = simulator.day("SUN_USDT", AURORA, 20_777).price
    theirs = simulator.day("SUN_USDT", FORNAX, 20_777).price
    assert (np.abs(np.log(theirs / ours)) > 0.5).all()
    assert truth.spread("SUN_USDT", AURORA, FORNAX).half_life_s is None
    of_two_coins = [
        (symbol, str(one.leg), str(other.leg))
        for symbol, legs in MARKETS.items()
        for one, other in combinations(legs, 2)
        if not truth.spread(symbol, one.leg, other.leg).same_asset
    ]
    assert of_two_coins == [("SUN_USDT", "AURORA.spot", "FORNAX.spot")]


@pytest.mark.slow
def test_no_minute_moves_a_large_coin_further_than_such_coins_go() -> None:
    allowed_bps = {"BTC_USDT": 300, "ETH_USDT": 400, "SOL_USDT": 500, "XRP_USDT": 500}
    for seed in range(4):
        simulator = Simulated(seed)
        for symbol, most in allowed_bps.items():
            for leg in simulator.listing[symbol]:
                days = (simulator.day(symbol, leg, day).price for day in range(20_700, 20_730))
                moves = np.abs(np.diff(np.log(np.concatenate(list(days)))))
                assert 1e4 * moves.max() < most, (seed, symbol, leg)


@pytest.mark.slow
def test_volume_and_moves_are_smaller_on_saturday_and_sunday() -> None:
    volume, moves = {True: [], False: []}, {True: [], False: []}
    for seed in range(10):
        simulator = Simulated(seed)
        for day in range(20_700, 20_784):
            bars, resting = simulator.day("BTC_USDT", AURORA, day), weekday(day) >= 5
            volume[resting].append(bars.volume.mean())
            moves[resting].append(np.diff(np.log(bars.price)).var())
    assert 0.7 < (np.mean(moves[True]) / np.mean(moves[False])) ** 0.5 < 0.9
    assert 0.65 < np.mean(volume[True]) / np.mean(volume[False]) < 0.85


def test_volume_swells_where_a_shock_is() -> None:
    simulator, truth = Simulated(11), Truth(11)
    window = (20_700 * DAY_S, 20_760 * DAY_S)
    shocks = [
        shock.pulse
        for shock in truth.shocks("PEPE_USDT", AURORA, *window)
        if shock.asset and abs(shock.pulse.peak_bps) > 1_000
    ]
    assert len(shocks) > 3
    ratios = []
    for pulse in shocks:
        bars = simulator.day("PEPE_USDT", AURORA, day_of(pulse.start + pulse.rise_s))
        at = int(np.searchsorted(bars.ts, pulse.start + pulse.rise_s))
        ratios.append(bars.volume[at : at + 3].mean() / np.median(bars.volume))
    assert np.median(ratios) > 5
