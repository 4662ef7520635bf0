"""Screens of what a store holds: all its series of a kind, in one pass over their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar

import polars as pl

from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval
from toolkit.market import (
    Family,
    Pair,
    SnapshotTrajectory,
    Trajectory,
    When,
    asked_window,
    format_ts,
)
from toolkit.series.held_prices import HeldPrices
from toolkit.statistics.carry_marks import LegPrices
from toolkit.statistics.conditions import Schema
from toolkit.statistics.fee_table import NOTIONAL, FeeModel, Style, check_asked
from toolkit.statistics.funding import rows_window, settled_window
from toolkit.statistics.passes import in_one_pass
from toolkit.statistics.polls import PollCount, by_polls, poll_count
from toolkit.statistics.screening import (
    FUNDING_ORDER,
    RATE_ORDER,
    SPREAD_ORDER,
    UNUSUAL_S,
    Ranking,
    funding_figures,
    rate_figures,
    spread_figures,
    with_q_values,
)
from toolkit.store import Store, pair_advice, service_clock, sync_advice
from toolkit.tables import ROWS
from toolkit.workspace.pairs import HeldPairs, Joining
from toolkit.workspace.passes import Passes, known_steps


class Screened(StrEnum):
    """What can be screened: the kinds of series that have figures of many beside each other."""

    SPREAD = "spread"
    FUNDING = "funding"
    SNAPSHOT_SPREAD = "snapshot-spread"
    SNAPSHOT_FUNDING = "snapshot-funding"

    @property
    def kept(self) -> bool:
        """Whether it is kept from snapshots."""
        return self.startswith("snapshot-")

    @property
    def order(self) -> str:
        """The order of the rows where no other is asked for."""
        return _ORDERS.get(self, SPREAD_ORDER)


_ORDERS = {Screened.FUNDING: FUNDING_ORDER, Screened.SNAPSHOT_FUNDING: RATE_ORDER}
_Series = Trajectory | SnapshotTrajectory
_Meant = TypeVar("_Meant", Pair, _Series, Trajectory, _Series | Pair)


@dataclass(frozen=True, slots=True)
class Screening:
    """Which series of a store are measured, and by which costs. ``fees`` None leaves them out.

    ``symbols``, ``exchanges`` and ``types`` None take all, ``exclude_symbols`` None leaves none
    out. A series is taken where all its legs are on one of the exchanges, and where the markets of
    its legs, such as ``spot/futures``, are one of the types. Raises `InputError` for a ``family``
    that is not one of `Screened`, for fees of rates in force, for ``funding_only``, which leaves
    prices out, of another family than funding, and as
    `toolkit.statistics.spread.net_summary`.
    """

    family: Family | str = Family.SPREAD
    symbols: str | Iterable[str] | None = None
    exchanges: str | Iterable[str] | None = None
    fees: FeeModel | None = None
    notional: float = NOTIONAL
    style: Style = "taker"
    types: str | Iterable[str] | None = None
    exclude_symbols: str | Iterable[str] | None = None
    pairs: Iterable[Pair | str] | Pair | str | None = None
    funding_only: bool = False

    def __post_init__(self) -> None:
        if self.family not in list(Screened):
            raise InputError("family", self.family, list(Screened))
        if self.pairs is not None and self.kind is not Screened.SPREAD:
            raise InputError("pairs", self.pairs, "pairs of prices with the family spread alone")
        if self.funding_only and self.kind is not Screened.FUNDING:
            raise InputError(
                "funding_only", self.funding_only, "True with the family funding alone"
            )
        if self.fees is not None:
            check_asked(self.fees, self.notional, self.style)
            if not self.has_costs:
                raise InputError("fees", self.fees.label, "for settlements, not for rates in force")

    @property
    def kind(self) -> Screened:
        """The family, checked."""
        return Screened(self.family)

    @property
    def has_costs(self) -> bool:
        """Whether net figures are beside the others, with a fee table."""
        return self.kind is not Screened.SNAPSHOT_FUNDING

    @property
    def columns(self) -> Schema:
        """The columns of the rows, and those that they would have with a fee table."""
        return self._columns(self.fees or FeeModel("", ()))

    def _columns(self, fees: FeeModel | None) -> Schema:
        values = dict.fromkeys((each.name for each in ROWS[self.family].values), pl.Float64)
        nothing = pl.DataFrame(schema={"trajectory": pl.String, "ts": pl.Int64, **values})
        polls = PollCount(0, 0) if self.kind.kept else None
        return with_q_values(self._measured(nothing, Interval(0, 1), fees, polls=polls)).schema

    def ranking(
        self,
        where: str | None = None,
        sort: str | None = None,
        top: int | None = None,
        exclude_flags: bool | str | Sequence[str] = False,
    ) -> Ranking:
        """Check what is asked of the rows, before any is read. See `toolkit.statistics.spread`."""
        order = self.kind.order if sort is None else sort
        found = Ranking.of(self.columns, where, order, top, exclude_flags)
        self.check_costs(order, found.keep)
        return found

    def check_costs(
        self,
        sort: str | None,
        where: pl.Expr | None,
        names: tuple[str, str] = ("sort", "where"),
    ) -> None:
        """Raise `InputError` where an order or a condition needs the fee table that is not there.

        ``names`` are those of the two parameters.
        """
        if self.fees is not None:
            return
        gross = self._columns(None)
        used = (
            [sort.removeprefix("-")] if sort else [],
            where.meta.root_names() if where is not None else [],
        )
        for parameter, columns in zip(names, used, strict=True):
            for name in columns:
                if name in self.columns and name not in gross:
                    advice = "`rail fees --example > fees.toml` writes one to edit"
                    raise InputError(parameter, name, "only with a fee table: fees", advice=advice)

    def rows(
        self,
        passes: Passes,
        start: When | None = None,
        end: When | None = None,
        *,
        names: tuple[str, str] = ("start", "end"),
    ) -> pl.DataFrame:
        """Measure the series over a window, by default over the last 7 days that are held.

        That is how long the newest value is compared with the others. Of funding, which has no such
        comparison, it is all that is held. Of those kept from snapshots the coverage is by polls,
        see `toolkit.statistics.polls.by_polls`. ``names`` are those of the window's parameters.
        Raises `EmptyWindowError` where nothing is held, or nothing in the window, and `InputError`
        for a symbol or an exchange of no pair.
        """
        store, as_of = passes.store, passes.as_of
        if self.pairs is not None:
            if passes.cluster is not None:
                raise InputError("cluster", passes.cluster.name, "with stored spreads, not pairs")
            meant = self.among(Joining().pairs(self.pairs))
            joined = HeldPairs.of(store, meant, Joining())
            window = unusual_window(joined.window(start, end, names=names), start, end)
            measure = partial(self._measured, window=window, fees=self.fees, steps=joined.steps)
            found = in_one_pass(joined.groups(window, as_of=as_of), measure)[0]
            return self._found(store, found, window)
        with store.reading():
            held = store.catalogue().filter(pl.col("rows") > 0, kind=self.family)
            chosen = self._chosen(store, held.iter_rows(named=True))
            rows = list(chosen.values())
            polls, steps = None, known_steps(held)
            if self.kind.kept:
                step_s = rows[0]["step_s"]
                window, polls = polled_window(
                    store, self.kind, step_s, start, end, names=names, as_of=as_of
                )
                last = unusual_window(window, start, end)
                if last != window:
                    window, polls = polled_window(
                        store, self.kind, step_s, *last, names=names, as_of=as_of
                    )
            else:
                window = held_window(store, Family(self.family), rows, start, end, names=names)
                if self.kind is Screened.SPREAD:
                    window = unusual_window(window, start, end)
        keys = [each.key for each in chosen]
        read, prices = window, None
        if self.kind is Screened.FUNDING:
            read = rows_window(window)
            prices = None if self.funding_only else HeldPrices(store, as_of).at_ends(keys, window)
        measure = partial(
            self._measured,
            window=window,
            fees=self.fees,
            polls=polls,
            prices=prices,
            steps=steps,
        )
        return self._found(store, passes.over(self.kind, read, measure, keys=keys)[0], window)

    def _found(self, store: Store, found: pl.DataFrame, window: Interval) -> pl.DataFrame:
        """Return the rows by trajectory, and raise where there is none."""
        if found.is_empty():
            raise EmptyWindowError(f"{store.path} holds no {self.family} in {window}")
        return with_q_values(found.sort("trajectory"))

    def _measured(
        self,
        rows: pl.DataFrame,
        window: Interval,
        fees: FeeModel | None,
        *,
        polls: PollCount | None = None,
        prices: LegPrices | None = None,
        steps: Mapping[str, int] | None = None,
    ) -> pl.DataFrame:
        """Measure rows, of polls those that are answers to some, with the steps known of them."""
        costs: dict[str, Any] = {"fees": fees, "notional": self.notional, "style": self.style}
        if self.kind is Screened.FUNDING:
            costs |= {"prices": prices, "funding_only": self.funding_only}
            return funding_figures(rows, *window, **costs)
        if self.kind is Screened.SNAPSHOT_FUNDING:
            found = rate_figures(rows, *window, step_s=steps)
        else:
            found = spread_figures(rows, *window, **costs, step_s=steps)
        return found if polls is None else by_polls(found, polls)

    def _chosen(
        self, store: Store, held: Iterable[dict[str, Any]]
    ) -> Mapping[_Series, dict[str, Any]]:
        """Return the series that are held and meant, each with its row of the catalogue."""
        parse = SnapshotTrajectory.parse if self.kind.kept else Trajectory.parse
        pairs: dict[_Series, dict[str, Any]] = {parse(row["stream"]): row for row in held}
        if not pairs:
            loaded = self.kind.replace("-", "/") if self.kind.kept else "--watchlist"
            joins = pair_advice(store, "screen", "--pair") if self.kind is Screened.SPREAD else ""
            advice = joins or sync_advice(store, loaded, does="loads some")
            raise EmptyWindowError(f"{store.name} holds no {self.family} yet; {advice}")
        chosen = self.among(pairs)
        if not chosen:
            asked = ", ".join(f"{name} {given}" for name, given in self._asked if given is not None)
            raise EmptyWindowError(f"{store.name} holds no {self.family} of {asked}")
        return {pair: pairs[pair] for pair in chosen}

    @property
    def _asked(self) -> list[tuple[str, str | Iterable[str] | None]]:
        names = ("symbols", "exchanges", "types", "exclude_symbols")
        return [(name, getattr(self, name)) for name in names]

    def among(self, held: Iterable[_Meant]) -> list[_Meant]:
        """Return those of some series that are meant, in their order.

        Raises `InputError` for a symbol, an exchange or a type of none of them.

        >>> held = [Trajectory.parse(f"{coin}_USD:X.spot:Y.futures") for coin in ("BTC", "ETH")]
        >>> [pair.key for pair in Screening(exclude_symbols="BTC_USD").among(held)]
        ['ETH_USD:X.spot:Y.futures']
        """
        series = list(held)
        known = {str(each.symbol) for each in series}
        symbols = _named("symbols", self.symbols, known)
        if self.exclude_symbols is not None:
            symbols = symbols - _named("exclude_symbols", self.exclude_symbols, known)
        venues = {leg.exchange for each in series for leg in each.legs}
        exchanges = _named("exchanges", self.exchanges, venues)
        types = _named("types", self.types, set(map(markets_of, series)))
        return [
            each
            for each in series
            if str(each.symbol) in symbols
            and {leg.exchange for leg in each.legs} <= exchanges
            and markets_of(each) in types
        ]


def unusual_window(found: Interval, start: When | None, end: When | None) -> Interval:
    """Return the window in which the newest value is compared: the one asked for, else 7 days.

    ``found`` is that of ``start`` and ``end``, without them all that is held.

    >>> unusual_window(Interval(0, 864_000), None, None), unusual_window(Interval(0, 60), 0, 60)
    (Interval(start=259200, end=864000), Interval(start=0, end=60))
    """
    if start is not None or end is not None:
        return found
    return Interval(max(found.start, found.end - UNUSUAL_S), found.end)


def markets_of(series: _Series | Pair) -> str:
    """Return the markets of the legs of a series, in their order.

    >>> markets_of(Trajectory.parse("BTC_USD:X.spot:Y.futures"))
    'spot/futures'
    """
    return "/".join(leg.market for leg in series.legs)


def _named(parameter: str, asked: str | Iterable[str] | None, known: set[str]) -> set[str]:
    """Return the names asked for, all that are known for None."""
    if asked is None:
        return known
    names = {asked} if isinstance(asked, str) else set(asked)
    for name in sorted(names):
        if name not in known:
            raise InputError(parameter, name, sorted(known))
    return names


def polled_window(
    store: Store,
    kind: str,
    step_s: int | None,
    start: When | None,
    end: When | None,
    *,
    names: tuple[str, str],
    as_of: int | None = None,
) -> tuple[Interval, PollCount]:
    """Return the window asked for of series kept from snapshots, by default of all polls.

    The polls in it are counted beside it. ``step_s`` is their period.
    """
    polls = store.polls(kind.removeprefix("snapshot-"), as_of=as_of)
    if polls.is_empty():
        raise EmptyWindowError(f"{store.path} held no {kind} then")
    everything = Interval(polls["ts"][0], polls["ts"][-1] + (step_s or 1))
    asked = Interval.checked(
        *asked_window(
            start, end, now=lambda: service_clock(store), default=lambda: everything, names=names
        )
    )
    inside = polls.filter(pl.col("ts").is_between(*asked, closed="left"))
    return asked, poll_count(inside, *asked)


def held_window(
    store: Store,
    family: Family,
    rows: Sequence[dict[str, Any]],
    start: When | None,
    end: When | None,
    *,
    names: tuple[str, str],
) -> Interval:
    """Return the window asked for of some rows of the catalogue, by default all that is held.

    One of settlements ends where the last sync did. ``names`` are those of the parameters.
    """
    all_held = [_all_of(family, row) for row in rows]
    everything = Interval(min(held.start for held in all_held), max(held.end for held in all_held))
    asked = Interval.checked(
        *asked_window(
            start, end, now=lambda: service_clock(store), default=lambda: everything, names=names
        )
    )
    if family is not Family.FUNDING:
        return asked
    known_until = max(row["served_at"] for row in rows)
    if known_until <= asked.start:
        key = rows[0]["stream"]
        raise EmptyWindowError(
            f"{store.name} knows nothing of {family} after {format_ts(known_until)}; "
            + sync_advice(store, key, does="asks for more")
        )
    return Interval(asked.start, min(asked.end, known_until))


def _all_of(family: Family, row: dict[str, Any]) -> Interval:
    """Return the window of all rows of a stream of the catalogue."""
    if family is Family.FUNDING:
        return settled_window(row["first_ts"], row["last_ts"], row["step_s"])
    return Interval(row["first_ts"], row["last_ts"] + (row["step_s"] or 1))
