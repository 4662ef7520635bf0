"""What a pair kept is one figure: Python, command line, screen, page, report, assistant."""

from __future__ import annotations

from functools import partial

import pytest

import toolkit as tk
from toolkit.analyses import find
from toolkit.assistant import TOOLS
from toolkit.columns import column
from toolkit.dashboard.fee_choice import Net
from toolkit.dashboard.pages.funding.league import league_rows
from toolkit.dashboard.pages.funding.measured import measure_carried
from toolkit.dashboard.reading import read_held
from toolkit.market import Family
from toolkit.reports.answering import answered
from toolkit.reports.recipe import Part
from toolkit.statistics.fees import FeeModel
from toolkit.store import Store
from toolkit.store.file.engine import version_of
from toolkit.workspace.answers import Costs, SeriesAnswer
from toolkit.workspace.selection import Passes, Selection

from .funded import EIGHT, PAIR, START, fill

END = START + 29 * EIGHT
WINDOW = (END - 7 * 86_400, END)
TOOL = {each.name: each for each in TOOLS}
FEES = FeeModel.example(["AURORA", "BOREAS", "CORONA"])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("carry") / "held.duckdb", widens_bps=50.0)


@pytest.fixture
def week(path):
    """The pair's row of net figures over a week, by its series."""
    with tk.open(path, fees=FEES) as rail:
        return rail.funding(PAIR, *WINDOW).summary().row(0, named=True)


@pytest.mark.slow
def test_a_weeks_carry_has_the_prices_in_it_and_is_the_same_on_every_face(week, path):
    assert week["funding_bps"] == pytest.approx(42)
    assert week["basis_bps"] == pytest.approx(-50 * 7 * 24 / 239)
    assert week["net_carry_bps"] == week["funding_bps"] + week["basis_bps"] - week["cost_bps"]
    store, costs = Store(path), Costs(FEES, 1e4, "taker")
    asked = Selection.of(Passes.of(store), Family.FUNDING, [PAIR.legs_key], *WINDOW)
    sheet = SeriesAnswer.of(find("funding.summary"), asked, costs).rows.row(0, named=True)
    with tk.open(path, fees=FEES) as rail:
        screened = rail.screen(*WINDOW, family="funding", symbols=["BTC_USDT"])
    shared = [name for name in week if not name.endswith("params_hash")]
    for found in (sheet, screened.row(0, named=True)):
        assert {name: found[name] for name in shared} == {name: week[name] for name in shared}
    held = read_held(path, version_of(path))
    rows = league_rows(measure_carried(held), Net(FEES, "taker"), 1e4)
    (row,) = rows.filter(trajectory=PAIR.key).to_dicts()
    assert row["kept_7d"] == pytest.approx(week["net_carry_bps"])
    with tk.open(path, fees=FEES) as rail:
        part = answered(rail, Part("summary", *WINDOW, stream=PAIR.key))
        window = {"start": str(WINDOW[0]), "end": str(WINDOW[1])}
        told = TOOL["summary"].answer(rail, {"stream": PAIR.key, **window})
    assert part.answer.shown[0]["net_carry_bps"] == week["net_carry_bps"]
    assert told.rows["net_carry_bps"].item() == week["net_carry_bps"]


@pytest.mark.parametrize("only", [False, True])
def test_what_holding_it_kept_is_the_same_by_command_report_and_assistant(path, only):
    store, costs = Store(path), Costs(FEES, 1e4, "taker")
    asked = Selection.of(Passes.of(store), Family.FUNDING, [PAIR.legs_key], *WINDOW)
    options = {"horizons": ["1d"], "funding_only": only}
    sheet = SeriesAnswer.of(find("funding.holdings"), asked, costs, **options).sheet
    with tk.open(path, fees=FEES) as rail:
        ask = partial(rail.funding(PAIR, *WINDOW).holdings, horizons=["1d"])
        found = ask(funding_only=only)
        part = answered(rail, Part("holdings", *WINDOW, stream=PAIR.key, options=options))
        window = {"start": str(WINDOW[0]), "end": str(WINDOW[1])}
        given = {"stream": PAIR.key, "horizons": "1d", "funding_only": only, **window}
        told = TOOL["holdings"].answer(rail, given)
    assert sheet.rows.row(0) == found.row(0)
    assert told.rows.row(0) == found.select(told.rows.columns).row(0)
    name = "funding_only_net_median_bps" if only else "net_median_bps"
    assert part.answer.shown[0][name] == found[name].item()
    words = sheet.heading + "".join(column(each).heading for each in sheet.columns)
    assert ("unding only" in words) is only
