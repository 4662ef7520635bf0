"""Level and movement of a spread: its distribution, and how fast it returns to its mean.

Positive is what a position that is long the buy leg and short the sell leg earns.

Every function but `with_spread`, `pair`, `rolling_z`, `rolling_z_summary`, `episodes`,
`hour_of_week`, `cross_correlation` and `hayashi_yoshida`, which describe their rows, reads
``trajectory`` (String or integer), ``ts`` (Int64, Unix seconds UTC) and ``column`` (Float64), and
returns one row per trajectory, sorted: the columns of `coverage`, and before ``window_start`` those
in its own table. If ``column`` is a spread that the frame lacks, it is computed by `with_spread`.
``spread_basis`` (String) then precedes ``coverage_reason``: legs (both prices), service (the
service's own ``spread_pct``) or legs and service.

- The window is ``[start, end)``. A trajectory without a row inside has a row with n = 0.
- A value that is null, NaN or beyond 1e150 is not an observation, and is counted in ``n_null``.
- Rows may come in any order. Two rows of the window with the same trajectory and ts are refused.
- Names carry the unit of ``column``: the mean of ``spread_log_bps`` is ``spread_mean_log_bps``,
  that of ``buy_price`` is ``buy_price_mean``.
- ``step_s`` and ``max_stale_s`` are those of `coverage`, as are the `InputError` s.
"""

from typing import TYPE_CHECKING

from toolkit.statistics.core.definition import turned, with_spread
from toolkit.statistics.quality import coverage
from toolkit.statistics.spread.distribution import half_life, rolling_z, rolling_z_summary, summary
from toolkit.statistics.spread.episodes import episodes, time_above, time_to_close
from toolkit.statistics.spread.hour_of_week import hour_of_week
from toolkit.statistics.spread.lead_lag import cross_correlation, hayashi_yoshida, lead_lag
from toolkit.statistics.spread.net_episodes import net_episodes, net_time_to_close
from toolkit.statistics.spread.net_spread import net_summary
from toolkit.statistics.spread.pairs import pair
from toolkit.statistics.spread.stationarity import stationarity
from toolkit.statistics.spread.tail_index import tail_index

if TYPE_CHECKING:
    from toolkit.statistics.screening import screen


__all__ = [
    "coverage",
    "cross_correlation",
    "episodes",
    "half_life",
    "hayashi_yoshida",
    "hour_of_week",
    "lead_lag",
    "net_episodes",
    "net_summary",
    "net_time_to_close",
    "pair",
    "rolling_z",
    "rolling_z_summary",
    "screen",
    "stationarity",
    "summary",
    "tail_index",
    "time_above",
    "time_to_close",
    "turned",
    "with_spread",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import `screen` on first use: it also ranks by figures of funding."""
        if name != "screen":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from toolkit.statistics.screening import screen  # noqa: PLC0415 - it imports this package

        return screen


def __dir__() -> list[str]:
    return __all__
