"""Series: rows of a store with their stream, window and source.

The methods call `toolkit.statistics` and `toolkit.charts` with what the series knows.
"""

from toolkit.series.base import Origin, Series
from toolkit.series.logs import EventSeries, SnapshotSeries
from toolkit.series.own import own_series
from toolkit.series.reading import read_series
from toolkit.series.trajectories import (
    FundingSeries,
    PriceSeries,
    RateSeries,
    SpreadSeries,
    TrajectorySeries,
    pair_series,
)

__all__ = [
    "EventSeries",
    "FundingSeries",
    "Origin",
    "PriceSeries",
    "RateSeries",
    "Series",
    "SnapshotSeries",
    "SpreadSeries",
    "TrajectorySeries",
    "own_series",
    "pair_series",
    "read_series",
]


def __dir__() -> list[str]:
    return __all__
