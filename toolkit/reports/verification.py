"""Computing a report again from its snapshot, and comparing each bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toolkit.cards import counted
from toolkit.errors import InputError, RailError
from toolkit.reports.answering import MeasuredPart, answered, reader
from toolkit.reports.drafting import reading_workspace
from toolkit.reports.page import page
from toolkit.reports.recipe import TOOLKIT, PartResult, Pin, Recipe, read_recipe
from toolkit.statistics.fees.fee_table import FeeModel
from toolkit.store import Store
from toolkit.workspace import Workspace, named_store
from toolkit.workspace.passes import Where


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a report equals the one that its snapshot gives now.

    ``differences`` names the figures that differ, and how. ``page_differs``: the figures are equal
    but the file is another one, with ``page_reason`` as the likely cause.
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
    """Compute a report again from its snapshot, and compare it bit by bit.

    ``store`` is the store or the place of the publication that it was made from, by default
    ``RAIL_STORE`` or ``rail.duckdb``: a path in a report is never opened. It compares each result,
    its rows, each chart, and the whole file. ``fees`` is the fee table of net figures, by default
    the one in force. ``cluster`` and ``plain_text`` are as in
    `toolkit.workspace.Workspace.measure`.

    Raises `InputError` for a file that is not a report, another source's store, a missing
    publication, and another fee table than the report's. See `toolkit.reports.report`.
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
