"""Series of prices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from toolkit.series.analyses import PriceAnalyses
from toolkit.series.base import Series, checked_options
from toolkit.series.trajectories import BarTrajectorySeries
from toolkit.show.result import Result
from toolkit.statistics.spread.hayashi_yoshida import LAGS_S, hayashi_yoshida

if TYPE_CHECKING:
    from toolkit.charts import Figure


class PriceSeries(BarTrajectorySeries, PriceAnalyses):
    """Prices of one symbol on one leg. A bar's price is its close, and its ``ts`` its start."""

    @property
    def _column(self) -> str | None:
        return "price"

    @checked_options
    def plot(
        self, *, timezone: str = "UTC", theme: str | None = None, points: int = 2000
    ) -> Figure:
        """Draw the price. The parameters are those of `toolkit.charts.price_chart`."""
        from toolkit.charts import price_chart  # noqa: PLC0415 - plotly takes half a second

        return price_chart(
            self.rows,
            **self._known,
            step_s=self.origin.step_s,
            timezone=timezone,
            theme=theme,
            points=points,
        )

    @checked_options
    def hayashi_yoshida(
        self, other: Series | pl.DataFrame, *, lags_s: Sequence[int] = LAGS_S
    ) -> pl.DataFrame:
        """Correlate the returns with those of another price, each at times of its own.

        ``other`` is the sell leg: a series of prices, or a frame with ``ts`` and ``price``. A peak
        at a positive lag means that this price leads. Formula, columns, errors and an example:
        `toolkit.statistics.spread.hayashi_yoshida`.
        """
        sell = other.df if isinstance(other, Series) else other
        found = hayashi_yoshida(self.df, sell, *self.window, lags_s=lags_s)
        return Result.of(found, ["lag_s", "correlation", "covariance", "buy_n", "sell_n"])
