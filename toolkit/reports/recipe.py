"""Recipe of a report: the data in its file from which it is made again.

A file may come from anybody, so nothing in it runs: a part names a known method and its options.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from toolkit.analyses import Analysis, Family, declared_for
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import Stream, format_ts
from toolkit.series import Series
from toolkit.series.base import BOUND
from toolkit.series.reading import SERIES_OF

FORMAT = 1
"""The version of the file's format."""
TOOLKIT = version("machine-rail-toolkit")
"""The version of this toolkit."""

Value = str | int | float | bool | None
"""A cell of a result, as JSON has it."""
Option = Value | list[str | int | float]
"""An option of a method, as JSON has it."""

_TITLES = {
    "plot": "Through time",
    "summary": "Figures",
    "plot_activity": "When events opened",
    "screen_spreads": "Spreads beside each other",
    "screen_funding": "Funding beside each other",
    "screen": "Series beside each other",
    "symbol": "All legs on one axis of time",
}
_LARGEST_BYTES = 64_000_000
_BLOCK = re.compile(r'<script type="application/json" id="recipe">(.*?)</script>', re.DOTALL)
_REPORT = "a report that `rail report` or tk.report made"


def class_of(key: str) -> type[Series]:
    """Return the class of a stream's series."""
    return SERIES_OF["spread" if key.startswith("pair/") else Stream.parse(key).kind]


def family_of(key: str) -> Family | None:
    """Return the family of the analyses of a stream's series, None without any.

    >>> family_of("events/spread"), family_of("snapshot/spread")
    ('events', None)
    """
    return next((of for each, of in BOUND.items() if issubclass(class_of(key), each)), None)


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure or table over a window ``[start, end)`` (s, UTC).

    ``what`` is a method of the series of ``stream``, or of
    `toolkit.reports.answering.OF_MANY` over all ``streams``.
    """

    what: str
    start: int
    end: int
    stream: str = ""
    streams: tuple[str, ...] = ()
    options: dict[str, Option] = {}

    @property
    def window(self) -> Interval:
        """The window. Raises `InputError` for an invalid one."""
        return Interval.checked(self.start, self.end)

    @property
    def analysis(self) -> Analysis | None:
        """The declared analysis of one series, or None.

        >>> Part("tail_index", 0, 60, stream="A_B:X.spot:Y.spot").analysis.result
        'spread.tail_index'
        """
        family = family_of(self.stream) if self.stream else None
        return None if family is None else declared_for(family, self.what)

    @property
    def name(self) -> str:
        """Its title.

        >>> Part("summary", 0, 60, stream="events/spread").name
        'Figures, events/spread'
        """
        subject = self.stream or str(self.options.get("symbol", ""))
        analysis = self.analysis
        words = self.what.replace("_", " ").capitalize() if analysis is None else analysis.heading
        title = _TITLES.get(self.what, words)
        return f"{title}, {subject}" if subject else title


class PartResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a part: its basis, the hashes of rows and result, and the rows shown.

    ``rows`` counts those of the result. ``chart_hash`` is "" without a chart.
    """

    n: int | None
    coverage: float | None
    data_hash: str
    result_hash: str
    chart_hash: str
    rows: int
    method: str
    shown: list[dict[str, Value]]


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The snapshot of a report: a source, the name of the store's file, and a state.

    The state is ``as_of`` (s, local clock), until which commits count, or a publication's SHA-256.
    """

    kind: str
    id: str
    store: str
    as_of: int | None = None
    publication: str = ""

    @property
    def words(self) -> str:
        """The snapshot in words.

        >>> Pin("replay", "depeg", "rail.duckdb", 0).words
        'rail.duckdb as known at 1970-01-01 00:00 UTC'
        """
        if self.publication:
            then = "" if self.as_of is None else f", as known at {format_ts(self.as_of)}"
            return f"publication {self.publication}{then}"
        return f"{self.store} as known at {format_ts(self.as_of or 0)}"


class Earlier(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The snapshot, parts and answers of the report before."""

    pin: Pin
    parts: list[Part]
    answers: list[PartResult]


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole report. ``fees`` is the label of the fee table, "" without one."""

    format: int
    toolkit: str
    title: str
    pin: Pin
    fees: str
    parts: list[Part]
    answers: list[PartResult]
    earlier: Earlier | None = None

    @property
    def block(self) -> str:
        """The JSON in the file, escaped so that no text in it ends the script."""
        return msgspec.json.encode(self).decode().replace("<", "\\u003c")


def read_recipe(path: str | Path) -> tuple[Recipe, str]:
    """Read a report's recipe, and the whole text.

    Raises `InputError` for a file that is missing, not a report, damaged, or of a newer toolkit.

    >>> read_recipe("none.html")
    Traceback (most recent call last):
    toolkit.errors.InputError: report: 'none.html' is not allowed; allowed: a report that `rail ...
    """
    try:
        if Path(path).stat().st_size > _LARGEST_BYTES:
            raise InputError("report", str(path), f"{_REPORT}, up to {_LARGEST_BYTES:,} bytes")
        text = Path(path).read_bytes().decode(errors="replace")
    except (OSError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("report", str(path), _REPORT, advice=_why(error)) from None
    found = _BLOCK.search(text)
    if found is None:
        raise InputError("report", str(path), _REPORT, advice="it has no recipe in it")
    return _checked(found[1], str(path)), text


def _checked(block: str, path: str) -> Recipe:
    try:
        said: Any = msgspec.json.decode(block)
        form = said.get("format") if isinstance(said, dict) else None
        if isinstance(form, int) and form > FORMAT:
            advice = "it was made by a newer toolkit: upgrade this one"
            raise InputError("report", path, f"one of format {FORMAT}", advice=advice)
        recipe = msgspec.convert(said, Recipe)
    except (msgspec.DecodeError, RecursionError) as error:
        advice = f"its recipe is damaged: {_why(error)}"
        raise InputError("report", path, _REPORT, advice=advice) from None
    if any(len(each.parts) != len(each.answers) for each in (recipe, recipe.earlier) if each):
        raise InputError("report", path, _REPORT, advice="its recipe is damaged: parts differ")
    return recipe


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error).splitlines()[0][:120]
