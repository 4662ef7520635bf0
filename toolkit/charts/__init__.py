"""Frame in, plotly figure out: trajectories through time, and what the store holds of them.

A figure says its window, its number of rows and its source, marks simulated data in the corner,
never draws a line across a gap, and says when it shows fewer points than there are rows. Templates
are set on each figure; plotly's default is left alone.
"""

from toolkit.charts.coverage import coverage_chart
from toolkit.charts.downsampling import downsample
from toolkit.charts.series import price_chart, spread_chart

__all__ = ["coverage_chart", "downsample", "price_chart", "spread_chart"]
