"""A source that plays published bars back: Parquet in, one array pair a leg."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl

from toolkit.errors import InputError
from toolkit.market import Leg, Symbol
from toolkit.service.source import Bars, Kind

__all__ = ["KIND_METADATA", "Replay"]

KIND_METADATA = "machine_rail.source_kind"
"""Key in a Parquet file's metadata; its value ``simulated`` is carried on to ``/schemas``."""

_INTEGER, _FLOAT, _TEXT = pl.Int64(), pl.Float64(), pl.String()
_COLUMNS = {
    "ts": _INTEGER,
    "symbol": _TEXT,
    "exchange": _TEXT,
    "market": _TEXT,
    "interval_s": _INTEGER,
    "price": _FLOAT,
    "dataset": _TEXT,
}
_LEG = ["symbol", "exchange", "market"]


@dataclass(frozen=True)
class Replay:
    """Bars of a file, each leg's series held as two arrays.

    Examples
    --------
    >>> from toolkit.service import miniature
    >>> replay = Replay.read(miniature.PATH)
    >>> replay.kind, [str(leg) for leg in replay.listing["BTC_USDT"]][:2]
    ('simulated', ['AURORA.spot', 'BOREAS.spot'])
    """

    kind: Kind
    id: str
    listing: Mapping[str, tuple[Leg, ...]]
    _series: Mapping[tuple[str, Leg], Bars] = field(repr=False)

    @classmethod
    def read(
        cls, path: Path | str, *, datasets: Sequence[str] = (), interval_s: int | None = None
    ) -> Replay:
        """The bars of a Parquet file, or of ``prices.parquet`` in a directory.

        Columns: ts (s, Unix UTC, start of the bar), symbol, exchange, market, interval_s (s; 0
        where rows are moments), price (quote, at the bar's end), dataset; others are not read.
        ``datasets`` and ``interval_s`` choose among what the file holds. Row order is free.

        Raises
        ------
        InputError
            no such file, not such a file, a dataset or an interval it does not hold; one
            trajectory from two datasets, with two intervals or with one moment twice; a price
            that is null, not finite or not above 0; a name that is none.

        Examples
        --------
        >>> from toolkit.service import miniature
        >>> Replay.read(miniature.PATH, datasets=["iaqf"])
        Traceback (most recent call last):
        toolkit.errors.InputError: dataset: 'iaqf' is not allowed; allowed: miniature
        """
        file = Path(path) / "prices.parquet" if Path(path).is_dir() else Path(path)
        frame, kind = _load(file)
        frame = _choose(frame, "dataset", list(datasets))
        frame = _choose(frame, "interval_s", [] if interval_s is None else [interval_s])
        _check_one_series_each(frame)
        names = sorted(frame["dataset"].unique())
        series = _series(frame)
        legs: dict[str, list[Leg]] = {}
        for symbol, leg in sorted(series):
            legs.setdefault(symbol, []).append(leg)
        return cls(
            kind=kind,
            id=f"{'+'.join(names)}-{_content_hash(series)}",
            listing=MappingProxyType({symbol: tuple(each) for symbol, each in legs.items()}),
            _series=MappingProxyType(series),
        )

    def bars(self, symbol: str, leg: Leg) -> Bars:
        """The series of a listed leg; a `KeyError` for one that is not listed.

        Examples
        --------
        >>> from toolkit.service import miniature
        >>> Replay.read(miniature.PATH).bars("BTC_USDT", Leg.parse("AURORA.spot")).interval_s
        60
        """
        return self._series[symbol, leg]


def _load(file: Path) -> tuple[pl.DataFrame, Kind]:
    """The file's needed columns in their types, and the kind of source it calls itself."""
    allowed = "a Parquet file of bars, or a directory that holds prices.parquet"
    if not file.is_file():
        raise InputError("replay", str(file), allowed, advice="there is no such file")
    try:
        schema = pl.read_parquet_schema(file)
        wrong = [name for name, kind in _COLUMNS.items() if not _fits(schema.get(name), kind)]
        if wrong:
            advice = f"missing or of another type: {', '.join(wrong)}"
            raise InputError("replay", str(file), allowed, advice=advice)
        kind = pl.read_parquet_metadata(file).get(KIND_METADATA)
        frame = pl.read_parquet(file, columns=list(_COLUMNS)).cast(pl.Schema(_COLUMNS))
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise InputError("replay", str(file), allowed, advice=f"reading it: {reason}") from error
    bad = frame.filter(
        pl.any_horizontal(pl.all().is_null())
        | ~pl.col("price").is_finite()
        | (pl.col("price") <= 0)
        | (pl.col("interval_s") < 0)
    )
    if frame.is_empty() or not bad.is_empty():
        found = "no rows" if frame.is_empty() else f"the row {bad.row(0, named=True)}"
        rule = "rows without nulls, with a finite price above 0 and an interval of 0 s or more"
        raise InputError("replay", found, rule)
    return frame, "simulated" if kind == "simulated" else "replay"


def _fits(given: pl.DataType | None, wanted: pl.DataType) -> bool:
    """Whether a column's values become ``wanted`` without a guess (a date is no ``ts``)."""
    if given is None:
        return False
    if wanted == _TEXT:
        return given in (pl.String, pl.Categorical, pl.Enum)
    return given.is_integer() if wanted == _INTEGER else given.is_numeric()


def _choose(frame: pl.DataFrame, column: str, wanted: Sequence[str | int]) -> pl.DataFrame:
    """The rows with one of the values wanted (none named: all rows)."""
    held = sorted(frame[column].unique())
    for value in wanted:
        if value not in held:
            raise InputError(column, value, ", ".join(map(str, held)))
    return frame.filter(pl.col(column).is_in(wanted)) if wanted else frame


def _check_one_series_each(frame: pl.DataFrame) -> None:
    """One trajectory is one series, of one dataset and of one interval."""
    for column, option in (("dataset", "--dataset"), ("interval_s", "interval_s")):
        mixed = (
            frame.group_by(_LEG)
            .agg(pl.col(column).unique().sort())
            .filter(pl.col(column).list.len() > 1)
            .sort(_LEG)
        )
        if not mixed.is_empty():
            symbol, exchange, market, values = mixed.row(0)
            found = f"{symbol}:{exchange}.{market} in {' and '.join(map(str, values))}"
            raise InputError(
                column, found, "one for each trajectory", advice=f"choose with {option}"
            )


def _series(frame: pl.DataFrame) -> dict[tuple[str, Leg], Bars]:
    series = {}
    for (symbol, exchange, market), rows in frame.sort("ts").group_by(_LEG, maintain_order=True):
        leg = Leg(exchange, market)
        ts = np.array(rows["ts"])
        twice = ts[1:][np.diff(ts) == 0]
        if len(twice):
            found = f"{Symbol.parse(symbol)}:{leg} at ts {twice[0]} twice"
            raise InputError("replay", found, "one row for each trajectory and ts")
        series[str(Symbol.parse(symbol)), leg] = Bars(
            ts=ts, price=np.array(rows["price"]), interval_s=rows["interval_s"][0]
        )
    return series


def _content_hash(series: Mapping[tuple[str, Leg], Bars]) -> str:
    """16 hexadecimal digits that change with any name, time, price or interval served."""
    digest = hashlib.sha256()
    for (symbol, leg), bars in sorted(series.items(), key=lambda item: item[0]):
        digest.update(f"{symbol}:{leg} {bars.interval_s} {len(bars.ts)}\n".encode())
        digest.update(bars.ts.astype("<i8").tobytes())
        digest.update(bars.price.astype("<f8").tobytes())
    return digest.hexdigest()[:16]
