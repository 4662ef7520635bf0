"""Recent values of streams: the newest one, a line over a day, and its percentile.

Windows end at whole hours, so that only streams with new rows are read again.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from toolkit.charts.matrix import rate_in
from toolkit.dashboard.parts.rows import RowColumn
from toolkit.dashboard.reading import SPREADS, StoreState, StreamVersion, measure_each
from toolkit.intervals import Interval
from toolkit.market import Family
from toolkit.show.values import NULL, figures_text
from toolkit.statistics.families import extent_of
from toolkit.statistics.funding import heatmap, persistence
from toolkit.statistics.screening import UNUSUAL_S, percentile_of

_HOUR_S, _DAY_S = 3_600, 86_400
_BUCKET_S = 1_800
_BUCKETS = _DAY_S // _BUCKET_S
_FEW_DAYS = 2.0
_ALMOST_ALWAYS, _MOSTLY = 0.9, 0.6


def newest_end(streams: pl.DataFrame, *kinds: str) -> int | None:
    """Return the end (s UTC) of the newest row of any stream of some kinds, None without any."""
    of_kinds = streams.filter(pl.col("kind").is_in(kinds))
    extent = extent_of(of_kinds.iter_rows(named=True))
    return extent and extent.end


def spreads_lately(held: StoreState, keys: Iterable[str] | None = None) -> pl.DataFrame:
    """Measure the last 24 h of spreads, by default of all stored ones.

    One row per spread with rows: trajectory, ts (s UTC, of the newest observation), last (bps,
    log), line (half-hourly means, bps, nullable, oldest first). The 24 h end with the newest row of
    any spread.
    """
    end = newest_end(held.streams, *SPREADS)
    if end is None:
        return _lines(pl.DataFrame(schema=_OBSERVED), 0, 0)
    hour = end // _HOUR_S * _HOUR_S
    window = Interval(hour - _DAY_S, hour + _HOUR_S)
    found = [_lines(pl.DataFrame(schema=_OBSERVED), *window)]
    for kind in SPREADS:
        named = None if keys is None else _held_of(held, kind, keys, held.versions)
        found.append(measure_each(held, kind, window, "lately", _lines, versions=named))
    until = (end - 1 - window.start) // _BUCKET_S + 1
    line = pl.col("line").list.slice(max(0, until - _BUCKETS), min(until, _BUCKETS))
    return pl.concat(found).with_columns(line)


def spread_percentiles(held: StoreState, values: pl.DataFrame) -> pl.DataFrame:
    """Return the percentile of values among their stream's observations of the last 7 days.

    ``values`` has stream and bps (log spread in the stored orientation). One row per stored stream:
    stream, bps, n, percentile (null for fewer than 100 observations). The 7 days end with the
    newest row of any stream of the kind. Late rows from before the newest whole hour count from the
    next hour on.
    """
    found = [pl.DataFrame(schema=_COMPARED)]
    for kind in SPREADS:
        end = newest_end(held.streams, kind)
        keys = values["stream"].drop_nulls().unique().sort().to_list()
        if end is None or not _held_of(held, kind, keys, held.versions):
            continue
        hour = end // _HOUR_S * _HOUR_S
        # changes with older rows, but not with each new row
        firsts = held.streams.select("stream", "first_ts", "revisions").iter_rows()
        lasting = {key: (*held.versions[key][:4], *first) for key, *first in firsts}
        parts = (
            (Interval(hour - UNUSUAL_S, hour), "levels", lasting),
            (Interval(hour, hour + _HOUR_S), "levels of the hour", held.versions),
        )
        rows = []
        for window, question, versions in parts:
            named = _held_of(held, kind, keys, versions)
            rows.append(measure_each(held, kind, window, question, _observed, versions=named))
        observed = pl.concat(rows).filter(pl.col("ts").is_between(end - UNUSUAL_S, end - 1))
        level, bps = pl.col("spread_log_bps"), pl.col("bps")
        found.append(
            observed.join(values, left_on="trajectory", right_on="stream")
            .group_by("trajectory", "bps")
            .agg(n=pl.len(), below=(level < bps).sum(), equal=(level == bps).sum())
            .select(
                "bps",
                stream=pl.col("trajectory").cast(pl.String),
                n=pl.col("n").cast(pl.Int64),
                percentile=percentile_of(pl.col("below"), pl.col("equal"), pl.col("n")),
            )
            .select(*_COMPARED)
        )
    return pl.concat(found)


def funding_lately(held: StoreState, keys: Iterable[str]) -> pl.DataFrame:
    """Measure the last 30 days of differentials of funding pairs, up to the newest whole hour.

    One row per pair with a differential: trajectory, positive_share, negative_share (of the time
    known), flips, days (known), line (8-hourly means over 7 days, % a year, nullable, oldest
    first).
    """
    rows = held.streams.filter(kind=Family.FUNDING.value)["last_ts"].drop_nulls().sort()
    empty = pl.DataFrame(schema=_STEADY)
    if rows.is_empty():
        return empty
    end = (int(rows[-1]) // _HOUR_S + 1) * _HOUR_S
    window = Interval(end - 30 * _DAY_S, end)
    named = _held_of(held, Family.FUNDING.value, keys, held.versions)
    found = measure_each(held, Family.FUNDING.value, window, "lately", _steady, versions=named)
    return pl.concat([empty, found])


def sign_columns(
    held: StoreState,
    pairs: Iterable[tuple[str, bool]],
    unit: str = "% per year (APR)",
    *,
    few: str,
) -> list[RowColumn]:
    """Build the columns of sign, flips and line (in the unit) of pairs, by `funding_lately`.

    ``pairs`` has the stream of each row, "" for none, and whether it is turned. ``few`` is why the
    sign of less than two days is not known.
    """
    pairs = list(pairs)
    found = funding_lately(held, [stream for stream, _ in pairs]).iter_rows(named=True)
    lately = {row["trajectory"]: row for row in found}
    name, times = rate_in("line_apr_pct", unit)
    shares, why, flips, lines = [], [], [], []
    for stream, turned in pairs:
        row = lately.get(stream, dict.fromkeys(_STEADY))
        share = row["negative_share" if turned else "positive_share"]
        enough = share is not None and (row["days"] or 0.0) >= _FEW_DAYS
        facts = {"sign_share": share, "days": row["days"], "flips": row["flips"]}
        shares.append(share if enough else None)
        why.append(figures_text(facts, facts) if enough else few)
        flips.append(row["flips"] if enough else None)
        sign = -times if turned else times
        line = row["line"]
        lines.append(line and [None if value is None else sign * value for value in line])
    words = [NULL if share is None else sign_words(share) for share in shares]
    return [
        RowColumn("sign", "number", shares, shown=words, titles=why),
        RowColumn("flips", "number", flips),
        RowColumn(name, "line", lines),
    ]


def sign_words(share: float) -> str:
    """Describe the share of the time in which a difference had its current sign.

    >>> [sign_words(share) for share in (0.95, 0.7, 0.4)]
    ['● steady', '◐ mostly', '○ unsteady']
    """
    if share >= _ALMOST_ALWAYS:
        return "● steady"
    return "◐ mostly" if share >= _MOSTLY else "○ unsteady"


def _held_of(
    held: StoreState, kind: str, keys: Iterable[str], versions: dict[str, StreamVersion]
) -> dict[str, StreamVersion]:
    """Select the versions of the keys of a kind that have rows."""
    known = set(held.streams.filter(pl.col("rows") > 0, kind=kind)["stream"])
    return {key: versions[key] for key in keys if key in known}


_OBSERVED = {"trajectory": pl.String(), "ts": pl.Int64(), "spread_log_bps": pl.Float64()}
_COMPARED = {
    "stream": pl.String(),
    "bps": pl.Float64(),
    "n": pl.Int64(),
    "percentile": pl.Float64(),
}
_STEADY = {
    "trajectory": pl.String(),
    "positive_share": pl.Float64(),
    "negative_share": pl.Float64(),
    "flips": pl.Int64(),
    "days": pl.Float64(),
    "line": pl.List(pl.Float64()),
}


def _observed(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(*_OBSERVED).drop_nulls("spread_log_bps")


def _lines(rows: pl.DataFrame, start: int, _end: int) -> pl.DataFrame:
    """Return the newest observation, and half-hourly means from ``start`` on."""
    observed = _observed(rows)
    buckets = pl.DataFrame({"bucket": pl.Series(range(_BUCKETS + 2), dtype=pl.Int64)})
    means = observed.group_by("trajectory", bucket=(pl.col("ts") - start) // _BUCKET_S).agg(
        pl.col("spread_log_bps").mean().alias("line")
    )
    newest = observed.group_by("trajectory").agg(
        pl.col("ts").last(), pl.col("spread_log_bps").last().alias("last")
    )
    lines = (
        newest.select("trajectory")
        .join(buckets, how="cross")
        .join(means, on=["trajectory", "bucket"], how="left")
        .sort("trajectory", "bucket")
        .group_by("trajectory")
        .agg("line")
    )
    return newest.join(lines, on="trajectory", how="left")


def _steady(rows: pl.DataFrame, start: int, end: int) -> pl.DataFrame:
    shares = persistence(rows, start, end).select(
        "trajectory",
        "positive_share",
        "negative_share",
        "flips",
        (pl.col("coverage") * ((end - start) / _DAY_S)).alias("days"),
    )
    week = heatmap(rows, end - 7 * _DAY_S, end, bucket="8h")
    lines = week.group_by("trajectory").agg(pl.col("funding_apr_pct").alias("line"))
    return shares.join(lines, on="trajectory", how="left").select(*_STEADY)
