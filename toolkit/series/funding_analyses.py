"""What a series of funding can be asked beyond its carry: each method is a statistic of its name.

The methods take the statistic's own options. The window is that of the series.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from toolkit.errors import InputError
from toolkit.series.base import Series, checked_options
from toolkit.statistics import fees as fee_statistics
from toolkit.statistics import funding as funding_statistics
from toolkit.statistics.carry import HORIZONS
from toolkit.statistics.carry_marks import LegPrices, marks_of
from toolkit.statistics.differentials import service_differential


class FundingCarry(Series):
    """The statistics of `toolkit.statistics.funding` of a differential and of a position in it."""

    def _leg_prices(
        self,
        prices: Series | pl.DataFrame | None,
        *,
        funding_only: bool,
        ends: bool = False,
    ) -> LegPrices | pl.DataFrame | None:
        """Return the prices that are given, else those held: of ``ends`` at the window's alone.

        One leg has no spread, and so no basis.
        """
        if self._alone:
            return None
        if isinstance(prices, Series):
            return _of_series(prices)
        held = self.origin.held_prices
        if prices is not None or funding_only or held is None:
            return prices
        return (held.at_ends if ends else held.over)([self.stream.key], self.window)

    @property
    def _alone(self) -> bool:
        """Whether it is the funding of one leg."""
        return self.stream.key.count(":") == 1

    @checked_options
    def summary(
        self,
        *,
        min_coverage: float = funding_statistics.MIN_COVERAGE,
        fees: fee_statistics.FeeModel | None = None,
        notional: float = fee_statistics.NOTIONAL,
        style: fee_statistics.Style = "taker",
        prices: Series | pl.DataFrame | None = None,
        funding_only: bool = False,
    ) -> pl.DataFrame:
        """Sum what the position received and gained. See `toolkit.statistics.funding.summary`.

        ``prices`` and ``funding_only`` are as in `holdings`. With ``fees``, or a table of the
        workspace, what one round trip leaves is beside it: see
        `toolkit.statistics.funding.net_summary`.
        """
        found = funding_statistics.summary(
            self.rows,
            *self.window,
            min_coverage=min_coverage,
            prices=self._leg_prices(prices, funding_only=funding_only, ends=True),
            funding_only=funding_only or self._alone,
        )
        if fees is None and self.origin.fees is None:
            return found
        return funding_statistics.net_summary(
            found, self._fees(fees), notional=notional, style=style
        )

    @checked_options
    def carry(
        self,
        *,
        min_coverage: float = funding_statistics.MIN_COVERAGE,
        prices: Series | pl.DataFrame | None = None,
        funding_only: bool = False,
    ) -> pl.DataFrame:
        """Sum what was received and gained after each settlement.

        See `toolkit.statistics.funding.carry`, and `holdings` for ``prices`` and ``funding_only``.
        """
        return funding_statistics.carry(
            self.rows,
            *self.window,
            min_coverage=min_coverage,
            prices=self._leg_prices(prices, funding_only=funding_only),
            funding_only=funding_only or self._alone,
        )

    @checked_options
    def intervals(self) -> pl.DataFrame:
        """List the settlements of the window with their intervals.

        See `toolkit.statistics.funding.intervals`.
        """
        return funding_statistics.intervals(self.rows).filter(self._inside())

    @checked_options
    def service_differential(self) -> pl.DataFrame:
        """Average the differential that the service sends itself, in force over the window.

        See `toolkit.statistics.differentials.service_differential`.
        """
        return service_differential(self.rows, *self.window)

    @checked_options
    def holdings(
        self,
        *,
        horizons: Sequence[str | int] | str | int = HORIZONS,
        every: str | int = "1h",
        prices: Series | pl.DataFrame | None = None,
        funding_only: bool = False,
        step_s: int | None = None,
        max_stale_s: int | None = None,
        fees: fee_statistics.FeeModel | None = None,
        notional: float = fee_statistics.NOTIONAL,
        style: fee_statistics.Style = "taker",
        compound: bool = False,
    ) -> pl.DataFrame:
        """Compute what the position kept, over all times in the window at which it was entered.

        ``prices`` is the spread series of the same legs, or a frame, by default what the store
        holds of them: see `toolkit.series.held_prices`. ``funding_only`` leaves them out. ``fees``
        is a fee table, by default that of the workspace. Without one there are no net figures. The
        other parameters are those of `toolkit.statistics.funding.holdings`.
        """
        return funding_statistics.holdings(
            self.rows,
            *self.window,
            horizons=horizons,
            every=every,
            prices=self._leg_prices(prices, funding_only=funding_only),
            funding_only=funding_only or self._alone,
            step_s=step_s,
            max_stale_s=max_stale_s,
            fees=self.origin.fees if fees is None else fees,
            notional=notional,
            style=style,
            compound=compound,
        )


def _of_series(prices: Series) -> LegPrices:
    """Return the prices of a series of spreads, or of a pair."""
    if "spread_log_bps" not in prices.rows.columns:
        raise InputError("prices", prices.stream.key, "the spread of the legs, or their pair")
    legs: Any = prices.stream
    key = ":".join(map(str, (legs.symbol, *legs.legs)))
    return LegPrices({key: marks_of(prices.rows, prices.origin.step_s or 1)})
