"""Net edge of spreads, by a fee table that the user owns.

`FeeModel` reads the table from TOML (`toolkit.statistics.fees.fee_table`), and `net_edge` applies
it to each row. `toolkit.statistics.spread.net_summary` and `toolkit.statistics.funding.net_summary`
sum it up.
"""

from toolkit.statistics.fees.fee_table import FILLS, NOTIONAL, Fee, FeeModel, Style
from toolkit.statistics.fees.net_edge import net_edge

__all__ = ["FILLS", "NOTIONAL", "Fee", "FeeModel", "Style", "net_edge"]


def __dir__() -> list[str]:
    return __all__
