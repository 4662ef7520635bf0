"""How a figure came about, in words: the documentation of its statistic, with its values.

The documentation of a statistic is the one source. Its table names each column of the result with
type, unit and meaning. `explain` puts a row's values beside them, and docs/statistics.md is made
from the same tables.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import polars as pl

from toolkit.cards import duration
from toolkit.errors import InputError, nearest
from toolkit.intervals import Interval
from toolkit.market import format_ts
from toolkit.statistics.carry_marks import FUNDING_ONLY
from toolkit.statistics.contract import Reason, checked_frame

_RULE = re.compile(r"^ *=+(?: +=+){3} *$")
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_CITED = re.compile(r"(?<!`)`([\w.]+)`(?!`)")
_OF_A_COLUMN = re.compile(r"spread_(\w+)_log_bps")
_UNITS = {"_log_bps": "bps", "_bps": "bps", "_pct": "%"}
_OF_DETECTION = re.compile(r"_(?:from_detection|to_detection|from_before)(?=_)")
_METHOD = re.compile(r"(\w+)\.(\w+)/\d+")
_CONTRACT = ("n", "n_expected", "coverage", "window_start", "window_end", "method", "params_hash")


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a column of a result is: its type, unit and meaning, "" where not stated.

    ``by`` is the statistic whose documentation has the meaning.
    """

    type: str
    unit: str
    text: str
    by: str = ""


_UNKNOWN = Meaning("", "", "")


@dataclass(frozen=True, slots=True)
class Documented:
    """The documentation of a statistic, in its parts.

    ``prose`` are the paragraphs before and after the table, ``columns`` the table's lines,
    ``sections`` the titled ones: Raises, Examples, References.
    """

    prose: tuple[str, ...]
    columns: Mapping[str, Meaning]
    sections: Mapping[str, str]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Documented:
        """Read a function's docstring.

        >>> from toolkit.statistics import quality
        >>> Documented.of(quality.coverage).columns["n_null"]
        Meaning(type='Int64', unit='count', text='rows of the window that are no observation',
        by='coverage')
        """
        text = inspect.getdoc(function) or ""
        parts = _SECTION.split(text)
        titled = {
            title: body.strip("\n") for title, body in zip(parts[1::2], parts[2::2], strict=True)
        }
        lines = parts[0].splitlines()
        rules = [number for number, line in enumerate(lines) if _RULE.match(line)]
        columns: dict[str, Meaning] = {}
        if len(rules) == 3:
            columns = dict(
                _table(lines[rules[1]], lines[rules[1] + 1 : rules[2]], function.__name__)
            )
            lines[rules[0] : rules[2] + 1] = [""]
        before, _, example = "\n".join(lines).partition(">>> ")
        if example:
            titled["Examples"] = f">>> {example}"
        paragraphs = [each.strip("\n") for each in re.split(r"\n\s*\n", before) if each.strip()]
        return cls(tuple(paragraphs), columns, titled)


def _table(rule: str, lines: list[str], by: str) -> Iterator[tuple[str, Meaning]]:
    """Yield the columns that a table names. A line without a name goes on with the one before."""
    edges = [match.start() for match in re.finditer(r"=+", rule)]
    cells: list[list[str]] = []
    for line in lines:
        ends = [*edges[1:], None]
        found = [line[start:end].strip() for start, end in zip(edges, ends, strict=True)]
        if " " in found[0]:  # a name longer than the table's first column
            name, _, rest = line.strip().partition(" ")
            found = [name, *rest.split(None, 2)]
        if found[0]:
            cells.append(found)
        elif cells:
            cells[-1][3] = f"{cells[-1][3]} {found[3]}"
    for name, kind, unit, meaning in cells:
        yield name, Meaning(kind, "" if unit == "none" else unit, meaning, by)


@cache
def documented(method: str) -> Documented:
    """Return the documentation of the statistic that a result's ``method`` names.

    Columns that its table only lists are explained as in the statistic that it refers to. Raises
    `InputError` for a method of no statistic.

    >>> documented("spread.summary/5").columns["coverage"].text
    'bars with an observation over n_expected, 0 for n = 0, null where n is above n_expected'
    """
    module, name = _named(method)
    own = Documented.of(getattr(module, name))
    columns = dict(own.columns)
    for other in _cited(module, own):
        for column, meaning in Documented.of(other).columns.items():
            if not columns.get(column, _UNKNOWN).text:
                columns[column] = meaning
    return Documented(own.prose, columns, own.sections)


def _cited(module: Any, page: Documented) -> list[Callable[..., Any]]:
    """Return the statistics that a documentation refers to, and that of the coverage."""
    names = [name for part in page.prose for name in _CITED.findall(part)]
    found = [_function(module, name) for name in (*names, "toolkit.statistics.quality.coverage")]
    return [each for each in dict.fromkeys(found) if each is not None]


def _named(method: str) -> tuple[Any, str]:
    found = _METHOD.match(method)
    if found:
        try:
            module = importlib.import_module(f"toolkit.statistics.{found[1]}")
        except ModuleNotFoundError:
            module = None
        if module is not None and hasattr(module, found[2]):
            return module, found[2]
    raise InputError("method", method, "that of a statistic, e.g. spread.summary/5")


def _function(module: Any, name: str) -> Callable[..., Any] | None:
    """Return the function that a docstring refers to, by its name or its whole path."""
    path, _, last = name.rpartition(".")
    if path.startswith("toolkit.statistics"):
        module = importlib.import_module(path)
    elif path:
        return None
    found = getattr(module, last, None)
    return found if inspect.isfunction(found) else None


def explain(result: pl.DataFrame, *figures: str) -> str:
    """Explain in words how the figures of one row of a result came about.

    The text has what the figure rests on (window, rows, coverage), each figure with its value, its
    unit and its meaning, of a null the reason, and then how the statistic is computed, with the
    formula and its source. Without names it explains every figure that the row has.

    Raises
    ------
    InputError
        It is no result of a statistic, which has ``method``, or not of one row. A name is not that
        of a column.

    Examples
    --------
    >>> from toolkit.statistics import spread
    >>> frame = pl.DataFrame(
    ...     {"trajectory": ["A_B:X.spot:Y.spot"] * 3, "ts": [0, 60, 120], "spread_bps": [1.0, 2, 4]}
    ... )
    >>> row = spread.summary(frame, 0, 180, column="spread_bps")
    >>> print(explain(row, "spread_median_bps", "half_life_s"))
    A_B:X.spot:Y.spot
    [1970-01-01 00:00 UTC, 1970-01-01 00:03 UTC), 3 observations, coverage 100 %
    <BLANKLINE>
    spread_median_bps = 2 bps: median
    half_life_s is null: too few observations for this statistic
    <BLANKLINE>
    By spread.summary/5: Compute `coverage`, mean and deviation, ...
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
    page = documented(str(row["method"]))
    names = figures or [name for name in row if _is_figure(name, page)]
    lines = [_line(name, row, page) for name in names]
    by = dict.fromkeys(meaning_of(name, page).by for name in names)
    return "\n".join([*_rests_on(row, page), "", *lines, "", *_how(str(row["method"]), by)])


def _is_figure(name: str, page: Documented) -> bool:
    meaning = meaning_of(name, page)
    known = bool(meaning.type) and name not in _CONTRACT
    return known and not name.endswith("_reason") and meaning.type != "given"


def meaning_of(name: str, page: Documented) -> Meaning:
    """Return what a column means. Of another column than the documented one the name differs.

    ``spread_mean_log_bps`` is documented, and ``buy_price_mean`` the same of ``buy_price``. So is
    ``return_mean_log_bps``, and ``return_from_detection_mean_log_bps`` the same from the event on.

    >>> meaning_of("half_life_s", documented("spread.summary/5")).unit
    's'
    """
    if name in page.columns:
        return page.columns[name]
    if _OF_DETECTION.search(name):
        found = meaning_of(_OF_DETECTION.sub("", name), page)
        return replace(found, text=f"{found.text}, the event as start" if found.text else "")
    if name.startswith(FUNDING_ONLY):
        plain = meaning_of(name.removeprefix(FUNDING_ONLY), page)
        return replace(plain, text=f"without prices: {plain.text}")
    base, unit = next(
        ((name.removesuffix(end), unit) for end, unit in _UNITS.items() if name.endswith(end)),
        (name, ""),
    )
    of_a_column = filter(None, map(_OF_A_COLUMN.fullmatch, page.columns))
    fits = [each for each in of_a_column if base.endswith(f"_{each[1]}")]
    if not fits:
        return _UNKNOWN
    return replace(page.columns[max(fits, key=lambda each: len(each[1]))[0]], unit=unit)


def _rests_on(row: Mapping[str, Any], page: Documented) -> list[str]:
    """Say of what, over which window, and on how much of it the figures rest."""
    parts = []
    if "window_start" in row:
        window = str(Interval(row["window_start"], row["window_end"]))
        settled = any("(start, end]" in part for part in page.prose[:1])
        parts.append(f"({window[1:-1]}]" if settled else window)
    if row.get("n") is not None:
        parts.append(f"{row['n']:,} observations")
    if row.get("coverage") is not None:
        parts.append(f"coverage {100 * row['coverage']:.4g} %")
    first = [str(row["trajectory"])] if "trajectory" in row else []
    return [*first, ", ".join(parts)] if parts else first


def _line(name: str, row: Mapping[str, Any], page: Documented) -> str:
    """Write a figure with its value, unit and meaning, or why there is none."""
    meaning, value = meaning_of(name, page), row[name]
    if value is None:
        reason = reason_words(name, row)
        return f"{name} is null: {reason}" if reason else f"{name} is null"
    shown = value_words(name, value, meaning.unit)
    return f"{name} = {shown}" + (f": {meaning.text}" if meaning.text else "")


def reason_words(name: str, row: Mapping[str, Any]) -> str:
    """Return the first reason to the right of a column, in words, "" for none.

    >>> reason_words("half_life_s", {"half_life_s": None, "half_life_reason": "too_few"})
    'too few observations for this statistic'
    """
    names = list(row)
    for other in names[names.index(name) + 1 :]:
        if other.endswith("_reason"):
            code = row[other]
            return Reason(code).words if code in set(Reason) else str(code or "")
    return ""


def value_words(name: str, value: Any, unit: str) -> str:
    """Write a value with its unit: a time as one, a share in percent.

    >>> value_words("coverage", 0.95, "fraction"), value_words("n", 1200, "count")
    ('95 %', '1,200')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value) or "none"
    if unit == "s" and (name.startswith(("t_", "start_", "end_")) or name.endswith("_ts")):
        return format_ts(int(value))
    if unit == "s":
        return f"{value:,.6g} s ({duration(value)})" if abs(value) >= 60 else f"{value:.6g} s"
    if unit == "fraction":
        return f"{100 * value:.4g} %"
    number = f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
    return number if unit in ("", "count") else f"{number} {unit}"


def _how(method: str, by: Iterable[str]) -> list[str]:
    """Say how the statistic and those it is made of are computed, and where formulas are from."""
    module, name = _named(method)
    lines = []
    for function in (getattr(module, name), *_cited(module, documented(method))):
        own = function.__name__ == name
        if not own and function.__name__ not in by:
            continue
        page = Documented.of(function)
        parts = [each for part in page.prose for each in re.split(r"\n(?=- )", part)]
        prose = [" ".join(part.split()).replace("``", "`") for part in parts]
        lines += [f"By {method if own else function.__name__}: {prose[0]}", *prose[1:]]
        if sources := page.sections.get("References"):
            lines.append("Source: " + " ".join(sources.split()))
        lines.append("")
    return lines[:-1]
