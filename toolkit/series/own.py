"""Rows of one's own as a series: prices, spreads, funding or events."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import polars as pl

from toolkit.cards import counted
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import (
    TYPE_ROLES,
    EventFamily,
    EventLog,
    Family,
    Leg,
    Source,
    Stream,
    Symbol,
    Trajectory,
    format_ts,
)
from toolkit.series.base import Origin
from toolkit.series.logs import EventSeries
from toolkit.series.own_files import (
    LAYOUTS,
    Decimal,
    FileLayout,
    Stamp,
    Unit,
    bar_starts,
    columns_of,
    commonest_step,
    moments,
    number,
    read_rows,
)
from toolkit.series.trajectories import FundingSeries, PriceSeries, SpreadSeries
from toolkit.statistics.core.contract import whole_number
from toolkit.statistics.families import FAMILIES
from toolkit.store.reading.scanning import value_columns
from toolkit.tables import BROUGHT, EVENT

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # it ships no types

OURS = ("symbol", "kind", "size", "exchange", "market")
"""Columns of a list of events, apart from ``ts``. The last three are optional."""


def event_series(log: EventLog, rows: pl.DataFrame, origin: Origin) -> EventSeries:
    """Return the log of a list of events: ``ts`` in microseconds, and columns of `OURS`.

    Each row opens an event, unless its kind is closed or faded. Kinds other than pump and dump
    count as a pump. The log covers the first row to the last.
    """
    if log.family is not EventFamily.SPLASH:
        allowed = "events/splash: rows of one's own are of one leg or none"
        raise InputError("stream", log.key, allowed)
    words = ["symbol", "kind", *(name for name in ("exchange", "market") if name in rows.columns)]
    rows = rows.with_columns(pl.col(words).cast(pl.String).str.strip_chars())
    for name in words:
        if missing := rows[name].null_count():
            raise InputError("columns", f"{counted(missing, 'null')} of {name}", "one in each row")
    for symbol in rows["symbol"].unique().sort():
        Symbol.parse(symbol)
    if ("exchange" in words) != ("market" in words):
        raise InputError("columns", ", ".join(words), "exchange and market (spot, ...), or neither")
    if "market" in words:
        for each in rows.select("exchange", "market").unique().sort("exchange").iter_rows():
            Leg.parse(".".join(each))
    documents = _documents(log, rows)
    first, last = (int(each) for each in (documents["ts"][0], documents["ts"][-1]))
    window = Interval(first, last + 1)
    family = {"family": [log.family.value]}
    return EventSeries(
        log,
        window,
        origin,
        documents,
        logs=pl.DataFrame(family | {"known_until": [window.end]}),
        held=pl.DataFrame(family | {"start_ts": [first], "end_ts": [window.end]}),
    )


def _documents(log: EventLog, rows: pl.DataFrame) -> pl.DataFrame:
    given = [name for name in OURS if name in rows.columns]
    written = rows.select(
        pl.struct((pl.col("ts") // 1_000).alias("ts_ms"), *given).struct.json_encode()
    ).to_series()
    ids = [f"own:{hashlib.sha256(text.encode()).hexdigest()[:24]}" for text in written]
    kind = pl.col("kind").str.to_lowercase()
    known = kind.is_in(list(TYPE_ROLES))
    ending = pl.when(known).then(kind).otherwise(pl.concat_str("kind", pl.lit(".opened")))
    values: dict[str, pl.Expr] = {
        "family": pl.lit(log.family.value),
        "event_id": pl.lit(pl.Series(ids)),
        "event_type": pl.concat_str(pl.lit(f"{log.family}."), ending),
        "ts_ms": pl.col("ts") // 1_000,
        "ts": pl.col("ts") // 10**6,
        "symbol": pl.col("symbol"),
        "document": pl.lit(written),
    }
    optional = {"buy_exchange": "exchange", "buy_market": "market", "magnitude_pct": "size"}
    values |= {ours: pl.col(name) for ours, name in optional.items() if name in given}
    schema = {n: kind for n, kind in EVENT.schema.items() if n not in ("revision", *BROUGHT)}
    found = rows.select(
        values.get(name, pl.lit(None)).cast(kind).alias(name) for name, kind in schema.items()
    )
    found = found.sort("ts_ms", "event_id").with_row_index("arrival")
    return found.with_columns(pl.col("arrival").cast(pl.Int64))


Rates = Literal["fraction", "percent"]
"""The unit of funding rates, per interval."""
Shared = Literal["first", "last", "mean"]
"""The row taken of several in one second."""

_NEEDED = {
    Family.PRICE: ("price",),
    Family.SPREAD: ("buy_price", "sell_price"),
    Family.FUNDING: ("buy_rate", "sell_rate"),
}
_SERIES_OF: dict[Family, type[PriceSeries | SpreadSeries | FundingSeries]] = {
    Family.PRICE: PriceSeries,
    Family.SPREAD: SpreadSeries,
    Family.FUNDING: FundingSeries,
}
_OF_ONE_LEG = {"rate": "sell_rate", "interval_hours": "sell_interval_hours"}
"""Our columns for the funding of one leg, in which a position is short."""
_WORDS = ("symbol", "kind", "exchange", "market")
_PRICES = ("price", "mark_price", "buy_price", "sell_price")
_RATES = ("buy_rate", "sell_rate")
_LARGE, _LARGE_MEDIAN = 0.05, 0.002
"""Limits of a rate per interval, and of their median, without an explicit unit."""


def own_series(
    data: pl.DataFrame | pd.DataFrame | pd.Series | str | Path,
    stream: Stream | str,
    *,
    layout: str | None = None,
    columns: Mapping[str, str | int] | Sequence[str | int] | None = None,
    decimal: Decimal | None = None,
    unit: Unit | None = None,
    format: str | None = None,  # noqa: A002 - the word of the command line
    timezone: str | None = None,
    stamped: Stamp = "start",
    step_s: int | None = None,
    shared: Shared | None = None,
    rates: Rates | None = None,
    name: str = "a frame",
) -> PriceSeries | SpreadSeries | FundingSeries | EventSeries:
    """Make a series of your own rows.

    ``data`` is a frame of polars or pandas, or a file .csv, .tsv, .txt or .json (also .gz or .zst),
    or .parquet. Separator, header and UTF-16 are detected. A pandas index is a column, ``ts`` if
    unnamed. A pandas series has prices. ``stream`` is a key with any exchange:
    ``BTC_USD:VENDOR.spot``, two legs for a spread, ``funding/`` with one or two legs for settled
    rates, ``events/splash`` for events.

    ``columns`` has the name, or place from 1, of each column not named as ours: ``{"ts": "time",
    "price": 5}``, or those of ``ts`` and the required ones in order: ``(1, 5)``. ``"Date+Time"``
    joins two columns. ``layout`` names known columns and unit, see
    `toolkit.series.own_files.LAYOUTS`. Our columns are price, mark_price and volume; buy_price,
    sell_price and spread_pct; buy_rate, sell_rate, buy_interval_hours and sell_interval_hours.
    Funding of one leg has rate and interval_hours, events have symbol, kind and optionally size
    (percent), exchange and market, see docs/own-data.md. NA, None, -, NaN and infinite values are
    null. ``decimal`` is the decimal mark in texts, . or a comma. The other one separates thousands.

    Rows may come in any order. Repeats are left out. Other rows in one second are refused, unless
    ``shared`` takes the first, last or mean.

    A time is a number in ``unit`` since 1970 (default: seconds, or those of the layout), a date, a
    Datetime, or text: 2023-03-10 12:00:00, or by ``format``, as of ``strptime`` (``"%d/%m/%Y
    %H:%M"``). Times without a zone need ``timezone``. All lie in 2009 to 2099. ``stamped="end"``
    moves times from the end of a bar to its start. The last moment of a bar (12:00:59,
    12:00:59.999) is its end. The step is ``step_s``, else the commonest difference. Settlements are
    moments, to the second.

    ``rates`` are fractions or percent per interval. By default they are fractions, and rates beyond
    5 %, or with a median beyond 0.2 %, are refused.

    The window is from the first row to the end of the last. The notes count rows moved, left out or
    off the grid. Nothing is stored, and missing rows are unknown. ``name`` is the source, by
    default a file's name and hash.

    Raises
    ------
    InputError
        An unknown file, layout, stream, column, number, unit or zone. A time that is null,
        unreadable, ambiguous (03/01/2023) or in other years. Times of two units. Last moments of
        bars stamped at their start. Rows that share a time. A price not above 0. Too large rates.
        No row.

    Examples
    --------
    >>> frame = pl.DataFrame({"time": ["2023-03-10 00:01", "2023-03-10 00:02"], "close": [2.0, 3]})
    >>> mine = own_series(frame, "BTC_USD:VENDOR.spot", columns={"ts": "time", "price": "close"},
    ...     timezone="UTC", stamped="end")
    >>> mine.df.select("time", "price").row(0)
    (datetime.datetime(2023, 3, 10, 0, 0, tzinfo=zoneinfo.ZoneInfo(key='UTC')), 2.0)
    """
    asked = Stream.parse(stream)
    if not isinstance(asked, EventLog):
        asked = Trajectory.parse(asked)
    _check_words(
        unit=(unit, Unit),
        stamped=(stamped, Stamp),
        rates=(rates, Rates),
        decimal=(decimal, Decimal),
        shared=(shared, Shared),
    )
    known = _layout(layout, asked)
    named = columns.values() if isinstance(columns, Mapping) else columns or ()
    frame, source, path = read_rows(data, name, list(map(str, named)))
    ours, needed = _columns(asked)
    mapped = _mapped(columns, known, asked, needed, frame)
    ours = [each for each in ours if layout is None or each in mapped]
    rows = columns_of(frame, ours, needed, mapped)
    numbers = [each for each in rows.columns if each not in ("ts", *_WORDS)]
    values = [number(rows[each], decimal) for each in numbers]
    us = moments(rows["ts"], [unit] if unit else known.units, timezone, format)
    rows = rows.with_columns(us.alias("ts"), *values).sort("ts", maintain_order=True)
    given = rows.height
    rows = rows.unique(maintain_order=True)
    notes = []
    if left_out := given - rows.height:
        verb = "repeats" if left_out == 1 else "repeat"
        notes.append(f"{counted(left_out, 'row')} left out that {verb} another")
    if step_s is not None:
        whole_number("step_s", step_s, 1, "seconds")
    step = commonest_step(rows["ts"]) if step_s is None else step_s
    if isinstance(asked, EventLog):
        return event_series(asked, rows, _origin(source, path, rows["ts"] // 10**6, None, notes))
    ts, of_times = _starts(rows["ts"], step, stamped, asked.family)
    rows, of_shared = _one_a_second(rows.with_columns(ts.alias("ts")), shared)
    rows, of_rates = _fractions(_checked(rows, asked), asked, rates)
    notes += of_times + of_shared + of_rates
    family = FAMILIES[asked.kind]
    window = family.everything(int(rows["ts"][0]), int(rows["ts"][-1]), step)
    origin = _origin(source, path, rows["ts"], step, notes)
    return _SERIES_OF[asked.family](asked, window, origin, family.ready(rows))


def _origin(
    source: Source, path: Path, ts: pl.Series, step: int | None, notes: list[str]
) -> Origin:
    held = f"first row {format_ts(int(ts[0]))}, last {format_ts(int(ts[-1]))}"
    return Origin(source, path, step_s=step, delay_s=0, notes=("rows of one's own", held, *notes))


def _columns(stream: Trajectory | EventLog) -> tuple[Sequence[str], Sequence[str]]:
    if isinstance(stream, EventLog):
        return OURS, OURS[:2]
    if len(stream.legs) == 1 and stream.family is Family.FUNDING:
        return list(_OF_ONE_LEG), ["rate"]
    return value_columns(stream.family), _NEEDED[stream.family]


def _check_words(**options: tuple[str | None, object]) -> None:
    for option, (value, allowed) in options.items():
        if value is not None and value not in get_args(allowed):
            raise InputError(option, value, get_args(allowed))


def _layout(name: str | None, stream: Trajectory | EventLog) -> FileLayout:
    if name is None:
        return FileLayout({}, ("s",), None, "")
    if name not in LAYOUTS:
        raise InputError("layout", name, list(LAYOUTS))
    if stream.kind != Family.PRICE:
        raise InputError("layout", name, "the key of a price, SYMBOL:EXCHANGE.market")
    return LAYOUTS[name]


def _mapped(
    given: Mapping[str, str | int] | Sequence[str | int] | None,
    layout: FileLayout,
    stream: Trajectory | EventLog,
    needed: Sequence[str],
    frame: pl.DataFrame,
) -> dict[str, str]:
    """Return the frame's name or place of each of our columns with another name."""
    if layout.width not in (None, frame.width):
        given_width = counted(frame.width, "column")
        raise InputError("layout", given_width, f"{layout.width}: {layout.what}")
    quote = stream.symbol.quote if isinstance(stream, Trajectory) else ""
    known = {ours: theirs.format(quote=quote) for ours, theirs in layout.columns.items()}
    if known.get("volume") not in (None, *frame.columns, *map(str, range(frame.width + 1))):
        del known["volume"]
    if given is not None and not isinstance(given, Mapping):
        places = ("ts", *needed)
        if len(given) != len(places):
            raise InputError("columns", ", ".join(map(str, given)), f"those of {', '.join(places)}")
        given = dict(zip(places, given, strict=True))
    return known | {ours: str(theirs) for ours, theirs in (given or {}).items()}


def _starts(
    us: pl.Series, step: int | None, stamped: Stamp, family: Family
) -> tuple[pl.Series, list[str]]:
    if family is not Family.FUNDING:
        return bar_starts(us, step, stamped)
    if stamped == "end":
        raise InputError("stamped", stamped, "start: a settlement is a moment, and no bar")
    return (us + 500_000) // 10**6, []


def _one_a_second(rows: pl.DataFrame, shared: Shared | None) -> tuple[pl.DataFrame, list[str]]:
    several = rows.filter(pl.col("ts").is_duplicated())
    if several.is_empty():
        return rows, []
    seconds = several["ts"].n_unique()
    if shared is None:
        given = (
            f"{several.height:,} rows that share a time, the first {format_ts(several['ts'][0])}"
        )
        advice = 'shared="last" takes the last, or "first" or "mean"; --shared on the command line'
        raise InputError("ts", given, "one row per second", advice=advice)
    taken = getattr(pl.exclude("ts"), shared)()
    kept = rows.group_by("ts", maintain_order=True).agg(taken)
    return kept, [
        f"of {several.height:,} rows in {counted(seconds, 'second')} the {shared} of each"
    ]


def _fractions(
    rows: pl.DataFrame, stream: Trajectory, rates: Rates | None
) -> tuple[pl.DataFrame, list[str]]:
    if stream.family is not Family.FUNDING:
        return rows, []
    if rates == "percent":
        rows = rows.with_columns(pl.col(_RATES) / 100)
    sizes = pl.concat([rows[name] for name in _RATES]).abs()
    sizes = sizes.filter(sizes > 0)
    large = sizes.filter(sizes > _LARGE).len()
    median = sizes.quantile(0.5) or 0.0
    if rates is None and (large or median > _LARGE_MEDIAN):
        given = f"{counted(large, 'rate')} beyond 5 % per interval, the median {median:.2%}"
        advice = 'rates="percent" or "fraction" says what they are, --rates on the command line'
        raise InputError("rates", given, "fractions of such a size only if said", advice=advice)
    return rows, [f"{counted(large, 'rate')} beyond 5 % per interval"] if large else []


def _checked(rows: pl.DataFrame, stream: Trajectory) -> pl.DataFrame:
    names = value_columns(stream.family)
    if len(stream.legs) == 1 and stream.family is Family.FUNDING:
        rows = rows.rename(_OF_ONE_LEG, strict=False).with_columns(buy_rate=0.0)
    held = [
        pl.when(pl.col(name).is_finite()).then(name) if name in rows.columns else pl.lit(None)
        for name in names
    ]
    values = [value.cast(pl.Float64).alias(name) for name, value in zip(names, held, strict=True)]
    found = rows.select(pl.lit(stream.key).alias("trajectory"), "ts", *values)
    for name in [name for name in _PRICES if name in names]:
        bad = found.filter(pl.col(name) <= 0)
        if bad.height:
            first = format_ts(int(bad["ts"][0]))
            given = f"{counted(bad.height, 'value')} of {name}, the first at {first}"
            raise InputError("columns", given, "prices above 0")
    return found
