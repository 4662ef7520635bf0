"""Events of the simulated market: lifecycles, days that join, and what was planted is found."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from toolkit.market import EventFamily, Leg, Market, Trajectory
from toolkit.service.events.documents import (
    Document,
    FundingDocument,
    SplashDocument,
    SpreadDocument,
)
from toolkit.service.events.lives import DEFAULT, Life
from toolkit.service.market.simulator import Simulated
from toolkit.service.market.source import series

from ..truth import Truth

DAY_S, MINUTE_S = 86_400, 60
Lives = Callable[..., dict[int, list[Life]]]
Stories = Callable[[EventFamily], dict[str, list[Document]]]


@pytest.mark.parametrize("family", EventFamily)
def test_a_story_opens_once_at_first_and_closes_once_at_last(stories, lives_of, day, family):
    opened_at = {
        document.event_id: life.opened_at
        for lives in lives_of(family, 3).values()
        for life in lives
        for document in life.documents
    }
    for identity, story in stories(family).items():
        assert [d.ts_ms for d in story] == sorted({d.ts_ms for d in story})
        assert "closed" not in [d.lifecycle for d in story[:-1]]
        openings = [d for d in story if not d.event_type.endswith(("updated", "closed", "faded"))]
        if opened_at[identity] < day * DAY_S:
            assert openings == []
        else:
            assert openings == story[:1]
            assert story[0].ts == opened_at[identity]


@pytest.mark.parametrize("family", EventFamily)
def test_the_documents_of_one_story_are_of_one_trajectory(stories, family) -> None:
    def legs(document: Document) -> tuple[object, ...]:
        if isinstance(document, SplashDocument):
            return document.exchange, document.market, document.kind, document.start_price
        return tuple((leg.exchange, leg.market) for leg in (document.buy, document.sell))

    told = stories(family)
    assert any(len(story) > 1 for story in told.values())
    for story in told.values():
        assert len({(d.instrument, legs(d)) for d in story}) == 1


@pytest.mark.parametrize("family", EventFamily)
def test_no_trajectory_has_two_lives_at_a_time(lives_of: Lives, family: EventFamily) -> None:
    for lives in lives_of(family, 3).values():
        by_key: dict[str, list[Life]] = {}
        for life in lives:
            by_key.setdefault(life.key, []).append(life)
        for found in by_key.values():
            for one, following in pairwise(found):
                assert one.closed_at is not None
                assert one.closed_at <= following.opened_at


@pytest.mark.parametrize("family", EventFamily)
def test_what_one_day_leaves_open_the_next_day_begins_with(lives_of, day, family) -> None:
    days = lives_of(family, 3)
    for number in (day, day + 1):
        left = {(life.key, life.opened_at) for life in days[number] if life.closed_at is None}
        midnight = (number + 1) * DAY_S
        taken = {(e.key, e.opened_at) for e in days[number + 1] if e.opened_at < midnight}
        assert left == taken
        assert left or family is EventFamily.SPLASH


def test_the_peak_of_a_spread_never_falls_and_bounds_it(stories: Stories) -> None:
    for story in stories(EventFamily.SPREAD).values():
        spreads = [d.spread for d in story if isinstance(d, SpreadDocument)]
        assert len(spreads) == len(story)
        peaks = [spread.peak_pct for spread in spreads]
        assert peaks == sorted(peaks)
        assert all(spread.pct <= spread.peak_pct for spread in spreads)


def test_updates_tell_a_new_peak_and_keep_their_distance(stories: Stories) -> None:
    rule = DEFAULT.spread
    assert rule.step is not None
    updates = 0
    for story in stories(EventFamily.SPREAD).values():
        for before, now in pairwise(story):
            if now.event_type == "spread.updated":
                assert isinstance(before, SpreadDocument)
                assert isinstance(now, SpreadDocument)
                assert now.spread.peak_pct >= before.spread.peak_pct + rule.step
                assert now.ts >= before.ts + rule.every_s
                updates += 1
    assert updates > 100


def price_at(source: Simulated, symbol: str, leg: Leg, ts: int) -> float:
    """Return a leg's price at the end of a second."""
    minute = source.bars(symbol, leg).parts((ts - 1) // MINUTE_S * MINUTE_S)
    (price,) = minute.price[minute.ts == ts - 1].tolist()
    return price


def test_a_spread_buys_the_cheaper_leg_and_shows_the_trajectorys_own_numbers(source, lives_of):
    (lives,) = lives_of(EventFamily.SPREAD).values()
    for life in lives[::40]:
        trajectory = Trajectory.parse(life.key)
        for document in life.documents:
            assert isinstance(document, SpreadDocument)
            if document.close_reason == "leg_lost":
                continue
            buy, sell = (
                price_at(source, str(trajectory.symbol), leg, document.ts)
                for leg in trajectory.legs
            )
            shown = (document.buy.price, document.sell.price, document.spread.pct)
            assert shown == (buy, sell, 100.0 * (sell / buy - 1.0))
            if document.lifecycle == "open" and document.event_type == "spread.opened":
                assert document.buy.price < document.sell.price


def minute_end(ts: int | None) -> int | None:
    """The end of the minute that a moment falls in."""
    return None if ts is None else -(-ts // MINUTE_S) * MINUTE_S


def test_spreads_of_three_days_are_those_of_a_machine_that_ran_for_five(
    source: Simulated, lives_of: Lives, day: int, brute_force: Callable[..., list[tuple]]
) -> None:
    """The simulated days before are nothing that a day's detection looks at as a whole.

    The machine reads minutes: it finds an opening or a close at the end of the minute it fell in.
    """
    start, end = day * DAY_S, (day + 3) * DAY_S
    found: dict[str, dict[int, int | None]] = {}
    for lives in lives_of(EventFamily.SPREAD, 3).values():
        for life in lives:
            found.setdefault(life.key, {})[minute_end(life.opened_at)] = minute_end(life.closed_at)
    keys = sorted(found)[::60]
    keys.append("BTC_USDT:BOREAS.spot:CORONA.futures")  # quiet minutes, outages
    for key in keys:
        trajectory = Trajectory.parse(key)
        rows = series(source, trajectory).between(start - 2 * DAY_S, end)
        wanted = brute_force(
            (rows.ts + MINUTE_S).tolist(), rows.columns["spread_pct"].tolist(), DEFAULT.spread, end
        )
        assert found.get(key, {}) == {
            life.opened_at: life.closed_at
            for life in wanted
            if life.closed_at is None or life.closed_at >= start
        }


def test_planted_pumps_and_dumps_are_found_on_every_leg_that_takes_part(source, lives_of, day):
    truth, matched = Truth(7), 0
    lives = [each for found in lives_of(EventFamily.SPLASH, 3).values() for each in found]
    for symbol, legs in source.listing.items():
        for leg in legs:
            if truth.listing(symbol, leg).stale_share:
                continue
            for shock in truth.shocks(symbol, leg, day * DAY_S, (day + 3) * DAY_S - 3_600):
                pulse = shock.pulse
                if abs(pulse.peak_bps) < 500 or pulse.start < day * DAY_S:
                    continue
                kind = "pump" if pulse.peak_bps > 0 else "dump"
                found = [
                    life
                    for life in lives
                    if life.key == f"{symbol}:{leg}:{kind}"
                    and 0 < life.opened_at - pulse.start + MINUTE_S <= pulse.rise_s + 3 * MINUTE_S
                ]
                assert len(found) == 1, (symbol, leg, pulse)
                matched += 1
    assert matched >= 10


def test_a_splash_moved_as_far_and_as_fast_as_it_says(source: Simulated, lives_of: Lives) -> None:
    (lives,) = lives_of(EventFamily.SPLASH).values()
    rule, window_s = DEFAULT.splash, DEFAULT.splash_window_s
    for life in lives:
        for document in life.documents:
            assert isinstance(document, SplashDocument)
            assert 0 < document.window_s <= window_s
            leg = Leg(document.exchange, Market(document.market))
            last_day = source.bars(document.instrument.symbol, leg).between(
                document.ts - DAY_S - MINUTE_S + 1, document.ts - MINUTE_S + 1
            )
            assert last_day.volume is not None
            assert document.volume_24h == round(float(last_day.volume.sum()), 2)
            if document.lifecycle == "closed":
                continue
            assert abs(document.pct) >= rule.open
            assert (document.pct > 0) == (document.kind == "pump")
            assert document.event_type == f"splash.{document.kind}"
            symbol = document.instrument.symbol
            price = price_at(source, symbol, leg, document.ts)
            assert document.pct == 100 * (price / document.start_price - 1)
            began_at = document.ts - document.window_s
            assert price_at(source, symbol, leg, began_at) == document.start_price
            own = {"spot": document.spot_price, "futures": document.futures_price}
            assert own.get(document.market, price) == price


def test_spot_and_futures_prices_are_null_where_the_exchange_has_no_such_market(source, stories):
    nulls = {Market.SPOT: 0, Market.FUTURES: 0}
    for story in stories(EventFamily.SPLASH).values():
        for document in story:
            assert isinstance(document, SplashDocument)
            listed = source.listing[document.instrument.symbol]
            for market, price in (
                (Market.SPOT, document.spot_price),
                (Market.FUTURES, document.futures_price),
            ):
                if Leg(document.exchange, market) not in listed:
                    assert price is None
                    nulls[market] += 1
    assert min(nulls.values()) > 0


def test_planted_funding_dislocations_are_open_on_their_plateau(source, day, detect) -> None:
    """One of 35 bps is far beyond the threshold, against every leg that has none at the time."""
    truth, matched = Truth(7), 0
    days = {n: detect[EventFamily.FUNDING](source, n) for n in range(day, day + 12)}
    for symbol, legs in source.listing.items():
        futures = [leg for leg in legs if leg.market is Market.FUTURES]
        window = (day * DAY_S, (day + 12) * DAY_S)
        planted = {leg: truth.dislocations(symbol, leg, *window) for leg in futures}
        for leg, pulses in planted.items():
            for pulse in pulses:
                plateau = pulse.start + pulse.rise_s + 8 * 3_600
                inside = window[0] <= plateau < min(window[1], plateau + pulse.hold_s)
                if abs(pulse.peak_bps) < 35 or pulse.hold_s < 9 * 3_600 or not inside:
                    continue
                for other in futures:
                    if other == leg or any(
                        each.start <= plateau < each.end for each in planted[other]
                    ):
                        continue
                    sides = (other, leg) if pulse.peak_bps > 0 else (leg, other)
                    key = f"{symbol}:{sides[0]}:{sides[1]}"
                    assert any(
                        life.key == key
                        and life.opened_at <= plateau
                        and (life.closed_at is None or life.closed_at > plateau)
                        for life in days[plateau // DAY_S]
                    ), (key, pulse)
                    matched += 1
    assert matched >= 5


def test_a_funding_document_shows_the_rates_in_force_and_their_differential(source, lives_of):
    (lives,) = lives_of(EventFamily.FUNDING).values()
    for life in lives:
        for document in life.documents:
            assert isinstance(document, FundingDocument)
            per_8h = []
            for leg in (document.buy, document.sell):
                funding = source.funding(
                    document.instrument.symbol, Leg(leg.exchange, Market(leg.market))
                )
                assert funding is not None
                settled = funding.between(document.ts - DAY_S, document.ts + 1)
                assert (leg.rate, leg.interval_hours) == (
                    settled.rate[-1],
                    settled.interval_hours[-1],
                )
                assert leg.next_funding_time == funding.next_after(document.ts)
                assert leg.next_funding_time > document.ts
                per_8h.append(leg.rate * 8 / leg.interval_hours)
            pct_8h = document.differential.pct_8h
            assert pct_8h == pytest.approx(100 * (per_8h[1] - per_8h[0]), abs=1e-12)
            assert document.differential.apr_pct == pytest.approx(pct_8h * 3 * 365)
            if document.event_type == "funding.opened":
                assert pct_8h >= DEFAULT.funding.open
            if document.event_type == "funding.closed":
                assert pct_8h < DEFAULT.funding.close


@pytest.mark.parametrize("family", [EventFamily.SPREAD, EventFamily.SPLASH])
def test_events_fall_at_any_second_of_the_minute(stories: Stories, family: EventFamily) -> None:
    seconds = [document.ts % 60 for story in stories(family).values() for document in story]
    counts = np.bincount(seconds, minlength=60)
    assert (counts > 0).sum() > 50
    assert counts.max() < 0.1 * counts.sum()
