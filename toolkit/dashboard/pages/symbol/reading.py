"""The rows of one symbol that its page shows: prices and rates of all its legs, its spreads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from streamlit import cache_resource

from toolkit.dashboard.reading import SPREADS, WAIT_S, Held, StreamVersion
from toolkit.intervals import Interval
from toolkit.market import Family, SnapshotTrajectory, Stream, Trajectory
from toolkit.statistics.funding import differential
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR
from toolkit.store import Store
from toolkit.workspace.selection import Passes, Selection

_KEEP_S = 600
_BEFORE_S = 2 * 86_400
"""How long before a window funding is read, so that the rate in force at its start is known."""
_KEPT_FUNDING = "snapshot-funding"
_RATES = {"leg": pl.String, "ts": pl.Int64, "apr_pct": pl.Float64}
_PRICES = {"leg": pl.String, "ts": pl.Int64, "price": pl.Float64}


def streams_of(held: Held, symbol: str) -> pl.DataFrame:
    """Return the streams of a symbol that have rows: stream, kind, first_ts, end (s)."""
    named = held.streams.filter(pl.col("rows") > 0, pl.col("last_ts").is_not_null())
    mine = [_symbol_of(key) == symbol for key in named["stream"]]
    return named.filter(pl.Series(mine, dtype=pl.Boolean)).select(
        "stream", "kind", "first_ts", end=pl.col("last_ts") + pl.col("step_s").fill_null(1)
    )


def busiest_symbol(streams: pl.DataFrame, among: Sequence[str]) -> str:
    """Return the one of these symbols that most rows are held of, the first of several by name.

    >>> streams = pl.DataFrame({"stream": ["A_B:X.spot", "C_D:X.spot"], "rows": [3, 5]})
    >>> busiest_symbol(streams, ["A_B", "C_D"]), busiest_symbol(streams, ["A_B"])
    ('C_D', 'A_B')
    """
    rows = streams.select("stream", pl.col("rows").fill_null(0))
    counts = dict.fromkeys(sorted(among), 0)
    for key, count in rows.iter_rows():
        symbol = _symbol_of(key)
        if symbol in counts:
            counts[symbol] += count
    return max(counts, key=counts.__getitem__)


def _symbol_of(key: str) -> str | None:
    stream = Stream.parse(key)
    return str(stream.symbol) if isinstance(stream, Trajectory | SnapshotTrajectory) else None


def read_prices(held: Held, keys: pl.DataFrame, window: Interval) -> pl.DataFrame:
    """Read the prices of legs: leg, ts, price. ``keys`` are rows of `streams_of`."""
    wanted = keys.filter(kind=Family.PRICE.value)["stream"].to_list()
    return _prices(held.path, tuple(wanted), *window, versions=_versions(held, wanted))


def read_rates(held: Held, keys: pl.DataFrame, window: Interval) -> pl.DataFrame:
    """Read the funding rate in force of legs: leg, ts, apr_pct (percent a year, from ts on).

    It is that of settlements. Of legs without one it is what snapshots showed.
    """
    wanted = keys.filter(pl.col("kind").is_in([Family.FUNDING.value, _KEPT_FUNDING]))["stream"]
    return _rates(held.path, tuple(wanted), *window, versions=_versions(held, wanted.to_list()))


def spread_keys(held: Held, symbol: str, kind: str) -> dict[str, StreamVersion]:
    """Return the spreads of a symbol with rows, of a kind, each with its version."""
    mine = streams_of(held, symbol).filter(kind=kind)["stream"]
    return {key: held.versions[key] for key in mine}


def spread_kind(keys: pl.DataFrame) -> str | None:
    """Return the kind of spreads that a symbol has, those loaded before those of snapshots."""
    return next((kind for kind in SPREADS if kind in keys["kind"]), None)


def _versions(held: Held, keys: list[str]) -> tuple[StreamVersion, ...]:
    return tuple(held.versions[key] for key in keys)


@cache_resource(ttl=_KEEP_S, max_entries=8, show_spinner="Reading the prices")
def _prices(
    path: Path, keys: tuple[str, ...], start: int, end: int, *, versions: tuple[StreamVersion, ...]
) -> pl.DataFrame:
    del versions
    if not keys:
        return pl.DataFrame(schema=_PRICES)
    legs = {key: Trajectory.parse(key) for key in keys}
    rows = Store(path, wait_s=WAIT_S).scan(list(legs.values()), Interval(start, end))
    names = {key: str(trajectory.legs[0]) for key, trajectory in legs.items()}
    return _named(rows.select("trajectory", "ts", "price").collect(), names).select(*_PRICES)


def _named(rows: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    key = pl.col("trajectory").cast(pl.String)
    return rows.with_columns(leg=key.replace_strict(names, return_dtype=pl.String))


@cache_resource(ttl=_KEEP_S, max_entries=8, show_spinner="Reading the funding")
def _rates(
    path: Path, keys: tuple[str, ...], start: int, end: int, *, versions: tuple[StreamVersion, ...]
) -> pl.DataFrame:
    del versions
    store, window = Store(path, wait_s=WAIT_S), Interval(start - _BEFORE_S, end)
    found = [pl.DataFrame(schema=_RATES)]
    pairs = [key for key in keys if not key.startswith(_KEPT_FUNDING)]
    if pairs:
        found.append(_settled(store, [Trajectory.parse(key) for key in pairs], window))
    kept = [SnapshotTrajectory.parse(key) for key in keys if key.startswith(_KEPT_FUNDING)]
    names = {each.key: str(each.legs[0]) for each in kept}
    names = {key: leg for key, leg in names.items() if leg not in set(found[-1]["leg"])}
    rows = Selection.as_held(Passes.of(store), _KEPT_FUNDING, names, window).rows()
    found.append(_named(rows, names).select("leg", "ts", apr_pct="funding_apr_pct"))
    return pl.concat(found).unique(["leg", "ts"], keep="first").sort("leg", "ts")


def _settled(store: Store, pairs: list[Trajectory], window: Interval) -> pl.DataFrame:
    """Read the rates of both legs of pairs, those of markets without funding left out."""
    steps = differential(store.scan(pairs, window))
    sides = []
    for side in ("buy", "sell"):
        names = {
            pair.key: str(leg)
            for pair in pairs
            if (leg := pair.sides.get(side)) is not None and leg.market.value != "spot"
        }
        rate = 100 * HOURS_A_YEAR * pl.col(f"{side}_rate_per_hour")
        mine = steps.filter(pl.col("trajectory").cast(pl.String).is_in(list(names)))
        sides.append(_named(mine, names).select("leg", "ts", apr_pct=rate))
    return pl.concat(sides)
