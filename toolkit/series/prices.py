"""Series of prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.series.analyses import PriceAnalyses
from toolkit.series.base import checked_options
from toolkit.series.trajectories import BarTrajectorySeries

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
