"""Statistics of all that a store holds of a kind: in this process, or on many."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

import polars as pl

from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval
from toolkit.market import Family, Pair, Trajectory, When
from toolkit.series.base import MethodCall, Origin, remember
from toolkit.series.held_prices import HeldPrices
from toolkit.statistics.fee_table import NOTIONAL, FeeModel, Style
from toolkit.statistics.funding import rows_window
from toolkit.store import sync_advice
from toolkit.workspace.fee_choice import find_fees
from toolkit.workspace.loading import Loading
from toolkit.workspace.passes import Function, Passes, Where, applied, known_steps
from toolkit.workspace.screening import Screening, held_window

_Parameters = ParamSpec("_Parameters")


def _remembered(
    method: Callable[Concatenate[Measuring, _Parameters], pl.DataFrame],
) -> Callable[Concatenate[Measuring, _Parameters], pl.DataFrame]:
    """Let a screen be remembered with what was asked, see `toolkit.series.base`."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def screened(
        self: Measuring, /, *args: _Parameters.args, **options: _Parameters.kwargs
    ) -> pl.DataFrame:
        found = method(self, *args, **options)
        if not found.is_empty():
            asked = signature.bind(self, *args, **options).arguments
            given = {name: each for name, each in asked.items() if name not in _NOT_REMEMBERED}
            fees = find_fees(self.store.path, asked.get("fees", self._fees))
            origin = Origin(self.store.source, self.store.path, self._as_of, fees=fees)
            window = Interval(found["window_start"][0], found["window_end"][0])
            remember(found, MethodCall(None, window, origin, method.__name__, given))
        return found

    return screened


_NOT_REMEMBERED = frozenset(("self", "start", "end", "fees", "cluster", "plain_text"))


class Measuring(Loading):
    """Statistics of many series at once. See `toolkit.workspace.Workspace`."""

    @property
    def fees(self) -> FeeModel | None:
        """The fee table that net figures are computed by: the one given, else of ``rail.toml``.

        None where neither is there. See `toolkit.workspace.fee_choice.find_fees`.
        """
        return find_fees(self.store.path, self._fees)

    def measure(
        self,
        function: Function,
        start: When | None = None,
        end: When | None = None,
        *,
        family: Family | str = Family.SPREAD,
        streams: Iterable[Trajectory | str] | Trajectory | str | None = None,
        cluster: Where | None = None,
        plain_text: bool = False,
        **parameters: Any,
    ) -> pl.DataFrame:
        """Apply a statistic to all trajectories of a family that are held, some at a time.

        ``function`` is one of `toolkit.statistics` or your own, called with rows, ``start`` and
        ``end`` (s), and the ``parameters``: ``rail.measure(tk.statistics.spread.episodes,
        enter_bps=50)``. It must not need more than one trajectory, since it is given some of them
        at a time. Rows are as in `toolkit.store.Store.groups`. Of funding they begin early enough
        for the settlements of the window, and a statistic that takes ``prices`` is given those held
        of the legs. Of bars one that takes ``step_s`` is given the steps that the store knows of
        trajectories. ``streams`` are those meant, by default all. Without a window it is all that
        is held.

        ``cluster`` computes on many processes: a number of them, ``local``, the address of a Dask
        scheduler, or its client. The workspace must be of published data. The result is the same.
        See `toolkit.cluster.Cluster`, also for ``plain_text``.

        Raises `EmptyWindowError` where nothing is held, `InputError` for a trajectory that is not,
        a family without trajectories, or a cluster without published data, and `ClusterError` where
        workers fail.
        """
        family = Family(family) if family in list(Family) else _no_family(family)
        if streams is None:
            named = None
        else:
            given = [streams] if isinstance(streams, Trajectory | str) else streams
            named = [Trajectory.parse(each, family).key for each in given]
        held = self.store.catalogue(as_of=self._as_of).filter(pl.col("rows") > 0, kind=family)
        found = held if named is None else held.filter(pl.col("stream").is_in(named))
        if missing := sorted(set(named or ()) - set(found["stream"])):
            raise InputError("streams", missing[0], held["stream"])
        if found.is_empty():
            advice = sync_advice(self.store, "--watchlist", does="loads some")
            raise EmptyWindowError(f"{self.store.name} holds no {family} yet; {advice}")
        window = held_window(
            self.store, family, found.to_dicts(), *self._asked(start, end), names=("start", "end")
        )
        read = rows_window(window) if family is Family.FUNDING else window
        priced = _takes(function, "prices", parameters) and not parameters.get("funding_only")
        if family is Family.FUNDING and priced:
            held_prices = HeldPrices(self.store, self._as_of)
            parameters = parameters | {"prices": held_prices.over(found["stream"], window)}
        if family is not Family.FUNDING and _takes(function, "step_s", parameters):
            parameters = parameters | {"step_s": known_steps(found)}
        passes = Passes.of(self.store, cluster, as_of=self._as_of, plain_text=plain_text)
        return passes.over(family, read, applied(function, window, **parameters), keys=named)[0]

    @_remembered
    def screen(
        self,
        start: When | None = None,
        end: When | None = None,
        *,
        family: Family | str = Family.SPREAD,
        symbols: str | Iterable[str] | None = None,
        exchanges: str | Iterable[str] | None = None,
        types: str | Iterable[str] | None = None,
        exclude_symbols: str | Iterable[str] | None = None,
        pairs: Iterable[Pair | str] | Pair | str | None = None,
        where: str | None = None,
        sort: str | None = None,
        top: int | None = None,
        exclude_flags: bool | str | Sequence[str] = False,
        fees: FeeModel | str | Path | None = None,
        notional: float = NOTIONAL,
        style: Style = "taker",
        funding_only: bool = False,
        cluster: Where | None = None,
        plain_text: bool = False,
    ) -> pl.DataFrame:
        """Measure all series of a kind that are held in one pass, and rank them by any figure.

        The columns, ``where``, ``sort``, ``top`` and ``exclude_flags`` are those of
        `toolkit.statistics.spread.screen`: without a ``sort`` the widest now is first. With
        ``family`` funding they are those of `toolkit.statistics.screening.funding_figures`, and the
        largest APR is first. ``funding_only`` leaves prices out of them. Those kept from snapshots
        have coverage by polls, as in `toolkit.statistics.polls.by_polls`: ``snapshot-spread`` as
        spreads, ``snapshot-funding`` as `toolkit.statistics.screening.rate_figures`, without fees.
        ``symbols``, ``exchanges`` and ``types`` take some pairs alone: those with both legs on one
        of the exchanges, and of the markets ``spot/futures``. ``exclude_symbols`` leaves some out.
        ``pairs`` are keys ``pair/BUY/SELL`` of any two prices held, and ``/FX``: they take the
        place of the spreads held, and are joined as `pairs` does. ``fees`` is a fee table or its
        file, without it that of the workspace. Without a window it is the last 7 days that are
        held, of pairs those that their legs share, and of funding all that is held.

        ``cluster`` and ``plain_text`` are as in `measure`.

        Raises `EmptyWindowError` where nothing is held, and `InputError` for what is no condition,
        no column, no flag, or a symbol, an exchange or a type of no pair.
        """
        table = self.fees if fees is None else find_fees(self.store.path, fees)
        chosen = (types, exclude_symbols, pairs)
        asked = Screening(family, symbols, exchanges, None, notional, style, *chosen, funding_only)
        if fees is not None or asked.has_costs:
            asked = replace(asked, fees=table)
        ranking = asked.ranking(where, sort, top, exclude_flags)
        passes = Passes.of(self.store, cluster, as_of=self._as_of, plain_text=plain_text)
        return ranking.applied(asked.rows(passes, *self._asked(start, end)))


def _takes(function: Function, name: str, given: Mapping[str, Any]) -> bool:
    """Return whether a statistic takes a parameter that it is not given."""
    return given.get(name) is None and name in inspect.signature(function).parameters


def _no_family(family: object) -> Family:
    raise InputError("family", family, list(Family))
