"""`rail events payoff`: its JSON is the statistics', over the spreads held of the events' pairs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from toolkit.analyses import find
from toolkit.client import Client
from toolkit.market import swapped
from toolkit.statistics import events as event_statistics
from toolkit.statistics.fees import FeeModel
from toolkit.store import Store
from toolkit.workspace import Workspace

from .conftest import WINDOW, refused

Rail = Callable[..., subprocess.CompletedProcess[str]]
COLUMNS = find("events.payoff").schema("symbol", "legs")
ASKED = ("--start", str(WINDOW.start), "--end", str(WINDOW.end))


@pytest.fixture
def followed(held: Store, service: str) -> tuple[Workspace, list[str]]:
    """The loaded store with the spreads of the four pairs in which most events opened."""
    with Workspace(Client(service, "demo-pro"), held) as rail:
        keys = rail.events("spread", *WINDOW).detections()["trajectory"]
        most = keys.value_counts(sort=True).sort("count", "trajectory", descending=True)
        chosen = most["trajectory"].head(4).to_list()
        rail.sync(chosen, WINDOW.start - 3_600, WINDOW.end, progress=False)
        return rail, chosen


def rows_of(done: subprocess.CompletedProcess[str]) -> pl.DataFrame:
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    schema = {"source": pl.String} | dict(COLUMNS)
    return pl.DataFrame(rows, schema={name: schema[name] for name in rows[0]})


def fees_file(keys: list[str]) -> Path:
    """Write a fee table of the exchanges of some pairs."""
    exchanges = sorted({leg.split(".")[0] for key in keys for leg in key.split(":")[1:]})
    entries = "".join(
        f'[[fee]]\nexchange = "{exchange}"\nvalid_from = 2017-01-01\ntaker_bps = 3.0\n'
        "slippage_bps = 1.0\ngas_quote = 1.0\n"
        for exchange in exchanges
    )
    path = Path("fees.toml")
    path.write_text(f'name = "mine"\n{entries}', encoding="utf-8")
    return path


def test_payoffs_are_those_of_the_statistic_by_groups(
    rail: Rail, followed: tuple[Workspace, list[str]]
) -> None:
    (workspace, keys), by = followed, ["symbol", "legs"]
    fees = FeeModel.read(fees_file(keys))
    log = workspace.events("spread", *WINDOW)
    rows = log.positions(
        workspace.around(log), delays_s=[0, 120], limit_s=1_800, exit_bps=10.0, fees=fees
    )
    expected = event_statistics.payoff(rows, by=by)
    some = pl.col("n_no_rows") < pl.col("n_events")
    asked = ("--delay", "2m", "--delay", "0", "--limit", "30m", "--exit-bps", "10")
    groups = [part for name in by for part in ("--by", name)]
    done = rail(
        *("events", "payoff", *asked, *groups, *ASKED, "--fees", "fees.toml", "--format", "json")
    )
    found = rows_of(done)
    assert found["n"].sum() > 20
    assert found["net_n"].to_list() == found["n"].to_list()
    assert_frame_equal(found.drop("source"), expected.filter(some))
    assert set(found.columns) <= {"source", *COLUMNS}


def test_a_table_counts_events_whose_pairs_have_no_rows_and_names_what_loads_them(
    rail: Rail, followed: tuple[Workspace, list[str]]
) -> None:
    workspace, keys = followed
    done = rail("events", "payoff", "--by", "legs", columns=220)
    assert done.returncode == 0
    held = {*keys, "BTC_USDT:AURORA.spot:CORONA.futures"}

    missing = set(workspace.events("spread").detections()["trajectory"]) - held
    missing -= {swapped(key) for key in held}
    assert f"are of {len(missing):,} trajectories without rows" in done.stdout

    assert "loads the first" in done.stdout
    assert "before fees" in done.stdout
    assert "SIMULATED" in done.stdout
    shown = rail("events", "payoff", "--fees", fees_file(keys[:1]), columns=220).stdout
    assert "net of mine" in shown
    assert "the fee table lacks an entry for" in shown


def test_a_pair_that_is_held_the_other_way_round_is_turned(
    rail: Rail, held: Store, service: str
) -> None:
    with Workspace(Client(service, "demo-pro"), held) as workspace:
        keys = workspace.events("spread", *WINDOW).detections()["trajectory"]
        most = keys.value_counts().sort("count", "trajectory", descending=True)["trajectory"][0]
        workspace.sync([swapped(most)], WINDOW.start - 3_600, WINDOW.end, progress=False)
        there = rows_of(rail("events", "payoff", *ASKED, "--by", "legs", "--format", "json"))
    legs = " → ".join(most.split(":")[1:])
    found = there.filter(legs=legs)
    assert found["n"].max() > 3
    assert found["gross_median_bps"].max() > 0


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--delay", "soon"], "--delay: 'soon'"),
        (["--delay", "0", "--delay", "0s"], "each of them once"),
        (["--limit", "0"], "limit_s: 0"),
        (["--exit-bps", "inf"], "exit_bps: inf"),
        (["--exit-delay", "x"], "--exit-delay: 'x'"),
        (["--style", "taker"], "with a fee table"),
        (["--sort", "n_event"], "nearest: n_events"),
        (["--start", "noon"], "--start: 'noon'"),
    ],
)
def test_what_is_no_option_is_refused(rail: Rail, options: list[str], words: str) -> None:
    assert words in refused(rail("events", "payoff", *options))


def test_a_style_that_opens_no_position_is_refused(rail: Rail, held: Store) -> None:
    assert held.path.exists()
    fees_file(["A_B:X.spot:Y.spot"])
    done = rail("events", "payoff", "--fees", "fees.toml", "--style", "transfer")
    assert "opens and closes a position" in refused(done)


def test_without_a_pair_held_the_error_names_what_loads_one(rail: Rail, held: Store) -> None:
    assert held.path.exists()
    early = ("--start", str(WINDOW.start - 86_400), "--end", str(WINDOW.start - 80_000))
    assert "no spread event" in refused(rail("events", "payoff", *early))
    why = refused(rail("events", "payoff", *ASKED))
    assert "holds none of the" in why
    assert "loads the first" in why
    assert "makes one" in refused(rail("events", "payoff", store="no.duckdb"))


def test_the_positions_that_are_summed_up_can_be_listed(
    rail: Rail, followed: tuple[Workspace, list[str]]
) -> None:
    workspace, _ = followed
    done = rail("events", "payoff", "--list", "--delay", "1m", *ASKED, "--format", "json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    log = workspace.events("spread", *WINDOW)
    positions = log.positions(workspace.around(log), delays_s=[60])
    assert len(rows) == positions.height
    found = sum(row["gross_bps"] or 0 for row in rows)
    assert found == pytest.approx(positions["gross_bps"].sum())
