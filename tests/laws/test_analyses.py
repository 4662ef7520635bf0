"""Each analysis is declared once, and what is declared is so."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tests.docs.series_stub import STUB, stub
from toolkit.analyses import Analysis, Parameter, analyses, find
from toolkit.columns import columns_of
from toolkit.errors import InputError

EVERY = analyses()
COMMANDS = [each for each in EVERY if each.command]
ASKED = [(each, parameter) for each in EVERY for parameter in each.parameters]

of_each = pytest.mark.parametrize("analysis", EVERY, ids=lambda each: each.result)


@of_each
def test_what_is_shown_first_is_a_column_of_the_result(analysis: Analysis) -> None:
    known = {*analysis.schema(), *analysis.key}
    assert {*analysis.shown, *analysis.figures} - known == set()
    assert analysis.order.removeprefix("-") in {*known, ""}


@of_each
def test_its_sentence_is_one_that_begins_with_a_verb_and_ends_with_a_full_stop(
    analysis: Analysis,
) -> None:
    assert analysis.sentence.endswith(".")
    assert analysis.sentence.count(". ") == 0
    assert analysis.sentence.split()[0] not in {"The", "A", "An", "How", "What", "Which"}


@pytest.mark.parametrize(
    ("analysis", "parameter"), ASKED, ids=[f"{each.result} {of.name}" for each, of in ASKED]
)
def test_each_parameter_says_what_it_is_and_has_a_value_for_examples(
    analysis: Analysis, parameter: Parameter
) -> None:
    assert parameter.help.endswith(".")
    assert parameter.example is not None or not parameter.required
    assert analysis.parameter(parameter.name) == parameter


def test_each_analysis_has_a_name_and_a_command_of_its_own() -> None:
    named = [(each.family, each.name) for each in EVERY if each.across is None]
    typed = [(each.family == "events", each.command) for each in COMMANDS]
    assert (len(set(named)), len(set(typed))) == (len(named), len(typed))


def test_a_result_is_found_by_its_method_and_a_wrong_one_is_refused() -> None:
    assert find("spread.summary/5") is find("spread.summary")
    assert columns_of("spread.summary/5")[0].name == "trajectory"
    with pytest.raises(InputError, match=r"analysis: 'spread\.sumary'"):
        find("spread.sumary")


def test_the_stub_of_the_series_is_what_make_docs_writes() -> None:
    assert STUB.read_text() == stub()


@pytest.mark.slow
def test_the_help_of_each_command_has_its_sentence_and_every_option(
    rail: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    for analysis in COMMANDS:
        group = "events" if analysis.family == "events" else "stats"
        words = " ".join(rail(group, analysis.command, "--help").stdout.split())
        assert analysis.sentence in words
        for each in filter(lambda of: of.is_asked, analysis.parameters):
            assert (each.option or f"--{each.name.replace('_', '-')}") in words
            assert each.help.rstrip(".") in words
