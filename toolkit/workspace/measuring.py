"""Statistics of all that a store holds of a kind: in this process, or on many."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

import polars as pl

from toolkit.analyses import analysis_of
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import Family, Pair, Stream, When
from toolkit.series.base import MethodCall, Origin, remember
from toolkit.show.result import Result
from toolkit.statistics.fees.fee_table import NOTIONAL, FeeModel, Style
from toolkit.workspace.answers import Answer
from toolkit.workspace.fee_choice import find_fees
from toolkit.workspace.loading import Loading
from toolkit.workspace.passes import Function, Passes, Where
from toolkit.workspace.screening import Screening
from toolkit.workspace.selection import Selection

_Parameters = ParamSpec("_Parameters")


def _remembered(
    method: Callable[Concatenate[Measuring, _Parameters], Result],
) -> Callable[Concatenate[Measuring, _Parameters], Result]:
    """Let a screen be remembered with what was asked, see `toolkit.series.base`."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def screened(
        self: Measuring, /, *args: _Parameters.args, **options: _Parameters.kwargs
    ) -> Result:
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


_MEASURED = (*map(str, Family), "snapshot-spread", "snapshot-funding")
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
        streams: Iterable[Stream | str] | Stream | str | None = None,
        cluster: Where | None = None,
        plain_text: bool = False,
        **parameters: Any,
    ) -> pl.DataFrame:
        """Apply a statistic to all trajectories of a family that are held, some at a time.

        ``function`` is one of `toolkit.statistics` or your own, called with rows, ``start`` and
        ``end`` (s), and the ``parameters``: ``rail.measure(tk.statistics.spread.episodes,
        enter_bps=50)``. One of your own must not need more than one trajectory, since it is given
        some of them at a time. Those of the toolkit that compare series are given all:
        ``rail.measure(tk.statistics.funding.dispersion_summary, family="funding")``. Rows are as in
        `toolkit.store.Store.groups`, of spreads with the columns of
        `toolkit.statistics.spread.with_spread`. Of funding they begin early enough for the
        settlements of the window, and a statistic that takes ``prices`` is given those held of the
        legs. Of bars one that takes ``step_s`` is given the steps that the store knows of
        trajectories. ``streams`` are those meant, by default all: keys as `rail stats` takes them,
        with ``*``, of what snapshots kept, and of pairs of two prices. A pair that is held the
        other way round is turned, with a warning. Without a window it is all that is held.

        ``cluster`` computes on many processes: a number of them, ``local``, the address of a Dask
        scheduler, or its client. The workspace must be of published data. The result is the same.
        See `toolkit.cluster.Cluster`, also for ``plain_text``.

        Raises `EmptyWindowError` where nothing is held, `UnknownTrajectoryError` for what is not,
        `InputError` for keys of two kinds, a family without trajectories, or a cluster without
        published data, and `ClusterError` where workers fail.
        """
        if family not in _MEASURED:
            raise InputError("family", family, _MEASURED)
        of = Family(family.removeprefix("snapshot-"))
        named = [f"{family}/*"] if of != family else None
        if streams is not None:
            several = [streams] if isinstance(streams, Stream | str) else streams
            keys = [str(each) for each in several]
            named = keys if of == family else [_prefixed(key, family) for key in keys]
        passes = Passes.of(self.store, cluster, as_of=self._as_of, plain_text=plain_text)
        asked = Selection.of(passes, of, named, *self._asked(start, end))
        for words in asked.turned:
            warnings.warn(words, stacklevel=2)
        declared = analysis_of(function)
        if declared is None:
            return asked.measured(function, **parameters)[0]
        answer = Answer.of(declared, asked, **parameters)
        return Result.of(answer.rows, answer.analysis.columns_in(answer.rows.columns))

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
    ) -> Result:
        """Measure all series of a kind that are held in one pass, and rank them by any figure.

        The columns, ``where``, ``sort``, ``top`` and ``exclude_flags`` are those of
        `toolkit.statistics.spread.screen`: without a ``sort`` the widest now is first. With
        ``family`` funding they are those of `toolkit.statistics.screening.funding_figures`, and the
        largest APR is first. ``funding_only`` leaves prices out of them. Those kept from snapshots
        have coverage by polls, as in `toolkit.statistics.quality.polls.by_polls`:
        ``snapshot-spread`` as spreads, ``snapshot-funding`` as
        `toolkit.statistics.screening.rate_figures`, without fees. ``symbols``, ``exchanges`` and
        ``types`` take some pairs alone: those with both legs on one of the exchanges, and of the
        markets ``spot/futures``. ``exclude_symbols`` leaves some out. ``pairs`` are keys
        ``pair/BUY/SELL`` of any two prices held, and ``/FX``: they take the place of the spreads
        held, and are joined as `pairs` does. ``fees`` is a fee table or its file, without it that
        of the workspace. Without a window it is the last 7 days that are held, of pairs those that
        their legs share, and of funding all that is held.

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
        found = ranking.applied(asked.rows(passes, *self._asked(start, end)))
        return Result.of(found, asked.kind.answer)


def _prefixed(key: str, kind: str) -> str:
    return key if key.startswith(f"{kind}/") else f"{kind}/{key}"
