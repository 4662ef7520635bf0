"""Recorded market data: Parquet in, checked columns out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import polars as pl

from toolkit.errors import InputError
from toolkit.market import Market
from toolkit.service.market.source import LONGEST_INTERVAL_HOURS, Kind

KIND_METADATA = "machine_rail.source_kind"
"""Key in a Parquet file's metadata. Its value ``simulated`` is carried on to ``/schemas``."""

_INTEGER, _FLOAT, _TEXT = pl.Int64(), pl.Float64(), pl.String()


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The layout of a file: its name in a directory, its columns, and the rule of a row.

    ``leg`` are the columns that identify a series, ``one_of`` those that may have only one value in
    a series, with the option that chooses among several. ``market`` is that of every leg, None
    where a column has it. ``told_again``: equal rows are one.
    """

    name: str
    columns: Mapping[str, pl.DataType]
    leg: tuple[str, ...]
    one_of: Mapping[str, str]
    valid: pl.Expr
    rule: str
    market: Market | None = None
    told_again: bool = False


LAYOUTS: Mapping[str, Layout] = MappingProxyType(
    {
        "prices": Layout(
            name="prices",
            columns={
                "ts": _INTEGER,
                "symbol": _TEXT,
                "exchange": _TEXT,
                "market": _TEXT,
                "interval_s": _INTEGER,
                "price": _FLOAT,
                "dataset": _TEXT,
            },
            leg=("symbol", "exchange", "market"),
            one_of={"dataset": "--dataset", "interval_s": "interval_s"},
            valid=pl.col("price").is_finite() & (pl.col("price") > 0) & (pl.col("interval_s") >= 0),
            rule="rows without nulls, with a finite price above 0 and an interval of 0 s or more",
        ),
        "funding": Layout(
            name="funding",
            columns={
                "ts": _INTEGER,
                "symbol": _TEXT,
                "exchange": _TEXT,
                "rate": _FLOAT,
                "interval_hours": _FLOAT,
                "dataset": _TEXT,
            },
            leg=("symbol", "exchange"),
            one_of={"dataset": "--dataset"},
            valid=pl.col("rate").is_finite()
            & pl.col("interval_hours").is_between(1, LONGEST_INTERVAL_HOURS)
            & (pl.col("interval_hours") % 1 == 0),
            rule="rows without nulls, with a finite rate and an interval of 1 to "
            f"{LONGEST_INTERVAL_HOURS} whole hours",
            market=Market.FUTURES,
        ),
        "pumps": Layout(
            name="pumps",
            columns={
                "ts": _INTEGER,
                "symbol": _TEXT,
                "exchange": _TEXT,
                "precision_s": _INTEGER,
                "dataset": _TEXT,
            },
            leg=("symbol", "exchange"),
            one_of={"dataset": "--dataset"},
            valid=pl.col("precision_s") >= 1,
            rule="rows without nulls, with a precision of 1 s or more",
            market=Market.SPOT,
            told_again=True,
        ),
    }
)
"""Bars, settlements and announced pumps, each in a file of its own."""

_MARKS = {"rate": "funding", "precision_s": "pumps"}
"""A column that no other layout has. A file without one is meant to be of prices."""

_ALLOWED = "a Parquet file of bars, settlements or pumps, or a directory with {}".format(
    " or ".join(f"{name}.parquet" for name in LAYOUTS)
)


def layout_of(columns: Iterable[str]) -> Layout:
    """Return the layout that a file with these columns is meant to be of."""
    return LAYOUTS[next((_MARKS[name] for name in columns if name in _MARKS), "prices")]


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """The rows of one file, its layout, and the kind of source that it calls itself."""

    layout: Layout
    rows: pl.DataFrame
    kind: Kind

    def only(self, column: str, wanted: Sequence[str | int]) -> Recording:
        """Keep the rows with one of ``wanted``, all if it is empty or without such a column."""
        if not wanted or column not in self.layout.columns:
            return self
        return replace(self, rows=self.rows.filter(pl.col(column).is_in(wanted)))

    def check_one_series_each(self) -> None:
        """Refuse two data sets, two intervals or two rows of one moment in one series."""
        leg = list(self.layout.leg)
        for column, option in self.layout.one_of.items():
            values = self.rows.group_by(leg).agg(pl.col(column).unique().sort())
            mixed = values.filter(pl.col(column).list.len() > 1).sort(leg)
            if not mixed.is_empty():
                *names, found = mixed.row(0)
                said = f"{self._named(names)} in {' and '.join(map(str, found))}"
                advice = f"choose with {option}"
                raise InputError(column, said, "one for each trajectory", advice=advice)
        twice = self.rows.filter(self.rows.select(*leg, "ts").is_duplicated()).sort(*leg, "ts")
        if not twice.is_empty():
            *names, ts = twice.select(*leg, "ts").row(0)
            said = f"{self._named(names)} at ts {ts} twice"
            raise InputError("replay", said, "one row for each trajectory and ts")

    def _named(self, names: Sequence[str]) -> str:
        symbol, *leg = names
        return f"{symbol}:{'.'.join(leg)}" + (f" of {self.layout.name}" if len(leg) == 1 else "")


def recordings(path: Path) -> list[Recording]:
    """Read a file, or those of a directory. Row order is free, other columns are not read.

    Raises `InputError` for no such file, not such a file, or a row that breaks its layout's rule.
    """
    files = [path]
    if path.is_dir():
        files = [path / f"{name}.parquet" for name in LAYOUTS]
        files = [file for file in files if file.is_file()]
    if not files or not all(file.is_file() for file in files):
        raise InputError("replay", str(path), _ALLOWED, advice="there is no such file")
    return [_recording(file) for file in files]


def _recording(file: Path) -> Recording:
    try:
        schema = pl.read_parquet_schema(file)
        layout = layout_of(schema)
        columns = layout.columns
        wrong = [name for name, kind in columns.items() if not _fits(schema.get(name), kind)]
        if wrong:
            advice = f"missing or of another type: {', '.join(wrong)}"
            raise InputError("replay", str(file), _ALLOWED, advice=advice)
        kind = pl.read_parquet_metadata(file).get(KIND_METADATA)
        rows = pl.read_parquet(file, columns=list(columns)).cast(pl.Schema(columns))
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise InputError("replay", str(file), _ALLOWED, advice=f"reading it: {reason}") from error
    bad = rows.filter(pl.any_horizontal(pl.all().is_null()) | ~layout.valid)
    if rows.is_empty() or not bad.is_empty():
        found = "no rows" if rows.is_empty() else f"the row {bad.row(0, named=True)}"
        raise InputError("replay", found, layout.rule)
    rows = rows.unique() if layout.told_again else rows
    return Recording(layout, rows, "simulated" if kind == "simulated" else "replay")


def _fits(given: pl.DataType | None, wanted: pl.DataType) -> bool:
    """Check whether values become ``wanted`` without a guess (a date is not a ``ts``)."""
    if given is None:
        return False
    if wanted == _TEXT:
        return given in (pl.String, pl.Categorical, pl.Enum)
    return given.is_integer() if wanted == _INTEGER else given.is_numeric()
