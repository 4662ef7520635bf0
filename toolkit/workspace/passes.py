"""Statistics over the rows of a store, in one pass: in this process, or on a cluster's workers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import polars as pl

from toolkit.cluster import Cluster
from toolkit.errors import InputError
from toolkit.intervals import Ends, Interval
from toolkit.statistics.passes import Analysis, in_one_pass
from toolkit.store import Store
from toolkit.store.publish import PublishedRows
from toolkit.workspace.places import cache_folder
from toolkit.workspace.progress import load_progress

Where = str | int | object
"""``local``, the address of a Dask scheduler, a number of processes, or a Dask client."""

Function = Callable[..., pl.DataFrame]
"""A statistic: rows, start and end (s), and parameters by name."""


def applied(function: Function, window: Interval, **parameters: Any) -> Analysis:
    """Return a statistic with its window and parameters, as `Passes.over` takes it."""
    return partial(_applied, function, window, parameters)


def _applied(
    function: Function, window: Interval, parameters: dict[str, Any], rows: pl.DataFrame
) -> pl.DataFrame:
    return function(rows, *window, **parameters)


def known_steps(catalogue: pl.DataFrame) -> dict[str, int]:
    """Return the steps (s) of streams by key, of rows of `Store.catalogue` that know theirs."""
    return dict(catalogue.select("stream", "step_s").drop_nulls().iter_rows())


@dataclass(frozen=True, slots=True)
class Passes:
    """A store, and what computes over it: this process, or a cluster over its published files."""

    store: Store
    cluster: Cluster | None = None
    as_of: int | None = None

    @classmethod
    def of(
        cls,
        store: Store,
        cluster: Where | None = None,
        *,
        as_of: int | None = None,
        plain_text: bool = False,
    ) -> Self:
        """Check what computes, before anything is read. ``cluster`` None is this process.

        Raises `InputError` for what is not a cluster, and for one over a store that is not
        published.
        """
        as_of = store.as_of if as_of is None else as_of
        if cluster is None:
            return cls(store, None, as_of)
        if isinstance(cluster, str) and cluster.isdecimal():
            cluster = int(cluster)
        found = Cluster(cluster, cache_folder() / "results", plain_text)
        if not store.published:
            raise InputError(
                "cluster",
                cluster if isinstance(cluster, str | int) else type(cluster).__name__,
                "over published data, which the workers read",
                advice=f"`{store.command('store', 'publish', 'archive')}`, then open archive",
            )
        if as_of is not None:
            raise InputError("cluster", found.where, "without an as_of; open an older publication")
        return cls(store, found, None)

    def over(
        self, kind: str, window: Ends, *analyses: Analysis, keys: Iterable[str] | None = None
    ) -> list[pl.DataFrame]:
        """Apply statistics to the rows of a kind, or of some keys of it, with a frame for each.

        With a cluster they must be functions of a module, or partials of one.
        """
        if self.cluster is None:
            asked = kind if keys is None else set(keys)
            groups = self.store.groups(asked, window, as_of=self.as_of)
            return in_one_pass(groups, *analyses)
        rows = PublishedRows.of(self.store.published, kind, window, keys)
        with self._watched() as cluster:
            return cluster.in_one_pass(rows, *analyses)

    @contextlib.contextmanager
    def _watched(self) -> Iterator[Cluster]:
        assert self.cluster is not None
        with load_progress(f"on {self.cluster.name}") as watch:
            yield replace(self.cluster, progress=watch.show)
