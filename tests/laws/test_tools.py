"""Each analysis is a tool of an assistant, which asks what is declared and answers as Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.docs.assistant_page import PAGE, tools_table
from toolkit.analyses import Analysis, analyses
from toolkit.assistant import TOOLS
from toolkit.client import Client
from toolkit.errors import RailError
from toolkit.market import Family
from toolkit.series.base import bound_to
from toolkit.service import Clock, Config, Simulated, running
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.fees.fee_table import example_text
from toolkit.store import Store
from toolkit.workspace import Workspace
from toolkit.workspace.answers import Costs, SeriesAnswer
from toolkit.workspace.selection import Passes, Selection

NOW = 1_793_750_400  # 2026-11-04 00:00 UTC
KEYS = {
    "price": "BTC_USDT:AURORA.spot",
    "spread": "BTC_USDT:AURORA.spot:CORONA.futures",
    "funding": "funding/BTC_USDT:AURORA.futures:CORONA.futures",
    "events": "events/spread",
}
BY_NAME = {tool.name: tool for tool in TOOLS}
OF_ONE = [each for each in analyses() if each in bound_to(each.family)]
ACROSS = [each for each in analyses() if each.across is not None]

of_each_held = pytest.mark.parametrize(
    "analysis", [each for each in OF_ONE if each.family in KEYS], ids=lambda each: each.result
)


@pytest.fixture(scope="module")
def rail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A workspace over two hours of a SIMULATED market, and two days of funding."""
    config = Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=10**6)
    store = Store(tmp_path_factory.mktemp("tools") / "rail.duckdb")
    fees = FeeModel.parse(example_text(("AURORA", "CORONA")))
    with (
        running(config) as service,
        Workspace(Client(service.base_url, "demo-pro"), store, fees=fees) as rail,
    ):
        keys = [KEYS[each] for each in ("price", "spread", "events")]
        rail.sync(keys, NOW - 7_200, NOW, progress=False)
        rail.sync(KEYS["funding"], NOW - 2 * 86_400, NOW, progress=False)
        yield rail


@pytest.mark.parametrize("analysis", [*OF_ONE, *ACROSS], ids=lambda each: each.result)
def test_each_analysis_is_a_tool_that_asks_each_parameter_with_its_help(analysis: Analysis) -> None:
    tool = BY_NAME[analysis.name]
    assert analysis.sentence.replace("`", "") in tool.about
    assert ("streams" if analysis.across else "stream") in tool.arguments
    for each in analysis.parameters:
        assert (each.name in tool.arguments) == each.is_asked
        if each.is_asked:
            schema = tool.arguments[each.name]
            assert each.help.replace("`", "") in schema["description"]
            assert each.many or schema.get("default") in (each.default, f"{each.default}s")
            assert set(schema.get("enum", ())) == set(() if each.many else each.choices)


def test_a_tool_has_one_name_and_every_argument_says_what_it_is() -> None:
    assert len(BY_NAME) == len(TOOLS)
    for tool in TOOLS:
        assert {"type", "description"} <= {of for each in tool.known.values() for of in each}
        assert set(tool.required) <= tool.known.keys()
        assert "`" not in tool.about


def test_the_page_of_the_assistant_lists_every_tool() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == tools_table(page), "run `make docs`"


@pytest.mark.slow
@of_each_held
def test_a_tool_has_the_rows_of_the_method_and_shows_the_main_columns(
    analysis: Analysis, rail: Workspace
) -> None:
    series: Any = rail.series(KEYS[analysis.family])
    method = getattr(series, analysis.name)
    given = {each.name: each.example for each in analysis.parameters if each.required}
    frames = [name for name in ("values", "rows", "spreads") if name in method.options]
    if "other" in method.options:
        pytest.skip("of two series")
    asked = {"stream": KEYS[analysis.family], **given}
    try:
        rows = {name: rail.around(series) for name in frames}
        expected = method(**rows, **given)
    except RailError:
        with pytest.raises(RailError):
            BY_NAME[analysis.name].answer(rail, asked)
        return
    found = BY_NAME[analysis.name].answer(rail, {**asked, "columns": "all"}).rows
    assert found.equals(expected)
    assert found.columns == expected.columns
    shown = BY_NAME[analysis.name].answer(rail, asked).rows
    assert shown.equals(found.select(shown.columns))
    assert {*analysis.answer_in(found.columns), *analysis.key} & {*found.columns} <= {
        *shown.columns
    }


@pytest.mark.slow
@pytest.mark.parametrize("analysis", ACROSS, ids=lambda each: each.result)
def test_a_tool_that_compares_series_has_the_rows_of_the_table_in_its_order(
    analysis: Analysis, rail: Workspace
) -> None:
    given = {each.name: each.example for each in analysis.parameters if each.required}
    try:
        asked = Selection.of(Passes.of(rail.store), Family(analysis.family), None)
        table = SeriesAnswer.of(
            analysis, asked, Costs(rail.fees) if rail.fees else None, **given
        ).sheet
    except RailError:
        with pytest.raises(RailError):
            BY_NAME[analysis.name].answer(rail, given)
        return
    found = BY_NAME[analysis.name].answer(rail, given | {"columns": "all"})
    assert found.rows.equals(table.ordered())
    assert set(table.notes) <= set(found.notes)
