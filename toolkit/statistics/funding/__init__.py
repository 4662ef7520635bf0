"""Funding and carry of a position that is long the buy leg and short the sell leg.

A funding rate is a fraction per its interval, positive if longs pay shorts: the position receives
the sell leg's rate and pays the buy leg's. Spot legs pay nothing. Functions read one row per
settlement of either leg, in any order:

- ``trajectory``: a String or an integer.
- ``ts`` (Int64, s): the settlement, Unix UTC, rounded to the minute as venues stamp it late.
- ``buy_rate``, ``sell_rate`` (Float64, fraction): settled at ts for the interval before it. The leg
  does not settle at a null, NaN or infinite rate.
- ``buy_interval_hours``, ``sell_interval_hours`` (h): as the service declares them, or null.

Shared rules:

- Equal rates within half an interval are one settlement sent again, counted in ``n_duplicates``
  (`toolkit.statistics.funding.settlements.without_duplicates`). Different ones both count, the
  later one flagged ``early``.
- A leg whose rates are all 0, without a declared interval, is a spot leg.
- Rows between settlements have the rate in force and pay nothing
  (`toolkit.statistics.funding.rates_in_force.settled`). If undecided, figures are null for
  ``dense_rows``.
- Funding is what settlements paid. Basis is the log spread, 1e4 ln(sell / buy) in bps, at the
  opening less that at the close, as known then. Carry is their sum. All are in bps of one leg's
  notional at the opening, which stays constant.
- ``prices`` are rows of the same pairs in either orientation: ``trajectory`` (with or without
  ``funding/``), ``ts`` and ``buy_price`` with ``sell_price``, or ``spread_log_bps``. A row is known
  at its ts plus the commonest step, for three more steps. Without prices basis and carry are null
  for ``missing_price``, with ``funding_only`` left out.
- Windows are ``(start, end]``: a settlement at the opening is not received, one at the close is.
- Rows outside a window show intervals and cover its ends: read them over `rows_window`.

`InputError` is raised if a column is missing or of another type, a key is null, a row or a leg's
minute is doubled, an interval is not above 0, the window is empty, or ``min_coverage`` is not from
0 to 1.
"""

from toolkit.statistics.core.windows import rows_window, settled_window
from toolkit.statistics.funding.calendar import by_hour, by_weekday, heatmap
from toolkit.statistics.funding.carry import holdings
from toolkit.statistics.funding.differentials import (
    differential,
    prediction_errors,
    service_differential,
)
from toolkit.statistics.funding.dispersion import (
    dispersion,
    dispersion_summary,
    legs,
    rank_persistence,
)
from toolkit.statistics.funding.persistence import persistence
from toolkit.statistics.funding.position import carry, intervals, net_summary, summary
from toolkit.statistics.funding.receipts import MIN_COVERAGE

__all__ = [
    "MIN_COVERAGE",
    "by_hour",
    "by_weekday",
    "carry",
    "differential",
    "dispersion",
    "dispersion_summary",
    "heatmap",
    "holdings",
    "intervals",
    "legs",
    "net_summary",
    "persistence",
    "prediction_errors",
    "rank_persistence",
    "rows_window",
    "service_differential",
    "settled_window",
    "summary",
]


def __dir__() -> list[str]:
    return __all__
