"""Statistics of all that a store holds of a kind, and what a screen of it was asked."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import polars as pl

from toolkit.analyses import analysis_of
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import Family, Stream, When
from toolkit.series.base import MethodCall, Origin, remember
from toolkit.show.result import Result
from toolkit.statistics.fees import FeeModel
from toolkit.store import Store
from toolkit.workspace.answers import Answer
from toolkit.workspace.passes import Function, Passes
from toolkit.workspace.rules import find_fees
from toolkit.workspace.selection import Selection

_Parameters = ParamSpec("_Parameters")


class _Screening(Protocol):
    """What has screens that are remembered: a workspace."""

    @property
    def store(self) -> Store: ...

    @property
    def fees(self) -> FeeModel | None: ...

    @property
    def known_at(self) -> int | None: ...


_Rail = TypeVar("_Rail", bound=_Screening)

_MEASURED = (*map(str, Family), "snapshot-spread", "snapshot-funding")
_NOT_REMEMBERED = frozenset(("self", "start", "end", "fees", "cluster", "plain_text"))


def measured(
    function: Function,
    passes: Callable[[], Passes],
    window: tuple[When | None, When | None],
    family: str,
    streams: Iterable[Stream | str] | Stream | str | None,
    **parameters: Any,
) -> pl.DataFrame:
    """Return a statistic of the series held of a family. See `toolkit.workspace.Workspace.measure`.

    ``passes`` is called once the family is known to be one.
    """
    if family not in _MEASURED:
        raise InputError("family", family, _MEASURED)
    of = Family(family.removeprefix("snapshot-"))
    named = [f"{family}/*"] if of != family else None
    if streams is not None:
        several = [streams] if isinstance(streams, Stream | str) else streams
        keys = [str(each) for each in several]
        named = keys if of == family else [_prefixed(key, family) for key in keys]
    asked = Selection.of(passes(), of, named, *window)
    for words in asked.turned:
        warnings.warn(words, stacklevel=3)
    declared = analysis_of(function)
    if declared is None:
        return asked.measured(function, **parameters)[0]
    answer = Answer.of(declared, asked, **parameters)
    return Result.of(answer.rows, answer.analysis.columns_in(answer.rows.columns))


def _prefixed(key: str, kind: str) -> str:
    return key if key.startswith(f"{kind}/") else f"{kind}/{key}"


def remembered(
    method: Callable[Concatenate[_Rail, _Parameters], Result],
) -> Callable[Concatenate[_Rail, _Parameters], Result]:
    """Let a screen be remembered with what was asked, see `toolkit.series.base`."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def screened(self: _Rail, /, *args: _Parameters.args, **options: _Parameters.kwargs) -> Result:
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
