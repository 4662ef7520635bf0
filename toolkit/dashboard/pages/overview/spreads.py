"""A section of the page Overview: the widest spreads now."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from toolkit.columns import column
from toolkit.dashboard.fee_choice import Net
from toolkit.dashboard.loads import Load, offer
from toolkit.dashboard.open_stream import can_load
from toolkit.dashboard.parts.age import age_column, stream_ages
from toolkit.dashboard.parts.lately import newest_end, spread_percentiles, spreads_lately
from toolkit.dashboard.parts.rows import RowColumn, row_column, show_rows
from toolkit.dashboard.parts.spread_table import spread_names
from toolkit.dashboard.reading import SPREADS, StoreState
from toolkit.dashboard.shell import PageShell
from toolkit.dashboard.widgets import st
from toolkit.foreign import Markdown
from toolkit.show.values import value_text
from toolkit.statistics.fees import NOTIONAL
from toolkit.statistics.fees.net_edge import net_now_bps
from toolkit.wire.rows.snapshot_rows import SnapshotItems, snapshot_items
from toolkit.workspace.snapshot_tables import each_pair_once, open_spreads, shown_as_held

_OLD_S = 3_600


@dataclass(frozen=True, slots=True)
class OpenNow:
    """The spreads open at the time ``at`` (s UTC) of one answer, the widest first.

    ``rows`` has symbol, buy, sell, trajectory, spread_pct (percent, nullable) and opened_at (s UTC,
    nullable). ``items`` is the service's list, None for the event log. ``tracked`` are the list's
    rows without an event, none if it is an hour older than the log.
    """

    at: int
    rows: pl.DataFrame
    tracked: pl.DataFrame
    items: SnapshotItems | None = None

    def kept(self, keep: Callable[[pl.DataFrame], pl.DataFrame]) -> OpenNow:
        """Filter the rows."""
        return replace(self, rows=keep(self.rows), tracked=keep(self.tracked))

    @property
    def count(self) -> Markdown:
        """How many are open, as far as is known."""
        n_open = self.rows.height
        if self.items and self.items.why and not n_open:
            return Markdown("not understood")
        if self.items and not self.items.dated:
            return Markdown("not known")
        more = self.items and self.items.odd
        return (Markdown("{:,} or more") if more else Markdown("{:,}")).format(n_open)

    @property
    def open_s(self) -> pl.Series:
        """How long each was open at the answer (s), null if not known."""
        return (self.at - self.rows["opened_at"].cast(pl.Int64)).clip(lower_bound=0)


def open_now(
    snapshot: tuple[int, str] | None, logged: pl.DataFrame, known_until: int | None
) -> OpenNow | None:
    """Return the newest of two answers, the list if both are of one time, None without any.

    ``snapshot`` is the time (s UTC) and the text of the service's list. ``logged`` are rows of
    `open_events`, ``known_until`` (s UTC) is the end of their log.
    """
    listed = open_spreads(snapshot[1] if snapshot else "{}")
    old = bool(snapshot and known_until and known_until - snapshot[0] > _OLD_S)
    tracked = listed.filter(pl.col("opened_at").is_null() & (not old))
    if snapshot and (known_until is None or snapshot[0] >= known_until):
        items = snapshot_items("spread", snapshot[1])
        return OpenNow(snapshot[0], listed.drop_nulls("opened_at"), tracked, items)
    if known_until is None:
        return None
    rows = logged.select(
        "symbol",
        pl.format("{}.{}", "buy_exchange", "buy_market").alias("buy"),
        pl.format("{}.{}", "sell_exchange", "sell_market").alias("sell"),
        pl.col("magnitude_pct").alias("spread_pct"),
        pl.col("t_open").alias("opened_at"),
    ).with_columns(trajectory=pl.format("{}:{}:{}", "symbol", "buy", "sell"))
    widest = rows.sort("spread_pct", "trajectory", descending=[True, False], nulls_last=True)
    return OpenNow(known_until, widest, tracked)


_SHOWN = 50
_NOW_S = 3_600
_APART_BPS = 1_000.0
"""As in `toolkit.statistics.quality.flags`: from here on the legs may not be of one asset."""
_HELP = Markdown(
    "**spread**: the log spread, 10,000 ln(sell price / buy price), positive where the sell leg is "
    "dearer, in the stored orientation as on the other pages.\n\n**24 h**: means of half hours."
    "\n\n**percentile**: the share of its own last 7 days, as far as stored, below this spread. "
    "Opening a row that is not stored yet loads its last 24 hours."
)
_BPS_HELP = "log spread, 10,000 ln(sell price / buy price), positive where the sell leg is dearer"


def show_spreads(shell: PageShell, newest: OpenNow | None) -> None:
    """Show the widest spreads now among those open, tracked or stored, each pair once."""
    heading = Markdown("**Widest spreads now**")
    if newest and newest.items and newest.items.words:
        of_list = Markdown("The service's list of {}: {}.")
        st.warning(of_list.format(shell.moment(newest.at), newest.items.words))
    held, end = shell.kept(_held_now(shell.held)), newest_end(shell.held.streams, *SPREADS)
    ready = set(shell.held.streams.filter(pl.col("rows") > 0)["stream"])
    rows = _widest_now(newest, held, ready)
    if rows.is_empty():
        st.markdown(heading)
        offer(
            shell.held,
            Markdown("Neither spreads nor the service's list of them are stored."),
            Load.of(Markdown("Load the list of spreads"), "snapshot/spread"),
        )
        return
    words = [_open_words(shell, newest)]
    if newest is not None and newest.tracked.height:
        words.append(Markdown("{:,} tracked").format(newest.tracked.height))
    if held.height and end is not None:
        words.append(Markdown("{:,} stored to {}").format(held.height, shell.moment(end)))
    st.markdown(Markdown("{} · {}").format(heading, Markdown(", ").join(words)), help=_HELP)
    at = max(end or 0, newest.at if newest else 0)
    far = pl.col("bps").abs() >= _APART_BPS
    near, suspect = rows.filter(~far.fill_null(value=False)).head(_SHOWN), rows.filter(far)
    if near.is_empty():
        st.caption(Markdown("None below 1,000 bps."))
    else:
        _show_table(shell, Markdown("Spreads, the widest first"), near, at, "open")
    if suspect.height:
        label = Markdown("⚠ {:,} over 1,000 bps: the legs may not be of one asset")
        with st.expander(label.format(suspect.height)):
            _show_table(shell, Markdown("Suspect spreads"), suspect.head(_SHOWN), at, "suspect")


def _show_table(shell: PageShell, label: Markdown, rows: pl.DataFrame, at: int, key: str) -> None:
    show_rows(label, rows["trajectory"].to_list(), _columns(shell, rows, at), key)


def _open_words(shell: PageShell, newest: OpenNow | None) -> Markdown:
    if newest is not None and newest.items and newest.items.why and newest.rows.is_empty():
        return Markdown("the list is not understood")
    if newest is None or (newest.rows.is_empty() and newest.items and not newest.items.dated):
        return Markdown("it is not known which are open")
    by = "the service's list" if newest.items else "the event log"
    return Markdown("{} open by {} of {}").format(newest.count, by, shell.moment(newest.at))


def _widest_now(newest: OpenNow | None, held: pl.DataFrame, ready: set[str]) -> pl.DataFrame:
    """Return the spreads that are open, tracked or stored, the widest first, each pair once.

    An open row is preferred, then a tracked one. The orientation is that of the stored pairs
    ``ready``. ``open_s`` (s) is null if not known to be open, ``stream`` if not stored.
    """
    parts = [held]
    if newest is not None:
        opened = newest.rows.with_columns(newest.open_s.alias("open_s"))
        tracked = newest.tracked.with_columns(open_s=pl.lit(None, pl.Int64))
        parts = [_in_bps(opened), _in_bps(tracked), held]
    pair = pl.concat_list("buy", "sell").list.sort().list.join("→").alias("pair")
    found = held.clear().with_columns(pair)
    for part in parts:
        new = part.select(held.columns).with_columns(pair)
        new = new.join(found, on=["symbol", "pair"], how="anti", maintain_order="left")
        found = pl.concat([found, new], how="vertical_relaxed")
    shown = shown_as_held(found.drop("pair"), ready, "bps")
    return shown.sort(pl.col("bps").abs(), "trajectory", descending=[True, False], nulls_last=True)


def _held_now(held: StoreState) -> pl.DataFrame:
    """Return the stored spreads whose newest value is at most an hour older than any's."""
    lately = spreads_lately(held)
    newest = pl.col("ts").max() - _NOW_S
    return widest_held(lately.filter(pl.col("ts") >= newest))


def _in_bps(rows: pl.DataFrame) -> pl.DataFrame:
    ratio = 1 + pl.col("spread_pct") / 100
    return rows.with_columns(bps=pl.when(ratio > 0).then(1e4 * ratio.log()))


def widest_held(lately: pl.DataFrame) -> pl.DataFrame:
    """Return the newest value of stored spreads, each pair once, with open_s null.

    ``lately`` is of `spreads_lately`. See `toolkit.workspace.orientation.each_pair_once` for pairs
    stored twice.
    """
    lately = lately.sort("trajectory").with_columns(
        pl.col("trajectory").str.strip_prefix("snapshot-spread/")
    )
    texts = pl.col("symbol", "buy", "sell").cast(pl.String)
    names = spread_names(lately["trajectory"]).select(texts)
    once = each_pair_once(pl.concat([lately, names], how="horizontal"), "ts").sort("trajectory")
    return once.select(
        "symbol", "buy", "sell", "trajectory", bps="last", open_s=pl.lit(None, pl.Int64)
    )


def _columns(shell: PageShell, rows: pl.DataFrame, at: int) -> list[RowColumn]:
    legs = [f"{buy} → {sell}" for buy, sell in rows.select("buy", "sell").iter_rows()]
    bps = rows["bps"].to_list()
    far = [value is not None and abs(value) >= _APART_BPS for value in bps]
    gross = RowColumn("bps", "number", bps, help=_BPS_HELP)
    marks = [f"⚠ {text}" if odd else text for text, odd in zip(gross.texts, far, strict=True)]
    columns = [
        row_column(rows, "symbol"),
        RowColumn("buy_sell", "text", legs),
        replace(gross, shown=marks),
    ]
    if net := shell.fees.net():
        columns.append(_net_column(rows, net, at))
    if rows["open_s"].count():
        seconds = pl.col("open_s")
        minutes = pl.when(seconds < 60).then(seconds).otherwise(seconds // 60 * 60)
        columns.append(
            row_column(rows.with_columns(minutes.alias("open_s")), "open_s", narrow=False)
        )
    return [*columns, *_history(shell, rows)]


def _net_column(rows: pl.DataFrame, net: Net, at: int) -> RowColumn:
    """Build the column of spreads less the cost of a round trip."""
    costs: list[float | None] = []
    why: list[str | None] = []
    for key, bps in rows.select("trajectory", "bps").iter_rows():
        known = bps is not None and can_load(key)
        cost = net.fees.round_trip_bps(key, NOTIONAL, net.style, at=at) if known else None
        costs.append(cost)
        if cost is None:
            lacks = ", ".join(net.fees.lacking(key, net.style, at=at)) if known else ""
            why.append(f"the fee table lacks {lacks}" if lacks else "the spread is not known")
        else:
            why.append(f"a round trip costs {value_text(cost, column('cost_bps'), unit=True)}")
    cost_bps = pl.lit(pl.Series("cost", costs, pl.Float64))
    values = rows.select(net_now_bps(pl.col("bps"), cost_bps, net.style)).to_series().to_list()
    return RowColumn("net_now_bps", "number", values, help=str(net.words), titles=why)


def _history(shell: PageShell, rows: pl.DataFrame) -> Iterable[RowColumn]:
    """Build the columns of age, of the last day, and of the percentile, for stored rows."""
    held = shell.held
    lately = spreads_lately(held, rows["stream"].drop_nulls())
    lines = dict(lately.select("trajectory", "line").iter_rows())
    compared = spread_percentiles(held, rows.select("stream", "bps").drop_nulls().unique())
    unusual = rows.select("stream", "bps").join(
        compared, on=["stream", "bps"], how="left", maintain_order="left"
    )
    why = [
        "not stored yet: open it to load it" if stream is None else f"of n = {n or 0:,} in 7 days"
        for stream, n in unusual.select("stream", "n").iter_rows()
    ]
    ages = stream_ages(held.streams, held.now(), stands=held.clock_stands)
    of_rows = rows.select("stream")
    yield age_column(of_rows.join(ages, on="stream", how="left", maintain_order="left"))
    shown: list[Any] = [lines.get(stream) for stream in rows["stream"]]
    yield RowColumn("recent", "line", shown)
    yield row_column(unusual, "percentile", kind="bar", titles=why)
