"""`tk.report`: series and results in one file, pinned to one state of one store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from toolkit.cards import some
from toolkit.errors import InputError, StoreError
from toolkit.reports.answering import MeasuredPart, result_hash
from toolkit.reports.drafting import Draft, check_path, reading_workspace
from toolkit.reports.recipe import Option, Part
from toolkit.series import Series
from toolkit.series.base import MethodCall, Origin, asked_of
from toolkit.store import Store
from toolkit.workspace import Workspace
from toolkit.workspace.events.event_rows import AROUND
from toolkit.workspace.passes import Where

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
    `toolkit.workspace.Workspace.screen`: ``tk.report("r.html", spread, spread.episodes(50))``.
    Each has its definition, n, coverage, window, source, parameters, the SHA-256 of its rows, and
    its code. An existing file is replaced.

    The report is pinned to the store's commits when it is made, to the ``as_of`` of the series, or
    to their publication, and computed from there. `toolkit.reports.verify` computes it again.
    ``against`` is an earlier report: changes since come first. ``cluster`` and ``plain_text``
    compute screens on many processes, as in `toolkit.workspace.Workspace.measure`.

    Raises
    ------
    InputError
        Nothing, or anything but series and results. A result that was filtered, or made with an
        option that is not text, a number or a list. Series of several stores or times, changed or
        not in a store, and rows that changed in the store since they were read. An ``against`` that
        is not a report on the same source. A path that cannot be written.

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
