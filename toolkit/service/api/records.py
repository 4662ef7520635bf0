"""Fields of each page's items: type, unit and sign, as ``/schemas`` shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field: JSON type, unit (None: no unit), and the meaning of its sign."""

    type: str
    unit: str | None = None
    nullable: bool = False
    sign: str = ""
    positive_means: str = ""

    @property
    def document(self) -> dict[str, object]:
        """The field as ``/schemas`` shows it."""
        shown: dict[str, object] = {"type": self.type, "unit": self.unit, "nullable": self.nullable}
        if self.sign:
            shown |= {"sign": self.sign, "positive_means": self.positive_means}
        return shown


@dataclass(frozen=True, slots=True)
class Record:
    """The items of a page: the key fields, unique per item, and all fields."""

    key: tuple[str, ...]
    fields: Mapping[str, RecordField]

    @property
    def document(self) -> dict[str, object]:
        """The record as ``/schemas`` shows it."""
        return {
            "key": self.key,
            "fields": {name: field.document for name, field in self.fields.items()},
        }


_EARNS = "what a position that is long the buy leg and short the sell leg earns"
_SPREAD_PCT = RecordField(
    "number",
    "percent",
    sign="Positive where the sell leg's price is above the buy leg's: "
    "100 * (sell_price / buy_price - 1).",
    positive_means=_EARNS,
)
_RATE = RecordField(
    "number",
    "fraction_per_interval",
    sign="Positive where longs pay shorts.",
    positive_means="what a short position receives, for the interval that ended",
)

PRICE_RECORD = Record(
    key=("ts",),
    fields={
        "ts": RecordField("integer", "s"),
        "price": RecordField("number", "quote"),
        "mark_price": RecordField("number", "quote", nullable=True),
        "volume": RecordField("number", "quote", nullable=True),
    },
)
"""An item of history/price."""

SPREAD_RECORD = Record(
    key=("ts",),
    fields={
        "ts": RecordField("integer", "s"),
        "buy_price": RecordField("number", "quote"),
        "sell_price": RecordField("number", "quote"),
        "spread_pct": _SPREAD_PCT,
    },
)
"""An item of history/spread."""

SYMBOL_RECORD = Record(
    key=("symbol",),
    fields={
        "symbol": RecordField("string"),
        "base": RecordField("string"),
        "quote": RecordField("string"),
        "venues": RecordField("array"),
        "updated_at": RecordField("integer", "s"),
    },
)
"""An item of symbols/search."""

FUNDING_RECORD = Record(
    key=("ts",),
    fields={
        "ts": RecordField("integer", "s"),
        "buy_rate": replace(_RATE, nullable=True),
        "sell_rate": replace(_RATE, nullable=True),
        "buy_interval_hours": RecordField("integer", "hours", nullable=True),
        "sell_interval_hours": RecordField("integer", "hours", nullable=True),
        "differential_pct_8h": RecordField(
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
        "symbol": RecordField("string"),
        "spread_type": RecordField("string"),
        "buy_exchange": RecordField("string"),
        "buy_market": RecordField("string"),
        "buy_price": RecordField("number", "quote"),
        "sell_exchange": RecordField("string"),
        "sell_market": RecordField("string"),
        "sell_price": RecordField("number", "quote"),
        "spread_pct": _SPREAD_PCT,
        "opened_at": RecordField("integer", "s", nullable=True),
    },
)
"""An item of dashboards/spread."""

FUNDING_OVERVIEW_RECORD = Record(
    key=("symbol", "exchange", "market"),
    fields={
        "symbol": RecordField("string"),
        "exchange": RecordField("string"),
        "market": RecordField("string"),
        "rate": _RATE,
        "interval_hours": RecordField("integer", "hours"),
        "next_funding_time": RecordField("integer", "s"),
    },
)
"""An item of dashboards/funding-overview."""

ACTIVITY_RECORD = Record(
    key=("window_s",),
    fields={
        "window_s": RecordField("integer", "s"),
        "spread": RecordField("integer", "count"),
        "splash": RecordField("integer", "count"),
        "funding": RecordField("integer", "count"),
    },
)
"""An item of event-activity's windows."""
