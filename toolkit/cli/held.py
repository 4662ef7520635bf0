"""Trajectories that a command names, as the store holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Annotated

import typer

from toolkit.cards import some
from toolkit.cli.options import ClusterName, FxLeg, MaxStale, Multiplier, PlainText, StoredWindow
from toolkit.cli.show import errors
from toolkit.errors import InputError
from toolkit.market import Family, parse_length
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
        self, store: Store, family: Family, keys: Sequence[str] | None, joined: Joining = _AS_NAMED
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
