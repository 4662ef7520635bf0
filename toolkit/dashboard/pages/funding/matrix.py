"""The rates in force, one row per symbol and one column per exchange. Cells open pairs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import polars as pl

from toolkit.charts import in_unit
from toolkit.charts.matrix import SCALE, full_colour, rate_in
from toolkit.columns import column
from toolkit.dashboard.loads import RATES, offer
from toolkit.dashboard.parts.answers import high_rate_notes, show_implausible
from toolkit.dashboard.shell import PageShell
from toolkit.dashboard.widgets import component, st
from toolkit.foreign import Markdown, plain
from toolkit.show.values import value_text
from toolkit.store import held_key
from toolkit.wire.rows.snapshot_rows import snapshot_items
from toolkit.workspace.snapshot_tables import funding_rates, widest_differentials

_KEY = "rates"
_MATRIX = component("rates", "table")
_ROW_PX, _ROWS_HIGH = 27, 20
_SETTLED = Markdown("The rate that each leg settled last.")
_PREDICTED = Markdown(
    "The predicted rate of each leg's next settlement. It may still change: nothing here is "
    "settled."
)
_HELP = Markdown(
    "{} Above 0 longs pay shorts. **S**: the highest rate, to be short. **L**: the lowest, to be "
    "long. Equal rates go by name. **difference**: highest less lowest, before fees. A cell opens "
    "its leg short against the lowest one, and the lowest that of the largest difference, loaded "
    "first if it is not stored."
)


def show_matrix(shell: PageShell, answer: tuple[int, str] | None, unit: str) -> None:
    """Draw the rates of the service's overview, or offer to load one.

    ``answer`` is the newest one's time and text.
    """
    heading = Markdown("**Rates in force**")
    if answer is None:
        st.markdown(heading)
        offer(shell.held, Markdown("No funding overview is stored."), RATES)
        return
    at, document = answer
    if words := snapshot_items("funding", document).words:
        st.warning(Markdown("The overview of {}: {}.").format(shell.moment(at), words))
    rates = shell.kept(funding_rates(document))
    kind, of_rates = "predicted, not settled", _PREDICTED
    if shell.held.source.by_ccxt:
        kind, of_rates = "the last settled", _SETTLED
    words = Markdown("{} · {}, at {}").format(heading, kind, shell.moment(at))
    st.markdown(words, help=_HELP.format(of_rates))
    if rates.is_empty():
        st.caption(Markdown("The overview names no rate."))
        return
    keys = set(shell.held.streams["stream"])
    state = st.session_state

    def keep() -> None:
        state[f"{_KEY}_opened"] = state[_KEY].opened

    data = matrix_data(rates, unit, keys, shell)
    _MATRIX(data=data, key=_KEY, on_opened_change=keep)
    show_implausible(high_rate_notes(rates))


def matrix_data(
    rates: pl.DataFrame, unit: str, held: Collection[str], shell: PageShell
) -> dict[str, Any]:
    """Return the data of the script: rows of cells, the widest pair first, and the scale.

    ``rates`` is of `funding_rates`, ``held`` the stored keys.
    """
    known = in_unit(rates, unit).with_columns(next=shell.clock(rates["next_funding_time"]))
    venues = known["leg"].unique().sort().to_list()
    one, full = column(rate_in("apr_pct", unit)[0]), full_colour(unit)
    pairs = widest_differentials(rates).select("symbol", "buy", "sell").iter_rows()
    apart = {symbol: (lowest, highest) for symbol, lowest, highest in pairs}
    rows = [
        _row(legs, apart.get(symbol), venues, unit, held)
        for (symbol,), legs in known.group_by("symbol")
    ]
    rows.sort(key=lambda row: (row["apart"] is None, -(row["apart"] or 0), row["symbol"]))
    for row in rows:
        row["shown"] = value_text(row["apart"], one)
    return {
        "label": f"Funding rates in force, {unit}",
        "venues": [plain(venue.removesuffix(".futures")) for venue in venues],
        "rows": rows,
        "scale": [colour for _, colour in SCALE],
        "full": full,
        "bar": [f"{-full:g}", "0", f"+{full:g} {unit}"],
        "most_px": _ROW_PX * (2 * _ROWS_HIGH + 3) // 2 if len(rows) > _ROWS_HIGH else None,
    }


def _row(
    legs: pl.DataFrame,
    widest: tuple[str, str] | None,
    venues: list[str],
    unit: str,
    held: Collection[str],
) -> dict[str, Any]:
    """Build the cells of a symbol. ``widest`` are the legs of its lowest and highest rates."""
    symbol = str(legs["symbol"][0])
    value = dict(legs.select("leg", "value").iter_rows())
    apart = value[widest[1]] - value[widest[0]] if widest else None
    badges = dict(zip(widest, "LS", strict=True)) if widest and apart else {}
    cells: dict[str, dict[str, Any]] = {}
    for line in legs.iter_rows(named=True):
        leg = line["leg"]
        key = _opened(symbol, leg, widest, held)
        cells[leg] = {
            "value": line["value"],
            "shown": value_text(line["value"], column(rate_in("apr_pct", unit)[0])),
            "badge": badges.get(leg, ""),
            "key": key,
            "title": plain(_title(line, unit, key, held)),
        }
    return {
        "symbol": plain(symbol),
        "key": None if widest is None else _opened(symbol, widest[1], widest, held),
        "apart": apart,
        "cells": [cells.get(venue) for venue in venues],
    }


def _opened(
    symbol: str, leg: str, widest: tuple[str, str] | None, held: Collection[str]
) -> str | None:
    """Return what a cell opens: its leg short against the lowest, or for that the widest pair."""
    if widest is None:
        alone = f"snapshot-funding/{symbol}:{leg}"
        return alone if alone in held else None
    lowest, highest = widest
    return f"funding/{symbol}:{lowest}:{highest if leg == lowest else leg}"


def _title(line: dict[str, Any], unit: str, key: str | None, held: Collection[str]) -> str:
    value = value_text(line["value"], column(rate_in("apr_pct", unit)[0]))
    words = (
        f"{line['symbol']} {line['leg']}: {value} {unit}, as the service gave it "
        f"{100 * line['rate']:+.8g} % per {line['interval_hours']:g} h, next settlement "
        f"{line['next'] or 'not known'}"
    )
    if key is None:
        return words
    loads = "" if key in held or held_key(key, held) else ", which is loaded first"
    return f"{words}. Opens {key.removeprefix('funding/')}{loads}"
