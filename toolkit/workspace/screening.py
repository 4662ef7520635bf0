"""Screens: a kind's stored series, measured in one pass and ranked."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Concatenate, ParamSpec, TypeVar

import polars as pl

from toolkit.columns import columns_of, schema_of
from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval
from toolkit.market import Family, Pair, SnapshotTrajectory, Trajectory, When
from toolkit.series.base import MethodCall, Origin, remember
from toolkit.show.result import Result
from toolkit.statistics.core.conditions import Schema
from toolkit.statistics.fees.fee_table import NOTIONAL, FeeModel, Style, check_asked
from toolkit.statistics.funding.carry_marks import FUNDING_ONLY
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
from toolkit.store import Store, pair_advice, sync_advice
from toolkit.workspace.pairs import Joining
from toolkit.workspace.rail_toml import find_fees
from toolkit.workspace.selection import Function, OfLegs, Passes, Selection

_FILTERS = ("symbols", "exchanges", "types", "exclude_symbols")
_WITH_PRICES = ("basis_bps", "basis_reason", "carry_bps", "carry_reason", "prices_lack")
"""Columns that a screen by ``funding_only`` lacks."""


class Screened(StrEnum):
    """The kinds of series that can be screened."""

    SPREAD = "spread"
    FUNDING = "funding"
    SNAPSHOT_SPREAD = "snapshot-spread"
    SNAPSHOT_FUNDING = "snapshot-funding"

    @property
    def kept(self) -> bool:
        """Whether the series are from snapshots."""
        return self.startswith("snapshot-")

    @property
    def order(self) -> str:
        """The default order of the rows."""
        return _ORDERS.get(self, SPREAD_ORDER)

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns of a table, the most important first."""
        return (*_SHOWN.get(self, _SPREAD), *(["not_tracked"] if self.kept else []))

    @property
    def answer(self) -> tuple[str, ...]:
        """The columns of `shown`, with net ones after the third."""
        return (*self.shown[:3], *_NET, *self.shown[3:])


_FIGURES: dict[Screened, Function] = {
    Screened.FUNDING: funding_figures,
    Screened.SNAPSHOT_FUNDING: rate_figures,
}
_SPREAD = (
    *("trajectory", "spread_last_log_bps", "last_z", "spread_std_log_bps", "half_life_s"),
    *("coverage", "flags", "last_age_s", "half_life_upper_s", "acf_half_lag_s"),
    *("reversion_q_value", "last_percentile", "spread_mean_log_bps", "n"),
    *("spread_q05_log_bps", "spread_q95_log_bps"),
)
_FUNDING = (
    *("trajectory", "funding_apr_pct", "funding_bps", "coverage", "n", "positive_share"),
    "flips_per_day",
)
_RATES = (
    *("trajectory", "funding_apr_last_pct", "last_z", "funding_apr_mean_pct"),
    *("funding_apr_std_pct", "coverage", "last_age_s", "last_percentile", "n"),
)
_NET = ("net_edge_bps", "net_apr_pct", f"{FUNDING_ONLY}net_apr_pct", "net_carry_bps")
_SHOWN = {Screened.FUNDING: _FUNDING, Screened.SNAPSHOT_FUNDING: _RATES}
_ORDERS = {Screened.FUNDING: FUNDING_ORDER, Screened.SNAPSHOT_FUNDING: RATE_ORDER}
_Parameters = ParamSpec("_Parameters")
_Meant = TypeVar("_Meant", Pair, OfLegs, Trajectory, OfLegs | Pair)


@dataclass(frozen=True, slots=True)
class Screening:
    """The series to measure, and the costs of net figures, if any.

    All legs must be on one of ``exchanges``, the markets (``spot/futures``) one of ``types``; None
    takes all. Raises `InputError` for a family other than `Screened`, fees of rates in force,
    ``pairs`` of other than spread, ``funding_only`` of other than funding, and as
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
        """Whether a fee table adds net figures."""
        return self.kind is not Screened.SNAPSHOT_FUNDING

    @property
    def columns(self) -> Schema:
        """The columns of the rows, including those that need a fee table."""
        return self._columns(self.fees or FeeModel("", ()))

    def _columns(self, fees: FeeModel | None) -> Schema:
        polled = ["not_tracked"] if self.kind.kept else []
        if self.kind is Screened.SNAPSHOT_FUNDING:
            return schema_of("screening.rate_figures", also=polled)
        if self.kind is Screened.FUNDING:
            return self._funding_columns(fees)
        net = ["net_method", "net_params_hash"]
        if fees is not None:
            return schema_of(
                "spread.screen", "spread.net_summary", also=["spread_basis", *polled, *net]
            )
        gross = [each.name for each in columns_of("spread.screen") if each.when != "with fees"]
        return schema_of(also=[*gross, "spread_basis", *polled])

    def _funding_columns(self, fees: FeeModel | None) -> Schema:
        net = [] if fees is None else [each.name for each in columns_of("funding.net_summary")]
        names = [each.name for each in columns_of("funding.summary")] + net
        if self.funding_only:
            of_net = ("net_", "breakeven_")
            kept = [name for name in names if name not in _WITH_PRICES]
            names = [f"{FUNDING_ONLY}{name}" if name.startswith(of_net) else name for name in kept]
        how = ["persistence_method", "persistence_params_hash"]
        persistence = [each.name for each in columns_of("funding.persistence")]
        return schema_of(also=[*names, *persistence, *how])

    def ranking(
        self,
        where: str | None = None,
        sort: str | None = None,
        top: int | None = None,
        exclude_flags: bool | str | Sequence[str] = False,
    ) -> Ranking:
        """Check filter and order before rows are read. See `toolkit.statistics.spread.screen`."""
        order = self.kind.order if sort is None else sort
        found = Ranking.of(self.columns, where, order, top, exclude_flags)
        self.check_costs(order, found.keep)
        return found

    def check_costs(
        self, sort: str | None, where: pl.Expr | None, names: tuple[str, str] = ("sort", "where")
    ) -> None:
        """Raise `InputError` for an order or condition without its fee table."""
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
        """Measure the series over a window, by default the last 7 days stored, for funding all.

        Raises `EmptyWindowError` for an empty window, and `InputError` for a symbol or an exchange
        of no pair.
        """
        asked = self._selected(passes, start, end, names)
        known = self._costs(self.fees)
        if self.kind is Screened.FUNDING and not self.funding_only:
            known["prices"] = asked.prices.at_ends(asked.keys, asked.window)
        found = asked.measured(_FIGURES.get(self.kind, spread_figures), **known)[0]
        if found.is_empty():
            raise EmptyWindowError(f"{passes.store.path} holds no {self.family} in {asked.window}")
        return with_q_values(found)

    def _selected(
        self, passes: Passes, start: When | None, end: When | None, names: tuple[str, str]
    ) -> Selection:
        store = passes.store
        asked: dict[str, Any] = {"start": start, "end": end, "names": names}
        asked["lately_s"] = None if self.kind is Screened.FUNDING else UNUSUAL_S
        if self.pairs is not None:
            meant = self.among(Joining().pairs(self.pairs))
            return Selection.of_pairs(passes, meant, Joining(), **asked)
        with store.reading():
            held = store.catalogue(as_of=passes.as_of).filter(pl.col("rows") > 0, kind=self.family)
            chosen = {each: each for each in self._chosen(store, held["stream"])}
            return Selection.over(passes, self.kind, chosen, held, **asked)

    def _costs(self, fees: FeeModel | None) -> dict[str, Any]:
        if not self.has_costs:
            return {}
        costs = {"fees": fees, "notional": self.notional, "style": self.style}
        return costs | ({"funding_only": self.funding_only} if self.kind == "funding" else {})

    def _chosen(self, store: Store, held: Iterable[str]) -> list[OfLegs]:
        parse = SnapshotTrajectory.parse if self.kind.kept else Trajectory.parse
        series = [parse(key) for key in held]
        if not series:
            loaded = self.kind.replace("-", "/") if self.kind.kept else "--watchlist"
            joins = pair_advice(store, "screen", "--pair") if self.kind is Screened.SPREAD else ""
            advice = joins or sync_advice(store, loaded, does="loads some")
            raise EmptyWindowError(f"{store.name} holds no {self.family} yet; {advice}")
        chosen = self.among(series)
        if not chosen:
            given = {name: getattr(self, name) for name in _FILTERS}
            asked = ", ".join(f"{name} {of}" for name, of in given.items() if of is not None)
            raise EmptyWindowError(f"{store.name} holds no {self.family} of {asked}")
        return chosen

    def among(self, held: Iterable[_Meant]) -> list[_Meant]:
        """Return the series that pass the filters, in their order.

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


def markets_of(series: OfLegs | Pair) -> str:
    """Return the markets of a series' legs, in their order.

    >>> markets_of(Trajectory.parse("BTC_USD:X.spot:Y.futures"))
    'spot/futures'
    """
    return "/".join(leg.market for leg in series.legs)


def _named(parameter: str, asked: str | Iterable[str] | None, known: set[str]) -> set[str]:
    if asked is None:
        return known
    names = {asked} if isinstance(asked, str) else set(asked)
    for name in sorted(names):
        if name not in known:
            raise InputError(parameter, name, sorted(known))
    return names


_NOT_REMEMBERED = frozenset(("self", "start", "end", "fees", "cluster", "plain_text"))


def remembered(
    method: Callable[Concatenate[Any, _Parameters], Result],
) -> Callable[Concatenate[Any, _Parameters], Result]:
    """Remember the arguments of a screen with its result. See `toolkit.series.base.remember`."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def screened(self: Any, /, *args: _Parameters.args, **options: _Parameters.kwargs) -> Result:
        found = method(self, *args, **options)
        if not found.is_empty():
            asked = signature.bind(self, *args, **options).arguments
            given = {name: each for name, each in asked.items() if name not in _NOT_REMEMBERED}
            path = self.store.path
            fees = find_fees(path, asked["fees"]) if "fees" in asked else self.fees
            origin = Origin(self.store.source, path, self.known_at, fees=fees)
            window = Interval(found["window_start"][0], found["window_end"][0])
            remember(found, MethodCall(None, window, origin, method.__name__, given))
        return found

    return screened
