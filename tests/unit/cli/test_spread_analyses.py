"""The analyses of spreads as commands: pairs of prices, and the options of the statistic."""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from toolkit.analyses import Analysis, find
from toolkit.client import Client
from toolkit.series import own_series
from toolkit.statistics import spread
from toolkit.statistics.fees import FeeModel
from toolkit.store import Store
from toolkit.workspace import Workspace
from toolkit.workspace.own_store import keep_own

from .conftest import LOADED, WINDOW, refused

TABLE = """
name = "mine"
[[fee]]
exchange = "AURORA"
valid_from = 2017-01-01
taker_bps = 0.25
slippage_bps = 0
[[fee]]
exchange = "CORONA"
valid_from = 2017-01-01
taker_bps = 0.5
slippage_bps = 0
"""

Rail = Callable[..., subprocess.CompletedProcess[str]]
PAIR = LOADED[1]


@pytest.fixture
def fee_table(workdir: Path) -> FeeModel:
    """A fee table beside the working directory, which the options of `given` name."""
    (workdir / "fees.toml").write_text(TABLE)
    return FeeModel.read(workdir / "fees.toml")


def examples(analysis: Analysis) -> dict[str, float]:
    """The options that an analysis cannot do without, each with a value."""
    return {each.name: each.example for each in analysis.parameters if each.required}


def given(analysis: Analysis) -> list[str]:
    """The same as they are typed, with a fee table where it is net of one."""
    options = [(f"--{name.replace('_', '-')}", str(of)) for name, of in examples(analysis).items()]
    fees = ["--fees", "fees.toml"] if analysis.needs_fees else []
    return [*fees, *(part for option in options for part in option)]


def measured_by(analysis: Analysis, rows: pl.DataFrame, fees: FeeModel) -> pl.DataFrame:
    """What the statistic itself says of rows, by the same options."""
    net = {"fees": fees} if analysis.needs_fees else {}
    return analysis.function(rows, *WINDOW, **net, **examples(analysis))


def as_json(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


BUY, SELL = "BTC_USDT:AURORA.spot", "BTC_USDT:CORONA.spot"
JOINED = f"pair/{BUY}/{SELL}"
FX = "pair/BTC_USD:BOREAS.spot/BTC_USDT:AURORA.spot"


@pytest.fixture(scope="module")
def priced(service: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that `rail sync` loaded with the legs of pairs, by the keys of these alone."""
    path = tmp_path_factory.mktemp("priced") / "rail.duckdb"
    with Workspace(Client(service, "demo-pro"), Store(path)) as workspace:
        workspace.sync([JOINED, f"pair/{SELL}/{BUY}", "ETH_USDT:AURORA.spot"], *WINDOW)
    return path


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


@pytest.mark.parametrize("name", ["time-to-close", "net-episodes"])
def test_an_analysis_takes_several_pairs_at_once(
    rail: Rail, priced: Path, fee_table: FeeModel, name: str
) -> None:
    analysis = find(f"spread.{name.replace('-', '_')}")
    two = (JOINED, f"pair/{SELL}/{BUY}", *given(analysis))
    found = as_json(rail("stats", name, *two, "--store", str(priced), "--format", "json"))
    with Workspace(Client("http://127.0.0.1:1", "key"), Store(priced)) as workspace:
        rows = workspace.pairs(two[:2])
    measured = measured_by(analysis, rows, fee_table)
    for row in found:
        assert row.pop("source")
    assert sorted(map(str, found)) == sorted(map(str, measured.to_dicts()))


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


@pytest.mark.usefixtures("held")
def test_one_trajectory_is_a_list_and_a_condition_chooses_rows(rail: Rail) -> None:
    listed = rail("stats", "time-to-close", PAIR.key, "--enter-bps", "2", "--exit-bps", "1").stdout
    assert "median time to close" in listed
    chosen = rail("stats", "hour-of-week", "--where", "weeks >= 1")
    assert "156 of 168 rows" not in chosen.stdout
    assert "12 of 168 rows shown" in chosen.stdout


@pytest.mark.usefixtures("held")
def test_net_figures_without_a_fee_table_are_refused_with_how_to_have_one(rail: Rail) -> None:
    line = refused(rail("stats", "net-episodes", PAIR.key))
    assert "--fees: nothing is given" in line
    assert "`rail fees --example > fees.toml` writes one" in line


def test_an_option_that_the_statistic_refuses_is_refused_before_the_store_is_read(
    rail: Rail,
) -> None:
    line = refused(rail("stats", "time-to-close", "--enter-bps", "1", "--exit-bps", "2"))
    assert "exit_bps: 2.0 is not allowed" in line
