from __future__ import annotations

import httpx
import numpy as np
import pytest

from tests import miniature
from tests.unit.service.truth import Truth
from toolkit.market import Leg
from toolkit.service import Config, Simulated, running

MINUTE = 60
MINUTES = 3 * 24 * 60


def test_it_lists_two_symbols_on_four_legs() -> None:
    assert dict(miniature.source().listing) == dict.fromkeys(miniature.SYMBOLS, miniature.LEGS)


@pytest.mark.parametrize("symbol", miniature.SYMBOLS)
@pytest.mark.parametrize("leg", miniature.LEGS, ids=str)
def test_its_bars_are_those_of_the_simulated_market_in_its_window(symbol: str, leg: Leg) -> None:
    cut = miniature.source().bars(symbol, leg)
    market = Simulated(miniature.SEED).bars(symbol, leg)
    whole = market.between(miniature.START - 86_400, miniature.END + 86_400)
    inside = (whole.ts >= miniature.START) & (whole.ts < miniature.END)
    assert cut.interval_s == market.interval_s == MINUTE
    assert cut.ts.tolist() == whole.ts[inside].tolist()
    assert cut.price.tolist() == whole.price[inside].tolist()


def test_one_leg_has_the_outage_that_was_planted_and_no_other_gap() -> None:
    corona = Leg.parse("CORONA.futures")
    planted = Truth(miniature.SEED).outages("BTC_USDT", corona, miniature.START, miniature.END)
    assert [(each.start, each.end) for each in planted] == [miniature.OUTAGE]
    minutes = np.arange(miniature.START, miniature.END, MINUTE)
    start, end = miniature.OUTAGE
    wanted = minutes[(minutes < start) | (minutes >= end)]
    assert miniature.source().bars("BTC_USDT", corona).ts.tolist() == wanted.tolist()


@pytest.mark.parametrize("symbol", miniature.SYMBOLS)
def test_one_leg_misses_quiet_minutes_and_two_have_every_minute(symbol: str) -> None:
    aurora, boreas, _, solaris = miniature.LEGS
    share = Truth(miniature.SEED).listing(symbol, boreas).quiet_share
    missed = 1 - len(miniature.source().bars(symbol, boreas).ts) / MINUTES
    assert abs(missed - share) < 4 * (share * (1 - share) / MINUTES) ** 0.5
    for leg in (aurora, solaris):
        assert len(miniature.source().bars(symbol, leg).ts) == MINUTES


def test_it_is_served_as_simulated() -> None:
    with running(Config(miniature.source(), port=0)) as service:
        answer = httpx.get(
            f"{service.base_url}/api/v1/data/schemas", headers={"apikey": "demo-free"}
        )
    source = answer.json()["source"]
    assert source == {"kind": "simulated", "id": miniature.source().id}
    assert source["id"].startswith("miniature-")
