"""Trajectories that a command names, as the store holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import Annotated, Literal

import polars as pl
import typer

from toolkit.cards import some
from toolkit.cli.options import (
    ClusterName,
    FxLeg,
    MaxStale,
    Multiplier,
    PlainText,
    StoredWindow,
)
from toolkit.cli.show import errors
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import Family, parse_length
from toolkit.statistics.passes import Analysis
from toolkit.store import Store
from toolkit.workspace.pairs import Joining
from toolkit.workspace.passes import Passes
from toolkit.workspace.selection import Selection

_JOINING = ("--fx", "--multiplier", "--max-stale")
_AS_NAMED = Joining()


SpreadKeys = Annotated[
    list[str] | None,
    typer.Argument(
        help="Keys SYMBOL:BUY.market:SELL.market, or patterns such as BTC_USDT:*. Kept from "
        "snapshots: snapshot-spread/SYMBOL:BUY.market:SELL.market, all: 'snapshot-spread/*'. Of "
        "any two prices held: pair/SYMBOL:EXCHANGE.market/SYMBOL:EXCHANGE.market."
    ),
]


FundingKeys = Annotated[
    list[str] | None,
    typer.Argument(
        help="Keys SYMBOL:BUY.market:SELL.market, or patterns such as BTC_USDT:*. Kept from "
        "snapshots: snapshot-funding/SYMBOL:EXCHANGE.market, all: 'snapshot-funding/*'."
    ),
]
PriceKeys = Annotated[
    list[str] | None,
    typer.Argument(help="Keys SYMBOL:EXCHANGE.market, or patterns such as BTC_USDT:*."),
]


@dataclass(frozen=True, slots=True)
class JoinOptions:
    """How pairs are joined, as it was typed."""

    fx: FxLeg = None
    multiplier: Multiplier = None
    max_stale: MaxStale = None

    def joining(self) -> Joining:
        """Return how pairs are joined. Raises `InputError` for an age that is none."""
        stale = self.max_stale
        stale_s = None if stale is None else parse_length(stale, parameter="--max-stale")
        return Joining(self.fx, self.multiplier, stale_s)


@dataclass(frozen=True, slots=True)
class MeasuredWindow(StoredWindow):
    """A window of stored trajectories, and where they are measured, as it was typed."""

    cluster: ClusterName = None
    plain_text: PlainText = False

    def of(
        self,
        store: Store,
        family: Family,
        keys: Sequence[str] | None,
        joined: Joining = _AS_NAMED,
    ) -> Selection:
        """Find what was asked for in a store, and say on stderr which pairs are turned."""
        passes = Passes.of(store, self.cluster, plain_text=self.plain_text)
        return selected(passes, family, keys, self, joined)


def selected(
    passes: Passes,
    family: Family,
    keys: Sequence[str] | None,
    within: StoredWindow,
    joined: Joining = _AS_NAMED,
) -> Selection:
    """Find what was asked for, as `Selection.of`, and say on stderr which pairs are turned."""
    if not any(key.startswith("pair/") for key in keys or ()):
        for option, given in zip(_JOINING, astuple(joined), strict=True):
            if given is not None:
                raise InputError(option, given, "with keys of pairs: pair/BUY/SELL")
    window, names = (within.start, within.end), ("--start", "--end")
    asked = Selection.of(passes, family, keys, *window, joining=joined, names=names)
    for words in asked.turned:
        errors.print(words)
    return asked


def name_silent(asked: Selection, found: Iterable[str]) -> None:
    """Name on stderr the trajectories without a row. Raises `EmptyWindowError` where none has."""
    if silent := asked.silent(found):
        errors.print(f"nothing in {asked.stretch} of {some(silent)}")


def with_rows(asked: Selection, *analyses: Analysis) -> list[pl.DataFrame]:
    """Apply statistics to the rows of all, and name those without one: see `name_silent`.

    The last frame has the trajectories with a row.
    """
    closed: Literal["left", "right"] = "right" if asked.kind == Family.FUNDING else "left"
    found = asked.in_one_pass(*analyses, partial(_within, window=asked.window, closed=closed))
    name_silent(asked, found[-1]["trajectory"])
    return found


def _within(rows: pl.DataFrame, window: Interval, closed: Literal["left", "right"]) -> pl.DataFrame:
    inside = pl.col("ts").is_between(*window, closed=closed)
    return rows.filter(inside).select(pl.col("trajectory").unique())
