"""All analyses that are declared: which there are, and each by its result."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from toolkit.analyses.declaration import DECLARED, Analysis, Family
from toolkit.columns import computed_in
from toolkit.errors import InputError


def find(result: str) -> Analysis:
    """Return the analysis of a result, by its name or its method: "spread.summary/5".

    Only the module that computes it is imported. Raises `InputError` for no analysis.

    >>> find("spread.stationarity").order
    'adf_t'
    """
    name = result.partition("/")[0]
    if name not in computed_in():
        raise InputError("analysis", result, list(computed_in()))
    import_module(f"toolkit.statistics.{computed_in()[name]}")
    return DECLARED[name]


@cache
def analyses(family: Family | None = None) -> tuple[Analysis, ...]:
    """Return all analyses, or those of a family, in the order of their declaration.

    >>> "stationarity" in [each.name for each in analyses("spread")]
    True
    """
    every = map(find, computed_in())
    return tuple(each for each in every if family in (None, each.family))


def declared_for(family: Family, name: str) -> Analysis | None:
    """Return the analysis of a family that a method of series is named after, None without one.

    >>> declared_for("spread", "stationarity").result
    'spread.stationarity'
    """
    return next((each for each in analyses(family) if each.name == name), None)


def analysis_of(function: Callable[..., Any]) -> Analysis | None:
    """Return the analysis that a function computes, None for one that is not declared."""
    return next((each for each in DECLARED.values() if each.function is function), None)
