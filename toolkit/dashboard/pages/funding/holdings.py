"""A section of the page of funding: what one pair's position kept, by how long it was held."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from toolkit.analyses import find
from toolkit.columns import column
from toolkit.dashboard.parts.analyses import Asked, answered
from toolkit.dashboard.parts.rows import RowColumn, row_column, show_rows
from toolkit.dashboard.screen import st
from toolkit.dashboard.shell import PageShell
from toolkit.foreign import Markdown
from toolkit.show.values import reason_words, value_text
from toolkit.statistics.funding.carry_marks import FUNDING_ONLY

_ENOUGH = 24
"""Of fewer entries, those of a day, nothing is said of when they earned the fees back."""
_HORIZONS = ("8h", "1d", "2d", "3d", "5d", "7d", "14d", "30d")
_SHARE = "breakeven_share"
_NARROW = ("horizon_s", "gross_median_bps", "net_median_bps", "net_positive_share", _SHARE)
_COLUMNS = (
    *_NARROW,
    *("gross_q05_bps", "gross_q95_bps"),
    *("gross_mean_bps", "gross_mean_lower_bps", "gross_mean_upper_bps"),
    *("funding_median_bps", "basis_mean_bps", "drawdown_median_bps", "n", "coverage"),
)
_HELP = Markdown(
    "Entered at each full hour of the window and closed after the time held. A range of the mean "
    "holds it at 95 %, with overlapping times not taken for independent ones. Where funding "
    "remembers more than the window there is none: its dash says so. Times that the window is too "
    "short for are left out."
)


def show_holdings(shell: PageShell, asked: Asked, *, funding_only: bool) -> bool:
    """Show the distribution of what the position kept over all hours at which to enter it.

    Returns whether too many entries lack a price for a figure.
    """
    of = "What holding it kept, funding only" if funding_only else "What holding it kept"
    st.markdown(Markdown("**{}** · bps of one leg's notional").format(of), help=_HELP)
    options = {"horizons": _HORIZONS, "funding_only": funding_only}
    found = answered(shell, asked, find("funding.holdings"), options).rows
    known = found.filter(pl.col("n") > 0)
    if known.is_empty():
        st.caption(Markdown("Nothing of the window is long enough and covered."))
        return False
    enough = known.filter(pl.col("n") >= _ENOUGH)
    if asked.net is not None and enough.height:
        share = f"{FUNDING_ONLY}{_SHARE}" if funding_only else _SHARE
        earned = enough.drop_nulls(share)
        st.markdown(breakeven_words((earned if earned.height else enough).row(-1, named=True)))
    keys = list(map(str, known["horizon_s"]))
    show_rows(Markdown("{}").format(of), keys, holding_columns(known), "holdings", opens=False)
    return not funding_only and known["prices_lack"].count() > 0


def holding_columns(found: pl.DataFrame) -> list[RowColumn]:
    """Build the columns of `toolkit.statistics.funding.holdings`, gross or of funding only.

    >>> found = pl.DataFrame({"horizon_s": [604_800], "funding_median_bps": [63.0], "n": [3],
    ...     "funding_only_breakeven_share": [0.5]})
    >>> [(column.heading, column.texts[0]) for column in holding_columns(found)]
    [('horizon', '7 d'), ('funding median (bps)', '63.00'),
     ('broke even, funding only', '50.00 %'), ('entries', '3')]
    """
    columns: dict[str, RowColumn] = {}
    for name in _COLUMNS:
        either = (name, name.replace("gross_", "funding_"), f"{FUNDING_ONLY}{name}")
        for each in [each for each in either if each in found.columns][:1]:
            columns[each] = row_column(
                found,
                each,
                kind="bar" if name == _SHARE else None,
                result="funding.holdings",
                narrow=name in _NARROW,
            )
    return list(columns.values())


def breakeven_words(row: Mapping[str, Any]) -> Markdown:
    """Put into words after how long the fees were earned back, of positions held for one time.

    >>> row = {"horizon_s": 604800, "n": 73, "breakeven_share": 0.8, "breakeven_q25_h": 24.0,
    ...        "breakeven_median_h": 60.0, "breakeven_q75_h": None}
    >>> breakeven_words(row)
    'Of 73 entries held 7 d, 80.00 % earned the fees back:
     a quarter within 24.0 h, half within 60.0 h'
    """
    only = "" if _SHARE in row else FUNDING_ONLY
    if row[f"{only}{_SHARE}"] is None:
        unknown = Markdown("When the fees are earned back is not known: {}.")
        return unknown.format(reason_words(row, f"{only}breakeven_median_h"))
    shares = (("a quarter", "q25"), ("half", "median"), ("three quarters", "q75"))
    names = [(words, f"{only}breakeven_{name}_h") for words, name in shares]
    parts = [
        f"{words} within {value_text(row[name], column(name), unit=True)}"
        for words, name in names
        if row[name]
    ]
    by = Markdown(": {}").format(", ".join(parts)) if parts else Markdown("")
    return Markdown("Of {:,} entries held {}, {} earned the fees back{}{}").format(
        row["n"] - row.get("n_unpriced", 0),
        value_text(row["horizon_s"], column("horizon_s")),
        value_text(row[f"{only}{_SHARE}"], column(_SHARE)),
        Markdown(" by funding only") if only else Markdown(""),
        by,
    )
