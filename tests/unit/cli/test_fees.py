"""`rail fees`: the table in force, what it lacks for the streams of the store, an example."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolkit.statistics.fees import FeeModel
from toolkit.store import Store
from toolkit.workspace import Workspace

from .conftest import Rail, as_json

TABLE = """
name = "mine"
[[fee]]
exchange = "AURORA"
valid_from = 2017-01-01
tier = "VIP 1"
maker_bps = 1.0
taker_bps = 4.0
slippage_bps = 0.5
withdraw_quote = {BTC = 12.0}
"""


def test_the_example_has_the_exchanges_of_the_store_and_can_be_read(
    rail: Rail, held: Store, workdir: Path
) -> None:
    done = rail("fees", "--example")
    assert done.returncode == 0
    (workdir / "fees.toml").write_text(done.stdout)
    table = FeeModel.read(workdir / "fees.toml")
    exchanges = {
        leg.rpartition(".")[0]
        for key in held.catalogue()["stream"]
        if ":" in key
        for leg in key.split(":")[1:]
    }
    assert {fee.exchange for fee in table.fees} == exchanges >= {"AURORA", "CORONA"}
    assert "EXAMPLE" in table.name
    shown = rail("fees", "--fees", "fees.toml")
    assert f"EXAMPLE VALUES, no exchange's own: edit ({table.hash})" in shown.stdout
    assert "0 of" in shown.stdout


def test_without_a_store_the_example_is_the_usual_one(rail: Rail) -> None:
    assert FeeModel.parse(rail("fees", "--example").stdout) == FeeModel.example()


@pytest.mark.usefixtures("held")
def test_what_the_table_lacks_is_named_by_leg(rail: Rail, workdir: Path) -> None:
    (workdir / "mine.toml").write_text(TABLE)
    (workdir / "rail.toml").write_text('fees = "mine.toml"')
    done = rail("fees", "--format", "json")
    rows = {row["leg"]: row for row in map(json.loads, done.stdout.splitlines())}
    aurora, corona = rows["AURORA.spot"], rows["CORONA.futures"]
    assert (aurora["taker_bps"], aurora["tier"], aurora["lacks"]) == (4.0, "VIP 1", "")
    assert (aurora["streams"] > 1, aurora["withdraw_quote"]) == (True, "BTC 12")
    assert (corona["taker_bps"], corona["lacks"]) == (None, "an entry for CORONA.futures")
    assert {row["fee_model"] for row in rows.values()} == {"mine"}
    shown = rail("fees", "--style", "transfer").stdout
    assert "a withdrawal: what trades on futures is not withdrawn" in shown
    assert "legs lack what style transfer needs" in shown


@pytest.fixture
def table(held: Store, rail: Rail, workdir: Path) -> FeeModel:
    """The example for the store's exchanges, as fees.toml in the working directory."""
    assert held.path.exists()
    (workdir / "fees.toml").write_text(rail("fees", "--example").stdout)
    return FeeModel.read(workdir / "fees.toml")


def test_spreads_have_net_figures_beside_the_gross_ones(
    rail: Rail, held: Store, table: FeeModel
) -> None:
    asked = ("stats", "spread", "--format", "json", "--notional", "5000", "--style", "maker")
    asked += ("--where", "net_share >= 0", "--sort", "-net_share")
    (gross,) = as_json(rail("stats", "spread", "--format", "json"))
    (net,) = as_json(rail(*asked, "--fees", "fees.toml"))
    assert {name: net[name] for name in gross} == gross
    assert (net["fee_model_hash"], net["style"], net["notional"]) == (table.hash, "maker", 5000.0)
    (stream,) = held.catalogue().filter(kind="spread")["stream"]
    assert net["cost_bps"] == table.round_trip_bps(stream, 5e3, "maker", at=net["t_last"])
    with Workspace(lambda _: None, held, fees=table) as workspace:
        own = workspace.spread(stream, net["window_start"], net["window_end"])
        figures = own.summary(notional=5e3, style="maker").row(0, named=True)
    assert {name: net[name] for name in figures} == figures
    sheet = rail("stats", "spread", "--fees", "fees.toml").stdout
    assert "break-even fee per fill" in sheet
    assert f"net of {table.label}, style taker, notional 10,000" in sheet


@pytest.mark.usefixtures("held")
def test_funding_has_the_carry_net_of_a_round_trip(
    rail: Rail, table: FeeModel, workdir: Path
) -> None:
    (workdir / "rail.toml").write_text('fees = "fees.toml"')
    (net,) = as_json(rail("stats", "funding", "--format", "json"))
    assert (net["net_carry_bps"], net["net_carry_reason"]) == (None, "missing_price")
    (net,) = as_json(rail("stats", "funding", "--funding-only", "--format", "json"))
    assert net["funding_only_net_carry_bps"] == net["funding_bps"] - net["cost_bps"]
    assert net["fee_model"] == table.name
    assert "funding only" in rail("stats", "funding").stdout


@pytest.mark.usefixtures("held")
def test_what_the_table_lacks_is_below_the_figures_and_in_the_rows(
    rail: Rail, workdir: Path
) -> None:
    (workdir / "mine.toml").write_text(TABLE)
    (row,) = as_json(rail("stats", "spread", "--fees", "mine.toml", "--format", "json"))
    assert (row["net_share"], row["net_share_reason"]) == (None, "unknown_fee")
    assert row["cost_lacks"] == "an entry for CORONA.futures"
    shown = rail("stats", "spread", "--fees", "mine.toml").stdout
    assert "the fee table lacks an entry for CORONA.futures (1 row)" in shown
