"""The page Symbol: prices, funding and events on one axis, spreads as a matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from streamlit import cache_resource

from toolkit.charts import spread_matrix, symbol_chart
from toolkit.dashboard.choice import Choices, OneOf, Picked, Zoom
from toolkit.dashboard.desk import held_symbols
from toolkit.dashboard.export import hand_over
from toolkit.dashboard.fee_choice import Net
from toolkit.dashboard.link import PRESETS, SHORT_PRESETS, Choice, go_to
from toolkit.dashboard.loads import LOGS, WATCHLIST, Load, offer
from toolkit.dashboard.pages.events.shown import clicked_event
from toolkit.dashboard.parts.event_reading import read_lifecycles
from toolkit.dashboard.parts.event_tables import event_columns
from toolkit.dashboard.parts.rows import RowColumn, opened_key, row_column, show_rows
from toolkit.dashboard.parts.spread_table import (
    SpreadFilters,
    measure_figures,
    measure_net,
    spread_names,
)
from toolkit.dashboard.reading import SPREADS, WAIT_S, StoreState, StreamVersion
from toolkit.dashboard.shell import ZOOMED_BY_US, PageShell, draw, draw_cells, listen_to_zoom, page
from toolkit.dashboard.widgets import Container, side_by_side, st
from toolkit.foreign import Markdown, markdown
from toolkit.intervals import Interval
from toolkit.market import Family, SnapshotTrajectory, Stream, Trajectory, format_ts
from toolkit.statistics.fees.net_edge import net_now_bps
from toolkit.statistics.funding import differential
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR
from toolkit.store import Store
from toolkit.workspace.selection import Passes, Selection
from toolkit.workspace.snapshot_tables import each_pair_once

_KEEP_S = 600
_BEFORE_S = 2 * 86_400
"""How long before a window funding is read, for the rate in force at its start."""
_KEPT_FUNDING = "snapshot-funding"
_RATES = {"leg": pl.String, "ts": pl.Int64, "apr_pct": pl.Float64}
_PRICES = {"leg": pl.String, "ts": pl.Int64, "price": pl.Float64}


def streams_of(held: StoreState, symbol: str) -> pl.DataFrame:
    """Return the streams of a symbol that have rows: stream, kind, first_ts, end (s)."""
    named = held.streams.filter(pl.col("rows") > 0, pl.col("last_ts").is_not_null())
    mine = [_symbol_of(key) == symbol for key in named["stream"]]
    return named.filter(pl.Series(mine, dtype=pl.Boolean)).select(
        "stream", "kind", "first_ts", end=pl.col("last_ts") + pl.col("step_s").fill_null(1)
    )


def busiest_symbol(streams: pl.DataFrame, among: Sequence[str]) -> str:
    """Return the symbol with the most stored rows, the first by name on a tie.

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


@cache_resource(ttl=_KEEP_S, max_entries=8, show_spinner="Reading the prices")
def _prices(
    path: Path, keys: tuple[str, ...], start: int, end: int, *, versions: tuple[StreamVersion, ...]
) -> pl.DataFrame:
    """Read the prices of legs: leg, ts, price."""
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
    """Read the funding rate in force of legs: leg, ts, apr_pct (percent a year, from ts on).

    It is that of settlements, for legs without one that of snapshots.
    """
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
    """Read the rates of both legs of pairs, without spot legs."""
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


_LEVELS = {"last": "Last", "mean": "Mean"}
_EVENTS_SHOWN = 200
_SIDE_PX = 480
_BARE: dict[str, Any] = {"label_visibility": "collapsed"}
_ZOOM = Zoom("zoom", Markdown("⤢ Zoom out"), None, key="symbol_zoom")
_CHOICES = Choices(
    "symbol",
    (
        Picked(
            "symbol", Markdown("Symbol"), "", looks={**_BARE, "width": 170, "on_change": _ZOOM.end}
        ),
        OneOf(
            "window",
            Markdown("Window, up to the newest row"),
            "24 hours",
            key="symbol_window",
            allowed=SHORT_PRESETS,
            looks={**_BARE, "on_change": _ZOOM.end},
        ),
        OneOf(
            "prices",
            Markdown("Prices"),
            "price",
            key="symbol_prices",
            allowed={"price": "Prices", "from_median": "bps from median"},
            looks=_BARE,
        ),
        OneOf(
            "spreads", Markdown("Spreads"), "last", key="symbol_level", allowed=_LEVELS, looks=_BARE
        ),
        _ZOOM,
    ),
)


class _SymbolChoice(NamedTuple):
    """The values of the widgets."""

    symbol: str
    view: Interval
    zoom: Interval | None
    shown: str
    level: str


def _body(shell: PageShell) -> None:
    symbols = held_symbols(shell.held)
    if not symbols:
        what = Markdown("{} has no symbols yet.").format(markdown(shell.held.place))
        offer(shell.held, what, WATCHLIST)
        return
    bar = side_by_side(key="filters_row")
    asked = _choose(bar, shell, symbols)
    lives = read_lifecycles(shell.held, asked.view) if shell.held.logs.height else None
    mine = None if lives is None else lives.filter(symbol=asked.symbol)
    _open_row(asked, mine)
    _draw(shell, asked, mine)
    with st.grid(2, min_column_width=_SIDE_PX):
        matrix, lists = st.container(), st.container()
    with matrix:
        _show_spreads(shell, bar, asked, lists)
    with lists:
        _list_events(shell, mine)


def _open_row(asked: _SymbolChoice, lives: pl.DataFrame | None) -> None:
    if (key := opened_key("symbol_spreads")) is not None:
        go_to("trajectory", **Choice(key, asked.view).params)
    event = opened_key("symbol_events")
    if event is None and lives is not None:
        event = clicked_event("symbol_chart", lives)
    if event is not None:
        go_to("events", event=event)


# -- what is chosen ------------------------------------------------------------------------------


def _choose(bar: Container, shell: PageShell, symbols: list[str]) -> _SymbolChoice:
    kept = [each for each in symbols if each in shell.symbols] or symbols
    usual = busiest_symbol(shell.held.streams, kept)
    choices = _CHOICES.given(symbol={"allowed": symbols, "usual": usual})
    choices.follow(ready=st.session_state.get("symbol") in symbols)
    offered = sorted({*kept, st.session_state["symbol"]})
    with bar:
        choices.given(symbol={"allowed": offered}).draw(*(option.name for option in choices))
    values = choices.values()
    window = _held(shell, values["symbol"]).last(PRESETS[values["window"]])
    # The link always names the symbol: the default may change.
    choices.given(symbol={"usual": ""}).write()
    zoom = values["zoom"]
    return _SymbolChoice(
        values["symbol"], zoom or window, zoom, values["prices"], values["spreads"]
    )


def _held(shell: PageShell, symbol: str) -> Interval:
    """Return the time from the symbol's first row to the end of its last, in minutes."""
    mine = streams_of(shell.held, symbol)
    dated = mine.filter(~pl.col("kind").str.contains("funding"))
    times = dated if dated.height else mine
    if times.is_empty():
        end = shell.held.now() // 60 * 60
        return Interval(end - 86_400, end)
    first, last = min(times["first_ts"]), min(max(times["end"]), shell.held.now())
    return Interval(first // 60 * 60, max(-(-last // 60), first // 60 + 1) * 60)


# -- what is shown -------------------------------------------------------------------------------


def _draw(shell: PageShell, asked: _SymbolChoice, lives: pl.DataFrame | None) -> None:
    held, streams = shell.held, streams_of(shell.held, asked.symbol)

    def read(reader: Callable[..., pl.DataFrame], *kinds: str) -> pl.DataFrame:
        keys = tuple(streams.filter(pl.col("kind").is_in(kinds))["stream"])
        return reader(held.path, keys, *asked.view, versions=tuple(map(held.versions.get, keys)))

    rows = read(_prices, Family.PRICE.value)
    chart = symbol_chart(
        rows,
        read(_rates, Family.FUNDING.value, _KEPT_FUNDING),
        _NO_LIVES if lives is None else lives,
        symbol=asked.symbol,
        start=asked.view.start,
        end=asked.view.end,
        source=shell.held.source,
        shown=asked.shown,
        timezone=shell.timezone,
    )
    draw(chart, key="symbol_chart", **ZOOMED_BY_US)
    listen_to_zoom("symbol_chart", shell.timezone, _ZOOM.key)
    words = "Double-click to zoom out." if asked.zoom else "Drag over a part to zoom."
    st.caption(
        Markdown("{:,} prices of {:,} legs, {} to {}. {}").format(
            rows.height, rows["leg"].n_unique(), *map(shell.moment, asked.view), words
        )
    )


_NO_LIVES = pl.DataFrame(
    schema={
        **dict.fromkeys(("family", "symbol", "legs", "kind", "event_id"), pl.String),
        **dict.fromkeys(("t_open", "t_close"), pl.Int64),
        **dict.fromkeys(("duration_s", "peak"), pl.Float64),
    }
)


def _show_spreads(
    shell: PageShell, bar: Container, asked: _SymbolChoice, beside: Container
) -> None:
    kinds = streams_of(shell.held, asked.symbol)["kind"]
    kind = next((kind for kind in SPREADS if kind in kinds), None)
    if kind is None:
        what = Markdown("No spread of {} is stored.").format(markdown(asked.symbol))
        words = Markdown("Load 7 days of {}").format(markdown(asked.symbol))
        offer(shell.held, what, Load.of(words, f"{asked.symbol}:*", since="7d"))
        return
    net = shell.fees.net()
    lines = _spreads(shell, asked, kind, net)
    if lines.is_empty():
        words = Markdown("No spread of {} in this time. Choose a longer window above.")
        st.caption(words.format(markdown(asked.symbol)))
        return
    _hand_over(shell, bar, asked, kind, lines)
    words = Markdown("**{} spreads, {} (bps)**").format(
        _LEVELS[asked.level], "net" if net else "gross"
    )
    st.markdown(words, help=_NET.format(net.words) if net else None)
    matrix = spread_matrix(
        _cells(lines, net),
        symbol=asked.symbol,
        ts=asked.view.end,
        source=shell.held.source,
        timezone=shell.timezone,
        filled=net is None,
    )
    draw_cells(matrix, "symbol_matrix")
    columns = [
        row_column(lines, "buy"),
        row_column(lines, "sell"),
        RowColumn(f"spread_{asked.level}_log_bps", "number", lines["gross_bps"].to_list()),
        row_column(lines, "cost_bps", narrow=False, result=_COSTS),
        RowColumn("net_now_bps", "number", lines["net_bps"].to_list()),
    ]
    keys = lines["trajectory"].to_list()
    with beside:
        show_rows(Markdown("Spreads, the widest first"), keys, columns, "symbol_spreads", 12)


_COSTS = "spread.net_summary"
_NET = Markdown("The spread less the cost of a round trip at its last observation. {}")


def _spreads(shell: PageShell, asked: _SymbolChoice, kind: str, net: Net | None) -> pl.DataFrame:
    """Measure each spread in its stored orientation, each pair once, the widest first.

    Columns: trajectory (the stored key), buy, sell, t_last, gross_bps, cost_bps and net_bps.
    """
    held = shell.held
    mine = streams_of(held, asked.symbol).filter(kind=kind)["stream"]
    keys = {key: held.versions[key] for key in mine}
    level = pl.col(f"spread_{asked.level}_log_bps")
    figures = measure_figures(held, kind, asked.view, keys)
    found = spread_names(figures["trajectory"]).join(figures, on="trajectory")
    found = each_pair_once(found.sort("trajectory"), "t_last")
    found = found.with_columns(cost_bps=pl.lit(None, pl.Float64))
    if net is not None:
        costs = measure_net(held, kind, asked.view, net.fees, net.style, versions=keys)
        found = found.drop("cost_bps").join(
            costs.select("trajectory", "cost_bps"), on="trajectory", how="left"
        )
    gross, cost = pl.col("gross_bps"), pl.col("cost_bps")
    return (
        found.select("trajectory", "t_last", "cost_bps", "buy", "sell", gross_bps=level)
        .with_columns(net_bps=net_now_bps(gross, cost, net.style if net else "taker"))
        .sort(gross.abs(), "trajectory", descending=[True, False], nulls_last=True)
    )


def _cells(lines: pl.DataFrame, net: Net | None) -> pl.DataFrame:
    """Return the matrix's cells. Net figures differ by orientation."""
    held = lines.select("buy", "sell", ts="t_last", last_bps="gross_bps")
    if net is None:
        return held
    cost = lines["cost_bps"]
    turned = held.select(
        pl.col("sell").alias("buy"), pl.col("buy").alias("sell"), "ts", -pl.col("last_bps")
    )
    both = pl.concat([held.with_columns(cost=cost), turned.with_columns(cost=cost)])
    return both.with_columns(last_bps=pl.col("last_bps") - pl.col("cost")).drop("cost")


def _hand_over(
    shell: PageShell, bar: Container, asked: _SymbolChoice, kind: str, lines: pl.DataFrame
) -> None:
    net = shell.fees.net()
    start, end = map(format_ts, asked.view)
    costs = (net.fees, net.style) if net else None
    python = SpreadFilters(kind).python(shell.held.place, (start, end), [asked.symbol], costs)
    rows = lines.rename({"t_last": "ts"}).with_columns(level=pl.lit(asked.level))
    hand_over(bar, rows, shell.held.source, f"{asked.symbol}_spreads_{end}", python)


def _list_events(shell: PageShell, lives: pl.DataFrame | None) -> None:
    if lives is None:
        offer(shell.held, Markdown("No event log is stored."), LOGS, part="events")
        return
    if lives.is_empty():
        st.markdown(Markdown("**Events**"))
        st.caption(Markdown("No event of the symbol in this time. Choose a longer window above."))
        return
    st.markdown(Markdown("**Events**, {:,}, newest first").format(lives.height))
    shown = lives.head(_EVENTS_SHOWN)
    columns = [c for c in event_columns(shown, shell.timezone) if c.name not in ("symbol", "seen")]
    label = Markdown("Events of the symbol")
    show_rows(label, shown["event_id"].to_list(), columns, "symbol_events", 24)


if __name__ == "__main__":
    page(Markdown("Symbol"), _body)
