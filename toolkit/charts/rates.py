"""The funding rate of one leg through time, as snapshots show it in force."""

from __future__ import annotations

import polars as pl

from toolkit.charts.figure import Figure
from toolkit.charts.lines import gapped_line, rows_to_draw
from toolkit.charts.series import nothing
from toolkit.charts.subject import Subject, with_subject
from toolkit.charts.view import View
from toolkit.market import Family, Source, When
from toolkit.statistics.contract import Frame
from toolkit.statistics.windows import window_of


def rate_chart(
    frame: Frame,
    *,
    source: Source,
    trajectory: Subject | str | None = None,
    start: When | None = None,
    end: When | None = None,
    step_s: int | None = None,
    polls: pl.DataFrame | None = None,
    timezone: str = "UTC",
    theme: str | None = None,
    points: int = 2000,
) -> Figure:
    """Draw the funding rate in force of one leg, as a year at that rate.

    ``frame`` has ``ts`` (s, Unix UTC) and ``funding_apr_pct`` (percent a year, simple, nullable),
    one row a time, as `toolkit.statistics.rates_in_force.with_apr` adds it. Positive: longs pay
    shorts. The other parameters are those of `toolkit.charts.spread_chart`, and so are the errors.
    Without rows in the window: a figure with a sentence on what to do.

    >>> frame = pl.DataFrame({"ts": [0, 60], "funding_apr_pct": [10.0, 11.0]})
    >>> figure = rate_chart(frame, trajectory="snapshot-funding/BTC_USD:X.futures",
    ...                     source=Source("replay", "depeg"), start=0, end=120)
    >>> figure.layout.title.text, len(figure.data)
    ('BTC_USD: funding rate in force', 1)
    """
    frame, trajectory = with_subject(frame, trajectory, Family.FUNDING)
    window = window_of(frame, start, end)
    view = View.of(trajectory, window, source=source, timezone=timezone, theme=theme)
    columns = ["funding_apr_pct"]
    rows = rows_to_draw(frame, columns, view.window, step_s=step_s, points=points, polls=polls)
    if rows.total == 0:
        return nothing(view, trajectory)
    line = gapped_line(
        rows, columns[0], name="rate in force", hover="%{y:+,.2f} % a year", timezone=timezone
    )
    axis = {"title": {"text": "% a year, positive: longs pay"}, "zeroline": True}
    heading = view.layout(f"{trajectory.symbol}: funding rate in force", rows.words)
    return Figure([line]).update_layout(heading, height=480, hovermode="x unified", yaxis=axis)
