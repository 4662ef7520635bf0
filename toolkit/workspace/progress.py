"""Progress bars in a notebook or on a terminal.

A notebook's is updated through the kernel's display. IPython is never imported.
"""

from __future__ import annotations

import contextlib
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from toolkit.cards import duration
from toolkit.cluster import PartsDone
from toolkit.foreign import Html
from toolkit.interrupts import later_interrupt
from toolkit.loader import LoadResult, Progress

_SECONDS_A_LINE = 10
_SECONDS_A_PICTURE = 0.2
_BAR = Html(
    '<div>{} <progress max="1" value="{:.4f}" style="width:16em;vertical-align:middle"></progress>'
    " {}</div>"
)


Advance = Progress | PartsDone
"""A state of progress."""


@dataclass(slots=True)
class Watch:
    """The receiver of a load's progress. Its ``result`` replaces the bar."""

    show: Callable[[Any], object] | None
    result: LoadResult | None = None


@contextlib.contextmanager
def load_progress(title: str, *, lines: bool = False) -> Iterator[Watch]:
    """Show a progress bar in a notebook or terminal, elsewhere ``lines`` every ten seconds.

    >>> with load_progress("3 trajectories") as watch:  # nobody watches a doctest
    ...     print(watch.show)
    None
    """
    if publish := _kernel_display():
        with _in_notebook(title, publish) as watch:
            yield watch
    elif sys.stderr.isatty():
        with _on_terminal(title) as watch:
            yield watch
    else:
        yield Watch(_lines(title) if lines else None)


def _described(progress: Advance, most: int | None = None) -> str:
    left = [] if progress.eta_s is None else [f"{duration(progress.eta_s)} left"]
    return ", ".join([*progress.facts[:most], *left])


def _every(seconds: float, show: Callable[[Advance], object]) -> Callable[[Advance], None]:
    shown_at = 0.0

    def paced(progress: Advance) -> None:
        nonlocal shown_at
        if progress.elapsed_s - shown_at >= seconds:
            shown_at = progress.elapsed_s
            show(progress)

    return paced


def _lines(title: str) -> Callable[[Advance], None]:
    def line(progress: Advance) -> None:
        sys.stderr.write(f"{title}: {progress.fraction:.0%}, {_described(progress)}\n")

    return _every(_SECONDS_A_LINE, line)


@contextlib.contextmanager
def _on_terminal(title: str) -> Iterator[Watch]:
    from rich.progress import BarColumn, TextColumn  # noqa: PLC0415 - only where a terminal watches
    from rich.progress import Progress as Bar  # noqa: PLC0415 - only where a terminal watches

    from toolkit.show.terminal import Terminal  # noqa: PLC0415 - it imports rich

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=12),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[told]}", markup=False),
    )
    console = Terminal(stderr=True)
    bar = Bar(*columns, console=console, transient=True)
    try:  # a Ctrl-C in the middle of a start or an end would leave the cursor hidden
        with later_interrupt():
            bar.start()
        task = bar.add_task(title, total=1.0, told="")
        watch = Watch(
            lambda progress: bar.update(
                task, completed=progress.fraction, told=_described(progress, 1)
            )
        )
        yield watch
    finally:
        with later_interrupt():
            bar.stop()
    if watch.result:
        console.print(str(watch.result))


def _kernel_display() -> Callable[..., object] | None:
    ipython: Any = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython else None
    kernel = getattr(shell, "kernel", None)
    publish: Callable[..., object] | None = shell.display_pub.publish if kernel else None
    return publish


@contextlib.contextmanager
def _in_notebook(title: str, publish: Callable[..., object]) -> Iterator[Watch]:
    transient = {"display_id": uuid.uuid4().hex}

    def put(text: str, html: Html, *, update: bool = True) -> None:
        publish({"text/plain": text, "text/html": html}, transient=transient, update=update)

    def show(progress: Advance) -> None:
        told = f"{progress.fraction:.0%}, {_described(progress)}"
        put(f"{title}: {told}", _BAR.format(title, progress.fraction, told))

    put(f"{title}: 0%", _BAR.format(title, 0.0, "0%"), update=False)
    watch = Watch(_every(_SECONDS_A_PICTURE, show))
    try:
        yield watch
    finally:
        done = str(watch.result) if watch.result else ""
        put(done, Html("<div>{}</div>").format(done) if done else Html(""))
