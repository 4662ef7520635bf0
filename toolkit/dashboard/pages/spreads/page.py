"""The page Spreads: all spreads with their figures, filters, and a matrix of one symbol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from toolkit.charts import spread_matrix
from toolkit.dashboard.export import hand_over
from toolkit.dashboard.fee_choice import Net
from toolkit.dashboard.link import PRESETS, SHORT_PRESETS, Choice, go_to
from toolkit.dashboard.loads import WATCHLIST, offer
from toolkit.dashboard.pages.spreads.choice import (
    SORTS,
    choose,
    chosen_kind,
    chosen_level,
    level_params,
    shown_columns,
)
from toolkit.dashboard.parts.lately import spreads_lately
from toolkit.dashboard.parts.rows import opened_key, show_rows
from toolkit.dashboard.parts.spread_table import (
    SpreadFilters,
    measure_figures,
    measure_level,
    measure_net,
    spread_lines,
    spread_names,
)
from toolkit.dashboard.reading import read_asked
from toolkit.dashboard.shell import PageShell, draw_cells, page
from toolkit.dashboard.widgets import Container, side_by_side, st
from toolkit.foreign import Markdown, markdown
from toolkit.intervals import Interval
from toolkit.market import format_ts
from toolkit.statistics.families import extent_of
from toolkit.statistics.spread.net_episodes import Level

_ROWS_SHOWN = 500
_ROWS_HIGH = 24


class _ScreenedSpreads(NamedTuple):
    """The filtered rows, all rows, their window and costs."""

    kept: pl.DataFrame
    lines: pl.DataFrame
    window: Interval
    net: Net | None


def _body(shell: PageShell) -> None:
    held = shell.held
    bar = side_by_side(key="filters_row")
    kind = chosen_kind(held.streams)
    spreads = held.streams.filter(kind=kind)
    everything = extent_of(spreads.iter_rows(named=True))
    if everything is None:
        answer = "the service has none for the requested time" if spreads.height else "load some"
        what = Markdown("{} has no spreads: {}.").format(markdown(held.place), answer)
        offer(held, what, WATCHLIST)
        return
    net = shell.fees.net()
    names = spread_names(spreads["stream"])
    choices = choose(bar, held.streams, names, has_costs=net is not None)
    values = choices.values()
    window = everything.last(PRESETS[values["window"]])
    if key := opened_key("spreads"):
        # The whole link, as the page writes it, so that one step back leads here again.
        go_to("trajectory", **Choice(key, window).params, **level_params(choices))
    lines = _lines(shell, spreads, chosen_level(values, net), window, net)
    asked = SpreadFilters(kind, choices.arguments(), values["sort"])
    found = _ScreenedSpreads(shell.kept(asked.applied(lines)), lines, window, net)
    _hand_over(bar, shell, asked, found)
    if values["matrix"] is not None:
        _show_matrix(shell, values["matrix"], found)
    _show(shell, values, found)


def _lines(
    shell: PageShell, spreads: pl.DataFrame, level: Level, window: Interval, net: Net | None
) -> pl.DataFrame:
    held, kind = shell.held, spreads["kind"][0]
    return spread_lines(
        spreads,
        measure_figures(held, kind, window),
        measure_level(held, kind, window, level),
        spreads_lately(held).select("trajectory", recent="line"),
        asked=read_asked(held.path, tuple(spreads["stream"]), *window, version=held.version),
        now=held.now(),
        stands=held.clock_stands,
        net=None if net is None else measure_net(held, kind, window, net.fees, net.style),
    )


def _show(shell: PageShell, values: Mapping[str, Any], found: _ScreenedSpreads) -> None:
    kept = found.kept
    if kept.is_empty():
        st.info(Markdown("No spread passes the filters. Remove one of them."))
        return
    shown = kept.head(_ROWS_SHOWN)
    words = found.net.words if found.net else None
    level_words = chosen_level(values, found.net).words
    named = {"above": level_words, "episodes": level_words}
    named["percentile"] = SHORT_PRESETS[values["window"]]
    columns = shown_columns(shown, values["columns"], named, words)
    show_rows(Markdown("Spreads"), shown["trajectory"].to_list(), columns, "spreads", _ROWS_HIGH)
    limited = f", {_ROWS_SHOWN:,} shown" if kept.height > _ROWS_SHOWN else ""
    st.caption(
        Markdown("{:,} of {:,} spreads{}, {}, {} to {}.").format(
            kept.height,
            found.lines.height,
            limited,
            SORTS[values["sort"]],
            shell.moment(found.window.start),
            shell.moment(found.window.end),
        ),
        help=words,
    )


def _show_matrix(shell: PageShell, symbol: str, found: _ScreenedSpreads) -> None:
    """Draw the last spreads between all exchanges of a symbol, whatever the filters."""
    figure = spread_matrix(
        found.lines.filter(symbol=symbol).select(
            "buy", "sell", ts="t_last", last_bps="spread_last_log_bps"
        ),
        symbol=symbol,
        ts=found.window.end,
        source=shell.held.source,
        timezone=shell.timezone,
        heading=False,
    )
    draw_cells(figure, "spreads_matrix", headed=True)


def _hand_over(
    bar: Container, shell: PageShell, asked: SpreadFilters, found: _ScreenedSpreads
) -> None:
    rows = found.kept.drop("recent", "exchanges", "half_life_reason", "late_s", "old_s").rename(
        {"t_last": "ts"}
    )
    rows = rows.with_columns(window_start=found.window.start, window_end=found.window.end)
    costs = (found.net.fees, found.net.style) if found.net else None
    start, end = map(format_ts, found.window)
    python = asked.python(shell.held.place, (start, end), shell.symbols, costs)
    hand_over(bar, rows, shell.held.source, f"spreads_{end}", python)


if __name__ == "__main__":
    page(Markdown("Spreads"), _body)
