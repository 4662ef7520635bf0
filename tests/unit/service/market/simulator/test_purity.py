"""The same (seed, time) is the same numbers, however it was come by."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from toolkit.market import Leg
from toolkit.service.market.simulator import GENERATOR, MARKETS, Simulated
from toolkit.service.market.simulator.processes import RandomStream

AURORA, LUNARIS = Leg.parse("AURORA.spot"), Leg.parse("DEX-LUNARIS.dex")
PROGRAM = """
import hashlib, json, sys
from toolkit.market import Leg
from toolkit.service.market.simulator import Simulated

simulator = Simulated(11)
asked = [
    ("BTC_USDT", "AURORA.spot", 20_454),
    ("BTC_USDT", "AURORA.futures", 20_777),
    ("ETH_USDT", "BOREAS.spot", 20_778),
    ("ETH_USDT", "FORNAX.spot", 20_776),
    ("PEPE_USDT", "DEX-LUNARIS.dex", 47_481),
    ("AVAX_USDT", "BOREAS.futures", 20_900),
]
if sys.argv[1] == "backwards":
    asked.reverse()
found = {}
for symbol, name, day in asked:
    leg, noon = Leg.parse(name), day * 86_400 + 43_200
    seconds = simulator.within(symbol, leg, noon)
    bars = simulator.day(symbol, leg, day)
    arrays = [bars.ts, bars.price, bars.volume, seconds.ts, seconds.price]
    if name.endswith("futures"):
        funding = simulator.settlements(symbol, leg, noon - 86_400, noon)
        arrays += [bars.mark_price, funding.ts, funding.rate, funding.interval_hours]
    digest = hashlib.sha256(b"".join(array.tobytes() for array in arrays))
    found[f"{symbol}:{name}:{day}"] = digest.hexdigest()
print(json.dumps({"id": simulator.id, **found}, sort_keys=True))
"""


def asked_elsewhere(order: str, hash_seed: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, order],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_two_processes_that_ask_in_opposite_order_see_the_same_bytes() -> None:
    forwards, backwards = asked_elsewhere("forwards", "1"), asked_elsewhere("backwards", "2")
    assert forwards == backwards
    assert len(set(forwards.values())) == 7


def test_a_day_is_the_same_after_its_cache_has_gone() -> None:
    simulator = Simulated(3)
    before = simulator.day("BTC_USDT", LUNARIS, 20_777)
    for day in range(20_500, 20_500 + 520):
        simulator.day("BTC_USDT", AURORA, day)
    after = simulator.day("BTC_USDT", LUNARIS, 20_777)
    assert before.price.tobytes() == after.price.tobytes()
    assert before.volume.tobytes() == after.volume.tobytes()


def test_what_a_caller_does_to_an_answer_does_not_reach_the_next() -> None:
    simulator = Simulated(3)
    first = simulator.day("BTC_USDT", AURORA, 20_777)
    kept = first.price.copy()
    first.price[:] = 0.0
    assert (simulator.day("BTC_USDT", AURORA, 20_777).price == kept).all()


def test_another_seed_is_another_market() -> None:
    one, two = (Simulated(seed).day("BTC_USDT", AURORA, 20_777).price for seed in (1, 2))
    assert not (one == two).any()


def test_a_symbol_left_out_changes_no_other() -> None:
    fewer = Simulated(5, markets={"ETH_USDT": MARKETS["ETH_USDT"]})
    whole = Simulated(5)
    for leg in whole.listing["ETH_USDT"]:
        alone, among = (each.day("ETH_USDT", leg, 20_777) for each in (fewer, whole))
        assert alone.price.tobytes() == among.price.tobytes()
    assert fewer.id != whole.id


def test_the_generator_gives_the_pinned_numbers() -> None:
    """Where this fails, the simulated market is another one: raise `GENERATOR` with the pins."""
    random = RandomStream(7, "pinned").at(20_777)
    bars = Simulated(7).day("BTC_USDT", AURORA, 20_777)
    found = {
        "generator": GENERATOR,
        "raw": random.bit_generator.random_raw(2).tolist(),
        "normals": random.standard_normal(3).round(12).tolist(),
        "integers": random.integers(1_000, size=5).tolist(),
        "price": bars.price[[0, 1, 2, -1]].tolist(),
        "volume": bars.volume[:2].tolist(),
    }
    assert found == {
        "generator": 3,
        "raw": [7513414738209960523, 17303990171940666675],
        "normals": [0.120678460629, -0.081234563536, -0.950665543796],
        "integers": [529, 478, 652, 924, 600],
        "price": [104312.5, 104327.7, 104414.1, 103616.9],
        "volume": [382972.9, 517004.97],
    }


def test_streams_of_other_names_and_indices_are_unrelated() -> None:
    streams = [RandomStream(seed, name) for seed in (1, 2) for name in ("a", "b", "a/b")]
    draws = np.array(
        [each.at(index).standard_normal(2_000) for each in streams for index in (0, 1)]
    )
    correlation = np.corrcoef(draws)
    np.fill_diagonal(correlation, 0.0)
    assert np.abs(correlation).max() < 4.5 / 2_000**0.5
