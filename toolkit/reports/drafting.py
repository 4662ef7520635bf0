"""A report while it is made: parts computed over one pinned state of one store, and its file."""

from __future__ import annotations

import contextlib
import tempfile
import time
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from toolkit.errors import InputError, RailError
from toolkit.reports.answering import MeasuredPart, answered, reader
from toolkit.reports.page import page
from toolkit.reports.recipe import FORMAT, TOOLKIT, Earlier, Part, Pin, Recipe, read_recipe
from toolkit.store import Store
from toolkit.workspace import Workspace
from toolkit.workspace.passes import Passes


class Draft:
    """Parts over the state of a workspace's store now, or at the workspace's own time.

    The state is that of the last whole second, so that no later commit belongs to it. ``against``
    is the report before. ``on`` is as in `toolkit.reports.answered`.

    Raises `InputError` for a cluster over a store that is not published, and for an ``against``
    that is not a report on the same source.
    """

    def __init__(self, workspace: Workspace, against: str | Path | None = None, **on: Any) -> None:
        store = workspace.store
        as_of = workspace.known_at
        publication = PurePosixPath(store.published).stem if store.published else ""
        if as_of is None and not publication:
            as_of = int(time.time())
            time.sleep(max(0.0, as_of + 1 - time.time()))  # a later commit has another second
            workspace = workspace.as_of(as_of)
        Passes.of(store, on.get("cluster"), plain_text=on.get("plain_text", False))
        source = store.source
        self.workspace = workspace
        name = "" if publication else store.path.name
        self.pin = Pin(source.kind, source.id, name, as_of, publication)
        self.earlier = None if against is None else _earlier(against, self.pin)
        self.found: list[MeasuredPart] = []
        self._read, self._on = reader(workspace), on

    def add(self, part: Part) -> MeasuredPart:
        """Compute a part, which comes after those added before."""
        found = answered(self.workspace, part, self._read, **self._on)
        self.found.append(found)
        return found

    def write(self, path: str | Path, title: str) -> Path:
        """Write the report and return its path. It appears whole, or the file stays as it was.

        Raises `InputError` for a path that cannot be written.
        """
        fees = self.workspace.fees
        recipe = Recipe(
            FORMAT,
            TOOLKIT,
            title,
            self.pin,
            "" if fees is None else fees.label,
            [each.part for each in self.found],
            [each.answer for each in self.found],
            self.earlier,
        )
        return _written(path, page(recipe, [each.chart for each in self.found]))


def reading_workspace(store: Store, **options: Any) -> Workspace:
    """Return a workspace that reads a store and asks no service. ``options`` are `Workspace`'s."""
    return Workspace(_no_service, store, **options)


def _no_service(_closing: contextlib.ExitStack) -> NoReturn:
    raise RailError("a report reads its store alone")


def _earlier(against: str | Path, pin: Pin) -> Earlier:
    before, _ = read_recipe(against)
    if (before.pin.kind, before.pin.id) != (pin.kind, pin.id):
        raise InputError("against", str(against), f"a report on {pin.id}, as this one")
    return Earlier(before.pin, before.parts, before.answers)


def check_path(path: str | Path) -> Path:
    """Return the file of a report. Raises `InputError` for a name that is not one.

    >>> check_path("report.pdf")
    Traceback (most recent call last):
    toolkit.errors.InputError: path: 'report.pdf' is not allowed; allowed: a name that ends in .html
    """
    if not isinstance(path, str | PathLike) or Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError("path", path, "a name that ends in .html")
    if not Path(path).parent.is_dir():
        raise InputError("path", str(path), "a file in a folder that is there")
    return Path(path)


def _written(path: str | Path, text: str) -> Path:
    file = check_path(path)
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=file.parent, prefix=".report-", delete=False
        ) as draft:
            draft.write(text)
        Path(draft.name).chmod(0o644)
        Path(draft.name).replace(file)
    except OSError as error:
        reason = (error.strerror or "no such place").lower()
        raise InputError("path", str(path), "a file that can be written", advice=reason) from None
    return file
