"""The choices of the page Events: filters, window and zoom."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from toolkit.dashboard.choice import Choices, Marked, OneOf, SomeOf, Zoom
from toolkit.dashboard.export import literal
from toolkit.dashboard.link import SHORT_PRESETS
from toolkit.dashboard.widgets import Container, st
from toolkit.foreign import Markdown, plain
from toolkit.intervals import Interval
from toolkit.market import EventFamily
from toolkit.statistics.events import STILL_OPEN

STATES = {"any": None, "open": True, "over": False}
"""Whether an event is still open, by its word in a link."""


@dataclass(frozen=True, slots=True)
class Filter:
    """The events to show. An empty tuple keeps all, state is one of `STATES`."""

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
        """Select documents, or lifecycles, by family, symbol and exchange (of either leg)."""
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
        """Select lifecycles by state, family, symbol and exchange."""
        wanted = STATES[self.state]
        still = pl.col("kind").is_in(STILL_OPEN)
        kept = self.documents(lifecycles)
        return kept if wanted is None else kept.filter(still == wanted)

    def python(self, store: str, window: tuple[str, str], held: Sequence[str]) -> str:
        """Build the Python that gives the same lifecycles from the stored logs."""
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


ZOOM = Zoom("zoom", Markdown("⤢ Zoom out"), None, key="events_zoom")
"""The stretch selected in the timeline."""

_SOME: dict[str, Any] = {"format_func": plain, "placeholder": "all"}
FILTERS = (
    SomeOf("symbol", Markdown("Symbols"), (), key="event_symbol", looks=_SOME),
    SomeOf("exchange", Markdown("Exchanges"), (), key="event_exchange", looks=_SOME),
    OneOf(
        "state",
        Markdown("State at the end of the window"),
        "any",
        key="event_state",
        allowed=tuple(STATES),
    ),
)
"""The filters in the popover, in this order."""

CHOICES = Choices(
    "events",
    (
        Marked(
            "family",
            Markdown("Families"),
            (),
            key="event_family",
            allowed=[family.value for family in EventFamily],
            looks={"label_visibility": "collapsed", "width": "content"},
        ),
        *FILTERS,
        OneOf(
            "window",
            Markdown("Window, up to the last sync"),
            "24 hours",
            key="event_window",
            allowed=SHORT_PRESETS,
            looks={"label_visibility": "collapsed", "on_change": ZOOM.end},
        ),
        ZOOM,
    ),
)


class AskedEvents(NamedTuple):
    """The filter, the window up to the end of the logs, and the part selected in it."""

    chosen: Filter
    window: Interval
    zoom: Interval | None

    @property
    def view(self) -> Interval:
        """The stretch that is listed and measured."""
        return self.zoom or self.window


def choose_events(bar: Container, documents: pl.DataFrame, window: Interval) -> AskedEvents:
    """Draw the widgets by the link, and write it.

    The symbols and exchanges of ``documents`` are offered.
    """
    exchanges = pl.concat([documents["buy_exchange"], documents["sell_exchange"]])
    known = {"symbol": documents["symbol"], "exchange": exchanges}
    choices = CHOICES.given(
        **{
            name: {"allowed": of.drop_nulls().unique().sort().to_list()}
            for name, of in known.items()
        }
    )
    choices.follow()
    state = st.session_state
    state[ZOOM.key] = _within(state[ZOOM.key], window)
    filters = [option.name for option in FILTERS]
    with bar:
        choices.draw("window", "family")
        active = len(choices.chosen(*filters))
        words = Markdown("Filters ({})").format(active) if active else Markdown("Filters")
        with st.popover(words, type="tertiary"):
            choices.draw(*filters)
        choices.draw("zoom")
    choices.write()
    values = choices.values()
    chosen = Filter(
        tuple(values["family"]), tuple(values["symbol"]), tuple(values["exchange"]), values["state"]
    )
    return AskedEvents(chosen, window, values["zoom"])


def _within(zoom: Interval | None, window: Interval) -> Interval | None:
    """Cut the zoom to the window, None if nothing is left or it is the whole window."""
    if zoom is None:
        return None
    cut = Interval(max(zoom.start, window.start), min(zoom.end, window.end))
    return cut if cut.start < cut.end and cut != window else None
