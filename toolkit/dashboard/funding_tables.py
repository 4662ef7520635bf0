"""Funding as tables: what a link asks for, what a pair has received, and its settlements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from toolkit.cards import signed
from toolkit.charts import FUNDING_UNITS
from toolkit.charts.lines import share_text
from toolkit.charts.matrix import DECIMALS
from toolkit.charts.time_axis import clock_text
from toolkit.dashboard.formatting import NULL, command_words, reason_words
from toolkit.dashboard.link import PRESETS, held_window, preset_window
from toolkit.errors import InputError
from toolkit.foreign import Markdown, markdown
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory
from toolkit.statistics.carry_marks import FUNDING_ONLY
from toolkit.statistics.funding import intervals, settled_window
from toolkit.statistics.rates_in_force import HOURS_A_YEAR
from toolkit.store import held_key

_APR = list(FUNDING_UNITS)[-1]

COUNTS = {
    "Settlements missing between others": "n_missed",
    "Settlements before their interval was over": "n_early",
    "Changes of interval": "n_changed",
    "Settlements with an interval that is not the declared one": "n_declared_differs",
    "Rows that are rates in force and no settlements": "n_in_force",
    "Rows that are a settlement sent again": "n_duplicates",
}
"""What is counted of the settlements of a window, and where."""

_FLAGS = {
    "declared_differs": "not the declared interval",
    "missed": "one before it is missing",
    "early": "before its interval was over",
}
_AGAIN = "sent again, counted once"
_HIGH = "a rate above 5 % is not plausible"


def read_pair(key: str | None, held: Sequence[str]) -> tuple[str | None, list[Markdown]]:
    """Choose the funding trajectory to show for a link, and say what is wrong with the link.

    A pair that is held the other way round is shown as asked. A pair that is not held is not
    replaced by another one: None. A link without a pair gets the first that is held.

    >>> held = ["funding/C_D:X.futures:Y.futures"]
    >>> read_pair("C_D:Y.futures:X.futures", held)
    ('funding/C_D:Y.futures:X.futures', [])
    >>> read_pair("A_B:X.futures:Y.futures", held)
    (None, ['The link asks for `trajectory=A_B:X.futures:Y.futures`;
     this store does not hold its funding (`rail sync funding/A_B:...` loads it).'])
    """
    if key is None:
        return (held[0] if held else None), []
    asked = markdown(f"trajectory={key}")
    try:
        pair = Trajectory.parse(key, Family.FUNDING)
    except InputError as error:
        no_pair = Markdown("The link asks for {}, which is no pair (allowed: {}).")
        return None, [no_pair.format(asked, error.allowed)]
    if held_key(pair.key, held) is not None:
        return pair.key, []
    not_held = Markdown("The link asks for {}; this store does not hold its funding ({} loads it).")
    return None, [not_held.format(asked, command_words("sync", pair.key))]


def without_family(key: str) -> str:
    """Return a funding trajectory's key without its prefix, for a page about funding alone.

    >>> without_family("funding/A_B:X.futures:Y.futures")
    'A_B:X.futures:Y.futures'
    """
    return Trajectory.parse(key, Family.FUNDING).legs_key


def pair_window(catalogue: pl.DataFrame, key: str, preset: str) -> Interval:
    """Return the last part of a pair's settlements, up to the newest: ``(start, end]``.

    A pair without rows gets the end of the time before the service's clock at the last sync.

    >>> catalogue = pl.DataFrame({"stream": ["a"], "first_ts": [0], "last_ts": [864000],
    ...                           "step_s": [28800], "served_at": [870000]})
    >>> pair_window(catalogue, "a", "7 days"), pair_window(catalogue, "a", "All")
    (Interval(start=259200, end=864000), Interval(start=-28800, end=864000))
    """
    row = catalogue.row(by_predicate=pl.col("stream") == key, named=True)
    if row["first_ts"] is None:
        held = held_window(catalogue, key)
    else:
        held = settled_window(row["first_ts"], row["last_ts"], row["step_s"])
    return preset_window(held, preset if preset in PRESETS else "All")


def kept_legs(streams: pl.DataFrame) -> pl.DataFrame:
    """List the legs whose rates are kept from snapshots and of which no pair has settled rates.

    ``streams`` is `Store.catalogue`. Columns: those of it, symbol and leg.

    >>> keys = ["funding/A_B:X.futures:Y.futures", "snapshot-funding/A_B:X.futures",
    ...         "snapshot-funding/A_B:Z.futures"]
    >>> kinds = ["funding", "snapshot-funding", "snapshot-funding"]
    >>> streams = pl.DataFrame({"stream": keys, "kind": kinds, "rows": [3, 9, 9]})
    >>> kept_legs(streams).select("symbol", "leg").rows()
    [('A_B', 'Z.futures')]
    """
    pairs = streams.filter(pl.col("rows") > 0, kind=Family.FUNDING.value)["stream"]
    settled = {f"{pair.symbol}:{leg}" for pair in map(Trajectory.parse, pairs) for leg in pair.legs}
    key = pl.col("stream").str.strip_prefix("snapshot-funding/")
    names = key.str.split_exact(":", 1).struct.rename_fields(["symbol", "leg"]).alias("names")
    kept = streams.filter(~key.is_in(list(settled)), kind="snapshot-funding")
    return kept.with_columns(names).unnest("names").sort("stream")


def carry_rows(row: Mapping[str, Any], unit: str = _APR) -> list[dict[str, str]]:
    """Build one line per figure of a row of `toolkit.statistics.funding.summary`.

    A line has the figure's name with its unit, its value, what it rests on, and why it is null. The
    mean rate is in the ``unit``.

    >>> row = {"n": 3, "n_buy": 0, "n_sell": 3, "n_missed": 0, "n_changed": 0,
    ...        "n_declared_differs": 0, "n_early": 0, "n_duplicates": 0,
    ...        "buy_coverage": 1.0, "sell_coverage": 0.5,
    ...        "n_in_force": 0, "coverage": 0.5, "buy_funding_bps": None, "sell_funding_bps": None,
    ...        "funding_bps": None, "funding_reason": "low_coverage", "funding_apr_pct": None,
    ...        "funding_apr_reason": "low_coverage"}
    >>> for line in carry_rows(row)[:3]:
    ...     print(" | ".join(line.values()))
    Funding (bps) | – | n = 3, coverage 50 % | too little of the window is covered ...
    Funding, simple APR (%) | – | n = 3, coverage 50 % | too little of the window is covered ...
    On the leg bought (bps) | – | n = 0, coverage 100 % | too little of the window is covered ...
    """

    def line(label: str, name: str, leg: str = "") -> dict[str, str]:
        value, count, share = row[name], row[f"n_{leg}" if leg else "n"], f"{leg}_coverage"
        rests = f"n = {count:,}, coverage {share_text(row[share.lstrip('_')])}"
        shown = _in_unit(value, unit) if name == "funding_apr_pct" else _bps(value)
        reason = reason_words(row, name) if value is None else ""
        return {"figure": label, "value": shown, "rests on": rests, "reason": reason}

    priced = (
        [
            line("Prices (bps)", "basis_bps"),
            line("Carry: funding and prices (bps)", "carry_bps"),
        ]
        if "carry_bps" in row
        else []
    )
    rate = "Funding, simple APR (%)" if unit == _APR else f"Mean rate ({unit})"
    return [
        line("Funding (bps)", "funding_bps"),
        line(rate, "funding_apr_pct"),
        *priced,
        line("On the leg bought (bps)", "buy_funding_bps", "buy"),
        line("On the leg sold (bps)", "sell_funding_bps", "sell"),
        *(
            {"figure": label, "value": f"{row[name]:,}", "rests on": "", "reason": ""}
            for label, name in COUNTS.items()
        ),
    ]


def _bps(value: float | None) -> str:
    return NULL if value is None else signed(value, 2)


def _in_unit(apr_pct: float | None, unit: str) -> str:
    """Format a yearly rate in another unit, with a digit more than a cell has.

    >>> _in_unit(10.95, _APR), _in_unit(10.95, "% per 8 h")
    ('+10.95', '+0.0100')
    """
    if apr_pct is None:
        return NULL
    return signed(apr_pct * FUNDING_UNITS[unit] / HOURS_A_YEAR, DECIMALS[unit] + 1)


def net_rows(row: Mapping[str, Any], unit: str = _APR) -> list[dict[str, str]]:
    """Build one line per figure of a row of `toolkit.statistics.funding.net_summary`.

    A line is as in `carry_rows`. It rests on what is taken off, and on 0.5 and 2 times that. The
    figures of funding only are called so.

    >>> row = {"carry_bps": 30.0, "cost_bps": 20.0, "cost_reason": None, "cost_lacks": None,
    ...        "net_carry_bps": 10.0, "net_carry_at_half_cost_bps": 20.0,
    ...        "net_carry_at_twice_cost_bps": -10.0,
    ...        "net_carry_reason": None, "breakeven_bps": 7.5, "breakeven_reason": None,
    ...        "net_apr_pct": 1.0, "net_apr_at_half_cost_pct": 2.0,
    ...        "net_apr_at_twice_cost_pct": -1.0, "net_apr_reason": None,
    ...        "funding_only_breakeven_days": None,
    ...        "funding_only_breakeven_days_reason": "nothing_left"}
    >>> for line in net_rows(row)[1:]:
    ...     print(" | ".join(line.values()))
    Net APR (%) | +1.00 | 0.5x +2.00, 2x -1.00 |
    Break-even by funding only (days) | – | at the mean rate | after the cost nothing is left ...
    Break-even fee (bps per fill) | +7.50 | cost: 20.00 bps |
    """

    def line(label: str, name: str, rests: str) -> dict[str, str]:
        value = row[name]
        shown = _in_unit(value, unit) if name.endswith("net_apr_pct") else _bps(value)
        why = reason_words(row, name) if value is None else ""
        lacks = row["cost_lacks"]
        unknown = value is None and row["cost_bps"] is None and lacks
        reason = f"the fee table lacks {lacks}" if unknown else why
        return {"figure": label, "value": shown, "rests on": rests, "reason": reason}

    def beside(name: str, of: str) -> str:
        both = [row[f"{name}_at_{part}_cost_{of}"] for part in ("half", "twice")]
        half, twice = (_in_unit(each, unit) if of == "pct" else _bps(each) for each in both)
        return f"0.5x {half}, 2x {twice}"

    cost = NULL if row["cost_bps"] is None else f"{row['cost_bps']:,.2f} bps"
    only, of = ("", "") if "carry_bps" in row else (FUNDING_ONLY, ", funding only")
    apr = "Net APR" if unit == _APR else "Net rate"
    in_unit = "%" if unit == _APR else unit
    return [
        line(f"Net carry{of} (bps)", f"{only}net_carry_bps", beside(f"{only}net_carry", "bps")),
        line(f"{apr}{of} ({in_unit})", f"{only}net_apr_pct", beside(f"{only}net_apr", "pct")),
        line(
            "Break-even by funding only (days)", f"{FUNDING_ONLY}breakeven_days", "at the mean rate"
        ),
        line(f"Break-even fee{of} (bps per fill)", f"{only}breakeven_bps", f"cost: {cost}"),
    ]


def settlements(rows: pl.DataFrame, window: Interval) -> pl.DataFrame:
    """Return `toolkit.statistics.funding.intervals` of both legs in ``(start, end]``, by time."""
    inside = pl.col("ts").is_between(*window, closed="right")
    return intervals(rows).filter(inside).sort("ts", "leg")


def settlement_table(settled: pl.DataFrame, timezone: str) -> pl.DataFrame:
    """Build a table of `settlements`, newest first.

    >>> rows = pl.DataFrame({"trajectory": ["a"] * 2, "ts": [0, 28800], "buy_rate": [0.0] * 2,
    ...     "sell_rate": [0.25] * 2, "buy_interval_hours": [None] * 2,
    ...     "sell_interval_hours": [8.0] * 2})
    >>> settlement_table(settlements(rows, Interval(0, 28800)), "UTC").rows()
    [('1970-01-01 08:00', 'sell', 25.0, 8.0, 27375.0, 'a rate above 5 % is not plausible')]
    """
    newest = settled.sort("ts", "leg", descending=[True, False])
    flags = pl.col("interval_flag").replace_strict(_FLAGS, default=None, return_dtype=pl.String)
    again = pl.when(pl.col("n_duplicates") > 0).then(pl.lit(_AGAIN))
    high = pl.when(pl.col("rate_flag").is_not_null()).then(pl.lit(_HIGH))
    remarks = pl.concat_str(flags, again, high, separator="; ", ignore_nulls=True)
    return newest.select(
        pl.Series(f"time ({timezone})", clock_text(newest["ts"], timezone)),
        "leg",
        (100 * pl.col("rate")).alias("rate (%)"),
        pl.col("interval_hours").alias("accrued over (h)"),
        pl.col("funding_apr_pct").alias("% a year"),
        pl.when(remarks != "").then(remarks).alias("remark"),
    )
