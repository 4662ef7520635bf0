"""A table with rows that open, and with bars, lines and maps in its cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl

from toolkit.charts.theme import STATE_COLOURS
from toolkit.charts.time_axis import clock_text
from toolkit.columns import Column, column
from toolkit.dashboard.widgets import component, st
from toolkit.foreign import Markdown, plain
from toolkit.show.values import NULL, heading_of, reason_words, value_text


def heading(name: str, of: str = "", *, result: str = "", long: bool = False) -> str:
    """Return the heading of a column of a ``result`` with its unit, the short one unless ``long``.

    ``of`` is added to it: a time zone, a currency, a window or a level.
    """
    one = column(name, result)
    if not of:
        return heading_of(one, short=not long)
    if one.unit in ("UTC", "UTC ms", "quote"):
        return f"{heading_of(one, short=not long)} ({of})"
    words = f"{one.heading if long else one.short}, {of}"
    return heading_of(replace(one, heading=words))


_ROWS = component("rows", "table", "ages")
_ROW_PX = 27
_STATES = [(state.value, colour) for state, colour in STATE_COLOURS.items()]

_CLASSES = {"number": "number", "bar": "number", "map": "map", "age": "number age"}

Kind = Literal["text", "number", "bar", "line", "map", "age"]


@dataclass(frozen=True, slots=True)
class RowColumn:
    """One column: the name of a declared one, and the value of each row, by which it sorts.

    Heading, unit and decimals are those of the ``result``, if named. ``of`` and ``long`` are as in
    `heading`.

    Values by kind: ``text``, ``number``, ``bar`` (share or percent), ``line`` (numbers in equal
    time steps, nullable), ``map`` (runs of equal cells: their number and the percent of each
    `LedgerState`), ``age`` (s, counted on by the browser). None is a dash. ``limits`` are the ages
    (s) that turn amber and red, ``cells`` start (s UTC) and length (s) of a map's cells. ``shown``
    replaces the values, ``titles`` are tooltips, ``help`` the heading's. A phone has only the
    ``narrow`` columns.
    """

    name: str
    kind: Kind
    values: Sequence[Any]
    help: str = ""
    shown: Sequence[str] | None = None
    titles: Sequence[str | None] | None = None
    narrow: bool = True
    cells: tuple[int, int] | None = None
    limits: Sequence[tuple[int | None, int | None, bool]] | None = None
    of: str = ""
    long: bool = False
    result: str = ""

    @property
    def column(self) -> Column:
        """Its declaration."""
        return column(self.name, self.result)

    @property
    def heading(self) -> str:
        """The heading with the unit."""
        return heading(self.name, self.of, result=self.result, long=self.long)

    @property
    def texts(self) -> list[str]:
        """The text of each cell, for a line in words."""
        if self.shown is not None:
            return [plain(text) for text in self.shown]
        return [self._text(value) for value in self.values]

    def _text(self, value: Any) -> str:
        if self.kind == "line":
            return self._line_words([each for each in value or [] if each is not None])
        if self.kind == "text":
            return NULL if value is None else plain(value)
        return value_text(value, self.column)

    def _sent(self) -> list[Any]:
        if self.kind == "line":
            return [_drawn(value or []) for value in self.values]
        if self.kind == "text":
            return [value and plain(value) for value in self.values]
        if self.kind not in ("number", "bar"):
            return list(self.values)
        times = 100 if self.kind == "bar" and self.column.unit == "fraction" else 1
        return [value if value is None else _rounded(times * value) for value in self.values]

    def _line_words(self, known: list[float]) -> str:
        if len(known) < 2:
            return "fewer than two values"
        ends = (known[0], known[-1], min(known), max(known))
        first, last, low, high = (value_text(each, self.column) for each in ends)
        return f"from {first} to {last}, lowest {low}, highest {high}"

    @property
    def data(self) -> dict[str, Any]:
        """The data of the script."""
        right, one = _CLASSES.get(self.kind, ""), self.column
        return {
            "name": self.heading,
            "kind": self.kind,
            "help": self.help or (one.meaning and f"{one.heading}: {one.meaning}"),
            "className": right if self.narrow else f"{right} narrow-out".strip(),
            "values": None if self.kind == "text" and self.shown is None else self._sent(),
            "shown": self.texts,
            "limits": self.limits,
            "titles": self.titles and [title and plain(title) for title in self.titles],
        } | ({"cells": self.cells, "states": _STATES} if self.kind == "map" else {})


def row_column(
    frame: pl.DataFrame, name: str, *, kind: Kind | None = None, result: str = "", **options: Any
) -> RowColumn:
    """Build the column of a frame's texts or numbers, each null with its reason.

    >>> frame = pl.DataFrame({"half_life_s": [None], "half_life_reason": ["too_few"]})
    >>> row_column(frame, "half_life_s").titles
    ['too few observations for this statistic']
    """
    values = frame[name].to_list()
    texts = frame.schema[name] == pl.String
    if None in values and column(name, result).reason in frame.columns:
        rows = frame.iter_rows(named=True)
        why = [reason_words(row, name) if row[name] is None else None for row in rows]
        options.setdefault("titles", why)
    kind = kind or ("text" if texts else "number")
    return RowColumn(name, kind, values, result=result, **options)


def time_column(
    frame: pl.DataFrame, name: str, timezone: str, *, year: bool = True, **options: Any
) -> RowColumn:
    """Build the column of a frame's times, in a zone's clock, with or without the ``year``."""
    times = clock_text(frame[name], timezone).to_list()
    if not year:
        options["shown"] = [NULL if time is None else time[5:] for time in times]
    return RowColumn(name, "text", times, of=timezone, **options)


def _rounded(value: float) -> float:
    """Round a number to seven digits, enough to sort by."""
    return value if isinstance(value, int) else float(f"{value:.7g}")


def _drawn(line: Sequence[float | None]) -> list[float | None]:
    """Round the values of a line to a hundredth of its height or finer.

    >>> _drawn([1.23456, None, 4.0]), _drawn([1080.4, 247.6])
    ([1.23, None, 4.0], [1080, 248])
    """
    known = [each for each in line if each is not None]
    height = max(known, default=0.0) - min(known, default=0.0)
    size = height or max(map(abs, known), default=0.0)  # of a level line the level's own
    digits = 2 - math.floor(math.log10(size)) if size else 0
    return [
        None if each is None else round(each, digits) if digits > 0 else round(each)
        for each in line
    ]


def show_rows(
    label: Markdown,
    keys: Sequence[str],
    columns: Sequence[RowColumn],
    key: str,
    most: int = 10,
    *,
    opens: bool = True,
) -> None:
    """Draw the table. `opened_key` returns the key of the row that was opened.

    The texts of the first column are buttons if rows open. ``keys`` has one key per row, ``label``
    is for screen readers. More rows than ``most`` scroll. A column without values is left out.
    Order, scroll and focus outlast a run of the page.
    """
    state = st.session_state
    known = [one for one in columns[1:] if any(value is not None for value in one.values)]
    columns = [*columns[:1], *known]

    def keep() -> None:
        state[f"{key}_opened"] = state[key].opened

    data = {
        "label": label,
        "keys": list(keys),
        "columns": [column.data for column in columns],
        "opens": opens,
        # at most: rows.js makes it end in the middle of a row
        "most_px": _ROW_PX * (2 * most + 3) // 2 if len(keys) > most else None,
    }
    _ROWS(data=data, key=key, on_opened_change=keep)


def opened_key(key: str) -> str | None:
    """Return the key of the row that was opened since the last run, once, else None.

    It is known before the table is drawn.
    """
    opened = st.session_state.pop(f"{key}_opened", None)
    return opened if isinstance(opened, str) else None
