"""`rail stats carry`: what funding positions kept."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from toolkit.statistics import funding
from toolkit.statistics.fees import FeeModel
from toolkit.store import Store

from .conftest import LOADED, SETTLED, refused

pytestmark = pytest.mark.slow

Rail = Callable[..., subprocess.CompletedProcess[str]]
FUNDING = LOADED[2]
ASKED = ("stats", "carry", "--start", str(SETTLED.start), "--end", str(SETTLED.end))


@pytest.mark.usefixtures("held")
def test_holdings_are_printed_and_name_the_prices_that_they_lack(rail: Rail) -> None:
    shown = rail(*ASKED, "--horizon", "8h")
    done = rail(*ASKED, "--horizon", "8h", "--format", "json")
    assert (shown.returncode, shown.stderr, done.returncode, done.stderr) == (0, "", 0, "")
    assert shown.stdout.startswith("Kept with prices by positions entered each 1h, over ")
    row = json.loads(done.stdout)
    assert row["gross_reason"] == "missing_price"
    assert row["prices_lack"].startswith(f'rail.sync(["{FUNDING.legs_key}"], ')
    assert f"rail sync {FUNDING.legs_key} --start" in " ".join(shown.stdout.split())
    assert row["n"] > 0
    done = rail(*ASKED, "--horizon", "8h", "--compound", "--format", "json")
    assert json.loads(done.stdout)["notional_basis"] == "compound"


def test_each_leg_of_the_pairs_is_held_alone_and_net_of_its_own_fees(
    rail: Rail, held: Store, workdir: Path
) -> None:
    (workdir / "fees.toml").write_text(rail("fees", "--example").stdout)
    done = rail(*ASKED, "--horizon", "8h", "--legs", "--fees", "fees.toml", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    alone = {row["trajectory"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert set(alone) == {f"funding/{FUNDING.symbol}:{leg}" for leg in FUNDING.legs}
    fees = FeeModel.read(workdir / "fees.toml")
    legs = funding.legs(held.series(FUNDING))
    gross = funding.holdings(legs, *SETTLED, horizons=["8h"], funding_only=True)
    for key, mean in gross.select("trajectory", "funding_mean_bps").iter_rows():
        cost = fees.round_trip_bps(key.removeprefix("funding/"), at=SETTLED.start)
        assert alone[key]["funding_only_net_mean_bps"] == pytest.approx(mean - cost)


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize(("option", "value"), [("--horizon", "1 month"), ("--every", "0h")])
def test_a_length_that_is_none_is_refused(rail: Rail, option: str, value: str) -> None:
    assert "a length such as" in refused(rail(*ASKED, option, value))


@pytest.mark.usefixtures("held")
def test_with_a_fee_table_net_figures_follow(rail: Rail, workdir: Path) -> None:
    (workdir / "fees.toml").write_text(rail("fees", "--example").stdout)
    asked = (*ASKED, "--horizon", "8h", "--fees", "fees.toml", "--funding-only")
    done = rail(*asked, "--format", "json")
    row = json.loads(done.stdout)
    fees = FeeModel.read(workdir / "fees.toml")
    cost = fees.round_trip_bps(FUNDING, at=SETTLED.start)
    assert row["cost_mean_bps"] == cost
    assert row["funding_only_net_mean_bps"] == pytest.approx(row["funding_mean_bps"] - cost)
    assert rail(*asked).stdout.startswith("Funding only, kept by positions entered each 1h, over ")
    assert row["fee_model_hash"] == fees.hash
