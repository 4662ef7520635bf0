"""The columns of results: type, unit, headings, decimals, reason and meaning, each declared once.

``columns.csv`` has one line per column of each result, in order. Further lines of a name state only
what differs. ``@RESULT`` includes the lines of another result, ``@RESULT of COLUMN`` with the log
spread replaced by another column. A line without a column names the analysis' module of
`toolkit.statistics`.
"""

from __future__ import annotations

import csv
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from toolkit.errors import InputError

if TYPE_CHECKING:
    import polars as pl

_FILE = Path(__file__).with_name("columns.csv")
_WIDTH = 96
_SUFFIXES = {
    "_pct_1h": "% per 1 h",
    "_pct_8h": "% per 8 h",
    "_pct_24h": "% per 24 h",
    "_bps_h": "bps h",
    "_log_bps": "bps",
    "_bps": "bps",
    "_pct": "%",
    "_per_day": "per day",
    "_per_h": "per hour",
    "_share": "fraction",
    "_ts": "UTC",
    "_at": "UTC",
    "_hours": "h",
    "_days": "days",
    "_s": "s",
    "_h": "h",
}
_OF_THE_SPREAD = re.compile(r"spread_(\w+)_log_bps")
_OF_UNITS = ("_log_bps", "_bps", "_pct")
_PATH = re.compile(r"_(?:from_detection|to_detection|from_before)(?=_)")
_FUNDING_ONLY = "funding_only_"
_OF_HOURS = re.compile(r"(\w*apr\w*_pct)_(1|8|24)h")
_Described = TypeVar("_Described", bound=Callable[..., object])
_DESCRIBED: dict[Callable[..., object], str] = {}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result.

    ``type`` is the polars type, ``unit`` "" for none, "UTC" for Unix seconds, "UTC ms"
    milliseconds. ``heading`` and ``short`` are without the unit, ``decimals`` by default the
    unit's. ``reason`` is the column that explains a null, ``when`` the options that add the column,
    "" for none.
    """

    name: str
    decimals: int | None
    type: str
    unit: str
    heading: str
    short: str
    reason: str
    when: str
    meaning: str


_NOTHING = Column("", None, "", "", "", "", "", "", "")
_TEXTS = ("type", "unit", "heading", "short", "reason", "when", "meaning")


@cache
def _lines() -> Mapping[str, tuple[Column | str, ...]]:
    found: dict[str, list[Column | str]] = {}
    first: dict[str, Column] = {}
    with _FILE.open(encoding="utf-8", newline="") as file:
        for result, name, decimals, *texts in islice(csv.reader(file), 1, None):
            lines = found.setdefault(result, [])
            if not name:
                continue
            if name.startswith("@"):
                lines.append(name[1:])
                continue
            before = first.get(name, _NOTHING)
            places = int(decimals) if decimals.isdigit() else before.decimals
            own = (
                text or getattr(before, field) for field, text in zip(_TEXTS, texts, strict=True)
            )
            declared = Column(name, places, *own)
            first.setdefault(name, declared)
            lines.append(declared)
    return {result: tuple(lines) for result, lines in found.items()}


@cache
def computed_in() -> Mapping[str, str]:
    """Return the module of `toolkit.statistics` that computes each result."""
    with _FILE.open(encoding="utf-8", newline="") as file:
        return {row[0]: row[3] for row in csv.reader(file) if not row[1]}


@cache
def _results() -> Mapping[str, tuple[Column, ...]]:
    found: dict[str, tuple[Column, ...]] = {}
    for result, lines in _lines().items():
        columns: dict[str, Column] = {}
        for line in lines:
            taken = _taken(line) if isinstance(line, str) else (line,)
            columns |= {each.name: each for each in taken}
        found[result] = tuple(columns.values())
    return found


@cache
def _declared() -> Mapping[str, Column]:
    found: dict[str, Column] = {}
    for each in (one for lines in _lines().values() for one in lines):
        if isinstance(each, Column):
            found.setdefault(each.name, each)
    return found


def _taken(line: str) -> Iterator[Column]:
    result, _, of = line.partition(" of ")
    for each in (one for one in _lines()[result] if isinstance(one, Column)):
        own = _named_for(each.name, of) if of else each.name
        other = _declared().get(own) or replace(each, name=own, unit=_unit(own))
        yield each if own == each.name else other


@cache
def _first() -> Mapping[str, tuple[str, Column]]:
    found: dict[str, tuple[str, Column]] = {}
    for result, columns in _results().items():
        for each in columns:
            found.setdefault(each.name, (result, each))
    return found


def columns_of(result: str) -> tuple[Column, ...]:
    """Return the columns of a result, also named by its method, as "spread.summary/5".

    Raises `InputError` for a result that is not declared.
    """
    name = result.partition("/")[0]
    if name in _results():
        return _results()[name]
    raise InputError("method", result, "that of a statistic, e.g. spread.summary/5")


def schema_of(*results: str, also: Iterable[str] = ()) -> pl.Schema:
    """Return the polars schema of the columns of results and of ``also``, each column once."""
    import polars as pl  # noqa: PLC0415 - a help text needs no polars

    found = [each for result in results for each in columns_of(result)]
    types = {each.name: each.type for each in (*found, *map(column, also))}
    return pl.Schema({name: getattr(pl, kind)() for name, kind in types.items()})


def names_for(result: str, of: str) -> tuple[str, ...]:
    """Return the names of a result's columns if it is of another column than the log spread.

    >>> "funding_apr_mean_pct" in names_for("spread.summary", "funding_apr_pct")
    True
    """
    return tuple(_named_for(each.name, of) for each in columns_of(result))


def _named_for(name: str, of: str) -> str:
    end = next((end for end in _OF_UNITS if of.endswith(end)), "")
    return _OF_THE_SPREAD.sub(rf"{of.removesuffix(end)}_\1{end}", name)


def column(name: str, result: str = "") -> Column:
    """Return the declaration of a column in a result, else in any result.

    Figures of other columns than the documented one (``buy_price_mean``), of a path from the
    detection, of funding only, and yearly rates in another unit are derived. Other names have their
    words as heading and the unit of their ending.

    >>> column("half_life_s").unit, column("buy_price_mean", "spread.summary").heading
    ('s', 'mean')
    >>> column("buy_price_mean", "spread.summary").unit
    'quote'
    >>> column("my_edge_bps").heading, column("my_edge_bps").unit
    ('my edge', 'bps')
    """
    return _column(name, result.partition("/")[0])


@cache
def _column(name: str, result: str) -> Column:
    declared = {each.name: each for each in _results().get(result, ())}
    if name in declared:
        return declared[name]
    if name in _first():
        return _first()[name][1]
    return _derived(name, result, declared) or _in_words(name)


def _derived(name: str, result: str, declared: Mapping[str, Column]) -> Column | None:
    if _PATH.search(name):
        plain = _column(_PATH.sub("", name), result)
        return _varied(plain, name, "{}, from detection", "{}, the event as start")
    if name.startswith(_FUNDING_ONLY):
        plain = _column(name.removeprefix(_FUNDING_ONLY), result)
        reason = f"{_FUNDING_ONLY}{plain.reason}" if plain.reason else ""
        varied = _varied(plain, name, "{}, funding only", "without prices: {}")
        return replace(varied, reason=reason)
    if of_hours := _OF_HOURS.fullmatch(name):
        yearly = _column(of_hours[1], result)
        words = {of: getattr(yearly, of).replace("APR", "rate") for of in ("heading", "short")}
        return replace(yearly, name=name, unit=_unit(name), decimals=None, **words)
    base = next((name.removesuffix(end) for end in _OF_UNITS if name.endswith(end)), name)
    of_the_spread = filter(None, map(_OF_THE_SPREAD.fullmatch, declared))
    fits = [each for each in of_the_spread if base.endswith(f"_{each[1]}")]
    if not fits:
        return None
    longest = max(fits, key=lambda each: len(each[1]))
    own = _first().get(base.removesuffix(f"_{longest[1]}"))
    return replace(
        declared[longest[0]], name=name, unit=_unit(name) or (own[1].unit if own else "")
    )


def _varied(plain: Column, name: str, heading: str, meaning: str) -> Column:
    return replace(
        plain,
        name=name,
        heading=heading.format(plain.heading),
        short=heading.format(plain.short),
        meaning=meaning.format(plain.meaning) if plain.meaning else "",
    )


def _unit(name: str) -> str:
    return next((unit for end, unit in _SUFFIXES.items() if name.endswith(end)), "")


def _in_words(name: str) -> Column:
    words = next((name.removesuffix(end) for end in _SUFFIXES if name.endswith(end)), name)
    words = words.replace("_", " ").strip() or name
    return replace(_NOTHING, name=name, unit=_unit(name), heading=words, short=words)


def table_of(result: str) -> str:
    """Return a result's own columns as a table for a docstring.

    >>> print(table_of("survival.median_life").splitlines()[3])
    n_lives             Int64    count  events with a duration
    """
    own = (each for each in _lines()[result] if isinstance(each, Column))
    rows = [(each.name, each.type, each.unit or "none", _meant(each)) for each in own]
    heads = ("column", "type", "unit", "meaning")
    widths = [max(len(row[place]) for row in (heads, *rows)) for place in range(3)]
    room = max(_WIDTH - sum(widths) - 6, 30)
    rule = "  ".join("=" * width for width in (*widths, room))
    lines = [rule, _padded(heads, widths), rule]
    for *cells, meaning in rows:
        first, *others = textwrap.wrap(meaning, room, break_long_words=False) or [""]
        lines.append(_padded((*cells, first), widths))
        lines += [_padded(("", "", "", other), widths) for other in others]
    return "\n".join([*lines, rule])


def _meant(each: Column) -> str:
    return f"{each.meaning} ({each.when})" if each.when else each.meaning


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, (*widths, 0), strict=True)]
    return "  ".join(padded).rstrip()


def own_columns_of(function: Callable[..., object]) -> tuple[Column, ...]:
    """Return the columns that a function's docstring describes, () without any."""
    lines = _lines()[_DESCRIBED[function]] if function in _DESCRIBED else ()
    return tuple(each for each in lines if isinstance(each, Column))


def computes(function: Callable[..., object], name: str) -> bool:
    """Return whether a column is first declared for a function's result.

    >>> from toolkit.statistics import spread
    >>> computes(spread.half_life, "half_life_s"), computes(spread.summary, "half_life_s")
    (True, False)
    """
    return name in _first() and _first()[name][0] == _DESCRIBED.get(function)


def described(result: str) -> Callable[[_Described], _Described]:
    """Replace ``{columns}`` in a docstring by the table of a result's columns."""

    def decorated(function: _Described) -> _Described:
        _DESCRIBED[function] = result
        lines = (function.__doc__ or "").splitlines()  # with `python -OO` there is none
        for place, line in enumerate(lines):
            if line.strip() == "{columns}":
                lines[place] = textwrap.indent(table_of(result), line.partition("{")[0])
                function.__doc__ = "\n".join(lines)
        return function

    return decorated
