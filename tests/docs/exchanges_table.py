"""The table in docs/exchanges.md, made from `venues.toml`: `make docs` writes it."""

from __future__ import annotations

import re
from pathlib import Path

from toolkit.cards import duration
from toolkit.market import Market
from toolkit.service.market.exchanges import KNOWN, MarketFacts

PAGE = Path(__file__).parents[2] / "docs" / "exchanges.md"
HEAD = (
    "| leg | ccxt's class | minutes a request | they go back | requests for a week "
    "| settlements a request | they go back |\n|---|---|---|---|---|---|---|\n"
)
TABLE = re.compile(re.escape(HEAD) + r"(?:\|.*\n)*")
WEEK = 7 * 1_440


def exchanges_table() -> str:
    """Return the table: a row for each market of each exchange."""
    rows = [
        f"| `{exchange}.{market}` | {told.venue} | {_cells(told)} |\n"
        for exchange, facts in KNOWN.items()
        for market, told in sorted(facts.items(), key=lambda each: each[0] != Market.SPOT)
    ]
    return HEAD + "".join(rows)


def _cells(told: MarketFacts) -> str:
    reach = duration(60 * told.reach_rows) if told.reach_rows else "all"
    week = -(-min(WEEK, told.reach_rows or WEEK) // told.rows)
    rates, back = "", ""
    if settled := told.settled:
        rates = f"{settled.rows:,}"
        back = duration(settled.reach_s) if settled.reach_s else "all"
        back = f"the last {rates}" if settled.by == "all" else back
    return " | ".join([f"{told.rows:,}", reach, str(week), rates, back])


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(exchanges_table(), text), encoding="utf-8")
