"""What `toolkit.columns` declares is what each statistic returns, whatever frames it is given."""

from __future__ import annotations

import doctest
import functools
import importlib
import inspect
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import toolkit.statistics
from toolkit import columns
from toolkit.columns import Column, column, columns_of, schema_of
from toolkit.errors import RailError

UNITS = frozenset(
    ("", "count", "fraction", "s", "UTC", "UTC ms", "h", "days", "bps", "%", "% per 8 h", "bps h")
) | {"per hour", "per day", "quote", "MB"}
UNTRIED = {"level.measure"}
"""Parts of results that no example asks for on their own."""

COPIES = 40
"""How many times the rows of an example make the large frames."""

FOLDER = Path(toolkit.statistics.__file__).parent
MODULES = [
    importlib.import_module(".".join(path.relative_to(FOLDER.parents[1]).with_suffix("").parts))
    for path in sorted(FOLDER.rglob("[!_]*.py"))
]
DESCRIBED = {
    function: result
    for function, result in columns._DESCRIBED.items()
    if function.__module__.startswith("toolkit.statistics.") and inspect.isfunction(function)
}
ADDED = {"spread.with_spread", "events.with_groups", "fees.net_edge", "spread.rolling_z"}
ADDED |= {"life_curve.life_curve", "survival.life_quantiles"}
"""Results that add their columns to those of the rows or groups given."""


Call = tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any], Any]


def calls() -> list[Call]:
    """Run the examples of the statistics, and return each call of a described one, and its answer.

    An answer is None where the statistic refused.
    """
    recorded: list[Call] = []
    with pytest.MonkeyPatch.context() as patch:
        for module in MODULES:
            for name, function in list(vars(module).items()):
                if inspect.isfunction(function) and function in DESCRIBED:
                    patch.setattr(module, name, recording(function, recorded.append))
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        for module in MODULES:
            for test in doctest.DocTestFinder(exclude_empty=True).find(module):
                runner.run(test, out=lambda _: None)
    return recorded


def recording(function: Callable[..., Any], record: Callable[[Any], object]) -> Callable[..., Any]:
    @functools.wraps(function)
    def recorded(*arguments: Any, **options: Any) -> Any:
        answer = None
        try:
            answer = function(*arguments, **options)
        finally:
            record((DESCRIBED[function], function, arguments, options, answer))
        return answer

    return recorded


@pytest.fixture(scope="module")
def recorded() -> list[Call]:
    return calls()


def emptied(value: Any) -> Any:
    return value.clear() if isinstance(value, pl.DataFrame) else value


def enlarged(value: Any) -> Any:
    """Repeat a frame's rows under other trajectories or events, where it has a key."""
    if not isinstance(value, pl.DataFrame):
        return value
    keys = [name for name in ("trajectory", "event_id") if value.schema.get(name) == pl.String]
    if not keys:
        return value
    return pl.concat(  # the symbol of a key gets the number of the copy
        value.with_columns(pl.col(key).str.replace(r"^(\w+/)?", f"${{1}}C{copy}") for key in keys)
        for copy in range(COPIES)
    )


def faults(result: str, found: pl.DataFrame | pl.LazyFrame) -> list[str]:
    """Say in what a result differs from its declaration: names, order or types."""
    declared = {each.name: each for each in columns_of(result)}
    real = found.collect_schema()
    stands_for = {name: column(name, result) for name in real}
    own = [name for name in real if result not in ADDED or name in declared]
    wrong = [
        f"{name}: {real[name]}, declared {stands_for[name].type or 'nowhere'}"
        for name in own
        if stands_for[name].type != re.sub(r"\(.*", "", str(real[name]))
        and not (name == "trajectory" and real[name].is_integer())
    ]
    derived = any(name not in declared for name in own)  # they stand for declared ones
    lacking = [n for n, one in declared.items() if n not in real and not one.when and not derived]
    order = [name for name in declared if name in real]
    if order != [name for name in real if name in declared]:
        wrong.append(f"order: {[name for name in real if name in declared]}")
    return [*wrong, *(f"{name}: declared, not returned" for name in lacking)]


@pytest.mark.parametrize("size", ["small", "empty", pytest.param("large", marks=pytest.mark.slow)])
def test_the_schema_of_each_statistic_is_the_declared_one(recorded, size: str) -> None:
    change = {"small": None, "empty": emptied, "large": enlarged}[size]
    found, answered = {}, set()
    for result, function, arguments, options, first in recorded:
        answer = first
        if change is not None:
            given = {name: change(each) for name, each in options.items()}
            try:
                answer = function(*map(change, arguments), **given)
            except RailError:
                answer = None
        if answer is None:
            continue  # it refuses such frames
        answered.add(result)
        if wrong := faults(result, answer):
            found[result] = wrong
    assert found == {}
    if size == "empty":  # some statistics say that there is nothing
        assert len(answered) >= 45
    else:
        one_pair = {"spread.pair"} if size == "large" else set()  # it takes one price per leg
        assert answered == set(DESCRIBED.values()) - UNTRIED - one_pair


def test_a_result_calls_no_two_of_its_columns_the_same() -> None:
    doubled = {
        (result, length, heading)
        for result in columns._results().keys() - {"tables"}
        for length in ("heading", "short")
        for heading, times in Counter(getattr(each, length) for each in columns_of(result)).items()
        if times > 1
    }
    assert doubled == set()


def declared() -> list[Column]:
    return [each for _, each in columns._first().values()]


def test_a_declared_column_has_a_type_a_unit_of_the_list_headings_and_a_meaning() -> None:
    assert len(declared()) > 800
    for each in declared():
        assert each.type in vars(pl), each
        assert each.unit in UNITS, each
        assert each.heading, each
        assert each.short, each
        assert each.meaning, each
        assert each.unit or each.decimals is not None or each.type != "Float64", each


def test_a_reason_is_a_declared_column() -> None:
    names = {each.name for each in declared()}
    reasons = {each.reason for each in declared() if each.reason}
    assert reasons <= names
    assert all(name.endswith("_reason") for name in reasons)


def test_the_schema_of_results_beside_each_other_has_each_column_once() -> None:
    found = schema_of("spread.summary", "quality.coverage")
    assert list(found)[:2] == ["trajectory", "n"]
    assert found["spread_mean_log_bps"] == pl.Float64
