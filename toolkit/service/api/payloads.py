"""The fields of answers beside the records of their pages."""

from __future__ import annotations

from toolkit.market import Leg, Trajectory


def price_head(trajectory: Trajectory) -> dict[str, object]:
    """Return a price page's own fields.

    >>> price_head(Trajectory.parse("BTC_USD:KRAKEN.spot"))["exchange"]
    'KRAKEN'
    """
    leg = trajectory.buy
    return {
        "type": "price_history_page",
        "symbol": str(trajectory.symbol),
        "exchange": leg.exchange,
        "market": leg.market,
    }


def pair_head(trajectory: Trajectory) -> dict[str, object]:
    """Return a spread or funding page's own fields.

    >>> head = pair_head(Trajectory.parse("BTC_USD:COINBASE.spot:KRAKEN.spot"))
    >>> head["type"], head["buy_exchange"], head["sell_exchange"]
    ('spread_history_page', 'COINBASE', 'KRAKEN')
    """
    buy, sell = trajectory.legs
    return {
        "type": f"{trajectory.family}_history_page",
        "symbol": str(trajectory.symbol),
        "buy_exchange": buy.exchange,
        "buy_market": buy.market,
        "sell_exchange": sell.exchange,
        "sell_market": sell.market,
    }


def venue(leg: Leg, funding_interval_hours: int | None) -> dict[str, object]:
    """Return a leg as symbols/search lists it, with the chain of a ``DEX-{CHAIN}``.

    >>> venue(Leg.parse("DEX-ETHEREUM.dex"), None)["dex_network"]
    'ETHEREUM'
    """
    chain = leg.exchange.removeprefix("DEX-")
    return {
        "exchange": leg.exchange,
        "market": leg.market,
        "funding_interval_hours": funding_interval_hours,
        "dex_network": None if chain == leg.exchange else chain,
    }
