"""The prices of the legs of funding pairs: from a spread, either way round, or from two prices."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import polars as pl
import pytest

import toolkit as tk
from tests.empty_store import empty_store
from tests.unit.store.conftest import frame_of
from toolkit.intervals import Interval
from toolkit.market import Family, Source, Trajectory
from toolkit.series.held_prices import HeldPrices
from toolkit.statistics import funding
from toolkit.statistics.fees import FeeModel
from toolkit.store import Batch, Edge, LoadOrigin, StoreWriter

DAY, EIGHT, HOUR = 86_400, 28_800, 3_600
START = 1_678_406_400  # 2023-03-10 00:00 UTC
END = START + 10 * DAY
PAIR = Trajectory.parse("BTC_USDT:AURORA.spot:BOREAS.futures", Family.FUNDING)
SPREAD = Trajectory.spread("BTC_USDT", *PAIR.legs)
TURNED = Trajectory.spread("BTC_USDT", *reversed(PAIR.legs))
LEGS = tuple(Trajectory.parse(f"BTC_USDT:{leg}") for leg in PAIR.legs)


def level(hour: int) -> float:
    """The spread of an hour's end (bps): it swings over days."""
    return 20 * math.sin(hour / 17) + hour / 24


def settled() -> pl.DataFrame:
    """Ten days of a spot leg, which pays nothing, and of a leg that pays 2 bps each 8 h."""
    rows = [(START + EIGHT * k, 0.0, 2e-4, None, 8.0) for k in range(31)]
    return frame_of(rows, Family.FUNDING)


def prices(kind: str, hours: range) -> dict[Trajectory, pl.DataFrame]:
    """Rows of hours from which the prices of both legs are known: the sell leg's moves."""
    sold = [(START + HOUR * hour, 20_000 * math.exp(level(hour) / 1e4)) for hour in hours]
    if kind == "prices":
        return {LEGS[0]: frame_of([(ts, 20_000.0) for ts, _ in sold]), LEGS[1]: frame_of(sold)}
    if kind == "turned":
        rows = [(ts, price, 20_000.0) for ts, price in sold]
        return {TURNED: frame_of(rows, Family.SPREAD)}
    return {SPREAD: frame_of([(ts, 20_000.0, price) for ts, price in sold], Family.SPREAD)}


def filled(path: Path, kind: str, hours: range) -> Path:
    """A store that holds the pair's funding, and prices of a kind."""
    writer = StoreWriter(empty_store(path, Source("replay", "made")))
    load = writer.start_load(LoadOrigin("http://127.0.0.1:1", END, None, "0.1.0"))
    batch = Batch()
    batch.add(PAIR, settled(), Interval(START, END + 1), Edge(END + 1, 0, None, EIGHT))
    for key, rows in (prices(kind, hours) if kind != "none" else {}).items():
        batch.add(key, rows, Interval(START - DAY, END + 1), Edge(END + 1, 0, None, HOUR))
    writer.commit(load, batch)
    writer.finish_load(load, [])
    return path


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tk.Workspace]:
    """The store of a kind of prices and of so many hours, filled once: all tests read alone."""
    folder = tmp_path_factory.mktemp("priced")

    @cache
    def path(kind: str, hours: range) -> Path:
        return filled(folder / f"{kind}-{hours.start}-{hours.stop}.duckdb", kind, hours)

    return lambda kind, hours=range(-2, 241): tk.open(path(kind, hours))


def of_pair(rail: tk.Workspace):
    return rail.funding(PAIR, START, END)


@pytest.mark.parametrize("kind", ["spread", "turned", "prices"])
def test_the_spread_of_a_spot_leg_counts_whichever_way_it_is_held(opened, kind: str):
    """Against sums by hand: a price is known at the end of its hour, and never before."""
    with opened(kind) as rail:
        pair = of_pair(rail)
        (row,) = pair.summary().to_dicts()
        (day,) = pair.holdings(horizons=["1d"]).to_dicts()
        path = pair.carry()
    # known at START is the hour before it, at END the last whole hour
    basis = level(-1) - level(239)
    assert (row["funding_bps"], row["basis_bps"]) == pytest.approx((60, basis), abs=1e-7)
    assert row["carry_bps"] == pytest.approx(60 + basis)
    assert (row["carry_reason"], row["prices_lack"]) == (None, None)
    kept = pl.Series([6 + level(hour - 1) - level(hour + 23) for hour in range(24 * 9 + 1)])
    assert day["n"] == kept.len()
    assert day["gross_mean_bps"] == pytest.approx(kept.mean())
    assert day["gross_q05_bps"] == pytest.approx(kept.quantile(0.05, "linear"))
    assert day["basis_mean_bps"] == pytest.approx(kept.mean() - 6)
    at = [level(-1) - level(8 * k - 1) for k in range(1, 31)]
    assert path["basis_bps"].to_list() == pytest.approx(at, abs=1e-7)
    assert path["carry_bps"][-1] == pytest.approx(row["carry_bps"])


def test_a_price_that_comes_after_the_entry_or_the_exit_changes_nothing(opened):
    with opened("spread", range(-2, 24)) as known:
        early = known.funding(PAIR, START, START + DAY).summary()
    with opened("spread") as known:
        later = known.funding(PAIR, START, START + DAY).summary()
    assert early.row(0) == later.row(0)


def test_without_prices_basis_and_net_are_null_and_the_row_names_the_command(opened):
    fees = FeeModel.example(["AURORA", "BOREAS"])
    with opened("none") as rail:
        pair = of_pair(rail)
        (row,) = pair.summary(fees=fees).to_dicts()
        (day,) = pair.holdings(horizons=["1d"], fees=fees).to_dicts()
        (only,) = pair.holdings(horizons=["1d"], fees=fees, funding_only=True).to_dicts()
    assert (row["basis_bps"], row["carry_bps"], row["net_carry_bps"]) == (None, None, None)
    assert row["carry_reason"] == row["net_carry_reason"] == "missing_price"
    assert row["funding_bps"] == pytest.approx(60)
    assert (day["basis_mean_bps"], day["net_mean_bps"]) == (None, None)
    assert day["gross_reason"] == day["net_reason"] == "missing_price"
    assert (day["funding_mean_bps"], day["n_unpriced"]) == (pytest.approx(6), day["n"])
    for lacks in (row["prices_lack"], day["prices_lack"]):
        assert lacks == f'rail.sync(["{SPREAD.key}"], "2023-03-09T23:00", "2023-03-20T00:00")'
    assert only["funding_only_net_mean_bps"] == pytest.approx(6 - only["cost_mean_bps"])
    assert "gross_mean_bps" not in only


def test_prices_of_half_the_window_are_not_taken_for_all_of_it(opened):
    with opened("spread", range(120, 241)) as rail:
        pair = of_pair(rail)
        (row,) = pair.summary().to_dicts()
        (day,) = pair.holdings(horizons=["1d"]).to_dicts()
        half = rail.funding(PAIR, START + 6 * DAY, END).summary()
    assert (row["basis_bps"], row["basis_reason"]) == (None, "missing_price")
    assert (day["gross_reason"], day["n_unpriced"] > 100) == ("missing_price", True)
    assert half["carry_reason"].item() is None


def test_a_store_of_ones_own_names_no_load_of_a_service_also_as_of_a_time_before_its_history(
    tmp_path: Path,
):
    store = empty_store(tmp_path / "own.duckdb", Source("own", "mine"))
    with StoreWriter(store).writing() as connection:
        connection.execute("INSERT INTO meta VALUES ('history_from', '2000')")
    for as_of in (None, 1_000):
        (says,) = HeldPrices(store, as_of).over([PAIR.key], Interval(START, END)).loads.values()
        assert says == "it takes no service's data: `rail import` adds rows of your own"


def test_what_is_given_as_prices_takes_the_place_of_what_is_held(opened):
    with opened("prices") as rail:
        pair, rates = rail.pair(*LEGS), of_pair(rail)
        own = rates.holdings(horizons=["1d"], prices=pair)
        held = rates.holdings(horizons=["1d"])
        frame = pair.df.with_columns(trajectory=pl.lit(SPREAD.key), spread_log_bps=0.0)
        still = rates.holdings(horizons=["1d"], prices=frame)
    assert own.row(0) == held.row(0)
    assert still["basis_mean_bps"].item() == 0
    assert still["notional_basis"].item() == held["notional_basis"].item() == "constant"


def test_all_pairs_at_once_are_given_the_prices_that_are_held(opened):
    with opened("turned") as rail:
        asked = {"family": "funding", "horizons": ["1d"]}
        many = rail.measure(funding.holdings, START, END, **asked)
        pair = of_pair(rail)
        assert many.row(0) == pair.holdings(horizons=["1d"]).row(0)
        screened = rail.screen(START, END, family="funding")
        (summed,) = pair.summary().to_dicts()
        (row,) = screened.to_dicts()
        assert {name: row[name] for name in summed} == summed
        only = rail.screen(START, END, family="funding", funding_only=True)
    assert "carry_bps" not in only.columns
    assert only["funding_bps"].item() == summed["funding_bps"]
