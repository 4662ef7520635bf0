"""Lifecycles of events as a page shows them: filtered, listed and put into words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import polars as pl

from toolkit.dashboard.export import literal
from toolkit.errors import InputError
from toolkit.market import EventFamily, Family, Leg, Symbol, Trajectory
from toolkit.statistics.events import STILL_OPEN

STATES = {"any": None, "open": True, "over": False}
"""Whether an event is still open, by the word that a link has for it."""

SEEN = {
    "closed": "closed",
    "open": "still open",
    "reopened": "over, its close was lost",
    "orphan_close": "closed, its opening was not seen",
    "orphan_update": "neither end seen",
    "unknown": "of no known word",
}
"""What was seen of an event, by the kind of its lifecycle."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events to show. An empty tuple leaves nothing out, state is one of `STATES`.

    >>> Filter(("spread",), ("BTC_USDT",), (), "any").words
    'spread events, BTC_USDT'
    >>> Filter((), (), ("AURORA",), "open").words
    'all events, all symbols, on AURORA, open'
    """

    families: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    exchanges: tuple[str, ...] = ()
    state: str = "any"

    @property
    def words(self) -> str:
        """The filter as the subject of a chart."""
        parts = [
            f"{' and '.join(self.families) or 'all'} events",
            _some(self.symbols) or "all symbols",
        ]
        if self.exchanges:
            parts.append(f"on {_some(self.exchanges)}")
        if self.state != "any":
            parts.append(self.state)
        return ", ".join(parts)

    def documents(self, events: pl.DataFrame) -> pl.DataFrame:
        """Select the documents of the families, symbols and exchanges (of either leg).

        Lifecycles are selected likewise.

        >>> events = pl.DataFrame({"family": ["spread", "splash"], "symbol": ["A_B", "A_B"],
        ...                        "legs": ["X.spot → Y.spot", "Y.spot"]})
        >>> Filter(exchanges=("X",)).documents(events)["family"].to_list()
        ['spread']
        """
        kept = pl.lit(value=True)
        if self.families:
            kept &= pl.col("family").is_in(self.families)
        if self.symbols:
            kept &= pl.col("symbol").is_in(self.symbols)
        if self.exchanges:
            kept &= pl.col("legs").str.contains(self._legs).fill_null(value=False)
        return events.filter(kept)

    @property
    def _legs(self) -> str:
        """The pattern of legs that have one of the exchanges."""
        return rf"(^| → )({'|'.join(map(re.escape, self.exchanges))})\."

    def lifecycles(self, lifecycles: pl.DataFrame) -> pl.DataFrame:
        """Select the lifecycles in the state, of the families, symbols and exchanges.

        >>> lives = pl.DataFrame({"kind": ["open", "closed"], "family": "spread"})
        >>> Filter(state="over").lifecycles(lives)["kind"][0]
        'closed'
        """
        wanted = STATES[self.state]
        still = pl.col("kind").is_in(STILL_OPEN)
        kept = self.documents(lifecycles)
        return kept if wanted is None else kept.filter(still == wanted)

    def python(self, store: str, window: tuple[str, str], held: Sequence[str]) -> str:
        """Build the lines of Python that give the same lifecycles, of the logs that are held.

        >>> lines = Filter(symbols=("A_B",)).python("rail.duckdb", ("2026-11-01", "2026-11-02"), [])
        >>> print(lines.splitlines()[-1])
        lives = lives.filter(pl.col("symbol").is_in(["A_B"]))
        """
        families = [family for family in held if not self.families or family in self.families]
        lines = [
            "import polars as pl",
            "import toolkit as tk",
            "",
            f"rail = tk.open({literal(store)})",
            f"logs = [rail.events(family, {', '.join(map(literal, window))})",
            f"        for family in {literal(families)}]",
            "lives = pl.concat([log.lifecycles() for log in logs])",
        ]
        if self.symbols:
            lines.append(f'lives = lives.filter(pl.col("symbol").is_in({literal(self.symbols)}))')
        if self.exchanges:
            pattern = literal(self._legs)
            lines.append(f'lives = lives.filter(pl.col("legs").str.contains({pattern}))')
        if (wanted := STATES[self.state]) is not None:
            still = f'pl.col("kind").is_in({literal(STILL_OPEN)})'
            lines.append(f"lives = lives.filter({'' if wanted else '~'}{still})")
        return "\n".join(lines)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


def size_bps() -> pl.Expr:
    """Build the size of events in bps: of the log spread or price, of funding per 8 h.

    Null where the size is not known, or 100 % and more down.

    >>> sizes = {"family": ["spread", "funding", "splash"], "peak": [1.0, 0.1, -100.0]}
    >>> pl.DataFrame(sizes).select(size_bps().round(1)).to_series().to_list()
    [99.5, 10.0, None]
    """
    size = pl.col("peak")
    log = pl.when(size > -100).then(10_000 * (size / 100).log1p())
    funding = pl.col("family") == EventFamily.FUNDING
    return pl.when(funding).then(100 * size).otherwise(log).alias("peak_bps")


def pretty(document: str) -> str:
    """Add line breaks to a document's own text, without changing a digit of it.

    What is not JSON stays as it is.

    >>> print(pretty('{"pct":1.0939203004283193e0,"legs":[]}'))
    {
      "pct": 1.0939203004283193e0,
      "legs": []
    }
    """
    try:
        return msgspec.json.format(document.encode(), indent=2).decode()
    except msgspec.DecodeError:
        return document


def around(document: dict[str, str | None]) -> Trajectory | None:
    """Return the trajectory of an event: a splash's price, a spread or a funding pair.

    None where the document does not name its legs, or in words that cannot be names.

    >>> around({"family": "splash", "symbol": "A_B", "buy_exchange": "X", "buy_market": "spot",
    ...         "sell_exchange": None, "sell_market": None}).key
    'A_B:X.spot'
    """
    named = [
        f"{document[f'{side}_exchange']}.{document[f'{side}_market']}"
        for side in ("buy", "sell")
        if document[f"{side}_exchange"] and document[f"{side}_market"]
    ]
    family = {
        EventFamily.SPREAD: Family.SPREAD,
        EventFamily.SPLASH: Family.PRICE,
        EventFamily.FUNDING: Family.FUNDING,
    }[EventFamily(str(document["family"]))]
    if document["symbol"] is None or len(named) != (1 if family is Family.PRICE else 2):
        return None
    try:
        symbol = Symbol.parse(document["symbol"])
        return Trajectory(family, symbol, tuple(map(Leg.parse, named)))
    except InputError:
        return None
