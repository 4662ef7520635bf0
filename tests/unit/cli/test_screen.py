"""`rail screen`: the two questions of the README, in Python and on the command line."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import toolkit as tk
from toolkit.series import RateSeries, SpreadSeries
from toolkit.store import Store
from toolkit.workspace import Workspace

from .conftest import BRIEF, LOADED, POLLED, RATE, STEADY, Rail, as_json, refused

_, PAIR, FUNDING = LOADED
README = Path(__file__).parents[3] / "README.md"
LINES = re.findall(r"`(rail ?\.?screen[^`]* .*?|rail\.screen\([^`]*\))`", README.read_text("utf-8"))


@pytest.fixture
def fees(rail: Rail, held: Store) -> Path:
    """An example of a fee table, in force by the settings beside the store."""
    folder = held.path.parent.resolve()
    (folder / "fees.toml").write_text(rail("fees", "--example").stdout)
    (folder / "rail.toml").write_text('fees = "fees.toml"\n')
    return folder / "fees.toml"


@pytest.mark.usefixtures("fees")
def test_the_questions_of_the_readme_are_one_line_each_in_both_languages(
    rail: Rail, held: Store
) -> None:
    typed = [line for line in LINES if line.startswith("rail screen --")]
    written = [line for line in LINES if line.startswith("rail.screen(")]
    assert len(typed) == len(written) == 2
    with tk.open(held.path) as workspace:
        for command, call in zip(typed, written, strict=True):
            printed = as_json(rail(*shlex.split(command)[1:], "--format", "json"))
            names = {"rail": workspace}
            rows = eval(call, names)
            assert [row.pop("source") for row in printed] == [held.source.label] * rows.height
            assert printed == rows.to_dicts()


@pytest.mark.usefixtures("held")
def test_a_screen_is_a_table_with_the_newest_level_and_flags(rail: Rail) -> None:
    done = rail("screen")
    assert done.stdout.splitlines()[0].startswith("Spreads 1e4 ln(sell / buy) over [2026-11-03")
    assert re.search(
        r"trajectory +last spread \(bps\) +z-score +std dev \(bps\) +half-life", done.stdout
    )
    assert PAIR.key in done.stdout
    shown = rail("screen", "--exclude-flag", "any", "--symbol", "BTC_USDT", "--exchange", "AURORA")
    assert "exchanges" in refused(shown)


def test_flags_leave_rows_out_and_the_table_counts_them(rail: Rail, held: Store) -> None:
    with Workspace(lambda _closing: pytest.fail("asked"), held) as workspace:
        expected = workspace.screen(exclude_flags=True)
    kept = as_json(rail("screen", "--exclude-flag", "any", "--format", "json"))
    assert [row["trajectory"] for row in kept] == expected["trajectory"].to_list()


@pytest.mark.usefixtures("fees")
def test_funding_is_screened_by_its_carry_net_and_its_persistence(rail: Rail) -> None:
    done = rail("screen", "funding")
    assert done.stdout.startswith("Funding received, and carry with prices, over (2026-")
    only = rail("screen", "funding", "--funding-only").stdout
    assert only.startswith("Funding only over (2026-")
    assert "carry bps" not in only
    assert "EXAMPLE" in done.stdout
    (row,) = as_json(rail("screen", "funding", "--format", "json"))
    assert row["trajectory"] == FUNDING.key
    assert {"funding_apr_pct", "net_apr_pct", "flips_per_day", "fee_model_hash"} <= set(row)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "keys"), [("snapshot-spread", [STEADY, BRIEF]), ("snapshot-funding", [RATE])]
)
def test_what_snapshots_kept_is_screened_with_the_figures_of_each_series_by_polls(
    rail: Rail, kept: Store, family: str, keys: list[str]
) -> None:
    rows = as_json(rail("screen", family, "--format", "json", "--sort", "trajectory"))
    assert [row["trajectory"] for row in rows] == keys
    with Workspace(lambda _closing: pytest.fail("asked"), kept) as workspace:
        expected = workspace.screen(family=family, sort="trajectory").to_dicts()
        for row, key in zip(rows, keys, strict=True):
            series = workspace.series(key)
            assert isinstance(series, SpreadSeries | RateSeries)
            own = series.summary().row(0, named=True)
            alike = set(own) & set(row) - {"method", "params_hash"}
            assert len(alike) > 30
            assert {name: row[name] for name in alike} == {name: own[name] for name in alike}
            assert str(row["method"]).endswith(", polls/2")
    assert [row.pop("source") for row in rows] == [kept.source.label] * len(keys)
    assert rows == expected


def test_the_newest_level_of_a_rate_is_that_of_its_last_answer(rail: Rail, kept: Store) -> None:
    (row,) = as_json(rail("screen", "snapshot-funding", "--format", "json"))
    level = POLLED[-1] % 7 / 1e4 / 8 * 8_760 * 100
    assert row["funding_apr_last_pct"] == pytest.approx(level)
    assert (row["coverage"], row["not_tracked"]) == (6 / 7, 0)
    shown = rail("screen", "snapshot-funding").stdout
    assert "kept from snapshots: 6 polls answered, 1 missed" in shown.splitlines()[0]
    assert re.search(r"trajectory +last APR \(%\) +z-score", shown)
    assert kept.source.kind == "simulated"
    assert "SIMULATED" in shown


def test_a_screen_of_snapshots_has_net_figures_and_a_window(rail: Rail, kept: Store) -> None:
    fees = kept.path.parent / "fees.toml"
    fees.write_text(rail("fees", "--example").stdout)
    asked = ("screen", "snapshot-spread", "--fees", str(fees), "--format", "json")
    steady, brief = as_json(rail(*asked, "--sort", "-n"))
    assert {"net_share", "net_edge_bps", "cost_lacks", "flags"} <= set(steady)
    assert (steady["not_tracked"], brief["not_tracked"]) == (0, 3)
    window = ("--start", str(POLLED[0]), "--end", str(POLLED[3]))
    (early, late) = as_json(rail(*asked, *window))
    assert (early["n"], late["n"], early["coverage"]) == (3, 3, 1.0)
