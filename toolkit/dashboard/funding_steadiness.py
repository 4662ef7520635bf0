"""A section of the page of funding: how steady one pair's differential is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

from toolkit.cards import duration
from toolkit.charts import funding_heatmap
from toolkit.charts.lines import share_text
from toolkit.dashboard.formatting import NULL, reason_words
from toolkit.dashboard.screen import st
from toolkit.dashboard.shell import PageShell, draw
from toolkit.foreign import Markdown
from toolkit.intervals import Interval
from toolkit.statistics.funding import heatmap, legs, persistence

_LEAST_PX = 130
_MAP_PX = 200
_FEW_DAYS = 60
"""Windows up to this long are drawn in buckets of 8 h, longer ones in days."""


def show_steadiness(shell: PageShell, rows: pl.DataFrame, window: Interval, unit: str) -> None:
    """Show how long the sign lasts, and the funding of the pair and its legs through time."""
    st.markdown(Markdown("**How steady it is**"))
    lines = steadiness_rows(persistence(rows, *window).row(0, named=True))
    show_metrics([tuple(line.values()) for line in lines])
    bucket = "8h" if window.end - window.start <= _FEW_DAYS * 86_400 else "1d"
    columns = list(rows.columns)
    of_legs = legs(rows.filter(pl.col("trajectory").str.count_matches(":") == 2))
    every = pl.concat([rows, of_legs], how="diagonal_relaxed").select(columns)
    found = heatmap(every, *window, bucket=bucket)
    if not found.is_empty():
        figure = funding_heatmap(
            found, source=shell.held.source, unit=unit, timezone=shell.timezone
        )
        figure.update_traces(showscale=True)
        figure.update_layout(height=_MAP_PX)
        draw(figure, key="steadiness", headed=False)


def show_metrics(lines: Collection[tuple[str, ...]]) -> None:
    """Show figures beside each other: the name of each, its value, and what is below it."""
    with st.grid(8 if len(lines) > 4 else 4, min_column_width=_LEAST_PX):
        for name, value, below in (map(Markdown.harmless, line) for line in lines):
            st.metric(name, value, delta=below, delta_color="off", delta_arrow="off")


def steadiness_rows(row: Mapping[str, Any]) -> list[dict[str, str]]:
    """Build one line per figure of a row of `toolkit.statistics.funding.persistence`.

    A line has the figure's name, its value, and what it rests on or why it is null.

    >>> row = {"positive_share": 0.5, "flips_per_day": 0.25, "longest_run_s": 86400.0,
    ...        "longest_run_censored": True, "n": 9, "flips": 1, "coverage": 1.0,
    ...        "sign_reason": None, "carry_to_noise": None, "n_8h": 9,
    ...        "carry_to_noise_reason": "too_few"}
    >>> for line in steadiness_rows(row):
    ...     print(" | ".join(line.values()))
    Time it is received | 50 % | n = 9, coverage 100 %
    Flips per day | 0.25 | n = 1
    Longest time of one sign | 1 d | or longer
    Carry to noise, a year | – | too few observations for this statistic
    """

    def line(label: str, name: str, shown: str, below: str) -> dict[str, str]:
        missing = row[name] is None
        value = NULL if missing else shown.format(row[name])
        return {
            "figure": label,
            "value": value,
            "below": reason_words(row, name) if missing else below,
        }

    longest = duration(round(row["longest_run_s"])) if row["longest_run_s"] is not None else ""
    received = share_text(row["positive_share"] or 0.0)
    rests = f"n = {row['n']:,}, coverage {share_text(row['coverage'])}"
    whole = "or longer" if row["longest_run_censored"] else "seen from begin to end"
    return [
        line("Time it is received", "positive_share", received, rests),
        line("Flips per day", "flips_per_day", "{:.2f}", f"n = {row['flips'] or 0:,}"),
        line("Longest time of one sign", "longest_run_s", longest, whole),
        line(
            "Carry to noise, a year", "carry_to_noise", "{:+.2f}", f"n = {row['n_8h']:,} times 8 h"
        ),
    ]
