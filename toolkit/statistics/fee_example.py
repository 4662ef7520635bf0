"""The text of a fee table that shows the form, labelled as an example."""

from __future__ import annotations

from collections.abc import Iterable

from toolkit.market.venues import venue_of

EXAMPLE_EXCHANGES = ("BINANCE", "KRAKEN", "DEX-ETHEREUM")
"""The exchanges of the example where none are named."""

_HEAD = """\
# A fee table. The numbers are EXAMPLES, no exchange's own: edit them all.
# What is left out is unknown, never 0: figures that need it are null and name what is missing.
# More entries of one exchange: by market = "spot" or "futures", by valid_from, valid_to (UTC).
name = "EXAMPLE VALUES, no exchange's own: edit"
"""
_ENTRY = """
[[fee]]
exchange = "{exchange}"
valid_from = 2017-01-01
tier = "example"
maker_bps = {maker}      # of the notional, per fill, negative for a rebate
taker_bps = {taker}      # of the notional, per fill
slippage_bps = {slippage}   # of the notional, per round trip on this leg
withdraw_quote = {{BTC = 20.0, ETH = 5.0}}   # to withdraw once, in the quote currency
"""
_DEX = """
[[fee]]
exchange = "{exchange}"
valid_from = 2017-01-01
taker_bps = 30.0     # the pool's fee
slippage_bps = 10.0
gas_quote = 5.0      # per fill, in the quote currency
"""


def example_text(exchanges: Iterable[str] = EXAMPLE_EXCHANGES) -> str:
    """Write the text of a fee table of round numbers, labelled as an example.

    >>> print(example_text(["AURORA"]).splitlines()[3])
    name = "EXAMPLE VALUES, no exchange's own: edit"
    """
    text = _HEAD
    for exchange in exchanges:
        form = _DEX if exchange.startswith("DEX-") else _ENTRY
        maker, taker, slippage = venue_of(exchange).example_fees_bps
        text += form.format(exchange=exchange, maker=maker, taker=taker, slippage=slippage)
    return text
