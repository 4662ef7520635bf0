"""Answers of tools: figures with their basis, bounded in rows and bytes.

Text of a service is one short line of printable characters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

import msgspec
import polars as pl

from toolkit.cards import some
from toolkit.columns import Column, column
from toolkit.errors import InputError
from toolkit.foreign import plain
from toolkit.intervals import Interval
from toolkit.market import format_ts
from toolkit.reasons import Reason
from toolkit.show.values import doubt_of, half_life_note, reason_column, reason_words

MOST_BYTES = 40_000
"""Bytes of an answer's JSON at most."""

MOST_ROWS = 200
"""Rows of an answer at most."""

_CELL = 400  # characters of a text at most
_MOST_REASONS = 12
_YEAR_9999 = 253_402_300_800
_ALWAYS = ("trajectory", "stream", "family", "horizon_s", "n", "coverage", "method")
_REASON = "_reason"
_CODES = (None, *Reason)
_BOUND = re.compile(r"_(lower|upper)(_|$)")
_NO_INTERVAL = "none: these figures have no standard error"


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """Rows and their basis.

    ``n`` counts the observations of the window, ``coverage`` is its stored fraction, each None if
    unknown or only in the rows. ``window`` is half-open by ``bounds``. At most ``limit`` rows are
    shown, of a ``curve`` evenly spaced ones. With ``more`` further rows were not read. ``figure``
    is plotly's JSON. ``first`` are the columns shown by default, () for all, ``key`` those always
    shown.
    """

    rows: pl.DataFrame
    source: str
    simulated: bool
    stream: str | None = None
    window: Interval | None = None
    bounds: str = "[start, end)"
    as_of: int | None = None
    n: int | None = None
    coverage: float | None = None
    fees: str | None = None
    notes: tuple[str, ...] = ()
    limit: int = 20
    more: bool = False
    figure: str | None = None
    first: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    curve: bool = False

    def narrowed(self, columns: str) -> ToolAnswer:
        """Return the answer with only these columns (names by commas), their intervals and basis.

        "" takes the ``first`` ones, "all" every one. Raises `InputError` for an unknown name.

        >>> frame = pl.DataFrame({"n": [9], "mean_bps": [2.0], "std_bps": [1.0]})
        >>> ToolAnswer(frame, "SIMULATED seed 7", True).narrowed("std_bps").rows.columns
        ['n', 'std_bps']
        """
        asked = [name.strip() for name in columns.split(",") if name.strip()]
        known = [name for name in self.rows.columns if not name.endswith(_REASON)]
        if asked == ["all"] or not (asked or self.first):
            return self
        for name in asked:
            if name not in known:
                raise InputError("columns", name, known)
        wanted = {*(asked or self.first), *_ALWAYS, *self.key}
        return replace(
            self,
            rows=self.rows.select(
                name
                for name in self.rows.columns
                if name in wanted or name.endswith(_REASON) or _bounds(name, wanted)
            ),
        )

    def document(self) -> dict[str, Any]:
        """Return the answer as a JSON object of at most `MOST_BYTES`, without rows beyond that.

        A null with a reason is listed in ``reason`` and not in its row.

        >>> frame = pl.DataFrame({"mean_bps": [2.0], "std_bps": [None], "std_reason": ["too_few"]})
        >>> made = ToolAnswer(frame, "SIMULATED seed 7", True, n=1).document()
        >>> made["rows"], made["unit"]["mean_bps"], made["shown"], made["reason"]
        ([{'mean_bps': 2.0}], 'bps', '1 of 1 row', ['std_bps: too few observations for this ...'])
        """
        shown = min(self.rows.height, self.limit, MOST_ROWS)
        while True:
            made = self._document(shown)
            if shown == 0 or len(msgspec.json.encode(made)) <= MOST_BYTES:
                return made
            shown //= 2

    def _document(self, most: int) -> dict[str, Any]:
        every = -(-self.rows.height // most) if self.curve and most else 1
        frame = self.rows.gather_every(every).head(most)
        start, end = (None, None) if self.window is None else map(format_ts, self.window)
        known = "method" in frame.columns and self.rows.height
        method = str(self.rows["method"][0]) if known else ""
        columns = [column(name, method) for name in frame.columns]
        found = [(row, _explained(row)) for row in frame.iter_rows(named=True)]
        rows = [_cells(row, columns, explained) for row, explained in found]
        same = _same(rows)
        return {
            "source": plain(self.source),
            "simulated": self.simulated,
            "stream": None if self.stream is None else plain(self.stream),
            "window": {"start": start, "end": end, "bounds": self.bounds},
            "as_of": None if self.as_of is None else format_ts(self.as_of),
            "n": self.n,
            "coverage": self.coverage,
            "interval": _interval(frame.columns),
            "reason": _reasons(found),
            "unit": {plain(each.name, 80): each.unit for each in columns if each.unit},
            "fees": self.fees,
            "shown": self._shown(frame.height, every),
            "rows": [{name: row[name] for name in row if name not in same} for row in rows],
            "in_every_row": same,
            "notes": [plain(each) for each in (*self.notes, *_doubts(frame))],
        }

    def _shown(self, shown: int, every: int) -> str:
        total = self.rows.height
        if self.more:
            return f"{shown} rows, and there are more; WHERE, LIMIT or an aggregate takes fewer"
        of = f"{shown} of {total} {'row' if total == 1 else 'rows'}"
        return of if every == 1 else f"{of}, one in {every}"


def _bounds(name: str, asked: Collection[str]) -> bool:
    return _BOUND.search(name) is not None and _BOUND.sub(r"\2", name) in asked


def _doubts(frame: pl.DataFrame) -> list[str]:
    found: dict[str, list[str]] = {}
    for row in frame.iter_rows(named=True):
        if doubt_of(row, "half_life_s"):
            found.setdefault(half_life_note(row), []).append(str(row.get("trajectory") or ""))
    return [f"{note} ({some(keys)})" for note, keys in found.items()]


def _interval(names: list[str]) -> str:
    bounds = [name for name in names if _BOUND.search(name) and not name.endswith(_REASON)]
    return f"95 %: {', '.join(bounds)}; other figures have none" if bounds else _NO_INTERVAL


def _explained(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the nulls of a row that have a reason, each with its words."""
    nulls = [name for name in row if row[name] is None and not name.endswith(_REASON)]
    return {name: plain(why) for name in nulls if (why := reason_words(row, name))}


def _cells(
    row: Mapping[str, Any], columns: Sequence[Column], explained: Mapping[str, str]
) -> dict[str, Any]:
    left_out = {*explained, *(reason_column(row, name) for name in explained)}
    left_out |= {name for name in row if name.endswith(_REASON) and row[name] in _CODES}
    return {
        plain(one.name, 80): _cell(row[one.name], one)
        for one in columns
        if one.name not in left_out
    }


def _same(rows: list[dict[str, Any]]) -> dict[str, Any]:
    first, *others = rows or [{}]
    return {
        name: value
        for name, value in first.items()
        if others and all(name in row and row[name] == value for row in others)
    }


def _cell(value: Any, one: Column) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int):
        if one.unit == "UTC" and 0 <= value < _YEAR_9999:
            return format_ts(value)
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, datetime):
        naive = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return f"{naive.isoformat(sep=' ')} UTC"
    return value.isoformat() if isinstance(value, date) else plain(str(value), _CELL)


def _reasons(found: Sequence[tuple[Mapping[str, Any], Mapping[str, str]]]) -> list[str]:
    lines: dict[tuple[str, str], list[str]] = {}
    for row, explained in found:
        of = str(row.get("trajectory") or row.get("stream") or "")
        held = f"held {row['horizon_s']} s" if row.get("horizon_s") is not None else ""
        for words in dict.fromkeys(explained.values()):
            names = ", ".join(plain(name, 80) for name, why in explained.items() if why == words)
            rows = lines.setdefault((names, words), [])
            rows += [held or of] if (held or of) and len(found) > 1 else []
    said = [
        f"{names}: {words}" + (f" ({plain(', '.join(rows), 2 * _CELL)})" if rows else "")
        for (names, words), rows in lines.items()
    ]
    left = len(said) - _MOST_REASONS
    return said if left <= 0 else [*said[:_MOST_REASONS], f"{left} more of this kind"]
