"""Results as frames: a polars frame that shows the first columns of its answer."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from toolkit.cards import counted
from toolkit.foreign import Html, plain
from toolkit.show.html import notes_html, table_html
from toolkit.show.printed import print_rows
from toolkit.show.sheet import Name, Sheet
from toolkit.show.terminal import Terminal

ROWS = 10
"""The most rows shown."""
ANSWERS = 8
"""The most columns of the answer shown beside the key."""
_WIDTH, _NARROWEST = 100, 60


class Result(pl.DataFrame):
    """A polars frame of an answer with all columns, which shows some of them.

    Derived frames show every column. A pickled one is read without the toolkit.

    >>> found = Result.of(pl.DataFrame({"trajectory": ["a"], "half_life_s": [60.0], "n": [9]}),
    ...                   ["trajectory", "half_life_s"])
    >>> found
    trajectory: a
    half-life   1 min  half_life_s
    … 1 more column: .frame has every one
    >>> found["n"].item(), type(found.frame).__name__
    (9, 'DataFrame')
    """

    _shown: tuple[str, ...] = ()  # of a frame that polars makes of a result

    @classmethod
    def of(cls, rows: pl.DataFrame, shown: Sequence[Name]) -> Result:
        """Return rows as a result that shows some columns, the key first."""
        key, *answer = shown
        first = (key,) if isinstance(key, str) else key
        kept = [name for name in _flat(answer) if name in rows.columns]
        last = ["coverage"] if "coverage" in kept[ANSWERS:] else []
        found = cls(rows)
        found._shown = (*(name for name in first if name in rows.columns), *kept[:ANSWERS], *last)
        return found

    @property
    def frame(self) -> pl.DataFrame:
        """The rows as a plain polars frame."""
        return pl.DataFrame(self)

    def __reduce__(self) -> Any:
        return pl.DataFrame, (self.get_columns(),)

    def __repr__(self) -> str:
        """Show some columns of the first rows, and the number of others."""
        names, rows = self._of_answer, self.frame.head(ROWS)
        if not names or not rows.height:
            return str(self.frame)
        page = io.StringIO()
        width = max(shutil.get_terminal_size((_WIDTH, 0)).columns, _NARROWEST)
        terminal = Terminal(file=page, width=width, color_system=None)
        fit = print_rows(terminal, Sheet("", "", rows, names), rows)
        if rows.height > 1:
            terminal.print(f"columns: {', '.join(names[:fit])}", soft_wrap=False)
        terminal.print(self._more(fit))
        return "\n".join(line.rstrip() for line in page.getvalue().splitlines())

    __str__ = __repr__

    def _repr_html_(self, *, _from_series: bool = False) -> str:
        names, rows = self._of_answer, self.head(ROWS)
        if not names or not rows.height:
            return self.frame._repr_html_(_from_series=_from_series)
        written = [
            {name: plain(value) if isinstance(value, str) else value for name, value in row.items()}
            for row in rows.iter_rows(named=True)
        ]
        method = str(rows["method"][0]) if "method" in rows.columns else ""
        shown = table_html(written, names, method)
        return str(Html("{}{}").format(shown, notes_html([self._more(len(names))])))

    @property
    def _of_answer(self) -> list[str]:
        return [name for name in self._shown if name in self.columns]

    def _more(self, shown: int) -> str:
        """Format how many rows and columns are not shown."""
        rows, columns = self.height - ROWS, self.width - shown
        parts = [counted(rows, "more row")] if rows > 0 else []
        parts += [counted(columns, "more column")] if columns else []
        return f"… {' and '.join(parts)}: .frame has every one" if parts else ""


def _flat(names: Iterable[Name]) -> list[str]:
    return [each for name in names for each in ((name,) if isinstance(name, str) else name)]
