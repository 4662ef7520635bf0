"""What the items of each page are: fields with type, unit and sign, as ``/schemas`` shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

__all__ = [
    "ACTIVITY_RECORD",
    "FUNDING_OVERVIEW_RECORD",
    "FUNDING_RECORD",
    "PRICE_RECORD",
    "SPREAD_DASHBOARD_RECORD",
    "SPREAD_RECORD",
    "SYMBOL_RECORD",
    "Field",
    "Record",
]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record: JSON type, unit (None where it has none), and its sign where it has one.

    Examples
    --------
    >>> Field("integer", "s").document
    {'type': 'integer', 'unit': 's', 'nullable': False}
    """

    type: str
    unit: str | None = None
    nullable: bool = False
    sign: str = ""
    positive_means: str = ""

    @property
    def document(self) -> dict[str, object]:
        """The field as ``/schemas`` shows it."""
        shown: dict[str, object] = {
            "type": self.type,
            "unit": self.unit,
            "nullable": self.nullable,
        }
        if self.sign:
            shown |= {"sign": self.sign, "positive_means": self.positive_means}
        return shown


@dataclass(frozen=True, slots=True)
class Record:
    """What the items of a page are: the fields that no two of them share, and all fields.

    Examples
    --------
    >>> list(PRICE_RECORD.document["fields"])
    ['ts', 'price', 'mark_price', 'volume']
    """

    key: tuple[str, ...]
    fields: Mapping[str, Field]

    @property
    def document(self) -> dict[str, object]:
        """The record as ``/schemas`` shows it."""
        return {
            "key": self.key,
            "fields": {name: field.document for name, field in self.fields.items()},
        }


_EARNS = "what a position that is long the buy leg and short the sell leg earns"
_SPREAD_PCT = Field(
    "number",
    "percent",
    sign="Positive where the sell leg's price is above the buy leg's: "
    "100 * (sell_price / buy_price - 1).",
    positive_means=_EARNS,
)
_RATE = Field(
    "number",
    "fraction_per_interval",
    sign="Positive where longs pay shorts.",
    positive_means="what a short position receives, for the interval that ended",
)

PRICE_RECORD = Record(
    key=("ts",),
    fields={
        "ts": Field("integer", "s"),
        "price": Field("number", "quote"),
        "mark_price": Field("number", "quote", nullable=True),
        "volume": Field("number", "quote", nullable=True),
    },
)
"""An item of history/price."""

SPREAD_RECORD = Record(
    key=("ts",),
    fields={
        "ts": Field("integer", "s"),
        "buy_price": Field("number", "quote"),
        "sell_price": Field("number", "quote"),
        "spread_pct": _SPREAD_PCT,
    },
)
"""An item of history/spread."""

SYMBOL_RECORD = Record(
    key=("symbol",),
    fields={
        "symbol": Field("string"),
        "base": Field("string"),
        "quote": Field("string"),
        "venues": Field("array"),
        "updated_at": Field("integer", "s"),
    },
)
"""An item of symbols/search."""

FUNDING_RECORD = Record(
    key=("ts",),
    fields={
        "ts": Field("integer", "s"),
        "buy_rate": replace(_RATE, nullable=True),
        "sell_rate": replace(_RATE, nullable=True),
        "buy_interval_hours": Field("integer", "hours", nullable=True),
        "sell_interval_hours": Field("integer", "hours", nullable=True),
        "differential_pct_8h": Field(
            "number",
            "percent_per_8h",
            nullable=True,
            sign="Positive where the sell leg's rate in force is above the buy leg's, each brought "
            "to 8 h.",
            positive_means=_EARNS,
        ),
    },
)
"""An item of history/funding."""

SPREAD_DASHBOARD_RECORD = Record(
    key=("symbol", "buy_exchange", "buy_market", "sell_exchange", "sell_market"),
    fields={
        "symbol": Field("string"),
        "spread_type": Field("string"),
        "buy_exchange": Field("string"),
        "buy_market": Field("string"),
        "buy_price": Field("number", "quote"),
        "sell_exchange": Field("string"),
        "sell_market": Field("string"),
        "sell_price": Field("number", "quote"),
        "spread_pct": _SPREAD_PCT,
        "opened_at": Field("integer", "s", nullable=True),
    },
)
"""An item of dashboards/spread."""

FUNDING_OVERVIEW_RECORD = Record(
    key=("symbol", "exchange", "market"),
    fields={
        "symbol": Field("string"),
        "exchange": Field("string"),
        "market": Field("string"),
        "rate": _RATE,
        "interval_hours": Field("integer", "hours"),
        "next_funding_time": Field("integer", "s"),
    },
)
"""An item of dashboards/funding-overview."""

ACTIVITY_RECORD = Record(
    key=("window_s",),
    fields={
        "window_s": Field("integer", "s"),
        "spread": Field("integer", "count"),
        "splash": Field("integer", "count"),
        "funding": Field("integer", "count"),
    },
)
"""An item of event-activity's windows."""
