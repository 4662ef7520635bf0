"""Explanations in words of how a figure came about: its meaning, its value and its computation.

Prose and sources are those of the statistic's docstring.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl

from toolkit.analyses import find
from toolkit.columns import column, computed_in, computes
from toolkit.errors import InputError, nearest
from toolkit.intervals import Interval
from toolkit.show.values import basis_text, figures_of, reason_words, value_text
from toolkit.statistics.core.contract import checked_frame

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_TABLE = re.compile(r"=[= ]+\ncolumn ")
_NAMED = {"Raises": "Raises `InputError`: ", "References": "Source: "}
_CITED = re.compile(r"(?<!`)`([\w.]+)`(?!`)")
_METHOD = re.compile(r"(\w+)\.(\w+)/\d+")


@dataclass(frozen=True, slots=True)
class Documented:
    """The words of a statistic's docstring: its paragraphs without the table, and its sections."""

    prose: tuple[str, ...]
    sections: Mapping[str, str]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Documented:
        """Read a function's docstring."""
        text = inspect.getdoc(function) or ""
        parts = _SECTION.split(text)
        titled = {
            title: body.strip("\n") for title, body in zip(parts[1::2], parts[2::2], strict=True)
        }
        before, _, example = parts[0].partition(">>> ")
        if example:
            titled["Examples"] = f">>> {example}"
        paragraphs = [each.strip("\n") for each in re.split(r"\n\s*\n", before) if each.strip()]
        prose, named = [], dict[str, str]()
        for each in paragraphs:
            title = next((one for one, begins in _NAMED.items() if each.startswith(begins)), None)
            if title is not None:
                named[title] = each.removeprefix(_NAMED[title])
            elif not named and not _TABLE.match(each):  # what follows introduces the example
                prose.append(each)
        titled |= named
        return cls(tuple(prose), titled)


@cache
def documented(method: str) -> Documented:
    """Return the documentation of the statistic that a result's ``method`` names.

    Raises `InputError` for a method of no statistic.
    """
    return Documented.of(_named(method)[1])


def _named(method: str) -> tuple[Any, Callable[..., Any]]:
    if method.partition("/")[0] in computed_in():
        function = find(method).function
        return importlib.import_module(function.__module__), function
    found = _METHOD.match(method)
    if found:
        try:
            module = importlib.import_module(f"toolkit.statistics.{found[1]}")
        except ModuleNotFoundError:
            module = None
        if module is not None and hasattr(module, found[2]):
            return module, getattr(module, found[2])
    raise InputError("method", method, "that of a statistic, e.g. spread.summary/5")


def _cited(module: Any, page: Documented) -> list[Callable[..., Any]]:
    names = [name for part in page.prose for name in _CITED.findall(part)]
    found = [_function(module, name) for name in (*names, "toolkit.statistics.quality.coverage")]
    return [each for each in dict.fromkeys(found) if each is not None]


def _function(module: Any, name: str) -> Callable[..., Any] | None:
    path, _, last = name.rpartition(".")
    if path.startswith("toolkit.statistics"):
        module = importlib.import_module(path)
    elif path:
        return None
    found = getattr(module, last, None)
    return found if inspect.isfunction(found) else None


def explain(result: pl.DataFrame, *figures: str) -> str:
    """Explain in words how the figures of one row of a result came about.

    The text has the window, rows and coverage behind the figures, each figure with its value, unit
    and meaning (or the reason for a null), and then how the statistic is computed, with its
    sources. Without names it explains every figure of the row.

    Raises `InputError`: It is not one row of a statistic's result, or a name is not one of its
    columns.

    >>> from toolkit.statistics import spread
    >>> frame = pl.DataFrame(
    ...     {"trajectory": ["A_B:X.spot:Y.spot"] * 3, "ts": [0, 60, 120], "spread_bps": [1.0, 2, 4]}
    ... )
    >>> row = spread.summary(frame, 0, 180, column="spread_bps")
    >>> print(explain(row, "spread_median_bps", "half_life_s"))
    A_B:X.spot:Y.spot
    [1970-01-01 00:00 UTC, 1970-01-01 00:03 UTC), n = 3, coverage 100.00 %
    <BLANKLINE>
    spread_median_bps = 2.00 bps: median
    half_life_s is null: too few observations for this statistic
    <BLANKLINE>
    By spread.summary/5: Compute the level, dispersion, tails ...
    ...
    """
    checked_frame(result, "result")
    if "method" not in result.columns:
        raise InputError("result", ", ".join(result.columns), "a result, which has its method")
    if result.height != 1:
        advice = "result.filter(trajectory=...) takes one"
        raise InputError("result", f"{result.height} rows", "one row", advice=advice)
    for name in figures:
        if name not in result.columns:
            near = nearest(name, result.columns)
            advice = f"nearest: {near[0]}" if near else ""
            raise InputError("figures", name, ", ".join(result.columns), advice=advice)
    row = result.row(0, named=True)
    method = str(row["method"])
    page = documented(method)
    names = list(figures) or figures_of(row, method)
    lines = [_line(name, row, method) for name in names]
    return "\n".join([*_rests_on(row, page), "", *lines, "", *_how(method, names)])


def _rests_on(row: Mapping[str, Any], page: Documented) -> list[str]:
    """Return the trajectory, and the window, rows and coverage behind the figures."""
    parts = []
    if "window_start" in row:
        window = str(Interval(row["window_start"], row["window_end"]))
        settled = any("(start, end]" in part for part in page.prose[:1])
        parts.append(f"({window[1:-1]}]" if settled else window)
    parts += filter(None, [basis_text(row.get("n"), row.get("coverage"))])
    first = [str(row["trajectory"])] if "trajectory" in row else []
    return [*first, ", ".join(parts)] if parts else first


def _line(name: str, row: Mapping[str, Any], method: str) -> str:
    found, value = column(name, method), row[name]
    if value is None:
        reason = reason_words(row, name)
        return f"{name} is null: {reason}" if reason else f"{name} is null"
    shown = value_text(value, found, unit=True)
    return f"{name} = {shown}" + (f": {found.meaning}" if found.meaning else "")


def _how(method: str, names: Sequence[str]) -> list[str]:
    module, statistic = _named(method)
    lines = []
    for function in (statistic, *_cited(module, documented(method))):
        if function is not statistic and not any(computes(function, name) for name in names):
            continue
        page = Documented.of(function)
        parts = [each for part in page.prose for each in re.split(r"\n(?=- )", part)]
        prose = [" ".join(part.split()).replace("``", "`") for part in parts]
        by = method if function is statistic else function.__name__
        lines += [f"By {by}: {prose[0]}", *prose[1:]]
        if sources := page.sections.get("References"):
            lines.append("Source: " + " ".join(sources.split()))
        lines.append("")
    return lines[:-1]
