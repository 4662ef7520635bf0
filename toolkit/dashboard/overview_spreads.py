"""A section of the front page: the spreads open now, or the widest where none is open."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from toolkit.cards import duration
from toolkit.dashboard.age import age_column, stream_ages
from toolkit.dashboard.fee_choice import Net
from toolkit.dashboard.lately import newest_spread_end, percentile, spread_levels, spreads_lately
from toolkit.dashboard.loads import Load, offer
from toolkit.dashboard.open_now import OpenNow
from toolkit.dashboard.opening import can_load, stream_of
from toolkit.dashboard.rows import RowColumn, show_rows
from toolkit.dashboard.screen import st
from toolkit.dashboard.shell import PageShell
from toolkit.dashboard.spread_table import each_pair_once, spread_names
from toolkit.foreign import Markdown
from toolkit.statistics.fees import NOTIONAL
from toolkit.store import swapped

_SHOWN = 50
_APART_BPS = 1_000.0
"""As in `toolkit.statistics.quality.flags`: from here on the legs may not be of one asset."""
_HELP = Markdown(
    "**bps**: the log spread, 10,000 ln(sell price / buy price), positive where the sell leg is "
    "dearer.\n\n**24 h**: means of half hours.\n\n**percentile**: the share of its own last 30 "
    "days, as far as they are held, that was below this spread. Opening a row that is not held yet "
    "loads 24 hours of it."
)
_BPS_HELP = "log spread, 10,000 ln(sell price / buy price), positive where the sell leg is dearer"


@dataclass(frozen=True, slots=True)
class _ListedSpreads:
    """What the table shows: rows with symbol, buy, sell, key, bps and open_s (s or null)."""

    rows: pl.DataFrame
    at: int
    words: Markdown


def show_spreads(shell: PageShell, newest: OpenNow | None) -> None:
    """Show the table."""
    heading = Markdown("**Open spreads**")
    chosen = _chosen(shell, newest)
    if newest and newest.items and newest.items.words:
        st.warning(
            Markdown("The service's list of {}: {}.").format(
                shell.moment(newest.at), newest.items.words
            )
        )
    if chosen is None:
        st.markdown(heading)
        offer(
            shell.held,
            Markdown("Neither a spread nor the service's list of them is held."),
            Load.of(Markdown("Load the list of spreads"), "snapshot/spread"),
        )
        return
    st.markdown(Markdown("{} · {}").format(heading, chosen.words), help=_HELP)
    rows = chosen.rows.sort(
        pl.col("bps").abs() >= _APART_BPS,
        "bps",
        "key",
        descending=[False, True, False],
        nulls_last=True,
    ).head(_SHOWN)
    show_rows(
        Markdown("Spreads, the widest first"),
        rows["key"].to_list(),
        _columns(shell, rows, chosen.at),
        "open",
    )
    if rows["bps"].abs().ge(_APART_BPS).any():
        st.caption(Markdown("⚠ Over 1,000 bps the legs may not be of one asset: listed last."))


def _chosen(shell: PageShell, newest: OpenNow | None) -> _ListedSpreads | None:
    """Choose what is open, else what the service tracks, else what is held."""
    if newest is not None and newest.rows.height:
        by = "the service's list" if newest.items else "the event log"
        words = Markdown("{} by {} of {}").format(newest.count, by, shell.moment(newest.at))
        rows = newest.rows.with_columns(newest.open_s.alias("open_s"))
        return _ListedSpreads(_in_bps(rows), newest.at, words)
    known = newest is not None and (newest.items is None or newest.items.dated)
    none = Markdown("None is open") if known else Markdown("Which are open is not known")
    if newest is not None and newest.items and newest.items.why:
        none = Markdown("The list is not understood")
    if newest is not None and newest.tracked.height:
        words = Markdown("{} at {}: the {:,} that the service tracks").format(
            none, shell.moment(newest.at), newest.tracked.height
        )
        rows = newest.tracked.with_columns(open_s=pl.lit(None, pl.Int64))
        return _ListedSpreads(_in_bps(rows), newest.at, words)
    held = shell.kept(widest_held(spreads_lately(shell.held)))
    end = newest_spread_end(shell.held.streams)
    if held.is_empty() or end is None:
        return None
    words = Markdown("{}: the widest that are held, at {}").format(none, shell.moment(end))
    return _ListedSpreads(held, end, words)


def _in_bps(rows: pl.DataFrame) -> pl.DataFrame:
    ratio = 1 + pl.col("spread_pct") / 100
    return rows.with_columns(bps=pl.when(ratio > 0).then(1e4 * ratio.log()))


def widest_held(lately: pl.DataFrame) -> pl.DataFrame:
    """Turn the legs of held spreads so that each is positive.

    Columns: symbol, buy, sell, key, bps and open_s, which is null.

    ``lately`` is of `toolkit.dashboard.lately.spreads_lately`. Two legs that are held twice, either
    way round or as loaded and as snapshots showed them, are there once.

    >>> lately = pl.DataFrame({"trajectory": ["A_B:X.spot:Y.dex", "A_B:Y.dex:X.spot"],
    ...                        "ts": [60, 0], "last": [-30.0, 20.0]})
    >>> widest_held(lately).rows()
    [('A_B', 'Y.dex', 'X.spot', 'A_B:Y.dex:X.spot', 30.0, None)]
    """
    lately = lately.sort("trajectory").with_columns(
        pl.col("trajectory").str.strip_prefix("snapshot-spread/")
    )
    texts = pl.col("symbol", "buy", "sell").cast(pl.String)
    names = spread_names(lately["trajectory"]).select(texts)
    once = each_pair_once(pl.concat([lately, names], how="horizontal"), "ts").sort("trajectory")
    keys = [
        swapped(key) if last < 0 else key for key, last in once.select("trajectory", "last").rows()
    ]
    turned = pl.col("last") < 0
    return once.select(
        "symbol",
        buy=pl.when(turned).then("sell").otherwise("buy"),
        sell=pl.when(turned).then("buy").otherwise("sell"),
        key=pl.Series(keys, dtype=pl.String),
        bps=pl.col("last").abs(),
        open_s=pl.lit(None, pl.Int64),
    )


def _columns(shell: PageShell, rows: pl.DataFrame, at: int) -> list[RowColumn]:
    legs = [f"{buy} → {sell}" for buy, sell in rows.select("buy", "sell").iter_rows()]
    bps = rows["bps"].to_list()
    far = [value is not None and abs(value) >= _APART_BPS for value in bps]
    gross = RowColumn("bps", "number", bps, help=_BPS_HELP)
    marks = [f"⚠ {text}" if odd else text for text, odd in zip(gross.texts, far, strict=True)]
    columns = [
        RowColumn("symbol", "text", rows["symbol"].to_list()),
        RowColumn("buy → sell", "text", legs),
        RowColumn("bps", "number", bps, help=_BPS_HELP, shown=marks),
    ]
    if net := shell.fees.net():
        columns.append(_net_column(rows, net, at))
    if rows["open_s"].count():
        lengths = [duration(open_s) for open_s in rows["open_s"]]
        short = [" ".join(words.split()[:2]) for words in lengths]
        columns.append(
            RowColumn(
                "open for",
                "number",
                rows["open_s"].to_list(),
                shown=short,
                titles=lengths,
                narrow=False,
            )
        )
    return [*columns, *_history(shell, rows)]


def _net_column(rows: pl.DataFrame, net: Net, at: int) -> RowColumn:
    """Take the cost of a round trip off what each spread pays."""
    values: list[float | None] = []
    why: list[str | None] = []
    for key, bps in rows.select("key", "bps").iter_rows():
        known = bps is not None and can_load(key)
        cost = net.fees.round_trip_bps(key, NOTIONAL, net.style, at=at) if known else None
        if cost is None:
            values.append(None)
            lacks = ", ".join(net.fees.lacking(key, net.style, at=at)) if known else ""
            why.append(f"the fee table lacks {lacks}" if lacks else "the spread is not known")
        else:
            values.append(1e4 * math.expm1(bps / 1e4) - cost)
            why.append(f"a round trip costs {cost:,.1f} bps")
    return RowColumn("net bps", "number", values, help=str(net.words), titles=why)


def _history(shell: PageShell, rows: pl.DataFrame) -> Iterable[RowColumn]:
    """Build the line of the last day, and how unusual the spread is, of the rows that are held."""
    held = shell.held
    ready = set(held.streams.filter(pl.col("rows") > 0)["stream"])
    found = [stream_of(key, ready) for key in rows["key"]]
    streams = [each[0] for each in found if each]
    lines = dict(spreads_lately(held, streams).select("trajectory", "line").iter_rows())
    levels = {name: each for name, *each in spread_levels(held, streams).iter_rows()}
    shown: list[Any] = []
    unusual: list[float | None] = []
    why: list[str | None] = []
    for each, bps in zip(found, rows["bps"], strict=True):
        stream, turned = each or ("", False)
        sign = -1.0 if turned else 1.0
        line = lines.get(stream)
        shown.append(line and [None if value is None else sign * value for value in line])
        n, values = levels.get(stream, (0, []))
        share = (
            None if bps is None else percentile(pl.Series(values, dtype=pl.Float64), n, sign * bps)
        )
        unusual.append(100 - share if share is not None and turned else share)
        why.append(f"of n = {n:,} in 30 days" if each else "not held yet: open it to load it")
    of_rows = pl.Series("stream", [each[0] if each else None for each in found], pl.String)
    ages = stream_ages(held.streams, held.now())
    yield age_column(of_rows.to_frame().join(ages, on="stream", how="left", maintain_order="left"))
    yield RowColumn("24 h", "line", shown, help="bps, means of half hours", titles=None)
    yield RowColumn(
        "percentile",
        "bar",
        unusual,
        digits=0,
        help="percentile of this spread in its own last 30 days, as far as they are held",
        titles=why,
    )
