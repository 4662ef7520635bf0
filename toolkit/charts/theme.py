"""Plotly templates for light and for dark backgrounds, and the colours in them.

Importing this module registers ``rail_light``, ``rail_dark`` and ``rail``, which is light and
marked so that a notebook may follow its viewer. Colours have a contrast of at least 3:1 to the
background, and differ under the three kinds of colour blindness.
"""

from __future__ import annotations

import plotly.graph_objects as go
import plotly.io as pio

from toolkit.errors import InputError
from toolkit.market import EventFamily
from toolkit.tables import LedgerState

BACKGROUND = {"light": "#ffffff", "dark": "#0e1117"}
"""The page behind the chart, by theme."""

COLOURS: dict[str, tuple[str, ...]] = {
    "light": (
        "#3d849d", "#926e1c", "#342bbd", "#8b255a", "#1ca48f",
        "#70421d", "#9a6bf1", "#94904b", "#995059", "#4962a8",
    ),
    "dark": (
        "#59caf0", "#c5941a", "#7987c9", "#c01578", "#1ca590",
        "#ffc69d", "#a26eff", "#ede336", "#f8a5ae", "#54679b",
    ),
}  # fmt: skip
"""Ten colours by theme, in the order in which lines take them."""

WARNING_COLOUR = "#d1341f"
"""Warnings, on either background."""

MARK_COLOUR = "#7d8590"
"""Text and lines beside the data, on either background."""

STATE_COLOURS = {
    LedgerState.HELD: "#6f9c94",
    LedgerState.EMPTY: "#5e6a7e",
    LedgerState.UNKNOWN: "#c866fa",
    LedgerState.MISSING: "#ed6e1a",
    LedgerState.UNRECOVERABLE: "#b43c00",
    LedgerState.LOST: "#a01ed2",
}
"""One colour per state of the ledger, on either background."""

FAMILY_COLOURS = {
    EventFamily.SPREAD: "#1878f0",
    EventFamily.SPLASH: "#906000",
    EventFamily.FUNDING: "#f04890",
}
"""One colour per family of events, on either background."""

_INK = {"light": ("#1f2328", "#59636e", "#d8dee4"), "dark": ("#f0f3f6", "#9ea7b3", "#30363d")}
_SENDING = ["sendChartToCloud", "sendDataToCloud"]
"""Buttons that would send a figure's data elsewhere."""

_MARK = "rail: light or dark, as the viewer"


def template_name(theme: str | None) -> str:
    """Return the name of the template of a theme, ``light``, ``dark`` or None: the viewer's.

    >>> template_name("dark"), template_name(None)
    ('rail_dark', 'rail')
    >>> template_name("blue")
    Traceback (most recent call last):
    toolkit.errors.InputError: theme: 'blue' is not allowed; allowed: light, dark
    """
    if theme is None:
        return "rail"
    if theme not in list(COLOURS):
        raise InputError("theme", theme, COLOURS)
    return f"rail_{theme}"


def follows_viewer(figure: go.Figure) -> bool:
    """Return whether the figure has the template of no theme."""
    return bool(figure.layout.template.layout.meta == _MARK)


def _template(theme: str) -> go.layout.Template:
    ink, faint, grid = _INK[theme]
    axis = {
        "gridcolor": grid,
        "linecolor": grid,
        "zerolinecolor": faint,
        "zerolinewidth": 1,
        "tickfont": {"color": faint},
        "title": {"font": {"color": faint, "size": 12}},
        "automargin": True,
    }
    layout = {
        "colorway": COLOURS[theme],
        "paper_bgcolor": BACKGROUND[theme],
        "plot_bgcolor": BACKGROUND[theme],
        "font": {"color": ink, "size": 12},
        "title": {"font": {"size": 16}, "subtitle": {"font": {"color": faint, "size": 12}}},
        "xaxis": axis | {"zeroline": False},
        "yaxis": axis,
        "modebar": {"remove": _SENDING},
        "hoverlabel": {"bgcolor": BACKGROUND[theme], "font": {"color": ink}, "bordercolor": grid},
    }
    return go.layout.Template(layout=layout)


for _theme in COLOURS:
    pio.templates[template_name(_theme)] = _template(_theme)
pio.templates[template_name(None)] = _template("light").update(layout_meta=_MARK)
