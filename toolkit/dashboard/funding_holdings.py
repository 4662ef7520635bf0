"""A section of the page of funding: what one pair's position kept, by how long it was held."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import polars as pl

from toolkit.cards import duration
from toolkit.charts.lines import share_text
from toolkit.dashboard.fee_choice import Net
from toolkit.dashboard.formatting import NULL, reason_words
from toolkit.dashboard.rows import RowColumn, show_rows
from toolkit.dashboard.screen import st
from toolkit.foreign import Markdown
from toolkit.intervals import Interval
from toolkit.reasons import Reason
from toolkit.statistics.carry_marks import FUNDING_ONLY, LegPrices
from toolkit.statistics.funding import holdings

_EVERY_S = 3_600
_BPS = (
    ("median", "median_bps"),
    ("5 %", "q05_bps"),
    ("95 %", "q95_bps"),
    ("mean", "mean_bps"),
    ("mean from", "mean_lower_bps"),
    ("to", "mean_upper_bps"),
)
_ENOUGH = 24
"""Of fewer entries, those of a day, nothing is said of when they earned the fees back."""
_EARNED = "fees earned (%)"
_FUNDING = "funding "
_HORIZONS = ("8h", "1d", "2d", "3d", "5d", "7d", "14d", "30d")
_NARROW = ("median", "net median", "net > 0 (%)", _EARNED)
_DIGITS = {_EARNED: 1, "net > 0 (%)": 1, "n": 0, "coverage (%)": 1}
_HELP = Markdown(
    "Entered at each full hour of the window and closed after the time held. A range of the mean "
    "holds it at 95 %, with overlapping times not taken for independent ones. Where funding "
    "remembers more than the window there is none. Fees earned: the share that had earned a round "
    "trip by then. Times that the window is too short for are left out."
)


def show_holdings(
    rows: pl.DataFrame, window: Interval, net: Net | None, prices: LegPrices | None
) -> bool:
    """Show the distribution of what the position kept over all hours at which to enter it.

    ``prices`` None leaves them out. Returns whether too many entries lack a price for a figure.
    """
    of = "What holding it kept, funding only" if prices is None else "What holding it kept"
    st.markdown(Markdown("**{}** · bps of one leg's notional").format(of), help=_HELP)
    held = partial(
        holdings,
        rows,
        *window,
        every=_EVERY_S,
        horizons=_HORIZONS,
        prices=prices,
        funding_only=prices is None,
    )
    found = held() if net is None else held(fees=net.fees, style=net.style, notional=net.notional)
    known = found.filter(pl.col("n") > 0)
    if known.is_empty():
        st.caption(Markdown("Nothing of the window is long enough and covered."))
        return False
    enough = known.filter(pl.col("n") >= _ENOUGH)
    if net is not None and enough.height:
        share = "breakeven_share" if prices is not None else f"{FUNDING_ONLY}breakeven_share"
        earned = enough.drop_nulls(share)
        st.markdown(breakeven_words((earned if earned.height else enough).row(-1, named=True)))
    table = holdings_table(known)
    columns = [
        RowColumn(name, "text", table[name].fill_null(NULL).to_list())
        if table.schema[name] == pl.String
        else RowColumn(
            name,
            "bar" if name.endswith(_EARNED) else "number",
            table[name].to_list(),
            digits=_DIGITS.get(name.removeprefix(_FUNDING), 2),
            narrow=name.removeprefix(_FUNDING) in _NARROW,
        )
        for name in table.columns
    ]
    show_rows(Markdown("{}").format(of), table["held"].to_list(), columns, "holdings", opens=False)
    for words in unbounded_words(known):
        st.caption(words)
    return prices is not None and known["prices_lack"].count() > 0


def unbounded_words(found: pl.DataFrame) -> list[Markdown]:
    """Put into words at which times held the mean has no range, and why: one line per reason.

    >>> none = {"horizon_s": [86_400, 604_800], "gross_band_reason": ["long_memory", "too_few"]}
    >>> unbounded_words(pl.DataFrame(none))[1]
    'No range of the mean held 7 d: too few observations for this statistic'
    """
    of = "gross" if "gross_band_reason" in found.columns else "funding"
    band, mean = f"{of}_band_reason", f"{of}_reason"
    missing = found.drop_nulls(band)
    if mean in found.columns:  # a mean that is null says why itself
        missing = missing.filter(pl.col(mean).is_null())
    return [
        Markdown("No range of the mean held {}: {}").format(
            ", ".join(duration(each) for each in held), Reason(reason).words
        )
        for reason, held in missing.group_by(band, maintain_order=True).agg("horizon_s").iter_rows()
    ]


def breakeven_words(row: Mapping[str, Any]) -> Markdown:
    """Put into words after how long the fees were earned back, of positions held for one time.

    >>> row = {"horizon_s": 604800, "n": 73, "breakeven_share": 0.8, "breakeven_q25_h": 24.0,
    ...        "breakeven_median_h": 60.0, "breakeven_q75_h": None}
    >>> breakeven_words(row)
    'Of 73 entries held 7 d, 80 % earned the fees back: a quarter within 1 d, half within 2 d 12 h'
    """
    only = "" if "breakeven_share" in row else FUNDING_ONLY
    if row[f"{only}breakeven_share"] is None:
        unknown = Markdown("When the fees are earned back is not known: {}.")
        return unknown.format(reason_words(row, f"{only}breakeven_median_h"))
    shares = (("a quarter", "q25"), ("half", "median"), ("three quarters", "q75"))
    times = [(words, row[f"{only}breakeven_{name}_h"]) for words, name in shares]
    parts = [f"{words} within {duration(3600 * hours)}" for words, hours in times if hours]
    by = Markdown(": {}").format(", ".join(parts)) if parts else Markdown("")
    return Markdown("Of {:,} entries held {}, {} earned the fees back{}{}").format(
        row["n"] - row.get("n_unpriced", 0),
        duration(row["horizon_s"]),
        share_text(row[f"{only}breakeven_share"]),
        Markdown(" by funding only") if only else Markdown(""),
        by,
    )


def holdings_table(found: pl.DataFrame) -> pl.DataFrame:
    """Build one line per time held of the rows of `toolkit.statistics.funding.holdings`.

    Net columns are there where a fee table was given. Of funding only the names say so.

    >>> from toolkit.statistics.fees import FeeModel
    >>> times = [1_767_225_600 + 28_800 * k for k in range(1, 31)]
    >>> rows = pl.DataFrame({"trajectory": ["BTC_USDT:KRAKEN.spot:BINANCE.futures"] * 30,
    ...     "ts": times, "buy_rate": [0.0] * 30, "sell_rate": [3e-4] * 30,
    ...     "buy_interval_hours": [None] * 30, "sell_interval_hours": [8] * 30})
    >>> fees = FeeModel.example()
    >>> table = holdings_table(
    ...     holdings(rows, horizons=["7d"], fees=fees, style="maker", funding_only=True)
    ... )
    >>> kept = ("funding median", "funding net median", "funding net > 0 (%)")
    >>> table.select("held", *kept, f"funding {_EARNED}").row(0)
    ('7 d', 63.0, 36.0, 100.0, 100.0)
    """
    net = found["fee_model"].null_count() == 0
    priced = "gross_mean_bps" in found.columns
    of, words, only = ("gross", "", "") if priced else ("funding", _FUNDING, FUNDING_ONLY)
    gross = [pl.col(f"{of}_{name}").round(2).alias(f"{words}{label}") for label, name in _BPS]
    columns = [pl.col("horizon_s").map_elements(duration, pl.String).alias("held"), gross[0]]
    if net:
        columns += [
            pl.col(f"{only}net_median_bps").round(2).alias(f"{words}net median"),
            (100 * pl.col(f"{only}net_positive_share")).round(1).alias(f"{words}net > 0 (%)"),
            (100 * pl.col(f"{only}breakeven_share")).round(1).alias(f"{words}{_EARNED}"),
        ]
    columns += gross[1:]
    if priced:
        apart = {"of it funding, median": "funding_median_bps", "prices, mean": "basis_mean_bps"}
        columns += [pl.col(name).round(2).alias(label) for label, name in apart.items()]
    columns += [
        pl.col(f"{only}drawdown_median_bps").round(2).alias("largest fall, median"),
        pl.col("n"),
        (100 * pl.col("coverage")).round(1).alias("coverage (%)"),
    ]
    return found.select(columns)
