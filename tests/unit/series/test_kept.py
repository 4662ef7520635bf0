"""Series kept from snapshots: from a service's dashboards over real sockets to their statistics."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pytest

from tests.counting import SetClock
from toolkit.client import Client
from toolkit.errors import EmptyWindowError, InputError, UnknownTrajectoryError
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.market import SnapshotLog, SnapshotTrajectory
from toolkit.series import RateSeries, SpreadSeries
from toolkit.service import Config, Simulated, running
from toolkit.store import Store
from toolkit.workspace import Workspace

NOW = 1_793_750_400  # 2026-11-04 00:00 UTC
STEP_S = 60
POLLS = [NOW + STEP_S * i for i in (0, 1, 2, 4)]  # the fourth was not answered
WINDOW = (NOW, NOW + 5 * STEP_S)


@pytest.fixture(scope="module")
def rail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A store that polled both dashboards of a SIMULATED market."""
    clock = SetClock()
    store = Store(tmp_path_factory.mktemp("kept") / "rail.duckdb")
    config = Config(Simulated(7), port=0, clock=clock, quota=10**6)
    with running(config) as service, Client(service.base_url, "demo-pro") as client:
        for now in POLLS:
            clock.moments.append(now)
            logs = [SnapshotLog.named(kind) for kind in ("spread", "funding")]
            sync(client, store, logs, Interval(now, now + 1))
        yield Workspace(client, store)


def keys(rail: Workspace, kind: str) -> list[str]:
    return rail.store.catalogue().filter(kind=kind).sort("rows")["stream"].to_list()


def shown(rail: Workspace) -> pl.DataFrame:
    """Every item that any answer showed: ts, key and spread_pct, read from the answers."""
    rows = []
    for at in POLLS:
        (answer,) = rail.store.snapshots("spread", Interval(at, at + 1))["document"]
        for item in pl.Series([answer]).str.json_decode(infer_schema_length=None)[0]["items"]:
            buy, sell = (f"{item[f'{s}_exchange']}.{item[f'{s}_market']}" for s in ("buy", "sell"))
            key = f"snapshot-spread/{item['symbol']}:{buy}:{sell}"
            rows.append((at, key, item["spread_pct"]))
    return pl.DataFrame(rows, schema=["ts", "trajectory", "spread_pct"], orient="row")


@pytest.mark.slow
def test_what_the_dashboards_showed_is_in_the_series_and_nothing_else(rail: Workspace) -> None:
    rows = rail.store.scan("snapshot-spread", Interval(*WINDOW)).collect()
    order = ["ts", "trajectory"]
    kept = rows.select("ts", "trajectory", "spread_pct").sort(order)
    assert kept.rows() == shown(rail).sort(order).rows()
    futures = [
        leg for legs in Simulated(7).listing.values() for leg in legs if leg.market == "futures"
    ]
    assert len(keys(rail, "snapshot-funding")) == len(futures)


def test_a_missed_poll_is_missing_for_every_pair_and_an_absent_pair_for_none(
    rail: Workspace,
) -> None:
    counts = shown(rail).group_by("trajectory").len()
    for key, n in counts.sort("len").rows()[:: max(1, counts.height // 3)]:
        row = rail.spread(key, *WINDOW).coverage().row(0, named=True)
        assert (row["n"], row["not_tracked"], row["n_expected"]) == (n, 4 - n, 5)
        assert row["coverage"] == pytest.approx(4 / 5)
        assert row["step_s"] == STEP_S


def test_every_result_has_the_coverage_by_polls(rail: Workspace) -> None:
    series = rail.spread(keys(rail, "snapshot-spread")[-1], *WINDOW)
    expected = series.coverage()["coverage"].item()
    assert expected == pytest.approx(4 / 5)
    for found in (
        series.summary(),
        series.quantiles(),
        series.half_life(),
        series.time_above(1.0),
        series.episodes(1.0),
    ):
        assert found["coverage"].unique().to_list() == [expected]
    assert series.summary()["method"].item() == "spread.summary/5, polls/2"
    assert series.episodes(1e6).is_empty()


def test_it_is_of_all_polls_known_at_each_and_marked_as_kept_from_snapshots_wherever_it_is_shown(
    rail: Workspace,
) -> None:
    key = keys(rail, "snapshot-spread")[-1]
    series = rail.series(key)
    assert isinstance(series, SpreadSeries)
    assert series.window == WINDOW
    assert series.df["ts"].to_list() == POLLS
    assert series.df["time"].equals(series.df["known_at"], check_names=False)
    assert "kept from snapshots 4 polls answered; not tracked 0, missed 1" in repr(series)
    subtitle = series.plot().layout.title.subtitle.text
    assert f"{key.partition('/')[2]}, from snapshots" in subtitle
    assert "coverage 80.00 %" in subtitle
    assert "stream snapshot-spread/" in "; ".join(f"{k} {v}" for k, v in series.facts.items())
    with pytest.raises(InputError, match="bars: snapshots are of moments"):
        series.resample("5m")


def test_a_poll_without_an_answer_is_a_gap_and_an_absent_pair_is_none(rail: Workspace) -> None:
    for key in (keys(rail, "snapshot-spread")[0], keys(rail, "snapshot-spread")[-1]):
        gaps = rail.spread(key, *WINDOW).gaps()
        assert gaps.select("length_s", "state").rows() == [(STEP_S, "unrecoverable")]


def test_the_rate_of_a_leg_is_a_series_of_its_own(rail: Workspace) -> None:
    key = keys(rail, "snapshot-funding")[0]
    series = rail.funding(SnapshotTrajectory.parse(key), *WINDOW)
    assert isinstance(series, RateSeries)
    assert isinstance(rail.funding(key), RateSeries)
    row = series.df.row(0, named=True)
    yearly = 100 * 8760 * row["rate"] / row["interval_hours"]
    assert row["funding_apr_pct"] == pytest.approx(yearly)
    summary = series.summary().row(0, named=True)
    assert (summary["n"], summary["coverage"]) == (4, pytest.approx(4 / 5))
    assert summary["funding_apr_median_pct"] == pytest.approx(series.df["funding_apr_pct"].median())
    assert series.quantiles()["funding_apr_q50_pct"].item() == summary["funding_apr_q50_pct"]
    assert series.plot().data[0].y.size >= 4


def test_the_status_of_a_pair_is_what_was_answered_of_the_polls(rail: Workspace) -> None:
    status = rail.status().filter(pl.col("kind").str.starts_with("snapshot"))
    assert status["answered_share"].unique().to_list() == [pytest.approx(4 / 5)]
    assert status["holes"].null_count() == status.height


def test_a_window_without_a_poll_or_a_pair_that_was_never_shown_is_an_error(
    rail: Workspace,
) -> None:
    key = keys(rail, "snapshot-spread")[0]
    with pytest.raises(EmptyWindowError):
        rail.spread(key, NOW - 7_200, NOW - 3_600)
    with pytest.raises(UnknownTrajectoryError):
        rail.spread("snapshot-spread/BTC_USDT:NOWHERE.spot:AURORA.spot")
    with pytest.raises(InputError, match=r"rail\.funding"):
        rail.spread(keys(rail, "snapshot-funding")[0])
