"""The frame of every chart: source, window, clock, and the text around the data."""

from __future__ import annotations

import datetime as dt
import textwrap
from dataclasses import dataclass
from typing import Any

import polars as pl

from toolkit import commands
from toolkit.charts.figure import Figure
from toolkit.charts.theme import MARK_COLOUR, WARNING_COLOUR, template_name
from toolkit.charts.time_axis import date_axis, window_text
from toolkit.errors import InputError
from toolkit.foreign import Html, html
from toolkit.intervals import Interval
from toolkit.market import Family, Pair, SnapshotTrajectory, Source, Trajectory
from toolkit.statistics.core.contract import Frame, checked_frame

Subject = Trajectory | SnapshotTrajectory | Pair
"""The subject of a chart of rows."""


def subject_of(trajectory: Subject | str) -> Subject:
    """Read the key of a trajectory, of a series kept from snapshots, or of a pair of two prices.

    >>> subject_of("snapshot-funding/BTC_USD:X.futures").family.value
    'funding'
    """
    key = str(trajectory)
    if key.startswith("pair/"):
        return Pair.parse(key)
    kept = key.startswith(("snapshot-spread/", "snapshot-funding/"))
    return SnapshotTrajectory.parse(key) if kept else Trajectory.parse(key)


def with_subject(
    frame: Frame, trajectory: Subject | str | None, family: Family
) -> tuple[pl.DataFrame, Subject]:
    """Return the frame with its trajectory's key in each row, and the trajectory.

    ``trajectory`` is by default that of the frame. Raises `InputError` for rows of several
    trajectories or of another one, for another family, and if neither names one.
    """
    checked_frame(frame)
    frame = frame.lazy().collect()
    named_by_frame = frame["trajectory"] if "trajectory" in frame else pl.Series(dtype=pl.String)
    held = named_by_frame.drop_nulls().unique().sort()
    if len(held) > 1:
        some = ", ".join(map(str, held[:3]))
        raise InputError(
            "frame", f"rows of {len(held)} trajectories", f"rows of one; it has those of {some}"
        )
    if trajectory is None and not len(held):
        raise InputError(
            "trajectory", None, f"the key of a {family} trajectory, where the frame names none"
        )
    named = subject_of(str(held[0] if trajectory is None else trajectory))
    if named.family is not family:
        raise InputError("trajectory", named.key, f"a {family} trajectory")
    if len(held) and held.dtype == pl.String and held[0] != named.key:
        raise InputError("trajectory", named.key, f"{held[0]}, whose rows the frame has")
    return frame.with_columns(trajectory=pl.lit(named.key)), named


_LINE_PX = 17


@dataclass(frozen=True, slots=True)
class Heading:
    """The subject of a chart (a line of text), the source of its data, and its theme."""

    subject: str
    source: Source
    theme: str | None

    def __post_init__(self) -> None:
        given: Any = self.source
        if not isinstance(given, Source):
            mine = "where the rows are from: rail.store.source, or tk.Source('replay', 'mine')"
            raise InputError("source", given, mine)

    def heading(self, title: str, *lines: str) -> dict[str, Any]:
        """Build the layout. Keep lines short, as titles do not wrap."""
        below = (self.subject, *lines, self.source.label)
        return {
            "template": template_name(self.theme),
            "title": {
                "text": html(title),
                "subtitle": {"text": Html("<br>").join(below)},
                "x": 0,
                "xref": "container",
                "xanchor": "left",
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "pad": {"l": 8, "t": 8},
            },
            "annotations": self._source_mark(),
            "legend": {
                "orientation": "h",
                "x": 0,
                "y": 0,
                "yref": "container",
                "yanchor": "bottom",
            },
            "margin": {"l": 8, "r": 8, "t": 54 + _LINE_PX * len(below), "b": 72},
        }

    def empty(self, message: str) -> Figure:
        """Draw a message without axes."""
        text = "<br>".join(textwrap.wrap(html(message), 64, break_long_words=False))
        place = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5, "showarrow": False}
        return Figure(
            layout={
                "template": template_name(self.theme),
                "height": 240,
                "xaxis": {"visible": False},
                "yaxis": {"visible": False},
                "annotations": [{"text": text, "font": {"size": 14}, **place}],
            }
        )

    def _source_mark(self) -> list[dict[str, Any]]:
        """Return the annotation that marks simulated data and replays."""
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


@dataclass(frozen=True, slots=True)
class View(Heading):
    """A heading over a window, in a zone. ``asked`` is what `rail sync` takes to load it."""

    window: Interval
    timezone: str
    asked: str

    @classmethod
    def of(
        cls,
        trajectory: Subject,
        window: Interval,
        *,
        source: Source,
        timezone: str,
        theme: str | None,
    ) -> View:
        """Make the view of one trajectory over a window."""
        kept = ", from snapshots" if isinstance(trajectory, SnapshotTrajectory) else ""
        return cls(trajectory.legs_key + kept, source, theme, window, timezone, trajectory.key)

    def __str__(self) -> str:
        return f"{self.subject} from {window_text(self.window, self.timezone)}"

    @property
    def sync_command(self) -> str:
        """The command that loads the window."""
        start, end = (f"{dt.datetime.fromtimestamp(ts, dt.UTC):%Y-%m-%dT%XZ}" for ts in self.window)
        wanted = self.asked.split()
        return commands.rail("sync", *wanted, "--start", start, "--end", end)

    def layout(self, title: str, *numbers: str) -> dict[str, Any]:
        """Build the layout of `heading` with the window above the numbers, and its time axis."""
        words = window_text(self.window, self.timezone)
        axis = date_axis(self.window, self.timezone)
        return self.heading(title, words, *numbers) | {"xaxis": axis}
