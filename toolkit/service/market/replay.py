"""A source that plays published data back: Parquet in, checked columns, one series per leg."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl

from toolkit.errors import InputError
from toolkit.market import Leg, Market, Symbol
from toolkit.service.market.source import (
    LONGEST_INTERVAL_HOURS,
    Bars,
    Kind,
    Pump,
    SettledRates,
    Whole,
)

KIND_METADATA = "machine_rail.source_kind"
"""Key in a Parquet file's metadata. Its value ``simulated`` goes to ``/schemas``."""

_INTEGER, _FLOAT, _TEXT = pl.Int64(), pl.Float64(), pl.String()
_EVERY = {"ts": _INTEGER, "symbol": _TEXT, "exchange": _TEXT, "dataset": _TEXT}


@dataclass(frozen=True, slots=True, eq=False)
class RecordingLayout:
    """The layout of a file: its name in a directory, its columns, and the rule of a row.

    ``leg``: the columns that identify a series. ``one_of``: those with one value per series, and
    the option that chooses it. ``market``: that of every leg, None if a column has it.
    ``told_again``: equal rows are one.
    """

    name: str
    columns: Mapping[str, pl.DataType]
    valid: pl.Expr
    rule: str
    leg: tuple[str, ...] = ("symbol", "exchange")
    one_of: Mapping[str, str] = field(default_factory=lambda: {"dataset": "--dataset"})
    market: Market | None = None
    told_again: bool = False


LAYOUTS: Mapping[str, RecordingLayout] = MappingProxyType(
    {
        "prices": RecordingLayout(
            name="prices",
            columns=_EVERY | {"market": _TEXT, "interval_s": _INTEGER, "price": _FLOAT},
            valid=pl.col("price").is_finite() & (pl.col("price") > 0) & (pl.col("interval_s") >= 0),
            rule="rows without nulls, with a finite price above 0 and an interval of 0 s or more",
            leg=("symbol", "exchange", "market"),
            one_of={"dataset": "--dataset", "interval_s": "interval_s"},
        ),
        "funding": RecordingLayout(
            name="funding",
            columns=_EVERY | {"rate": _FLOAT, "interval_hours": _FLOAT},
            valid=pl.col("rate").is_finite()
            & pl.col("interval_hours").is_between(1, LONGEST_INTERVAL_HOURS)
            & (pl.col("interval_hours") % 1 == 0),
            rule="rows without nulls, with a finite rate and an interval of 1 to "
            f"{LONGEST_INTERVAL_HOURS} whole hours",
            market=Market.FUTURES,
        ),
        "pumps": RecordingLayout(
            name="pumps",
            columns=_EVERY | {"precision_s": _INTEGER},
            valid=pl.col("precision_s") >= 1,
            rule="rows without nulls, with a precision of 1 s or more",
            market=Market.SPOT,
            told_again=True,
        ),
    }
)
"""Bars, settlements and announced pumps, each in a file of its own."""

_MARKS = {"rate": "funding", "precision_s": "pumps"}
"""Columns that tell a layout. A file without one should have prices."""

_ALLOWED = "a Parquet file of bars, settlements or pumps, or a directory with {}".format(
    " or ".join(f"{name}.parquet" for name in LAYOUTS)
)


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """The rows of one file, its layout, and its kind of source."""

    layout: RecordingLayout
    rows: pl.DataFrame
    kind: Kind

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

    A missing or other file, and a row that breaks its layout's rule, are an `InputError`.
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
        layout = LAYOUTS[next((_MARKS[name] for name in schema if name in _MARKS), "prices")]
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
    """Return whether values become ``wanted`` without a guess (a date is not a ``ts``)."""
    if given is None:
        return False
    if wanted == _TEXT:
        return given in (pl.String, pl.Categorical, pl.Enum)
    return given.is_integer() if wanted == _INTEGER else given.is_numeric()


_NO_BARS = Bars(ts=np.empty(0, dtype=np.int64), price=np.empty(0), interval_s=60)


@dataclass(frozen=True, eq=False)
class Replay(Whole):
    """Bars, settlements and announced pumps of files, each leg's series as arrays.

    >>> from tempfile import TemporaryDirectory
    >>> leg = {"symbol": "BTC_USDT", "exchange": "KRAKEN", "market": "spot", "dataset": "one"}
    >>> rows = pl.DataFrame({"ts": [0, 60], "price": [9.5, 9.75], "interval_s": 60, **leg})
    >>> with TemporaryDirectory() as folder:
    ...     rows.write_parquet(Path(folder) / "prices.parquet")
    ...     replay = Replay.read(folder)
    >>> replay.kind, [str(leg) for leg in replay.listing["BTC_USDT"]]
    ('replay', ['KRAKEN.spot'])
    """

    kind: Kind
    id: str
    listing: Mapping[str, tuple[Leg, ...]]
    _bars: Mapping[tuple[str, Leg], Bars] = field(repr=False)
    _funding: Mapping[tuple[str, Leg], SettledRates] = field(repr=False)
    _pumps: Sequence[Pump] = field(repr=False, default=())

    @classmethod
    def read(
        cls,
        path: Path | str,
        *,
        datasets: Sequence[str] = (),
        interval_s: int | None = None,
        renamed: Mapping[str, str] | None = None,
    ) -> Replay:
        """Read a Parquet file, or ``prices``, ``funding`` and ``pumps.parquet`` in a directory.

        Columns of prices: ts (s, Unix UTC, start of the bar), symbol, exchange, market, interval_s
        (s, 0 where rows are moments), price (quote, at the bar's end), dataset. Of funding, for
        futures legs: ts (the settlement), symbol, exchange, rate (fraction per interval),
        interval_hours (h), dataset. Of announced pumps, on spot legs: ts, symbol, exchange,
        precision_s (s), dataset; equal rows are one pump. Others are not read, row order is free.
        ``datasets`` and ``interval_s`` choose among the rows. ``renamed`` maps symbols of the files
        to those they are served as, so that legs quoted in another currency can be compared; the
        source's id shows it.

        Raises
        ------
        InputError
            Not such a file. An absent dataset or interval. One trajectory with two datasets, two
            intervals or one moment twice. A price that is null, not finite or not above 0. An
            invalid rate, interval or name.

        >>> Replay.read("nowhere.parquet")
        Traceback (most recent call last):
        toolkit.errors.InputError: replay: 'nowhere.parquet' is not allowed; allowed: a Parquet ...
        """
        found = _chosen(recordings(Path(path)), "dataset", datasets)
        found = _chosen(found, "interval_s", [] if interval_s is None else [interval_s])
        found = _served_as(found, renamed or {})
        for each in found:
            each.check_one_series_each()
        names = sorted({name for each in found for name in each.rows["dataset"].unique()})
        told = [f"{old}={new}" for old, new in sorted((renamed or {}).items())]
        prices = {
            leg: Bars(np.array(rows["ts"]), np.array(rows["price"]), rows["interval_s"][0])
            for leg, rows in _series(found, "prices")
        }
        funding = {
            leg: SettledRates(
                np.array(rows["ts"]),
                np.array(rows["rate"]),
                np.array(rows["interval_hours"].cast(pl.Int64)),
            )
            for leg, rows in _series(found, "funding")
        }
        pumps = sorted(
            Pump(ts, symbol, leg)
            for (symbol, leg), rows in _series(found, "pumps")
            for ts in rows["ts"]
        )
        listing: dict[str, list[Leg]] = {}
        for symbol, leg in sorted({*prices, *funding, *(each[1:] for each in pumps)}):
            listing.setdefault(symbol, []).append(leg)
        return cls(
            kind="simulated" if any(each.kind == "simulated" for each in found) else "replay",
            id=f"{'+'.join([*names, *told])}-{_content_hash(prices, funding, pumps)}",
            listing=MappingProxyType({symbol: tuple(legs) for symbol, legs in listing.items()}),
            _bars=MappingProxyType(prices),
            _funding=MappingProxyType(funding),
            _pumps=pumps,
        )

    def bars(self, symbol: str, leg: Leg) -> Bars:
        """Return the bars of a leg, empty if only its funding or pumps are known.

        A leg that is not listed is a `KeyError`.
        """
        if leg not in self.listing[symbol]:
            raise KeyError(f"{symbol}:{leg}")
        return self._bars.get((symbol, leg), _NO_BARS)

    def funding(self, symbol: str, leg: Leg) -> SettledRates | None:
        """Return the settlements of a listed futures leg, None where none are known."""
        return self._funding.get((symbol, leg))

    def pumps(self, start: int, end: int) -> Sequence[Pump] | None:
        """Return the announced pumps with ``start <= ts < end``, None without a file of them."""
        first, last = (
            bisect_left(self._pumps, ts, key=lambda each: each.ts) for ts in (start, end)
        )
        return self._pumps[first:last] if self._pumps else None


def _chosen(
    found: Sequence[Recording], column: str, wanted: Sequence[str] | Sequence[int]
) -> list[Recording]:
    """Keep the rows with one of ``wanted``, all rows if it is empty or there is no column."""
    having = [each for each in found if column in each.layout.columns]
    held = sorted({value for each in having for value in each.rows[column].unique()})
    for value in wanted:
        if value not in held:
            raise InputError(column, value, ", ".join(map(str, held)))
    chosen = pl.col(column).is_in(wanted)
    return [
        replace(each, rows=each.rows.filter(chosen)) if wanted and each in having else each
        for each in found
    ]


def _served_as(found: Sequence[Recording], renamed: Mapping[str, str]) -> list[Recording]:
    held = sorted({symbol for each in found for symbol in each.rows["symbol"].unique()})
    for old, new in renamed.items():
        if old not in held:
            raise InputError("renamed", old, ", ".join(held))
        Symbol.parse(new)
    new_names = pl.col("symbol").replace(renamed)
    return [replace(each, rows=each.rows.with_columns(new_names)) for each in found]


def _series(
    found: Sequence[Recording], layout: str
) -> Iterator[tuple[tuple[str, Leg], pl.DataFrame]]:
    for each in found:
        if each.layout.name == layout:
            rows = each.rows.sort("ts").group_by(each.layout.leg, maintain_order=True)
            for (symbol, exchange, *market), series in rows:
                leg = Leg(str(exchange), each.layout.market or market[0])
                yield (str(Symbol.parse(str(symbol))), leg), series


def _content_hash(
    prices: Mapping[tuple[str, Leg], Bars],
    funding: Mapping[tuple[str, Leg], SettledRates],
    pumps: Sequence[Pump],
) -> str:
    """Hash every name, time, price, rate, interval and pump to 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for (symbol, leg), bars in sorted(prices.items(), key=lambda item: item[0]):
        digest.update(f"{symbol}:{leg} {bars.interval_s} {len(bars.ts)}\n".encode())
        digest.update(bars.ts.astype("<i8").tobytes())
        digest.update(bars.price.astype("<f8").tobytes())
    for (symbol, leg), settled in sorted(funding.items(), key=lambda item: item[0]):
        digest.update(f"funding {symbol}:{leg} {len(settled.ts)}\n".encode())
        digest.update(settled.ts.astype("<i8").tobytes())
        digest.update(settled.rate.astype("<f8").tobytes())
        digest.update(settled.interval_hours.astype("<i8").tobytes())
    for ts, symbol, leg in pumps:
        digest.update(f"pump {symbol}:{leg} {ts}\n".encode())
    return digest.hexdigest()[:16]
