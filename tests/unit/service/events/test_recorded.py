"""Events of recorded bars: series that stop, stay wide, are slow, or carry no volume."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.market import EventFamily
from toolkit.service import Replay
from toolkit.service.events.archive import EventArchive
from toolkit.service.events.detectors import funding_lives, splash_lives, spread_lives
from toolkit.service.events.documents import SplashDocument, SpreadDocument
from toolkit.service.events.lives import DetectorSettings, Life

DAY_S = 86_400
DAY = 19_675  # 2023-11-14
START = DAY * DAY_S

Bars = Callable[..., pl.DataFrame]
Written = Callable[..., Path]


def minutes(prices: list[float], start: int = START, step_s: int = 60) -> dict[int, float]:
    """Closes by the START of their bar."""
    return {start + step_s * place: price for place, price in enumerate(prices)}


@pytest.fixture(scope="session")
def recorded(make_bars: Bars, written: Written) -> Callable[..., Replay]:
    """A replay of legs by name, each given as (prices by ts, interval_s)."""

    def build(**legs: tuple[dict[int, float], int]) -> Replay:
        return Replay.read(
            written(*(make_bars(name, prices, interval_s=s) for name, (prices, s) in legs.items()))
        )

    return build


def told(lives: list[Life]) -> list[tuple[str, int, str | None]]:
    """Type, minutes from START, and reason of each document, by time."""
    documents = [document for life in lives for document in life.documents]
    return [
        (d.event_type, (d.ts - START) // 60, getattr(d, "close_reason", None))
        for d in sorted(documents, key=lambda each: each.ts_ms)
    ]


def test_a_spread_whose_leg_stops_is_lost_with_its_last_prices(recorded) -> None:
    wide = minutes([100.0, 102.0, 103.0] + [101.0] * 3)
    source = recorded(ALPHA=(minutes([100.0] * 60), 60), BETA=(wide, 60))
    (life,) = spread_lives(source, DAY)
    assert life.key == "BTC_USDT:ALPHA.spot:BETA.spot"
    assert told([life]) == [("spread.opened", 2, None), ("spread.closed", 16, "leg_lost")]
    closed = life.documents[-1]
    assert isinstance(closed, SpreadDocument)
    assert (closed.buy.price, closed.sell.price) == (100.0, 101.0)
    assert closed.spread.peak_pct == pytest.approx(3.0)
    assert (closed.opened_at, closed.closed_at) == (START + 120, START + 960)


def test_a_spread_that_turns_round_is_another_event_bought_on_the_other_leg(recorded) -> None:
    source = recorded(
        ALPHA=(minutes([100.0] * 9), 60), BETA=(minutes([102.0] * 3 + [98.0] * 3 + [100.0] * 3), 60)
    )
    lives = sorted(spread_lives(source, DAY), key=lambda life: life.opened_at)
    assert [life.key.split(":")[1] for life in lives] == ["ALPHA.spot", "BETA.spot"]
    assert told(lives[:1]) == [("spread.opened", 1, None), ("spread.closed", 4, "converged")]
    assert told(lives[1:]) == [("spread.opened", 4, None), ("spread.closed", 7, "converged")]


def test_a_spread_that_stays_wide_is_told_once_and_expires(recorded: Callable[..., Replay]) -> None:
    """Over midnight: the days join, and the second day has nothing to say."""
    begin = START + 23 * 3_600
    source = recorded(
        ALPHA=(minutes([100.0] * 1_500, begin), 60), BETA=(minutes([105.0] * 1_500, begin), 60)
    )
    assert told(spread_lives(source, DAY)) == [("spread.opened", 23 * 60 + 1, None)]
    assert told(spread_lives(source, DAY + 1)) == [("spread.closed", 25 * 60 + 1, "expired")]
    assert spread_lives(source, DAY + 2) == []


def test_a_close_comes_before_an_opening_at_the_same_row(recorded: Callable[..., Replay]) -> None:
    """Two hours after it was last wide, with no row just then, a spread expires and opens anew."""
    near = minutes([102.0] + [100.7] * 119 + [0.0, 102.0])
    del near[START + 120 * 60]
    source = recorded(ALPHA=(minutes([100.0] * 122), 60), BETA=(near, 60))
    assert told(spread_lives(source, DAY))[:3] == [
        ("spread.opened", 1, None),
        ("spread.closed", 122, "expired"),
        ("spread.opened", 122, None),
    ]


def test_slow_bars_are_not_lost_between_one_another(recorded: Callable[..., Replay]) -> None:
    source = recorded(
        ALPHA=(minutes([100.0] * 6, step_s=3_600), 3_600),
        BETA=(minutes([102.0, 102.0, 100.0], step_s=3_600), 3_600),
    )
    assert told(spread_lives(source, DAY)) == [
        ("spread.opened", 60, None),
        ("spread.closed", 180, "converged"),
    ]


def test_rows_that_are_moments_count_at_their_own_time(recorded: Callable[..., Replay]) -> None:
    source = recorded(
        ALPHA=(minutes([100.0] * 3, step_s=12), 0),
        BETA=(minutes([100.0, 102.0, 100.0], step_s=12), 0),
    )
    (life,) = spread_lives(source, DAY)
    assert (life.opened_at, life.closed_at) == (START + 12, START + 24)


def test_legs_whose_bars_differ_in_length_make_no_spread(recorded: Callable[..., Replay]) -> None:
    source = recorded(
        ALPHA=(minutes([100.0] * 60), 60), BETA=(minutes([150.0] * 2, step_s=300), 300)
    )
    assert spread_lives(source, DAY) == []


def test_a_pump_is_told_from_the_price_it_began_at_and_fades_when_it_is_calm(recorded) -> None:
    source = recorded(ALPHA=(minutes([100.0, 99.0, 100.5, 101.5, *[101.4] * 9]), 60))
    (life,) = splash_lives(source, DAY)
    assert life.key == "BTC_USDT:ALPHA.spot:pump"
    assert told([life]) == [("splash.pump", 4, None), ("splash.faded", 8, None)]
    pump, faded = life.documents
    assert isinstance(pump, SplashDocument)
    assert isinstance(faded, SplashDocument)
    assert (pump.start_price, pump.window_s, pump.spot_price) == (99.0, 120, 101.5)
    assert pump.pct == pytest.approx(100 * 2.5 / 99)
    assert faded.pct == pytest.approx(100 * 2.4 / 99)
    assert (pump.volume_24h, pump.futures_price, faded.start_price) == (None, None, 99.0)


def test_a_dump_is_below_zero_and_equal_prices_begin_at_the_latest(recorded) -> None:
    source = recorded(ALPHA=(minutes([100.0, 100.0, 100.0, 96.0, *[96.0] * 9]), 60))
    (life,) = splash_lives(source, DAY)
    dump = life.documents[0]
    assert isinstance(dump, SplashDocument)
    assert (dump.event_type, dump.window_s) == ("splash.dump", 60)
    assert dump.pct == pytest.approx(-4.0)


def test_a_move_over_bars_longer_than_the_window_is_no_splash(recorded) -> None:
    prices = minutes([100.0, 150.0, 100.0], step_s=3_600)
    assert splash_lives(recorded(ALPHA=(prices, 3_600)), DAY) == []


def test_a_pump_counts_over_a_missing_minute_but_not_over_a_longer_pause(recorded) -> None:
    for pause_s, number in ((120, 1), (300, 1), (360, 0)):
        prices = {START: 100.0, START + pause_s: 104.0}
        assert len(splash_lives(recorded(ALPHA=(prices, 60)), DAY)) == number


def test_a_splash_window_below_a_second_is_refused() -> None:
    with pytest.raises(InputError, match=r"^splash_window_s: 0"):
        DetectorSettings(splash_window_s=0)


def test_bars_without_settlements_have_no_funding_events(recorded: Callable[..., Replay]) -> None:
    assert funding_lives(recorded(ALPHA=(minutes([100.0] * 3), 60)), DAY) == []


def pages(archive: EventArchive, days: range) -> list[list[bytes]]:
    """The whole log of each day, as asked in this order."""
    return [
        archive.page(
            EventFamily.SPREAD, day * DAY_S, (day + 1) * DAY_S, limit=10**6, visible_until=2**40
        )[0]
        for day in days
    ]


def test_events_of_real_bars_join_over_days_and_come_out_alike(real_data: Path) -> None:
    """1 to 20 March 2023, when a stablecoin lost its peg."""
    source = Replay.read(real_data / "prices.parquet", datasets=["iaqf_dhruvk1432"])
    days = range(19_417, 19_437)
    forward, backward = EventArchive(source), EventArchive(source)
    found = pages(forward, days)
    assert found == pages(backward, days[::-1])[::-1]
    stories: dict[str, list[dict[str, Any]]] = {}
    for document in (msgspec.json.decode(body) for day in found for body in reversed(day)):
        stories.setdefault(document["event_id"], []).append(document)
    assert len(stories) > 20
    for story in stories.values():
        assert story[0]["event_type"] == "spread.opened"
        assert [each["lifecycle"] for each in story[:-1]] == ["open"] * (len(story) - 1)
