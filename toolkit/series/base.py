"""Base of every series, and the methods made from declarations of analyses."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import polars as pl

from toolkit.analyses import Analysis, Family, analyses
from toolkit.cards import Card, Shown, duration
from toolkit.errors import InputError, MissingExtraError
from toolkit.intervals import Interval
from toolkit.market import Source, Stream, format_ts, parse_length
from toolkit.series.held_prices import HeldPrices
from toolkit.show.result import Result
from toolkit.show.values import basis_text
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.fees.fee_table import NOTIONAL

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # it ships no types
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class MethodCall:
    """A method call on a series, with the series' facts. A screen has no ``stream``."""

    stream: Any
    window: Any
    origin: Any
    method: str
    options: Mapping[str, object]


_asked: dict[int, MethodCall] = {}  # by the identity of the frame


def remember(result: pl.DataFrame, asked: MethodCall) -> None:
    """Remember the call that made a result, until the result is garbage."""
    key = id(result)
    _asked[key] = asked
    weakref.finalize(result, _asked.pop, key, None).atexit = False


def asked_of(result: pl.DataFrame) -> MethodCall | None:
    """Return the call that made a result, None for any other frame."""
    return _asked.get(id(result))


_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_ZONES = "UTC or an IANA name such as Europe/London"


def checked_options(method: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Make a method refuse an unknown option, and remember the call that made its result."""
    signature = inspect.signature(method)
    names = list(signature.parameters)[1:]

    @functools.wraps(method)
    def checked(*args: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        for name in options:
            if name not in names:
                raise InputError("option", name, names or "none")
        result = method(*args, **options)
        if isinstance(result, pl.DataFrame):
            given = dict(signature.bind(*args, **options).arguments)
            series: Any = given.pop(next(iter(signature.parameters)))
            known = (series.stream, series.window, series.origin)
            remember(result, MethodCall(*known, method.__name__, given))
        return result

    checked.__dict__["options"] = tuple(names)
    return checked


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a series' rows, and what the store knows about them.

    ``as_of`` (s, local clock) is None for now, ``step_s`` (spacing) and ``delay_s`` (of the plan)
    if unknown. ``states`` is `toolkit.store.Store.coverage` of the window, ``polls``
    `toolkit.store.Store.polls`, None without snapshots. ``notes`` are caveats. ``held_prices`` has
    the stored prices of funding legs.
    """

    source: Source
    path: Path
    as_of: int | None = None
    step_s: int | None = None
    delay_s: int | None = None
    states: pl.DataFrame | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    polls: pl.DataFrame | None = field(default=None, repr=False)
    fees: FeeModel | None = field(default=None, repr=False)
    held_prices: HeldPrices | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class Series(Shown):
    """Immutable rows of one stream over one window ``[start, end)``.

    ``rows`` may reach beyond the window. `df` has those of the window.
    """

    stream: Stream
    window: Interval
    origin: Origin
    rows: pl.DataFrame

    @property
    def source(self) -> Source:
        """The source of the rows."""
        return self.origin.source

    @cached_property
    def df(self) -> pl.DataFrame:
        """The rows of the window as a polars frame.

        The columns are those of `toolkit.store.Store.series`, ``.events`` or ``.snapshots``, and
        two Datetimes (UTC). ``time`` is ``ts``, the start of a bar. ``known_at`` is when the
        service first showed the row: the end of its bar (or the time of a settlement, event or
        snapshot) plus the plan's delay, null if unknown. Join other data by it to avoid lookahead.
        """
        inside = self.rows.filter(self._inside())
        known_at = pl.lit(None, pl.Datetime("us", "UTC"))
        if self.origin.delay_s is not None and self._bar_s is not None:
            known_at = pl.col("time") + pl.duration(seconds=self._bar_s + self.origin.delay_s)
        timed = inside.with_columns(time=self._time()).with_columns(known_at=known_at)
        lead = ["trajectory"] if "trajectory" in inside.columns else []
        lead += ["time", "ts", "known_at"]
        return timed.select(*lead, pl.exclude(lead))

    @property
    def _bar_s(self) -> int | None:
        """The time until a row is complete (s), None if unknown."""
        return 0

    def _inside(self) -> pl.Expr:
        return pl.col("ts").is_between(*self.window, closed="left")

    def _time(self) -> pl.Expr:
        seconds = pl.from_epoch("ts", time_unit="s").cast(pl.Datetime("us"))
        return seconds.dt.replace_time_zone("UTC")

    def lazy(self) -> pl.LazyFrame:
        """Return `df` as a LazyFrame."""
        return self.df.lazy()

    def arrow(self) -> pa.Table:
        """Return `df` as an Arrow table."""
        return self.df.to_arrow()

    def pandas(self, timezone: str = "UTC") -> pd.DataFrame:
        """Return `df` as a pandas frame, indexed by ``time`` in the zone ``timezone``.

        Raises `MissingExtraError` without pandas, and `InputError` for an unknown zone.
        """
        if find_spec("pandas") is None:
            raise MissingExtraError("pandas", "pandas")
        if not isinstance(timezone, str):
            raise InputError("timezone", timezone, _ZONES)
        try:
            zoned = self.df.with_columns(pl.col("time", "known_at").dt.convert_time_zone(timezone))
        except pl.exceptions.PolarsError:
            raise InputError("timezone", timezone, _ZONES) from None
        return zoned.to_pandas().set_index("time")

    def __len__(self) -> int:
        return self.df.height

    def __iter__(self) -> Iterator[dict[str, object]]:
        return self.df.iter_rows(named=True)

    @cached_property
    def data_hash(self) -> str:
        """The SHA-256 of the rows of the window as lines of JSON, without `df`'s two times."""
        rows = self.df.drop("time", "known_at")
        return hashlib.sha256(rows.write_ndjson().encode()).hexdigest()

    @property
    def facts(self) -> dict[str, str]:
        """The facts of the series as text, which `save` writes into the file."""
        of, (start, end) = self.origin, map(format_ts, self.window)
        known = {"stream": self.stream.key, "start": start, "end": end, "rows": str(len(self))}
        known["source"] = self.source.label
        known["as_of"] = "" if of.as_of is None else format_ts(of.as_of)
        known["step_s"] = str(of.step_s or "")
        known["delay_s"] = "" if of.delay_s is None else str(of.delay_s)
        known |= {"data_hash": self.data_hash, "notes": "; ".join(of.notes)}
        return {name: value for name, value in known.items() if value}

    def save(self, path: str | Path) -> Path:
        """Write `df` as a Parquet file and return its path. An existing file is replaced.

        Its metadata has `facts` as JSON under the key ``machine_rail``. Raises `InputError` for a
        name without ``.parquet`` and a folder that cannot be written.
        """
        if not isinstance(path, str | PathLike) or Path(path).suffix != ".parquet":
            advice = "for CSV: series.df.write_csv, which has no place for what the series is"
            raise InputError("path", path, "a name that ends in .parquet", advice=advice)
        file = Path(path)
        try:
            self.df.write_parquet(file, metadata={"machine_rail": json.dumps(self.facts)})
        except (OSError, ValueError) as error:
            reason = (getattr(error, "strerror", "") or "no such place").lower()
            allowed = "a file that can be written"
            raise InputError("path", str(path), allowed, advice=reason) from None
        return file

    @checked_options
    def gaps(self) -> pl.DataFrame:
        """List the stretches of the window without stored data, oldest first.

        Columns: ``start`` and ``end`` (Datetime, UTC, half-open), ``length_s`` (s) and ``state``:
        ``empty`` (the service has nothing there), ``not yet known``, ``missing`` (not requested),
        ``lost at the source`` (see `toolkit.store.Store.gaps`) or ``unrecoverable`` (beyond the
        plan's retention), see docs/concepts.md. A pair has its leg's state that comes last in this
        list. Raises `InputError` for an ``as_of`` before the history of the ledger, for snapshots
        and for rows of your own.
        """
        times = pl.from_epoch(pl.col("start_ts", "end_ts"), time_unit="s")
        return (
            self._states.filter(pl.col("state") != "held")
            .with_columns(times.cast(pl.Datetime("us")).dt.replace_time_zone("UTC").name.keep())
            .rename({"start_ts": "start", "end_ts": "end"})
            .with_columns(length_s=(pl.col("end") - pl.col("start")).dt.total_seconds())
            .select("start", "end", "length_s", "state")
        )

    @property
    def _states(self) -> pl.DataFrame:
        """The ledger's states of the window. Raises the errors of `gaps`."""
        states = self.origin.states
        if states is None and self.origin.as_of is not None:
            allowed = "a time since the store keeps the history of its ledger, for gaps"
            raise InputError("as_of", format_ts(self.origin.as_of), allowed)
        if states is None:
            raise InputError("stream", self.stream.key, "a stream that the service answered for")
        return states

    @property
    def footnote(self) -> str:
        """The basis in one line: n, coverage if known, window and source."""
        parts = [basis_text(len(self), self._share())]
        if self.origin.as_of is not None:
            parts.append(f"as of {format_ts(self.origin.as_of)}")
        return f"{', '.join(parts)}, {self.window} of {self.source.label}"

    def _share(self) -> float | None:
        """Return the coverage of the window (fraction), None if unknown."""
        return None

    @abstractmethod
    def _found(self) -> list[tuple[str, str]]:
        """Return the card's facts about the rows."""

    @property
    def card(self) -> Card:
        """Window, rows, coverage and source."""
        facts = [("window", f"{self.window}, {duration(self.window.length_s)}"), *self._found()]
        facts.append(("source", self.source.label))
        if self.origin.fees is not None:
            facts.append(("fees", self.origin.fees.label))
        if self.origin.as_of is not None:
            facts.append(("as of", format_ts(self.origin.as_of)))
        facts += [("note", note) for note in self.origin.notes]
        return Card(f"{type(self).__name__} {self.stream}", facts)

    def __repr__(self) -> str:
        facts = "; ".join(f"{name} {fact}" for name, fact in self.card.facts)
        return f"<{self.card.heading}: {facts}>"


COSTS = {"fees": None, "notional": NOTIONAL, "style": "taker"}
"""The parameters of net figures, with their defaults."""
_EITHER, _BY_NAME = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
_TYPES = {"fees": "FeeModel | None", "notional": "float", "style": "Style"}
BOUND: dict[type[Series], Family] = {}
"""The classes with methods from declarations, each with its family."""
_FRAMES = ("values", "rows", "spreads", "other")
_ON = "Trajectory | str | None"


def bind(series: type[Series], family: Family) -> None:
    """Add to a class of series a method per analysis of `bound_to`."""
    BOUND[series] = family
    for analysis in bound_to(family):
        setattr(series, analysis.name, _method(series, analysis))


def bound_to(family: Family) -> list[Analysis]:
    """Return the analyses of a family that take a single series: the methods."""
    elsewhere = {"figures", "arrivals"}
    own = (each for each in analyses(family) if each.across is None)
    return [each for each in own if not each.takes & elsewhere]


def signature_of(analysis: Analysis) -> inspect.Signature:
    """Return the signature of an analysis' method, required parameters first."""
    own = analysis.written()
    frames = [each for place, each in enumerate(own.values()) if place and each.name in _FRAMES]
    taken = [each.replace(kind=_EITHER, annotation="Frame") for each in frames]
    taken.insert(0, inspect.Parameter("self", _EITHER))
    optional: list[inspect.Parameter] = []
    for each in analysis.parameters:
        given = own[each.name]
        default = given.empty if each.required else each.default
        first = each.required or given.kind is _EITHER
        made = given.replace(default=default, kind=_EITHER if first else _BY_NAME)
        (taken if first else optional).append(made)
    if "events" in analysis.takes:
        optional.append(inspect.Parameter("on", _BY_NAME, default=None, annotation=_ON))
    if "prices" in analysis.takes:
        prices = "Series | pl.DataFrame | None"
        optional.append(inspect.Parameter("prices", _BY_NAME, default=None, annotation=prices))
    if analysis.costs:
        costs = [
            inspect.Parameter(name, _BY_NAME, default=default, annotation=_TYPES[name])
            for name, default in COSTS.items()
        ]
        if analysis.needs_fees:
            taken.append(costs.pop(0).replace(kind=_EITHER))
        optional += costs
    taken.sort(key=lambda each: each.default is not each.empty)
    return inspect.Signature([*taken, *optional], return_annotation="Result")


def _method(series: type[Series], analysis: Analysis) -> Callable[..., Result]:
    signature = signature_of(analysis)

    def method(self: Any, *given: Any, **options: Any) -> Result:
        bound = signature.bind(self, *given, **options)
        bound.apply_defaults()
        asked = dict(bound.arguments)
        del asked["self"]
        for each in analysis.parameters:
            value = asked[each.name]
            if each.kind == "length" and each.name.endswith("_s") and isinstance(value, str):
                asked[each.name] = parse_length(value, parameter=each.name)
        found: pl.DataFrame = self.answer(analysis, **asked)
        return Result.of(found, analysis.columns_in(found.columns))

    method.__name__ = analysis.name
    method.__qualname__ = f"{series.__name__}.{analysis.name}"
    method.__module__ = series.__module__
    method.__doc__ = docstring_of(analysis)
    method.__dict__["__signature__"] = signature
    return checked_options(method)


def docstring_of(analysis: Analysis) -> str:
    """Return the docstring of an analysis' method: sentence, parameters, and a reference."""
    lines = [analysis.sentence, "", f"Formula, columns, errors and an example: `{analysis.path}`."]
    lines += ["", *(f"``{each.name}``: {each.help}" for each in analysis.parameters)]
    if analysis.costs:
        lines.append("``fees``: A fee table. Default: that of the workspace.")
    if "events" in analysis.takes:
        on = "Around the events of its symbol, in place of each event's own"
        lines.append(f"``on``: The trajectory of the values. {on}.")
    return "\n".join(lines).rstrip()
