"""Reports made by `tk.report`, pinned to one state of one store, and verified bit by bit."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

import polars as pl

from toolkit.cards import counted, some
from toolkit.errors import InputError, RailError, StoreError
from toolkit.files import replace_file
from toolkit.reports.answering import MeasuredPart, answered, reader, result_hash
from toolkit.reports.page import page
from toolkit.reports.recipe import (
    FORMAT,
    TOOLKIT,
    Earlier,
    Option,
    Part,
    PartResult,
    Pin,
    Recipe,
    read_recipe,
)
from toolkit.series import Series
from toolkit.series.base import MethodCall, Origin, asked_of
from toolkit.statistics.fees.fee_table import FeeModel
from toolkit.store import Store
from toolkit.workspace import Workspace, named_store
from toolkit.workspace.events.event_selection import AROUND
from toolkit.workspace.selection import Passes, Where


class Draft:
    """Parts over the state of a workspace's store now, or at the workspace's ``as_of``.

    The state is that of the last whole second, so that no later commit belongs to it. ``against``
    is an earlier report. ``on`` is as in `toolkit.reports.answered`.

    Raises `InputError` for a cluster over an unpublished store, and for an ``against`` that is not
    a report on the same source.
    """

    def __init__(self, workspace: Workspace, against: str | Path | None = None, **on: Any) -> None:
        store = workspace.store
        as_of = workspace.known_at
        publication = PurePosixPath(store.published).stem if store.published else ""
        if as_of is None and not publication:
            as_of = int(time.time())
            time.sleep(max(0.0, as_of + 1 - time.time()))
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
        """Compute a part, and append it."""
        found = answered(self.workspace, part, self._read, **self._on)
        self.found.append(found)
        return found

    def write(self, path: str | Path, title: str) -> Path:
        """Write the report atomically, and return its path.

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
    """Return a workspace without a service. ``options`` are those of `Workspace`."""

    def refuse(_closing: contextlib.ExitStack) -> NoReturn:
        raise RailError("a report reads its store alone")

    return Workspace(refuse, store, **options)


def _earlier(against: str | Path, pin: Pin) -> Earlier:
    before, _ = read_recipe(against)
    if (before.pin.kind, before.pin.id) != (pin.kind, pin.id):
        raise InputError("against", str(against), f"a report on {pin.id}, as this one")
    return Earlier(before.pin, before.parts, before.answers)


def check_path(path: str | Path) -> Path:
    """Return the path of a report. Raises `InputError` for another suffix or a missing folder."""
    if not isinstance(path, str | PathLike) or Path(path).suffix.lower() not in (".html", ".htm"):
        raise InputError("path", path, "a name that ends in .html")
    if not Path(path).parent.is_dir():
        raise InputError("path", str(path), "a file in a folder that is there")
    return Path(path)


def _written(path: str | Path, text: str) -> Path:
    file = check_path(path)
    try:
        replace_file(file, text.encode(), mode=0o644)
    except OSError as error:
        reason = (error.strerror or "no such place").lower()
        raise InputError("path", str(path), "a file that can be written", advice=reason) from None
    return file


_OPTIONS = "options of text, numbers and lists of these; a fee table by tk.open(fees=...)"


def report(
    path: str | Path,
    *series_or_results: Series | pl.DataFrame,
    title: str | None = None,
    against: str | Path | None = None,
    cluster: Where | None = None,
    plain_text: bool = False,
) -> Path:
    """Write series and results to one HTML file that needs no network, and return its path.

    A series is drawn and summed up. A result is the unchanged frame of a method of a series, or of
    `toolkit.workspace.Workspace.screen`. Each has its definition, n, coverage, window, source,
    parameters, code and the SHA-256 of its rows. An existing file is replaced.

    The report is pinned to the store's current commits, the ``as_of`` of the series, or their
    publication. ``against`` is an earlier report: changes since come first. ``cluster`` and
    ``plain_text`` are as in `toolkit.workspace.Workspace.measure`.

    Raises
    ------
    InputError
        Nothing, or anything but series and results. A result that was filtered, or has an option
        other than text, numbers or lists. Series of several stores or times, changed or not in a
        store. Rows that changed in the store since they were read. An ``against`` that is not a
        report on the same source. A path that cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import toolkit as tk
    >>> from toolkit.reports import verify
    >>> with tempfile.TemporaryDirectory() as folder, tk.open(f"{folder}/s.duckdb") as rail:
    ...     done = rail.sync("BTC_USDT:AURORA.spot:BOREAS.spot", "2h")
    ...     spread = rail.spread("BTC_USDT:AURORA.spot:BOREAS.spot", "2h")
    ...     file = report(f"{folder}/spread.html", spread, spread.episodes(5))
    ...     verify(file, rail.store).equal
    True
    """
    check_path(path)
    if not series_or_results:
        raise InputError("series_or_results", None, "a series or a result, or several")
    asked = [_asked(each) for each in series_or_results]
    workspace = _workspace_of([each.origin for each in asked])
    draft = Draft(workspace, against, cluster=cluster, plain_text=plain_text)
    for given, each in zip(series_or_results, asked, strict=True):
        for part in _parts(given, each):
            _check_same(given, draft.add(part))
    streams = list(dict.fromkeys(part.part.stream or part.part.name for part in draft.found))
    return draft.write(path, title or f"Report on {some(streams, at_most=2)}")


def _asked(given: object) -> MethodCall:
    if isinstance(given, Series):
        return MethodCall(given.stream, given.window, given.origin, "plot", {})
    found = asked_of(given) if isinstance(given, pl.DataFrame) else None
    if found is None:
        what = "a frame" if isinstance(given, pl.DataFrame) else given
        allowed = "a series of tk.open, what a method of one returned, or a screen, unchanged"
        raise InputError("series_or_results", what, allowed)
    return found


def _parts(given: object, asked: MethodCall) -> list[Part]:
    key, (start, end) = "" if asked.stream is None else asked.stream.key, asked.window
    whats = [asked.method]
    if isinstance(given, Series):
        whats = [each for each in ("plot", "summary") if hasattr(type(given), each)]
    given_options = {name: each for name, each in asked.options.items() if name not in AROUND}
    options = {name: _option(name, value) for name, value in given_options.items()}
    return [Part(what, start, end, stream=key, options=options) for what in whats]


def _option(name: str, value: Any) -> Option:
    if isinstance(value, list | tuple) and all(
        isinstance(each, str | int | float) for each in value
    ):
        return list(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise InputError(name, value, _OPTIONS)


def _workspace_of(origins: Sequence[Origin]) -> Workspace:
    for name in ("path", "as_of"):
        several = list(dict.fromkeys(getattr(origin, name) for origin in origins))
        if len(several) > 1:
            shown = ", ".join("now" if each is None else str(each) for each in several)
            raise InputError("series_or_results", shown, f"series of one {name.replace('_', ' ')}")
    first = origins[0]
    store = Store(first.path)
    try:
        held = store.source
    except StoreError as error:
        advice = f"{error}; `rail import` keeps rows of your own in one"
        raise InputError(
            "series_or_results", str(first.path), "series of a store", advice=advice
        ) from None
    if held != first.source:
        raise InputError("series_or_results", first.source.label, f"series of {held.label}")
    fees = next((each.fees for each in origins if each.fees is not None), None)
    return reading_workspace(store, as_of=first.as_of, fees=fees)


def _check_same(given: Series | pl.DataFrame, found: MeasuredPart) -> None:
    if isinstance(given, Series):
        same = found.answer.data_hash == given.data_hash
    else:
        same = found.answer.result_hash == result_hash(given)
    if not same:
        raise InputError(
            "series_or_results",
            found.part.name,
            "rows as the store has them: not resampled, turned or joined in another way",
            advice="read it again if the store took rows since",
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """The comparison of a report with the one that its snapshot gives now.

    ``differences`` has a line per difference of figures. If only the file differs
    (``page_differs``), ``page_reason`` is the likely cause.
    """

    recipe: Recipe
    differences: tuple[str, ...]
    page_differs: bool
    page_reason: str = ""

    @property
    def equal(self) -> bool:
        """Whether every figure and every byte of the file is equal."""
        return not self.differences and not self.page_differs

    def __str__(self) -> str:
        parts = counted(len(self.recipe.parts), "part")
        of = f"{parts}, computed again from {self.recipe.pin.words}"
        if self.equal:
            return f"equal: {of}"
        if not self.differences:
            return (
                f"not equal: {of}: all figures are equal, and the page is not: {self.page_reason}"
            )
        return "\n".join([f"not equal: {of}", *self.differences])


def verify(
    report: str | Path,
    store: Store | str | Path | None = None,
    *,
    fees: FeeModel | str | Path | None = None,
    cluster: Where | None = None,
    plain_text: bool = False,
) -> Verification:
    """Compute a report again from its snapshot, and compare each result, chart and byte.

    ``store`` is the store or publication that it was made from, by default ``RAIL_STORE`` or
    ``rail.duckdb``: a path in a report is never opened. ``fees`` is the fee table, by default the
    one in force. ``cluster`` and ``plain_text`` are as in `toolkit.workspace.Workspace.measure`.

    Raises `InputError` for a file that is not a report, another source's store, a missing
    publication, and another fee table than the report's.
    """
    recipe, text = read_recipe(report)
    workspace = _workspace(recipe, store, fees)
    read, differences = reader(workspace), list[str]()
    found: list[MeasuredPart] = []
    for number, (part, answer) in enumerate(zip(recipe.parts, recipe.answers, strict=True), 1):
        name = f"{number}. {part.name}"
        try:
            again = answered(workspace, part, read, cluster=cluster, plain_text=plain_text)
        except RailError as error:
            differences.append(f"{name}: cannot be computed any more: {error}")
            continue
        found.append(again)
        differences += [f"{name}: {words}" for words in _differences(answer, again.answer)]
    if differences:
        return Verification(recipe, tuple(differences), page_differs=True)
    same = page(recipe, [each.chart for each in found]) == text
    reason = "it was changed after it was made, or drawn by another version of plotly"
    if recipe.toolkit != TOOLKIT:
        reason = f"it was drawn by toolkit {recipe.toolkit}, this is {TOOLKIT}"
    return Verification(recipe, (), not same, "" if same else reason)


def _workspace(
    recipe: Recipe, store: Store | str | Path | None, fees: FeeModel | str | Path | None
) -> Workspace:
    pin = recipe.pin
    held = store if isinstance(store, Store) else named_store(_place(pin, store))
    source = held.source
    if (source.kind, source.id) != (pin.kind, pin.id):
        raise InputError("store", str(held.path), f"the store of {pin.id}; it has {source.label}")
    if pin.publication and pin.publication not in held.published:
        advice = "name the place that it was published to: --store archive"
        raise InputError("store", str(held.path), f"{pin.words}", advice=advice)
    if not pin.publication and held.published:
        raise InputError("store", held.published, f"the store that {pin.words} is of")
    workspace = reading_workspace(held, as_of=pin.as_of, fees=fees)
    if not recipe.fees and fees is None and workspace.fees is not None:
        raise InputError("fees", workspace.fees.label, "none, as in the report", advice=_NO_FEES)
    label = "" if workspace.fees is None else workspace.fees.label
    if label != recipe.fees:
        raise InputError("fees", label or None, f"the report's table {recipe.fees}")
    return workspace


_NO_FEES = "run it where no rail.toml names a fee table"


def _place(pin: Pin, store: str | Path | None) -> str | Path | None:
    if not pin.publication or store is None or str(store).endswith(".json"):
        return store
    if len(pin.publication) != 64 or not set(pin.publication) <= set("0123456789abcdef"):
        raise InputError("report", pin.publication, "one that names its publication's SHA-256")
    return f"{str(store).rstrip('/')}/manifests/{pin.publication}.json"


def _differences(before: PartResult, now: PartResult) -> Iterator[str]:
    if before.data_hash != now.data_hash:
        yield f"the rows are others: {before.n} were there, {now.n} are"
    if before.result_hash != now.result_hash:
        yield "the result is another one" + _first(before, now)
    elif before.shown != now.shown or before.rows != now.rows:
        yield "figures in the file are not those of its own hash" + _first(before, now)
    if before.chart_hash != now.chart_hash:
        yield "the chart is drawn from other values, or by another version"
    for name in ("n", "coverage", "method"):
        if getattr(before, name) != getattr(now, name):
            yield f"{name} was {getattr(before, name)}, is {getattr(now, name)}"


def _first(before: PartResult, now: PartResult) -> str:
    if len(before.shown) != len(now.shown):
        return f": {before.rows} rows, now {now.rows}"
    pairs = [
        f"{name} {row.get(name)}, now {value}"
        for row, other in zip(before.shown, now.shown, strict=True)
        for name, value in other.items()
        if row.get(name) != value
    ]
    return f": {'; '.join(pairs[:3])}" if pairs else ""
