"""Eight research tasks as scripts, over real data and a SIMULATED twin that runs everywhere."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from toolkit.client import Client
from toolkit.service import Clock, Config, Replay, Simulated, running
from toolkit.statistics import events
from toolkit.statistics.fees.fee_table import example_text
from toolkit.store import Store
from toolkit.workspace import Workspace

from . import research

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
BOUGHT, SOLD = "BTC_USD:COINBASE.spot", "BTC_USD:KRAKEN.spot"
TASKS = ("carry", "depeg", "event_study", "lead_lag", "screen", "survival", "vendor_shift")


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
    return loaded(source, 1_679_443_200, path, [DEPEG, BOUGHT, SOLD], *MARCH)


@pytest.fixture
def years(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("research") / "years.duckdb"
    source = Replay.read(real_data, datasets=["supervik"], renamed={"BTC_USD": "BTC_USDT"})
    keys = [f"funding/{key}" for key in FUNDED]
    return loaded(source, 1_704_067_200, path, keys, *YEARS)


def rows_of(store: str, key: str) -> pl.DataFrame:
    return Store(store).series(key)


def check_depeg(row: dict[str, object], rows: pl.DataFrame, cost_bps: float) -> None:
    log_bps = 1e4 * np.log(rows["sell_price"] / rows["buy_price"]).to_numpy()
    at = int(np.abs(log_bps).argmax())
    assert row["peak_bps"] == pytest.approx(log_bps[at])
    assert row["peak_ts"] == rows["ts"][at]
    assert row["left_bps"] == pytest.approx(abs(log_bps[at]) - cost_bps)


def test_how_wide_two_exchanges_went_in_march_2023(march: str) -> None:
    row = research.depeg(march, DEPEG, *MARCH).row(0, named=True)
    check_depeg(row, rows_of(march, DEPEG), 40)
    assert 0.9 < row["coverage"] <= 1
    assert row["left_bps"] > 10
    assert row["duration_s"] >= 60


def test_how_wide_a_simulated_pair_went(simulated: str) -> None:
    found = research.depeg(simulated, PAIR, "2026-11-02", "2026-11-04", fill_bps=2)
    check_depeg(found.row(0, named=True), rows_of(simulated, PAIR), 8)


def test_a_screen_keeps_what_returns_within_the_hour_and_is_covered(
    simulated: str, tmp_path: Path
) -> None:
    fees = tmp_path / "fees.toml"
    exchanges = {leg.exchange for legs in Simulated(7).listing.values() for leg in legs}
    fees.write_text(example_text(sorted(exchanges)))
    found = research.screen(simulated, str(fees))
    assert 0 < found.height <= 11
    assert found.select(((pl.col("half_life_s") < 3600) & (pl.col("coverage") > 0.95)).all()).item()
    assert found["net_edge_bps"].is_sorted(descending=True, nulls_last=True)
    row = found.row(0, named=True)
    rows = rows_of(simulated, row["trajectory"])
    beyond = 1e4 * (rows["sell_price"] / rows["buy_price"] - 1).abs() - row["cost_bps"]
    assert row["net_edge_bps"] == pytest.approx(beyond.clip(0).mean(), abs=0.05)
    assert row["net_edge_bps"] > 0


def check_carry(found: list[pl.DataFrame], rows: pl.DataFrame, trajectory: str) -> pl.DataFrame:
    earned, steady, held = (each.filter(trajectory=trajectory) for each in found)
    assert earned["funding_bps"].item() == pytest.approx(paid_bps(rows).sum(), rel=0.01, abs=1)
    assert 0 <= steady["positive_share"].item() <= 1
    day = held.filter(horizon_s=86_400)
    gross, cost, net = day.select(
        "funding_mean_bps", "cost_mean_bps", "funding_only_net_mean_bps"
    ).row(0)
    assert (net, cost) == (pytest.approx(gross - cost), pytest.approx(cost))
    assert 0 <= day["funding_only_breakeven_share"].item() <= 1
    return day


def paid_bps(rows: pl.DataFrame) -> pl.Series:
    rates = pl.col("buy_rate", "sell_rate").fill_null(0)
    return (
        rows.with_columns(rates)
        .select(1e4 * (pl.col("sell_rate") - pl.col("buy_rate")))
        .to_series()
    )


def test_what_funding_earned_over_two_real_years(years: str, tmp_path: Path) -> None:
    found = research.carry(years, fee_file(tmp_path, ["BINANCE", "BYBIT", "DYDX"]), FUNDED, *YEARS)
    assert [each["trajectory"].n_unique() for each in found] == [2, 2, 2]
    assert found[0]["n"].min() > 2_000
    pair = f"funding/{FUNDED[0]}"
    rows = rows_of(years, pair).filter(pl.col("ts") > 1_640_995_200)
    day = check_carry(found, rows, pair)
    assert day["coverage"].item() > 0.9
    assert day["funding_band_reason"].item() == "long_memory"


def test_what_simulated_funding_earned(simulated: str, tmp_path: Path) -> None:
    fees = fee_file(tmp_path, ["AURORA", "CORONA"])
    found = research.carry(simulated, fees, [RATES], "2026-11-01", "2026-11-03")
    rows = rows_of(simulated, RATES).filter(pl.col("ts").is_between(*TWO_DAYS, closed="right"))
    assert found[0].select("n", "coverage").row(0) == (6, 1)
    day = check_carry(found, rows, RATES)
    ends = range(TWO_DAYS[0] + 86_400, TWO_DAYS[1] + 1, 3_600)
    kept = [
        paid_bps(rows.filter(pl.col("ts").is_between(end - 86_400, end, closed="right"))).sum()
        for end in ends
    ]
    assert day["n"].item() == len(kept)
    assert day["funding_mean_bps"].item() == pytest.approx(np.mean(kept), abs=1e-9)


def fee_file(folder: Path, exchanges: list[str]) -> str:
    path = folder / "fees.toml"
    path.write_text(example_text(exchanges))
    return str(path)


def test_prices_move_around_a_splash(simulated: str) -> None:
    found = research.event_study(simulated)
    assert found["offset_s"].to_list() == list(range(-1_800, 1_801, 60))
    assert found.filter(offset_s=0)["return_mean_log_bps"].item() == 0
    assert found["n"].min() >= 3
    # the jump by which they were detected is before the first price known after, and goes back
    assert found.filter(offset_s=-120)["return_mean_log_bps"].item() < -20
    assert found.filter(offset_s=180)["return_mean_log_bps"].item() < -20


@pytest.mark.parametrize("by", ["legs", "hour"])
def test_spread_events_live_as_long_as_their_lives_show(simulated: str, by: str) -> None:
    found = research.survival(simulated, by)
    assert found["n_lives"].sum() > 100
    shown = found.drop_nulls("median_life_s")
    assert shown["median_life_s"].is_sorted(descending=True)
    assert (found["median_life_s"].is_null() == found["median_life_reason"].is_not_null()).all()


def check_lags(store: str, pair: str) -> dict[str, object]:
    lead, lags = research.lead_lag(store, pair)
    assert lags["lag_s"].to_list() == list(range(-300, 301, 60))
    rows = rows_of(store, pair).drop_nulls(["buy_price", "sell_price"])
    legs = np.diff(np.log(rows.select("buy_price", "sell_price").to_numpy()), axis=0)
    kept = np.diff(rows["ts"].to_numpy()) == 60
    expected = np.corrcoef(legs[kept].T)[0, 1]
    assert lags.filter(lag_s=0)["correlation"].item() == pytest.approx(expected, abs=1e-9)
    return lead.row(0, named=True)


def test_the_lag_of_two_simulated_legs_is_the_one_that_correlates_most(simulated: str) -> None:
    assert check_lags(simulated, PAIR)["correlation_at_0"] is not None


def test_two_real_exchanges_move_within_a_minute(march: str) -> None:
    found = check_lags(march, DEPEG)
    assert (found["peak_lag_s"], found["beyond_band"]) == (0, True)


def vendor_file(store: str, leg: str, folder: Path) -> str:
    path = folder / "vendor.csv"
    rows_of(store, leg).select(pl.col("ts") + 60, close="price").write_csv(path)
    return str(path)


def test_a_vendors_csv_stamped_at_the_bars_end_is_found_one_step_late(
    simulated: str, tmp_path: Path
) -> None:
    found = research.vendor_shift(simulated, LEG, vendor_file(simulated, LEG, tmp_path))
    assert found.select("clock_shift", "clock_shift_steps").row(0) == (True, 1)


def test_real_bars_stamped_at_their_end_are_found_one_step_late(march: str, tmp_path: Path) -> None:
    found = research.vendor_shift(march, SOLD, vendor_file(march, BOUGHT, tmp_path))
    assert found.select("clock_shift", "clock_shift_steps").row(0) == (True, 1)


@pytest.fixture(scope="module")
def opened(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Events that the service detects in the minutes of March 2023, and the prices around them."""
    source = Replay.read(real_data, datasets=["iaqf_dhruvk1432", "iaqf_prashanth", "iaqf_cl8550"])
    path, window = tmp_path_factory.mktemp("opened") / "march.duckdb", ("2023-03-01", "2023-03-22")
    loaded(source, 1_679_443_200, path, ["events/spread", "events/splash"], *window)
    rail = Workspace(lambda _: None, Store(path))
    keys = pl.concat(rail.events(each).detections() for each in ("spread", "splash"))["trajectory"]
    loaded(source, 1_679_443_200, path, keys.unique().to_list(), *window)
    return rail


def test_all_events_of_march_2023_are_in_the_rows_and_an_expired_one_opens_no_second_time(
    opened: Workspace,
) -> None:
    log = opened.events("spread")
    listed = log.audited(opened.around(log, margin_s=0), enter_bps=100, leave_bps=50)
    row = events.audit(listed).row(0, named=True)
    assert (row["n_events_judged"], row["precision"]) == (97, 1)
    assert (row["n_episodes_judged"], row["n_seen"]) == (154, 113)
    missed = listed.filter(audit_reason="missed")
    assert missed["trajectory"].str.starts_with("BTC_EUR").all()


def test_spreads_of_the_depeg_have_one_cause_and_are_as_sure_as_a_few_of_them(
    opened: Workspace,
) -> None:
    log = opened.events("spread", "2023-03-01", "2023-03-15")
    lives = log.lifecycles()
    row, apart = (
        events.rate_changes(lives, held=log.held, cluster=each).row(0, named=True)
        for each in ("auto", "none")
    )
    assert (row["n"], row["n_before"], row["coverage"], row["ratio"]) == (78, 15, 1, 5.2)
    assert (row["cluster"], row["fano"] > 5, row["p_value"] > 0.05) == ("stretch", True, True)
    assert apart["ratio_lower"] == pytest.approx(2.97, abs=0.01)
    assert apart["p_value"] < 1e-10
    bounds = ["median_life_lower_s", "median_life_upper_s"]
    for cluster, wanted in ("auto", (119, 7_199)), ("none", (779, 3_719)):  # of 10 trajectories
        lived = opened.events("spread").survival(cluster=cluster)
        assert lived.select("n_lives", "n_ended").row(0) == (97, 97)
        assert lived["median_life_s"].item() == pytest.approx(2_160, abs=1)
        assert lived.select(bounds).row(0) == pytest.approx(wanted, abs=1)


def test_real_prices_gave_back_within_minutes_of_a_splash_and_went_nowhere_later(
    opened: Workspace,
) -> None:
    log = opened.events("splash")
    detected, prices = log.detections(), opened.around(log).collect()
    found = events.follow_through(detected, prices, horizons_s=[300, 7_200])
    assert found.select("n_events", "n").rows() == [(169, 81)] * 2
    bands = found.select("return_median_lower_log_bps", "return_median_upper_log_bps").rows()
    assert bands[0] == pytest.approx((-94.1, -6.5), abs=0.1)
    assert bands[1] == pytest.approx((-196.2, 346.9), abs=0.1)
    assert events.study(detected, prices, after_s=7_200)["n_clusters"].max() == 12
    assert events.placebo(detected, prices, horizons_s=[300])["p_value"].item() == 0.001


def test_bursts_of_announced_pumps_are_one_pump_announced_by_several_groups(
    real_data: Path,
) -> None:
    rows = pl.read_parquet(real_data / "pumps.parquet").filter(dataset="bayi_hu")
    rows = rows.sort("symbol", "exchange", "ts").with_columns(
        ts_ms=1_000 * pl.col("ts"),
        family=pl.lit("splash"),
        event_id=pl.concat_str("symbol", "exchange", "ts", separator=" "),
        event_type=pl.lit("splash.pump"),
        lifecycle=pl.lit("open"),
        arrival=pl.int_range(pl.len()),
    )
    apart = (pl.col("ts").diff().over("symbol", "exchange") > 600).fill_null(value=True)
    told, pumps = (
        events.lifecycles(each, "2019-01-01", "2022-01-01") for each in (rows, rows.filter(apart))
    )
    bursts = [events.clustering(each, bucket_s=3_600).row(0, named=True) for each in (told, pumps)]
    assert [row["n"] for row in bursts] == [1_154, 705]
    assert [row["fano"] for row in bursts] == pytest.approx([2.71, 1.13], abs=0.01)
    assert [row["p_value"] < 0.01 for row in bursts] == [True, False]
    busiest = events.rates_by_hour(pumps).sort("events_per_h_mean", descending=True)
    row = busiest.row(0, named=True)
    assert (row["weekday"], row["hour"], row["mean_reason"]) == (7, 17, "long_memory")
    # 0.44 pumps open in that hour of a week, 0.03 in the mean of all hours
    assert row["events_per_h_mean"] == pytest.approx(0.44, abs=0.005)
    assert row["events_per_h_deviation_lower"] > 0.25  # free of what lasts for weeks


@pytest.mark.parametrize("task", TASKS)
def test_each_task_is_at_most_five_lines(task: str) -> None:
    found = ast.parse(inspect.getsource(getattr(research, task))).body[0]
    assert isinstance(found, ast.FunctionDef)
    assert found.body[-1].end_lineno - found.body[1].lineno + 1 <= 5  # after its docstring


def test_what_was_found_is_saved_shared_and_found_again_as_known_then(
    simulated: str, tmp_path: Path
) -> None:
    now = research.share(simulated, PAIR, tmp_path)
    loads = Store(simulated).loads()
    then = research.share(simulated, PAIR, tmp_path, as_of=int(loads["finished_at"].max()))
    assert now == then
    facts = json.loads(pl.read_parquet_metadata(tmp_path / "spread.parquet")["machine_rail"])
    assert (facts["stream"], facts["data_hash"]) == (PAIR, now)
    assert "SIMULATED" in (tmp_path / "spread.html").read_text(encoding="utf-8")
