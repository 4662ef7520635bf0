"""What a spread leaves after costs, by a fee table that the user owns.

`FeeModel` is the table: read it from a TOML file, whose form `toolkit.statistics.fees.fee_table`
has. `net_edge` applies it to each row of spreads. `toolkit.statistics.spread.net_summary` and
`toolkit.statistics.funding.net_summary` sum up what is left.
"""

from toolkit.statistics.fees.fee_table import FILLS, NOTIONAL, Fee, FeeModel, Style
from toolkit.statistics.fees.net_edge import net_edge

__all__ = ["FILLS", "NOTIONAL", "Fee", "FeeModel", "Style", "net_edge"]


def __dir__() -> list[str]:
    return __all__
