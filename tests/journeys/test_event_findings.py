"""What the statistics of events find in recorded prices and in lists of real pumps.

The events of March 2023 are those that the local service detects in replayed minutes of BTC.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from toolkit.client import Client
from toolkit.market import parse_ts
from toolkit.service import Clock, Config, Replay, running
from toolkit.statistics import events
from toolkit.store import Store
from toolkit.workspace import Workspace

MARCH = ("2023-03-01", "2023-03-22")
MINUTES = ("iaqf_dhruvk1432", "iaqf_prashanth", "iaqf_cl8550")
YEARS = ("2019-01-01", "2022-01-01")


@pytest.fixture(scope="module")
def march(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Events of BTC and of USDC, and the spreads and prices in which they opened."""
    source = Replay.read(real_data, datasets=MINUTES)
    clock, store = Clock(fixed_at=parse_ts(MARCH[1])), tmp_path_factory.mktemp("march") / "m.duckdb"
    config = Config(source, port=0, clock=clock, quota=10**6, retention_s=10**10)
    with running(config) as service, Client(service.base_url, "demo-pro") as client:
        rail = Workspace(client, Store(store))
        rail.sync(["events/spread", "events/splash"], *MARCH, progress=False)
        opened = [rail.events(family).detections() for family in ("spread", "splash")]
        keys = pl.concat(opened)["trajectory"].unique().sort()
        rail.sync(keys.to_list(), *MARCH, progress=False)
    return rail


def test_in_the_week_of_the_depeg_spreads_opened_five_times_as_often(march: Workspace) -> None:
    log = march.events("spread", "2023-03-01", "2023-03-15")
    lives = log.lifecycles()
    row = events.rate_changes(lives, held=log.held).row(0, named=True)
    assert (row["n"], row["n_before"], row["coverage"]) == (78, 15, 1)
    # one cause of nearly all of them: as if 78 had each come by itself, it is as sure as can be
    apart = events.rate_changes(lives, held=log.held, cluster="none").row(0, named=True)
    assert (apart["ratio"], apart["ratio_lower"]) == (5.2, pytest.approx(2.97, abs=0.01))
    assert apart["p_value"] < 1e-10
    assert (row["ratio"], row["cluster"]) == (5.2, "stretch")
    assert row["fano"] > 5
    assert row["p_value"] > 0.05
    lived = march.events("spread").survival().row(0, named=True)
    assert (lived["n_lives"], lived["n_ended"]) == (97, 97)
    assert lived["median_life_s"] == pytest.approx(2_160, abs=1)
    bounds = lived["median_life_lower_s"], lived["median_life_upper_s"]
    assert bounds == pytest.approx((119, 7_199), abs=1)
    assert (lived["cluster"], lived["n_clusters"]) == ("trajectory", 10)
    one_each = march.events("spread").survival(cluster="none").row(0, named=True)
    bounds = one_each["median_life_lower_s"], one_each["median_life_upper_s"]
    assert bounds == pytest.approx((779, 3_719), abs=1)


def test_all_detected_spreads_are_in_the_rows_and_an_expired_event_opens_no_second_time(
    march: Workspace,
) -> None:
    log = march.events("spread")
    listed = log.audited(march.around(log, margin_s=0), enter_bps=100, leave_bps=50)
    row = events.audit(listed).row(0, named=True)
    assert (row["n_events_judged"], row["precision"]) == (97, 1)
    assert (row["n_episodes_judged"], row["n_seen"]) == (154, 113)
    missed = listed.filter(audit_reason="missed")
    assert missed["trajectory"].str.starts_with("BTC_EUR").all()


def test_prices_gave_back_within_minutes_of_a_detection_and_went_nowhere_later(
    march: Workspace,
) -> None:
    pumps = march.events("splash")
    detected = pumps.detections()
    prices = march.around(pumps).collect()
    found = events.follow_through(detected, prices, horizons_s=[300, 7_200])
    assert found.select("n_events", "n").rows() == [(169, 81)] * 2
    bands = found.select("return_median_lower_log_bps", "return_median_upper_log_bps").rows()
    assert bands[0] == pytest.approx((-94.1, -6.5), abs=0.1)
    assert bands[1] == pytest.approx((-196.2, 346.9), abs=0.1)
    path = events.study(detected, prices, after_s=7_200)
    assert path["n_clusters"].max() == 12
    assert events.placebo(detected, prices, horizons_s=[300])["p_value"].item() == 0.001


def listed_pumps(pumps: pl.DataFrame) -> pl.DataFrame:
    """Lifecycles of listed pumps, of which no end is known."""
    name = pl.concat_str("symbol", "exchange", "ts", separator=" ")
    documents = pumps.select(
        "ts",
        family=pl.lit("splash"),
        event_id=name,
        event_type=pl.lit("splash.pump"),
        lifecycle=pl.lit("open"),
        ts_ms=1_000 * pl.col("ts"),
        arrival=pl.int_range(pl.len()),
    )
    return events.lifecycles(documents, *YEARS)


def test_bursts_of_announced_pumps_are_one_pump_announced_by_several_groups(
    real_data: Path,
) -> None:
    rows = pl.read_parquet(real_data / "pumps.parquet").filter(dataset="bayi_hu")
    rows = rows.sort("symbol", "exchange", "ts")
    apart = (pl.col("ts").diff().over("symbol", "exchange") > 600).fill_null(value=True)
    told, pumps = listed_pumps(rows), listed_pumps(rows.filter(apart))
    bursts = [events.clustering(each, bucket_s=3_600).row(0, named=True) for each in (told, pumps)]
    assert [row["n"] for row in bursts] == [1_154, 705]
    assert [row["fano"] for row in bursts] == pytest.approx([2.71, 1.13], abs=0.01)
    assert [row["p_value"] < 0.01 for row in bursts] == [True, False]
    hours = events.rates_by_hour(pumps).sort("events_per_h_mean", descending=True)
    assert hours.select("weekday", "hour").row(0) == (7, 17)
    # 0.44 pumps open in that hour of a week, 0.03 in the mean of all hours
    assert hours["events_per_h_mean"][0] == pytest.approx(0.44, abs=0.005)
    assert hours["mean_reason"][0] == "long_memory"  # pumps follow the market for longer than weeks
    assert hours["events_per_h_deviation_lower"][0] > 0.25  # of which an hour less its week is free
