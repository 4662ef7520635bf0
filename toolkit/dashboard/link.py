"""Links: the pages by name, the way to each, and the checked parameters of a link."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from streamlit import switch_page

from toolkit.charts.time_axis import utc_offset_s
from toolkit.errors import InputError
from toolkit.foreign import Markdown, markdown
from toolkit.intervals import Interval
from toolkit.market import format_ts, parse_ts
from toolkit.statistics.families import extent_of
from toolkit.workspace.snapshot_tables import held_stream

PRESETS = {"24 hours": 86_400, "7 days": 604_800, "30 days": 2_592_000, "All": None}
"""Windows up to the newest row, by their length in seconds. None is all rows."""

SHORT_PRESETS = dict(zip(PRESETS, ("24 h", "7 d", "30 d", "All"), strict=True))
"""Their short names."""

_DEFAULT_PRESET = "7 days"
EARLIEST, LATEST = 0, 4_102_444_800
"""The range of the calendars: 1970 to 2100."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A trajectory's key and a window of whole minutes.

    With a preset the window always ends at the newest row.
    """

    trajectory: str
    window: Interval
    preset: str | None = None

    @property
    def params(self) -> dict[str, str]:
        """The parameters of its link."""
        if self.preset is not None:
            return {"trajectory": self.trajectory, "window": self.preset}
        start, end = (
            dt.datetime.fromtimestamp(ts, tz=dt.UTC).strftime("%Y-%m-%dT%H:%MZ")
            for ts in self.window
        )
        return {"trajectory": self.trajectory, "start": start, "end": end}


def held_window(catalogue: pl.DataFrame, trajectory: str) -> Interval:
    """Return the window of all rows of a trajectory, in minutes.

    A trajectory without rows gets the last 7 days before the service's clock at the last sync.
    """
    row = catalogue.row(by_predicate=pl.col("stream") == trajectory, named=True)
    asked = Interval(row["served_at"] - 604_800, row["served_at"])
    start, end = extent_of([row]) or asked
    return Interval(start // 60 * 60, -(-end // 60) * 60)


def link_fault(asked: str, rest: Markdown, *values: object) -> Markdown:
    """Return a sentence on a wrong link: what it asks for, then ``rest`` with its values."""
    return Markdown("The link asks for {}{}").format(markdown(asked), rest.format(*values))


def read_link(params: Mapping[str, str], catalogue: pl.DataFrame) -> tuple[Choice, list[Markdown]]:
    """Read a link: a choice that can be shown, and a sentence for each wrong parameter.

    ``params`` has ``trajectory`` (key), and ``window`` (a preset) or ``start`` and ``end`` (ISO
    8601 UTC or Unix seconds), each optional. ``catalogue`` is `Store.catalogue`, with at least one
    row.
    """
    keys: list[str] = catalogue["stream"].to_list()
    wrong: list[Markdown] = []
    trajectory = params.get("trajectory", keys[0])
    if trajectory not in keys and (found := held_stream(trajectory, keys)):
        turned = Markdown(", which is stored as {}, the other way round.")
        wrong.append(link_fault(trajectory, turned, markdown(found[0])))
        trajectory = found[0]
    if trajectory not in keys:
        unknown = Markdown(", which is not in this store; the page shows {} instead.")
        wrong.append(link_fault(f"trajectory={trajectory}", unknown, markdown(keys[0])))
        trajectory = keys[0]
    held = held_window(catalogue, trajectory)
    if not {"start", "end"} & params.keys():
        preset = read_option(params, "window", PRESETS, _DEFAULT_PRESET, wrong)
        return Choice(trajectory, held.last(PRESETS[preset]), preset), wrong
    if "window" in params:
        both = Markdown(" and for a start or an end; the page uses the latter.")
        wrong.append(link_fault(f"window={params['window']}", both))
    default = held.last(PRESETS[_DEFAULT_PRESET])
    start, end = (
        _read_time(name, params[name], ts, wrong) if name in params else ts
        for name, ts in zip(("start", "end"), default, strict=True)
    )
    if start < end:
        return Choice(trajectory, Interval(start, end)), wrong
    wrong.append(
        Markdown(
            "The link asks for a window from {} to {}, which is empty; the page shows {} to {} "
            "instead."
        ).format(*map(format_ts, (start, end, *default)))
    )
    return Choice(trajectory, default, _DEFAULT_PRESET), wrong


def zoom_text(zoom: Interval) -> str:
    """Format a stretch of time as ISO 8601, in UTC."""
    return "/".join(f"{dt.datetime.fromtimestamp(ts, tz=dt.UTC):%Y-%m-%dT%XZ}" for ts in zoom)


def read_zoom(params: Mapping[str, str], wrong: list[Markdown]) -> Interval | None:
    """Read the stretch that a link zooms to: None for the whole window, and for a wrong one."""
    if "zoom" not in params:
        return None
    since, _, until = params["zoom"].partition("/")
    try:
        zoom = Interval(parse_ts(since), parse_ts(until))
    except InputError:
        zoom = Interval(0, 0)
    if EARLIEST <= zoom.start < zoom.end <= LATEST:
        return zoom
    backwards = Markdown(
        ", which is not from an earlier to a later time; the page shows the whole window."
    )
    wrong.append(link_fault(f"zoom={params['zoom']}", backwards))
    return None


def read_zone(params: Mapping[str, str], name: str, wrong: list[Markdown]) -> str:
    """Return the time zone of a parameter, or UTC with a fault."""
    zone = params.get(name, "UTC")
    try:
        utc_offset_s(pl.Series([0]), zone)
    except InputError as error:
        unknown = Markdown(", which is not a time zone (allowed: {}); times are UTC instead.")
        wrong.append(link_fault(f"{name}={zone}", unknown, error.allowed))
        return "UTC"
    return zone


def read_choice(
    params: Mapping[str, str], name: str, allowed: Sequence[str], wrong: list[Markdown]
) -> list[str]:
    """Read the allowed values of a comma-separated parameter. Each other value is a fault."""
    asked = [value for value in params.get(name, "").split(",") if value]
    left_out = Markdown(", which is not in this store; the page leaves it out.")
    wrong += [link_fault(f"{name}={each}", left_out) for each in asked if each not in allowed]
    return [value for value in dict.fromkeys(asked) if value in allowed]


def read_option(
    params: Mapping[str, str],
    name: str,
    allowed: Iterable[str],
    default: str,
    wrong: list[Markdown],
) -> str:
    """Return the allowed value of a parameter, or the default with a fault."""
    value = params.get(name, default)
    if value in allowed:
        return value
    other = Markdown(" (allowed: {}); the page takes {} instead.")
    wrong.append(link_fault(f"{name}={value}", other, ", ".join(allowed), default))
    return default


def read_number(
    params: Mapping[str, str],
    name: str,
    default: float,
    bounds: tuple[float, float],
    wrong: list[Markdown],
) -> float:
    """Return the number of a parameter within the bounds, or the default with a fault."""
    if name not in params:
        return default
    try:
        number = float(params[name])
    except ValueError:
        number = math.nan
    low, high = bounds
    if low <= number <= high:
        return number
    outside = Markdown(", which is not a number from {:,g} to {:,g}; the page takes {:,g} instead.")
    wrong.append(link_fault(f"{name}={params[name]}", outside, low, high, default))
    return default


def _read_time(name: str, text: str, default: int, wrong: list[Markdown]) -> int:
    try:
        ts = parse_ts(text, parameter=name)
    except InputError as error:
        ts, allowed = None, error.allowed
    else:
        allowed = "a time between 1970 and 2100"
    if ts is None or not EARLIEST <= ts <= LATEST:
        unshown = Markdown(", which the page cannot show (allowed: {}); it uses {} instead.")
        wrong.append(link_fault(f"{name}={text}", unshown, allowed, format_ts(default)))
        return default
    if ts % 60:
        whole = Markdown("; the page shows whole minutes and uses {}.")
        wrong.append(link_fault(f"{name}={text}", whole, format_ts(ts - ts % 60)))
    return ts - ts % 60


PAGES = {
    "overview": "Overview",
    "symbol": "Symbol",
    "spreads": "Spreads",
    "trajectory": "Trajectory",
    "funding": "Funding",
    "events": "Events",
    "alerts": "Alerts",
    "health": "Data health",
}
"""The pages in order: name in the address, and title."""


def page_file(name: str) -> str:
    """Return the absolute path of the page's script."""
    return str(Path(__file__).with_name("pages") / name / "page.py")


def go_to(name: str, **asked: str) -> None:
    """Open another page with the parameters of its link, which ends this run."""
    switch_page(page_file(name), query_params=asked)
