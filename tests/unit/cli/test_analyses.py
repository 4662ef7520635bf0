"""`rail stats`: pairs of prices, episodes, venues, predictions, and what positions kept."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import polars as pl
import pytest

import toolkit as tk
from tests.once import store_once
from toolkit.client import Client
from toolkit.market import SnapshotLog
from toolkit.series import own_series
from toolkit.statistics import funding, spread
from toolkit.statistics.fees import FeeModel
from toolkit.store import Batch, Edge, LoadOrigin, Snapshot, Store, StoreWriter
from toolkit.workspace import Workspace
from toolkit.workspace.loading import keep_own

from .conftest import LOADED, SETTLED, WINDOW, Rail, as_json, printed, refused

PAIR = LOADED[1]


BUY, SELL = "BTC_USDT:AURORA.spot", "BTC_USDT:CORONA.spot"
JOINED = f"pair/{BUY}/{SELL}"
FX = "pair/BTC_USD:BOREAS.spot/BTC_USDT:AURORA.spot"


@pytest.fixture(scope="module")
def priced(service: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that `rail sync` loaded with the legs of pairs, by the keys of these alone."""

    def load(path: Path) -> None:
        with Workspace(Client(service, "demo-pro"), Store(path)) as workspace:
            workspace.sync([JOINED, f"pair/{SELL}/{BUY}", "ETH_USDT:AURORA.spot"], *WINDOW)

    return store_once(tmp_path_factory, "priced", load)


def test_syncing_the_key_of_a_pair_loads_its_prices_and_nothing_else(
    rail: Rail, service: str
) -> None:
    times = ("--start", str(WINDOW.end - 3_600), "--end", str(WINDOW.end))
    access = {"base_url": service, "api_key": "demo-pro"}
    assert rail("sync", JOINED, *times, "--plan", "--format", "json", **access).returncode == 0
    done = rail("sync", JOINED, *times, **access)
    assert (done.returncode, done.stderr) == (0, "")
    assert Store(Path("rail.duckdb")).catalogue()["stream"].to_list() == [BUY, SELL]


@pytest.mark.parametrize("options", [("--max-stale", "5m"), ("--multiplier", "2")])
def test_figures_of_a_pair_are_those_that_python_gives(
    rail: Rail, priced: Path, options: tuple[str, ...]
) -> None:
    given = {"--max-stale": {"max_stale_s": 300}, "--multiplier": {"multiplier": 2.0}}
    (row,) = as_json(
        rail("stats", "spread", JOINED, *options, "--store", str(priced), "--format", "json")
    )
    with Workspace(Client("http://127.0.0.1:1", "key"), Store(priced)) as workspace:
        pair = workspace.pair(BUY, SELL, **given[options[0]])
    expected = spread.summary(pair.df, *pair.window).to_dicts()[0]
    assert row.pop("source") == pair.source.label
    assert row == expected


def test_a_screen_takes_pairs_of_prices(rail: Rail, priced: Path) -> None:
    two, stored = [JOINED, f"pair/{SELL}/{BUY}"], ("--store", str(priced))
    asked = ("screen", "--pair", two[0], "--pair", two[1], *stored)
    with Workspace(Client("http://127.0.0.1:1", "key"), Store(priced)) as workspace:
        expected = workspace.screen(pairs=two)
    rows = as_json(rail(*asked, "--format", "json"))
    assert {row.pop("source") for row in rows} == {Store(priced).source.label}
    assert rows == expected.to_dicts()
    assert "joined from two prices" in rail(*asked).stdout


def test_a_pair_is_shown_with_its_legs_and_how_they_were_joined(rail: Rail, priced: Path) -> None:
    shown = rail("stats", "spread", JOINED, "--multiplier", "2", "--store", str(priced)).stdout
    assert re.search(rf"buy {BUY}\s+sell {SELL}", shown)
    assert "joined from two prices, each used from its bar's end until its next bar" in shown
    assert "the sell price is divided by 2, the coins in one contract" in shown


def test_an_fx_leg_is_an_option_or_a_part_of_the_key(rail: Rail, workdir: Path) -> None:
    """A coin of 100 USD is sold for 127 USDT of 0.8 USD: 1e4 ln(127 / 125) bps."""
    path, prices = workdir / "own.duckdb", {"BTC_USD": 100.0, "BTC_USDT": 127.0, "USDT_USD": 0.8}
    for symbol, price in prices.items():
        rows = pl.DataFrame({"ts": [WINDOW.start, WINDOW.start + 60], "price": [price, price]})
        keep_own(own_series(rows, f"{symbol}:OWN.spot"), path, "own")
    key, fx = "pair/BTC_USD:OWN.spot/BTC_USDT:OWN.spot", "USDT_USD:OWN.spot"
    asked = ("--store", str(path), "--format", "json")
    (by_option,) = as_json(rail("stats", "spread", key, "--fx", fx, *asked))
    (by_key,) = as_json(rail("stats", "spread", f"{key}/{fx}", *asked))
    assert by_option == by_key
    assert by_key["trajectory"] == f"{key}/{fx}"
    assert by_key["spread_mean_log_bps"] == pytest.approx(1e4 * math.log(127 / 125))


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ((FX,), "fx: nothing is given.*in a key after a third /"),
        ((FX, "--fx", "ETH_USD:AURORA.spot"), "fx: 'ETH_USD:AURORA.spot'"),
        ((FX, "--fx", "USDT_USD:AURORA.spot"), "BTC_USD:BOREAS.spot is not held by .* loads it"),
        ((JOINED, "--fx", "USDT_USD:AURORA.spot"), "fx: .* legs of one quote"),
        ((JOINED, "--multiplier", "0"), "multiplier: 0.0"),
        ((JOINED, "--max-stale", "5"), "--max-stale: '5' .* such as 90s"),
        ((f"pair/{BUY}/ETH_USDT:AURORA.spot",), "multiplier: nothing is given.*how many BTC"),
        ((PAIR.key, "--max-stale", "5m"), "--max-stale: 300 .*with keys of pairs"),
        ((PAIR.key, JOINED), "keys of one kind: .*or all of pair/"),
        (("pair/*",), "by their keys, without a "),
        (("pair/BTC_USDT",), "pair: 'pair/BTC_USDT' .*SYMBOL:EXCHANGE.market"),
        ((JOINED, "--start", "2020-01-01", "--end", "2020-01-02"), "holds nothing in .2020-01-01"),
    ],
)
def test_what_makes_no_pair_is_one_line(
    rail: Rail, priced: Path, asked: tuple[str, ...], line: str
) -> None:
    assert re.search(line, refused(rail("stats", "spread", *asked, "--store", str(priced))))


EPISODES = ("stats", "episodes", PAIR.key, "--enter-bps")


@pytest.mark.usefixtures("held")
def test_a_spread_that_is_never_so_far_from_zero_is_counted_and_no_error(rail: Rail) -> None:
    done = rail(*EPISODES, "5000")
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing is found in 1 of 1 series" in done.stdout
    assert rail(*EPISODES, "5000", "--format", "json").stdout == ""


FUNDING = LOADED[2]
TIMES = ("--start", str(SETTLED.start), "--end", str(SETTLED.end))


@pytest.mark.parametrize("kept", [True, False])
def test_predictions_are_the_rates_that_snapshots_kept_or_else_rows_that_settle_nothing(
    rail: Rail, held_copy: Store, kept: bool
) -> None:
    rows = held_copy.series(FUNDING)
    settled = rows.filter(pl.col("sell_rate").is_not_null(), pl.col("ts") > SETTLED.start)
    times = settled["ts"].to_list() if kept else []
    leg = FUNDING.legs[1]
    batch, edge = Batch(), Edge(SETTLED.end, step_s=60)
    for at in times:
        item = {"symbol": str(FUNDING.symbol), "exchange": leg.exchange, "market": str(leg.market)}
        item |= {"rate": 3e-4, "interval_hours": 8, "next_funding_time": None}
        document = json.dumps({"items": [item]}).encode()
        batch.add_snapshot(Snapshot(SnapshotLog.named("funding"), at - 60, document, 60), edge)
    if times:
        writer = StoreWriter(held_copy)
        writer.commit(writer.start_load(LoadOrigin("http://x", SETTLED.end, None, "0")), batch)
    done = printed(rail("stats", "prediction-errors", *TIMES, "--format", "json"))
    found = {row["trajectory"]: row for row in map(json.loads, done.splitlines())}
    row = found[f"funding/{FUNDING.symbol}:{leg}"]
    assert (row["n"], row["prediction_reason"]) == (len(times), None if kept else "empty")
    if kept:
        mean = 1e4 * (settled["sell_rate"].mean() - 3e-4)
        assert (row["age_mean_s"], row["error_mean_bps"]) == (60, pytest.approx(mean))


def test_what_has_nothing_to_compare_says_so(rail: Rail, held: Store) -> None:
    shown = rail("stats", "rank-persistence", "--store", str(held.path)).stdout
    assert "nothing to compare in this window, a longer one" in " ".join(shown.split())


def test_what_compares_series_is_measured_of_all_of_them(held: Store) -> None:
    rows = held.series(FUNDING)
    with tk.open(held.path) as rail:
        found = rail.measure(funding.dispersion_summary, *SETTLED, family="funding", bucket="1d")
        legs = rail.funding(FUNDING.legs_key, *SETTLED).holdings(horizons="8h", legs=True)
    assert found.equals(funding.dispersion_summary(rows, *SETTLED, bucket="1d"))
    alone = funding.holdings(funding.legs(rows), *SETTLED, horizons="8h", funding_only=True)
    assert legs.equals(alone)


CARRY = ("stats", "carry", "--start", str(SETTLED.start), "--end", str(SETTLED.end))


@pytest.mark.slow
@pytest.mark.usefixtures("held")
def test_holdings_are_printed_and_name_the_prices_that_they_lack(rail: Rail) -> None:
    shown = rail(*CARRY, "--horizon", "8h")
    done = rail(*CARRY, "--horizon", "8h", "--format", "json")
    assert (shown.returncode, shown.stderr, done.returncode, done.stderr) == (0, "", 0, "")
    assert shown.stdout.startswith("Kept with prices by positions entered each 1h, over ")
    row = json.loads(done.stdout)
    assert row["gross_reason"] == "missing_price"
    assert row["prices_lack"].startswith(f'rail.sync(["{FUNDING.legs_key}"], ')
    assert f"rail sync {FUNDING.legs_key} --start" in " ".join(shown.stdout.split())
    assert row["n"] > 0
    done = rail(*CARRY, "--horizon", "8h", "--compound", "--format", "json")
    assert json.loads(done.stdout)["notional_basis"] == "compound"


@pytest.mark.slow
def test_each_leg_of_the_pairs_is_held_alone_and_net_of_its_own_fees(
    rail: Rail, held: Store, workdir: Path
) -> None:
    (workdir / "fees.toml").write_text(rail("fees", "--example").stdout)
    done = rail(*CARRY, "--horizon", "8h", "--legs", "--fees", "fees.toml", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    alone = {row["trajectory"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert set(alone) == {f"funding/{FUNDING.symbol}:{leg}" for leg in FUNDING.legs}
    fees = FeeModel.read(workdir / "fees.toml")
    legs = funding.legs(held.series(FUNDING))
    gross = funding.holdings(legs, *SETTLED, horizons=["8h"], funding_only=True)
    for key, mean in gross.select("trajectory", "funding_mean_bps").iter_rows():
        cost = fees.round_trip_bps(key.removeprefix("funding/"), at=SETTLED.start)
        assert alone[key]["funding_only_net_mean_bps"] == pytest.approx(mean - cost)
