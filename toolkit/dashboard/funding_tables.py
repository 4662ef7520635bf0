"""Funding as tables: what a link asks for, what a pair has received, and its settlements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from toolkit.cards import signed
from toolkit.charts import FUNDING_UNITS, in_unit
from toolkit.charts.lines import share_text
from toolkit.charts.time_axis import clock_text
from toolkit.dashboard.formatting import NULL, command_words, reason_words
from toolkit.dashboard.link import PRESETS, held_window, preset_window
from toolkit.errors import InputError
from toolkit.foreign import markdown
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory
from toolkit.statistics.funding import intervals, settled_window
from toolkit.store import held_key

UNITS = dict(zip(("1h", "8h", "24h", "apr"), FUNDING_UNITS, strict=True))
"""The units of rates by the word that a link has for them."""

_FLAGS = {
    "declared_differs": "not the declared interval",
    "missed": "one before it is missing",
    "early": "before its interval was over",
}


def read_pair(key: str | None, held: Sequence[str]) -> tuple[str | None, list[str]]:
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
    asks = f"The link asks for {markdown(f'trajectory={key}')}"
    try:
        pair = Trajectory.parse(key, Family.FUNDING)
    except InputError as error:
        return None, [f"{asks}, which is no pair (allowed: {error.allowed})."]
    if held_key(pair.key, held) is not None:
        return pair.key, []
    load = command_words("sync", pair.key)
    return None, [f"{asks}; this store does not hold its funding ({load} loads it)."]


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


def rate_table(rates: pl.DataFrame, unit: str, timezone: str) -> pl.DataFrame:
    """Build a table of every leg's rate in one unit and as given, the highest first.

    >>> rates = pl.DataFrame({"symbol": ["A_B"], "leg": ["X.futures"], "rate": [1e-4],
    ...                       "interval_hours": [4.0], "next_funding_time": [0]})
    >>> rate_table(rates, "% per 8 h", "UTC").rows()
    [('A_B', 'X.futures', 0.02, 0.01, 4.0, '1970-01-01 00:00')]
    """
    valued = in_unit(rates, unit).sort("value", "symbol", "leg", descending=[True, False, False])
    return valued.select(
        "symbol",
        "leg",
        pl.col("value").alias(unit),
        (100 * pl.col("rate")).alias("as given (%)"),
        pl.col("interval_hours").alias("per (h)"),
    ).with_columns(
        pl.Series(
            f"next settlement ({timezone})", clock_text(valued["next_funding_time"], timezone)
        )
    )


def carry_rows(row: Mapping[str, Any]) -> list[dict[str, str]]:
    """Build one line per figure of a row of `toolkit.statistics.funding.summary`.

    A line has the figure's name with its unit, its value, what it rests on, and why it is null.

    >>> row = {"n": 3, "n_buy": 0, "n_sell": 3, "n_missed": 0, "n_changed": 0,
    ...        "n_declared_differs": 0, "buy_coverage": 1.0, "sell_coverage": 0.5,
    ...        "n_in_force": 0, "coverage": 0.5, "buy_carry_bps": None, "sell_carry_bps": None,
    ...        "carry_bps": None, "carry_reason": "low_coverage", "funding_apr_pct": None,
    ...        "funding_apr_reason": "low_coverage"}
    >>> for line in carry_rows(row)[:3]:
    ...     print(" | ".join(line.values()))
    Cumulative carry (bps) | – | n = 3, coverage 50 % | too little of the window is covered ...
    Simple APR (%) | – | n = 3, coverage 50 % | too little of the window is covered on both legs
    On the leg bought (bps) | – | n = 0, coverage 100 % | too little of the window is covered ...
    """

    def line(label: str, name: str, leg: str = "") -> dict[str, str]:
        value, count, share = row[name], row[f"n_{leg}" if leg else "n"], f"{leg}_coverage"
        rests = f"n = {count:,}, coverage {share_text(row[share.lstrip('_')])}"
        return {
            "figure": label,
            "value": NULL if value is None else signed(value, 2),
            "rests on": rests,
            "reason": reason_words(row, name) if value is None else "",
        }

    counts = {
        "Settlements missing between others": "n_missed",
        "Changes of interval": "n_changed",
        "Settlements with an interval that is not the declared one": "n_declared_differs",
        "Rows that are rates in force and no settlements": "n_in_force",
    }
    return [
        line("Cumulative carry (bps)", "carry_bps"),
        line("Simple APR (%)", "funding_apr_pct"),
        line("On the leg bought (bps)", "buy_carry_bps", "buy"),
        line("On the leg sold (bps)", "sell_carry_bps", "sell"),
        *(
            {"figure": label, "value": f"{row[name]:,}", "rests on": "", "reason": ""}
            for label, name in counts.items()
        ),
    ]


def settlement_table(rows: pl.DataFrame, window: Interval, timezone: str) -> pl.DataFrame:
    """Build a table of both legs' settlements in ``(start, end]``, newest first.

    >>> rows = pl.DataFrame({"trajectory": ["a"] * 2, "ts": [0, 28800], "buy_rate": [0.0] * 2,
    ...     "sell_rate": [0.25] * 2, "buy_interval_hours": [None] * 2,
    ...     "sell_interval_hours": [8.0] * 2})
    >>> settlement_table(rows, Interval(0, 28800), "UTC").rows()
    [('1970-01-01 08:00', 'sell', 25.0, 8.0, 27375.0, None)]
    """
    found = intervals(rows).filter(pl.col("ts").is_between(*window, closed="right"))
    newest = found.sort("ts", "leg", descending=[True, False])
    flags = pl.col("interval_flag").replace_strict(_FLAGS, default=None, return_dtype=pl.String)
    return newest.select(
        pl.Series(f"time ({timezone})", clock_text(newest["ts"], timezone)),
        "leg",
        (100 * pl.col("rate")).alias("rate (%)"),
        pl.col("interval_hours").alias("accrued over (h)"),
        pl.col("funding_apr_pct").alias("% a year"),
        flags.alias("remark"),
    )
