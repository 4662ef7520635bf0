"""What every chart shares: whose data, which window, which clock, and what stands around it."""

from __future__ import annotations

import datetime as dt
import textwrap
from dataclasses import dataclass
from html import escape
from typing import Any

import plotly.graph_objects as go

from toolkit.charts.theme import MARK_COLOUR, WARNING_COLOUR, template_name
from toolkit.charts.time_axis import date_axis, window_text
from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory

__all__ = ["View"]


@dataclass(frozen=True, slots=True)
class View:
    """One trajectory over one window, from one source, in one zone and theme.

    Examples
    --------
    >>> view = View(Trajectory.parse("BTC_USD:KRAKEN.spot"), Interval(0, 60),
    ...             Source("simulated", "miniature"), "UTC", "light")
    >>> print(view)
    BTC_USD:KRAKEN.spot from 1970-01-01 00:00 to 1970-01-01 00:01 UTC
    >>> [note["text"] for note in view.layout("Price", "n = 1")["annotations"]]
    ['SIMULATED']
    """

    trajectory: Trajectory
    window: Interval
    source: Source
    timezone: str
    theme: str

    def __str__(self) -> str:
        return f"{self.trajectory} from {window_text(self.window, self.timezone)}"

    @property
    def sync_command(self) -> str:
        """What loads the window.

        Examples
        --------
        >>> View(Trajectory.parse("BTC_USD:KRAKEN.spot"), Interval(0, 60),
        ...      Source("replay", "depeg"), "UTC", "light").sync_command
        'rail sync BTC_USD:KRAKEN.spot --start 1970-01-01T00:00:00Z --end 1970-01-01T00:01:00Z'
        """
        start, end = (f"{dt.datetime.fromtimestamp(ts, dt.UTC):%Y-%m-%dT%XZ}" for ts in self.window)
        return f"rail sync {self.trajectory} --start {start} --end {end}"

    def layout(self, title: str, numbers: str) -> dict[str, Any]:
        """Template, time axis, title over whose data, window, numbers and source, and its mark.

        The lines are short, for a title does not wrap on a narrow screen.

        Examples
        --------
        >>> view = View(Trajectory.parse("BTC_USD:KRAKEN.spot"), Interval(0, 60),
        ...             Source("replay", "depeg"), "UTC", "light")
        >>> view.layout("Price", "n = 1")["title"]["subtitle"]["text"].split("<br>")
        ['BTC_USD:KRAKEN.spot', '1970-01-01 00:00 to 1970-01-01 00:01 UTC', 'n = 1',
         'Replay of recorded data, depeg']
        """
        below = (
            self.trajectory.key,
            window_text(self.window, self.timezone),
            numbers,
            self.source.label,
        )
        return {
            "template": template_name(self.theme),
            "title": {
                "text": escape(title),
                "subtitle": {"text": "<br>".join(map(escape, below))},
                "x": 0,
                "xref": "container",
                "xanchor": "left",
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "pad": {"l": 8, "t": 8},
            },
            "annotations": self._source_mark(),
            "xaxis": date_axis(self.window, self.timezone),
            "legend": {
                "orientation": "h",
                "x": 0,
                "y": 0,
                "yref": "container",
                "yanchor": "bottom",
            },
            "margin": {"l": 8, "r": 8, "t": 122, "b": 72},
        }

    def empty(self, message: str) -> go.Figure:
        """A figure without axes that says what is not there and what to do.

        Examples
        --------
        >>> view = View(Trajectory.parse("BTC_USD:KRAKEN.spot"), Interval(0, 60),
        ...             Source("replay", "depeg"), "UTC", "light")
        >>> view.empty("No rows. Choose another window.").layout.annotations[0].text
        'No rows. Choose another window.'
        """
        text = "<br>".join(textwrap.wrap(escape(message), 64, break_long_words=False))
        place = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5, "showarrow": False}
        return go.Figure(
            layout={
                "template": template_name(self.theme),
                "height": 240,
                "xaxis": {"visible": False},
                "yaxis": {"visible": False},
                "annotations": [{"text": text, "font": {"size": 14}, **place}],
            }
        )

    def _source_mark(self) -> list[dict[str, Any]]:
        """The word for the corner where no live market shows these numbers now."""
        marks = {"simulated": ("SIMULATED", WARNING_COLOUR), "replay": ("REPLAY", MARK_COLOUR)}
        if self.source.kind not in marks:
            return []
        word, colour = marks[self.source.kind]
        corner = {"xref": "paper", "yref": "paper", "x": 1, "y": 1, "showarrow": False}
        return [
            {
                "text": word,
                "xanchor": "right",
                "yanchor": "bottom",
                "font": {"color": colour, "size": 13, "weight": 700},
                "bordercolor": colour,
                "borderpad": 3,
                **corner,
            }
        ]
