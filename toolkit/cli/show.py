"""How numbers, times and tables look on the terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from toolkit.loader import Progress as LoadProgress

__all__ = ["console", "duration", "errors", "load_progress", "plain_table"]

_WIDTH_OF_A_PIPE = 160
_SECONDS_A_LINE = 10

console = Console(
    highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _WIDTH_OF_A_PIPE
)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def plain_table(*headings: str) -> Table:
    """A table without lines; the first column is text, the others are numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(headings[0], overflow="fold", min_width=20)
    for heading in headings[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def duration(seconds: float | None) -> str:
    """Seconds in the largest two units that fit: 95 -> 1 min 35 s.

    Examples
    --------
    >>> duration(95), duration(7200), duration(0.25), duration(None)
    ('1 min 35 s', '2 h', '0.25 s', '–')
    """
    if seconds is None:
        return "–"
    if seconds < 60:
        return f"{seconds:.3g} s"
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    left, parts = round(seconds), []
    for name, size in units:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


@contextlib.contextmanager
def load_progress(title: str) -> Iterator[Callable[[LoadProgress], None]]:
    """A progress line for a load: a bar on a terminal, a line every ten seconds elsewhere."""
    if not errors.is_terminal:
        yield _lines(title)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[told]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(title, total=1.0, told="")

        def show(progress: LoadProgress) -> None:
            bar.update(task, completed=progress.fraction, told=_told(progress))

        yield show


def _told(progress: LoadProgress) -> str:
    left = "" if progress.eta_s is None else f", {duration(progress.eta_s)} left"
    return f"{progress.rows:,} rows, {progress.pages:,} pages{left}"


def _lines(title: str) -> Callable[[LoadProgress], None]:
    told_at = 0.0

    def show(progress: LoadProgress) -> None:
        nonlocal told_at
        if progress.elapsed_s - told_at >= _SECONDS_A_LINE:
            told_at = progress.elapsed_s
            errors.print(f"{title}: {progress.fraction:.0%}, {_told(progress)}")

    return show
