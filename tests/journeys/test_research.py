"""Eight research tasks as scripts, over real data and a SIMULATED twin that runs everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from toolkit.client import Client
from toolkit.service import Clock, Config, Replay, Simulated, running
from toolkit.store import Store
from toolkit.workspace import Workspace

from .research import (
    carry,
    depeg,
    event_study,
    lead_lag,
    screen,
    share,
    survival,
    vendor_shift,
)

NOW = 1_793_750_400  # 2026-11-04 00:00 UTC
LEG = "BTC_USDT:AURORA.spot"
SPLASHED = "AVAX_USDT:BOREAS.futures"
PAIR = "BTC_USDT:AURORA.spot:CORONA.futures"
TWO_DAYS = (NOW - 3 * 86_400, NOW - 86_400)
RATES = "funding/BTC_USDT:AURORA.futures:CORONA.futures"
DEPEG = "BTC_USD:COINBASE.spot:KRAKEN.spot"
MARCH = ("2023-03-09", "2023-03-15")
YEARS = ("2022-01-01", "2024-01-01")
FUNDED = [f"BTC_USDT:BINANCE.futures:{sell}.futures" for sell in ("BYBIT", "DYDX")]


def loaded(source: object, now: int, path: Path, keys: list[str], *window: str) -> str:
    """A store with the streams of a window, loaded from a service of its own."""
    config = Config(source, port=0, clock=Clock(fixed_at=now), quota=10**6, retention_s=10**10)
    with running(config) as service:
        rail = Workspace(Client(service.base_url, "demo-pro"), Store(path))
        rail.sync(keys, *window, progress=False)
        rail.close()
    return str(path)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("research") / "simulated.duckdb"
    keys = [LEG, SPLASHED, "BTC_USDT:AURORA.spot:*", "events/spread", "events/splash"]
    loaded(Simulated(7), NOW, path, keys, "2d")
    return loaded(Simulated(7), NOW, path, [RATES], "2026-11-01", "2026-11-03")


@pytest.fixture
def march(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("research") / "march.duckdb"
    source = Replay.read(real_data, datasets=["iaqf_dhruvk1432"])
    return loaded(source, 1_679_443_200, path, [DEPEG], *MARCH)


@pytest.fixture
def years(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("research") / "years.duckdb"
    source = Replay.read(real_data, datasets=["supervik"], renamed={"BTC_USD": "BTC_USDT"})
    keys = [f"funding/{key}" for key in FUNDED]
    return loaded(source, 1_704_067_200, path, keys, *YEARS)


def rows_of(store: str, key: str) -> pl.DataFrame:
    return Store(store).series(key)


def check_depeg(row: dict[str, object], rows: pl.DataFrame) -> None:
    log_bps = 1e4 * np.log(rows["sell_price"] / rows["buy_price"]).to_numpy()
    at = int(np.abs(log_bps).argmax())
    assert row["n"] == rows.height
    assert row["widest_log_bps"] == pytest.approx(log_bps[at])
    assert row["widest_at"].timestamp() == rows["ts"][at]
    assert row["left_bps"] == pytest.approx(abs(log_bps[at]) - 40)


def test_how_wide_two_exchanges_went_in_march_2023(march: str) -> None:
    row = depeg.main(march, DEPEG, *MARCH).row(0, named=True)
    check_depeg(row, rows_of(march, DEPEG))
    assert 0.9 < row["coverage"] <= 1
    assert row["left_bps"] > 10
    assert row["longest_s"] >= 60


def test_how_wide_a_simulated_pair_went(simulated: str) -> None:
    row = depeg.main(simulated, PAIR, "2026-11-02", "2026-11-04", fill_bps=2).row(0, named=True)
    check_depeg(row | {"left_bps": row["left_bps"] - 32}, rows_of(simulated, PAIR))


def test_a_screen_keeps_what_returns_within_the_hour_and_is_covered(simulated: str) -> None:
    found = screen.main(simulated)
    assert 0 < found.height <= 11
    assert found.select(((pl.col("half_life_s") < 3600) & (pl.col("coverage") > 0.95)).all()).item()
    row = found.row(0, named=True)
    rows = rows_of(simulated, row["trajectory"])
    log_bps = 1e4 * np.log(rows["sell_price"] / rows["buy_price"]).to_numpy()
    assert row["time_above_share"] == pytest.approx(np.mean(np.abs(log_bps) >= 10), abs=0.01)


def check_carry(row: dict[str, object], rows: pl.DataFrame) -> None:
    paid = rows.select(
        1e4 * (pl.col("sell_rate").fill_null(0) - pl.col("buy_rate").fill_null(0))
    ).to_series()
    assert row["carry_bps"] == pytest.approx(paid.sum(), rel=0.01, abs=1)
    signs = np.sign(paid.to_numpy())
    assert row["flips"] == int(np.sum(np.abs(np.diff(signs)) == 2))


def test_what_funding_earned_over_two_real_years(years: str) -> None:
    found = carry.main(years, FUNDED, *YEARS)
    assert found.height == 2
    for row in found.iter_rows(named=True):
        assert row["n"] > 2_000
        assert 0 <= row["positive_share"] <= 1
    bybit = found.filter(pl.col("trajectory").str.contains("BYBIT")).row(0, named=True)
    rows = rows_of(years, bybit["trajectory"]).filter(pl.col("ts") > 1_640_995_200)
    check_carry(bybit, rows)


def test_what_simulated_funding_earned(simulated: str) -> None:
    row = carry.main(simulated, [RATES], "2026-11-01", "2026-11-03").row(0, named=True)
    rows = rows_of(simulated, RATES).filter(pl.col("ts").is_between(*TWO_DAYS, closed="right"))
    assert (row["n"], row["coverage"]) == (6, 1)
    check_carry(row, rows)


def test_prices_move_around_a_splash(simulated: str) -> None:
    found = event_study.main(simulated, SPLASHED)
    assert found["minute"].to_list() == list(range(-30, 31))
    assert found.filter(minute=0)["mean_abs_bps"].item() == 0
    assert found["n"].min() >= 3
    before, after = (found.filter(minute=minute)["mean_abs_bps"].item() for minute in (-1, 1))
    assert max(before, after) > 50


@pytest.mark.parametrize("by", ["legs", "hour"])
def test_spread_events_live_as_long_as_their_lives_show(simulated: str, by: str) -> None:
    found = survival.main(simulated, by)
    assert found["n_lives"].sum() > 100
    shown = found.drop_nulls("median_life_s")
    assert shown["median_life_s"].is_sorted(descending=True)
    assert (found["median_life_s"].is_null() == found["median_life_reason"].is_not_null()).all()


def test_the_lag_of_two_legs_is_the_one_that_correlates_most(simulated: str) -> None:
    found = lead_lag.main(simulated, PAIR)
    assert found["lag_minutes"].sort().to_list() == list(range(-5, 6))
    rows = rows_of(simulated, PAIR)
    legs = np.diff(np.log(rows.select("buy_price", "sell_price").to_numpy()), axis=0)
    kept = np.diff(rows["ts"].to_numpy()) == 60
    expected = np.corrcoef(legs[kept].T)[0, 1]
    assert found.filter(lag_minutes=0)["correlation"].item() == pytest.approx(expected, abs=1e-9)


def test_a_vendors_csv_stamped_at_the_bars_end_is_found_one_step_late(
    simulated: str, tmp_path: Path
) -> None:
    rows = rows_of(simulated, LEG)
    csv = tmp_path / "vendor.csv"
    rows.select(pl.col("ts") + 60, close="price").write_csv(csv)
    best = vendor_shift.main(simulated, LEG, str(csv)).row(0, named=True)
    assert (best["steps"], best["error_bps"]) == (-1, 0.0)
    assert best["n"] == rows.height


def test_what_was_found_is_saved_shared_and_found_again_as_known_then(
    simulated: str, tmp_path: Path
) -> None:
    now = share.main(simulated, PAIR, tmp_path)
    loads = Store(simulated).loads()
    then = share.main(simulated, PAIR, tmp_path, as_of=int(loads["started_at"].max()))
    assert now == then
    facts = json.loads(pl.read_parquet_metadata(tmp_path / "spread.parquet")["machine_rail"])
    assert (facts["stream"], facts["data_hash"]) == (PAIR, now)
    assert "SIMULATED" in (tmp_path / "spread.html").read_text(encoding="utf-8")
