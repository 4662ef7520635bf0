"""A section of the page Overview: the widest differences of funding rates now."""

from __future__ import annotations

import polars as pl

from toolkit.dashboard.loads import RATES, offer
from toolkit.dashboard.parts.answers import high_rate_notes, show_implausible
from toolkit.dashboard.parts.lately import funding_lately
from toolkit.dashboard.parts.rows import RowColumn, row_column, show_rows
from toolkit.dashboard.shell import PageShell
from toolkit.dashboard.widgets import st
from toolkit.foreign import Markdown
from toolkit.show.values import NULL, figures_text
from toolkit.wire.rows.snapshot_rows import snapshot_items
from toolkit.workspace.snapshot_tables import funding_rates, held_stream, widest_differentials

_SHOWN = 50
_FEW_DAYS = 2.0
_STEADY, _MOSTLY = 0.9, 0.6
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
    found = [held_stream(key, held) for key in widest["trajectory"]]
    lately = {
        name: facts
        for name, *facts in funding_lately(shell.held, [each[0] for each in found if each])
        .select("trajectory", "positive_share", "negative_share", "flips", "days", "line")
        .iter_rows()
    }
    words, shares, why, lines = [], [], [], []
    for each in found:
        stream, turned = each or ("", False)
        positive, negative, flips, days, line = lately.get(stream, (None, None, None, None, None))
        share = negative if turned else positive
        few = share is None or days is None or days < _FEW_DAYS
        words.append(NULL if few or share is None else sign_words(share))
        shares.append(None if few else share)
        lasted = {"sign_share": share, "days": days, "flips": flips}
        why.append(_FEW_WORDS if few else figures_text(lasted, lasted))
        sign = -1.0 if turned else 1.0
        lines.append(line and [None if value is None else sign * value for value in line])
    legs = [f"{sell} → {buy}" for sell, buy in widest.select("sell", "buy").iter_rows()]
    return [
        row_column(widest, "symbol"),
        RowColumn("short_long", "text", legs),
        row_column(widest, "differential_apr_pct"),
        RowColumn("sign", "number", shares, shown=words, titles=why),
        RowColumn("line_apr_pct", "line", lines),
    ]


_FEW_WORDS = "fewer than two days are stored: open it to load it"


def sign_words(share: float) -> str:
    """Describe the share of the time in which a difference had its current sign.

    >>> [sign_words(share) for share in (0.95, 0.7, 0.4)]
    ['● steady', '◐ mostly', '○ unsteady']
    """
    if share >= _STEADY:
        return "● steady"
    return "◐ mostly" if share >= _MOSTLY else "○ unsteady"
