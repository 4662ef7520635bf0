"""Plotly figures of frames: trajectories, funding and events through time, and coverage.

A `Figure` names its window, number of rows and source, marks simulated data, never draws a line
across a gap, and says when it shows fewer points than rows. Without anything to draw it says what
to do. A missing column, an unknown kind or state, or a parameter that is not allowed is an
`InputError`. Plotly's default template stays.
"""

from toolkit.charts.coverage import coverage_chart
from toolkit.charts.event_lanes import event_lanes
from toolkit.charts.event_rates import league_chart, survival_chart
from toolkit.charts.event_study import event_study_chart, payoff_chart
from toolkit.charts.events import activity_chart, event_timeline
from toolkit.charts.figure import Figure
from toolkit.charts.funding import funding_chart, rate_chart
from toolkit.charts.heatmap import (
    cooccurrence_chart,
    event_hours_chart,
    funding_heatmap,
    spread_hours_chart,
)
from toolkit.charts.lags import lags_chart
from toolkit.charts.lines import downsample
from toolkit.charts.matrix import FUNDING_UNITS, funding_matrix, in_unit, spread_matrix
from toolkit.charts.series import price_chart, spread_chart
from toolkit.charts.symbol import symbol_chart

__all__ = [
    "FUNDING_UNITS",
    "Figure",
    "activity_chart",
    "cooccurrence_chart",
    "coverage_chart",
    "downsample",
    "event_hours_chart",
    "event_lanes",
    "event_study_chart",
    "event_timeline",
    "funding_chart",
    "funding_heatmap",
    "funding_matrix",
    "in_unit",
    "lags_chart",
    "league_chart",
    "payoff_chart",
    "price_chart",
    "rate_chart",
    "spread_chart",
    "spread_hours_chart",
    "spread_matrix",
    "survival_chart",
    "symbol_chart",
]


def __dir__() -> list[str]:
    return __all__
