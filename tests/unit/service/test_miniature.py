from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from polars.testing import assert_frame_equal

from toolkit.market import Trajectory
from toolkit.service import Config, Replay, miniature, running

MINUTE = 60
MINUTES = 3 * 24 * 60


@pytest.fixture(scope="module")
def source() -> Replay:
    return miniature.source()


def log_spread(source: Replay, key: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    trajectory = Trajectory.parse(key)
    buy, sell = (source.bars(str(trajectory.symbol), leg) for leg in trajectory.legs)
    ts, of_buy, of_sell = np.intersect1d(buy.ts, sell.ts, return_indices=True)
    return ts, np.log(sell.price[of_sell] / buy.price[of_buy])


def test_generating_it_anew_gives_the_committed_file() -> None:
    assert_frame_equal(pl.read_parquet(miniature.PATH), miniature.generate())


def test_the_module_writes_the_file_anew(tmp_path: Path) -> None:
    size = miniature.write(tmp_path / "prices.parquet")
    assert size == (tmp_path / "prices.parquet").stat().st_size
    assert size <= 500_000
    assert Replay.read(tmp_path).id == miniature.source().id


def test_it_says_that_it_is_simulated_wherever_it_is_read_from() -> None:
    assert miniature.source().kind == "simulated"
    assert Replay.read(miniature.PATH.parent, datasets=["miniature"]).kind == "simulated"


def test_it_has_two_symbols_on_four_legs_over_three_days(source: Replay) -> None:
    legs = ["AURORA.spot", "BOREAS.spot", "CORONA.futures", "DEX-SOLARIS.dex"]
    assert {s: [str(leg) for leg in listed] for s, listed in source.listing.items()} == {
        "BTC_USDT": legs,
        "ETH_USDT": legs,
    }
    for symbol, listed in source.listing.items():
        for leg in listed:
            ts = source.bars(symbol, leg).ts
            assert ts[0] >= miniature.START
            assert ts[-1] < miniature.END
            assert not (ts % MINUTE).any()


def rows(source: Replay, key: str) -> int:
    trajectory = Trajectory.parse(key)
    return len(source.bars(str(trajectory.symbol), trajectory.buy).ts)


def test_one_leg_has_an_outage_of_some_hours(source: Replay) -> None:
    trajectory = Trajectory.parse("BTC_USDT:CORONA.futures")
    steps = np.diff(source.bars("BTC_USDT", trajectory.buy).ts)
    assert sorted(set(steps.tolist())) == [MINUTE, 271 * MINUTE]
    assert (steps > MINUTE).sum() == 1


def test_one_leg_misses_quiet_minutes_all_over(source: Replay) -> None:
    held = rows(source, "ETH_USDT:BOREAS.spot")
    assert 0.06 < 1 - held / MINUTES < 0.10
    ts = source.bars("ETH_USDT", Trajectory.parse("ETH_USDT:BOREAS.spot").buy).ts
    assert all(((ts >= t) & (ts < t + 86_400)).any() for t in range(ts[0], miniature.END, 86_400))


@pytest.mark.parametrize(
    "key", ["BTC_USDT:AURORA.spot", "BTC_USDT:BOREAS.spot", "ETH_USDT:CORONA.futures"]
)
def test_the_other_legs_are_complete(source: Replay, key: str) -> None:
    assert rows(source, key) == MINUTES


@pytest.mark.parametrize("symbol", ["BTC_USDT", "ETH_USDT"])
def test_one_exchange_repeats_stale_closes(source: Replay, symbol: str) -> None:
    repeats = {
        leg.exchange: float((np.diff(source.bars(symbol, leg).price) == 0).mean())
        for leg in source.listing[symbol]
    }
    assert 0.36 < repeats.pop("DEX-SOLARIS") < 0.44
    assert max(repeats.values()) < 0.02


@pytest.mark.parametrize(("symbol", "decimals"), [("BTC_USDT", 1), ("ETH_USDT", 2)])
def test_prices_lie_on_the_tick(source: Replay, symbol: str, decimals: int) -> None:
    for leg in source.listing[symbol]:
        price = source.bars(symbol, leg).price
        assert (price == np.round(price, decimals)).all()


@pytest.mark.parametrize(("key", "half_life_s"), miniature.TRUTH.items())
def test_each_half_life_is_recovered_within_four_standard_errors(
    source: Replay, key: str, half_life_s: int
) -> None:
    ts, spread = log_spread(source, key)
    pairs = np.diff(ts) == MINUTE
    before, after = spread[:-1][pairs], spread[1:][pairs]
    estimate = np.polyfit(before, after, 1)[0]
    truth = 0.5 ** (MINUTE / half_life_s)
    standard_error = math.sqrt((1 - truth**2) / pairs.sum())
    assert abs(estimate - truth) < 4 * standard_error
    assert 0 < estimate < 1


def test_the_truth_names_listed_spreads_and_no_stale_leg(source: Replay) -> None:
    assert len(miniature.TRUTH) == 4
    for key in miniature.TRUTH:
        trajectory = Trajectory.parse(key)
        assert set(trajectory.legs) <= set(source.listing[str(trajectory.symbol)])
        assert trajectory.sell.exchange != "DEX-SOLARIS"


def test_it_is_served_as_simulated(source: Replay) -> None:
    with running(Config(source, port=0)) as service:
        answer = httpx.get(
            f"{service.base_url}/api/v1/data/schemas", headers={"apikey": "demo-free"}
        )
    assert answer.json()["source"] == {"kind": "simulated", "id": source.id}
    assert source.id.startswith("miniature-")


def test_the_command_writes_the_file_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "prices.parquet"
    done = subprocess.run(
        [sys.executable, "-m", "toolkit.service.miniature", str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"prices.parquet: {path.stat().st_size} bytes\n"
    assert_frame_equal(pl.read_parquet(path), pl.read_parquet(miniature.PATH))
