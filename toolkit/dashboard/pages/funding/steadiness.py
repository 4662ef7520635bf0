"""A section of the page of funding: how steady one pair's differential is."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from toolkit.analyses import find
from toolkit.charts import funding_heatmap
from toolkit.dashboard.pages.funding.tables import Figure
from toolkit.dashboard.parts.analyses import Asked, answered
from toolkit.dashboard.parts.answers import show_figures
from toolkit.dashboard.screen import st
from toolkit.dashboard.shell import PageShell, draw
from toolkit.foreign import Markdown
from toolkit.intervals import Interval
from toolkit.statistics.funding import heatmap, legs

_LEAST_PX = 130
_MAP_PX = 200
_FEW_DAYS = 60
"""Windows up to this long are drawn in buckets of 8 h, longer ones in days."""


def show_steadiness(
    shell: PageShell, asked: Asked, rows: pl.DataFrame, window: Interval, unit: str
) -> None:
    """Show how long the sign lasts, and the funding of the pair and its legs through time."""
    st.markdown(Markdown("**How steady it is**"))
    show_figures(shell, answered(shell, asked, find("funding.persistence")))
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


def show_metrics(lines: Collection[Figure]) -> None:
    """Show figures beside each other: the name of each, its value, and what is below it."""
    with st.grid(8 if len(lines) > 4 else 4, min_column_width=_LEAST_PX):
        for name, value, below in (map(Markdown.harmless, line) for line in lines):
            st.metric(name, value, delta=below, delta_color="off", delta_arrow="off")
