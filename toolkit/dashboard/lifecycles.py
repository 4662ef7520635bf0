"""Lifecycles of events as a page shows them: filtered, listed and put into words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import polars as pl

from toolkit.cards import duration
from toolkit.charts.time_axis import clock_text
from toolkit.dashboard.formatting import NULL
from toolkit.errors import InputError
from toolkit.market import EventFamily, Family, Leg, Symbol, Trajectory
from toolkit.statistics.events import STILL_OPEN

STATES = {"any": None, "open": True, "over": False}
"""Whether an event is still open, by the word that a link has for it."""

_KINDS = {
    "closed": "closed",
    "open": "still open",
    "reopened": "over, its close was lost",
    "orphan_close": "closed, its opening was not seen",
    "orphan_update": "neither end seen",
    "unknown": "of no known word",
}
_UNITS = {EventFamily.FUNDING: "% per 8 h"}


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

        >>> events = pl.DataFrame({"family": ["spread", "splash"], "symbol": ["A_B", "A_B"],
        ...                        "buy_exchange": ["X", "Y"], "sell_exchange": ["Y", None]})
        >>> Filter(exchanges=("X",)).documents(events)["family"].to_list()
        ['spread']
        """
        kept = pl.lit(value=True)
        if self.families:
            kept &= pl.col("family").is_in(self.families)
        if self.symbols:
            kept &= pl.col("symbol").is_in(self.symbols)
        if self.exchanges:
            kept &= pl.any_horizontal(
                pl.col(f"{side}_exchange").is_in(self.exchanges).fill_null(value=False)
                for side in ("buy", "sell")
            )
        return events.filter(kept)

    def lifecycles(self, lifecycles: pl.DataFrame) -> pl.DataFrame:
        """Select the lifecycles in the state.

        >>> Filter(state="over").lifecycles(pl.DataFrame({"kind": ["open", "closed"]}))["kind"][0]
        'closed'
        """
        wanted = STATES[self.state]
        still = pl.col("kind").is_in(STILL_OPEN)
        return lifecycles if wanted is None else lifecycles.filter(still == wanted)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


def lifecycle_table(lifecycles: pl.DataFrame, timezone: str) -> pl.DataFrame:
    """Build the table of lifecycles, with a button in each row.

    >>> lifecycles = pl.DataFrame({"family": ["spread"], "symbol": ["A_B"],
    ...     "legs": ["X.spot → Y.dex"], "t_open": [0], "t_close": [90], "duration_s": [90.0],
    ...     "kind": ["closed"], "peak": [1.5]})
    >>> lifecycle_table(lifecycles, "UTC").rows()
    [('Open', '1970-01-01 00:00', 'spread', 'A_B', 'X.spot → Y.dex', '+1.5 %', '1 min 30 s',
      'closed')]
    """
    rows = lifecycles.select("family", "duration_s", "kind", "peak").to_dicts()
    return pl.DataFrame(
        {
            "": ["Open"] * len(rows),
            f"opened ({timezone})": clock_text(lifecycles["t_open"], timezone),
            "family": lifecycles["family"],
            "symbol": lifecycles["symbol"],
            "legs": lifecycles["legs"],
            "peak": [size_text(row["peak"], row["family"]) for row in rows],
            "lasted": [_lasted(row["duration_s"], row["kind"]) for row in rows],
            "seen": [_KINDS[row["kind"]] for row in rows],
        }
    )


def size_text(size: float | None, family: str) -> str:
    """Format a size with its unit.

    >>> size_text(1.23456, "spread"), size_text(-0.1, "funding"), size_text(None, "splash")
    ('+1.235 %', '-0.1 % per 8 h', '–')
    """
    return NULL if size is None else f"{size:+,.4g} {_UNITS.get(EventFamily(family), '%')}"


def _document_sizes(documents: pl.DataFrame) -> list[str]:
    """Format the size that each document has of its own, not the largest of its event so far."""
    own = pl.coalesce("magnitude_pct", "differential_pct_8h").cast(pl.Float64)
    return [size_text(size, family) for size, family in documents.select(own, "family").rows()]


def _lasted(duration_s: float | None, kind: str) -> str:
    if duration_s is None:
        return NULL
    least = {"open": "at least ", "reopened": "at most "}.get(kind, "")
    return least + duration(duration_s)


def transition_table(documents: pl.DataFrame, timezone: str) -> pl.DataFrame:
    """Build the table of an event's documents as its transitions, oldest first.

    >>> documents = pl.DataFrame({"ts": [0], "ts_ms": [250], "event_type": ["spread.closed"],
    ...     "family": ["spread"], "magnitude_pct": [1.0], "peak_pct": [2.5],
    ...     "differential_pct_8h": [None], "close_reason": ["converged"], "lifecycle": ["closed"]})
    >>> transition_table(documents, "UTC").row(0)
    ('1970-01-01 00:00', 250, 'spread.closed', 'closed', '+1 %', '+2.5 %', 'converged')
    """
    ordered = documents.sort("ts_ms", "event_type")
    peaks = ordered.select(pl.col("peak_pct").cast(pl.Float64), "family").rows()
    return pl.DataFrame(
        {
            f"time ({timezone})": clock_text(ordered["ts"], timezone),
            "ms": ordered["ts_ms"] % 1000,
            "transition": ordered["event_type"],
            "lifecycle": ordered["lifecycle"],
            "size": _document_sizes(ordered),
            "largest so far": [size_text(peak, family) for peak, family in peaks],
            "close reason": ordered["close_reason"],
        }
    )


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
