"""A section of the page Overview: the widest differences of funding rates now."""

from __future__ import annotations

import polars as pl

from toolkit.dashboard.loads import RATES, offer
from toolkit.dashboard.parts.answers import high_rate_notes, show_implausible
from toolkit.dashboard.parts.lately import sign_columns
from toolkit.dashboard.parts.rows import RowColumn, row_column, show_rows
from toolkit.dashboard.shell import PageShell
from toolkit.dashboard.widgets import st
from toolkit.foreign import Markdown
from toolkit.wire.rows.snapshot_rows import snapshot_items
from toolkit.workspace.snapshot_tables import funding_rates, held_stream, widest_differentials

_SHOWN = 50
_HELP = Markdown(
    "Short the leg with the highest rate, long the one with the lowest. **differential APR**: the "
    "difference of the rates in force, annualised without compounding. **sign**: ● steady, the "
    "difference had this sign in 90 % of the stored part of the last 30 days; ◐ mostly, in 60 %; "
    "○ unsteady, in less. **APR, 7 d**: means of 8 h."
)


def show_funding(shell: PageShell, rates: tuple[int, str] | None) -> None:
    """Show the table."""
    heading = Markdown("**Widest funding differences**")
    if rates is None:
        st.markdown(heading)
        offer(shell.held, Markdown("No funding overview is stored."), RATES)
        return
    at, document = rates
    if words := snapshot_items("funding", document).words:
        st.warning(Markdown("The overview of {}: {}.").format(shell.moment(at), words))
    kept = shell.kept(funding_rates(document))
    widest = widest_differentials(kept)
    widest = widest.filter(pl.col("differential_apr_pct") > 0).head(_SHOWN)
    if widest.is_empty():
        st.markdown(heading)
        if not words:
            st.caption(
                Markdown("The overview of {} has no symbol with two different rates.").format(
                    shell.moment(at)
                )
            )
        return
    st.markdown(Markdown("{} · rates in force at {}").format(heading, shell.moment(at)), help=_HELP)
    show_rows(
        Markdown("Funding rates, the largest difference first"),
        widest["trajectory"].to_list(),
        _columns(shell, widest),
        "apart",
    )
    show_implausible(high_rate_notes(kept))


def _columns(shell: PageShell, widest: pl.DataFrame) -> list[RowColumn]:
    held = set(shell.held.streams.filter(pl.col("rows") > 0)["stream"])
    found = [held_stream(key, held) or ("", False) for key in widest["trajectory"]]
    legs = [f"{sell} → {buy}" for sell, buy in widest.select("sell", "buy").iter_rows()]
    sign, _, line = sign_columns(shell.held, found, few=_FEW_WORDS)
    return [
        row_column(widest, "symbol"),
        RowColumn("short_long", "text", legs),
        row_column(widest, "differential_apr_pct"),
        sign,
        line,
    ]


_FEW_WORDS = "fewer than two days are stored: open it to load it"
