"""How numbers, times and tables look on the terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from toolkit.loader import Progress as LoadProgress

__all__ = ["console", "duration", "errors", "load_progress", "plain_table"]

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


def plain_table(title: str, *headings: str, left: int = 1) -> Table:
    """A table without lines; the first ``left`` columns are text, the rest are numbers."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < left else "right", no_wrap=place == 0)
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
    """A progress line for a load: rows, pages, share done and time left."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[rows]}  {task.fields[left]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(title, total=1.0, rows="", left="")

        def show(progress: LoadProgress) -> None:
            bar.update(
                task,
                completed=progress.fraction,
                rows=f"{progress.rows:,} rows, {progress.pages:,} pages",
                left=f"{duration(progress.eta_s)} left" if progress.eta_s is not None else "",
            )

        yield show
