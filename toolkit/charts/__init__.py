"""Frame in, plotly figure out: trajectories, funding and events through time, and what is held.

A figure names its window, its number of rows and its source, marks simulated data in the corner,
never draws a line across a gap, and states when it shows fewer points than there are rows.
A missing column, an unknown kind or state, or a parameter that is not allowed is an `InputError`.
Templates are set on each figure. Plotly's default is left alone. Each is a `Figure`, which every
notebook shows.
"""

from toolkit.charts.coverage import coverage_chart, coverage_shares_chart
from toolkit.charts.downsampling import downsample
from toolkit.charts.events import activity_chart, event_timeline
from toolkit.charts.figure import Figure
from toolkit.charts.funding import funding_chart
from toolkit.charts.matrix import FUNDING_UNITS, funding_matrix, in_unit
from toolkit.charts.series import price_chart, spread_chart

__all__ = [
    "FUNDING_UNITS",
    "Figure",
    "activity_chart",
    "coverage_chart",
    "coverage_shares_chart",
    "downsample",
    "event_timeline",
    "funding_chart",
    "funding_matrix",
    "in_unit",
    "price_chart",
    "spread_chart",
]


def __dir__() -> list[str]:
    return __all__
