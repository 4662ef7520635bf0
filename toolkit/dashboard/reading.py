"""What the pages read of the store: opened per query, kept for a short while, never held open."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import streamlit as st

from toolkit.market import Family, Source, Trajectory
from toolkit.statistics.spread import with_spread
from toolkit.store import Store
from toolkit.workspace import DEFAULT_BASE_URL, Settings

__all__ = ["read_catalogue", "read_coverage", "read_rows", "store_path"]

_LOOK_AGAIN_S = 15
_KEEP_S = 600
_WAIT_S = 3.0
"""A writer lets go within milliseconds; a reader of a page is told after this many seconds."""


def store_path() -> Path:
    """The DuckDB file named by ``RAIL_STORE``, by default ``rail.duckdb``.

    Examples
    --------
    >>> import os
    >>> os.environ["RAIL_STORE"] = "other.duckdb"
    >>> store_path()
    PosixPath('other.duckdb')
    >>> del os.environ["RAIL_STORE"]
    """
    return Settings.read(base_url=DEFAULT_BASE_URL).store


@st.cache_data(ttl=_LOOK_AGAIN_S, show_spinner=False)
def read_catalogue(path: Path) -> tuple[Source, pl.DataFrame]:
    """The store's source and `Store.catalogue`; looked at again after 15 s.

    Raises the errors of `toolkit.store.Store`, which are not kept.
    """
    store = Store(path, wait_s=_WAIT_S)
    return store.source, store.catalogue()


@st.cache_data(ttl=_KEEP_S, max_entries=20, show_spinner="Reading the store")
def read_rows(
    path: Path, key: str, family: Family, start: int, end: int, *, asked_at: int
) -> pl.DataFrame:
    """`Store.series` of one trajectory, a spread with its ``spread_log_bps`` and ``spread_bps``.

    ``asked_at``, the time of the trajectory's last sync, makes a new sync be read anew.
    """
    del asked_at
    rows = Store(path, wait_s=_WAIT_S).series(Trajectory.parse(key, family), start, end)
    return with_spread(rows) if family is Family.SPREAD else rows


@st.cache_data(ttl=_KEEP_S, max_entries=20, show_spinner=False)
def read_coverage(
    path: Path, key: str, family: Family, start: int, end: int, *, asked_at: int
) -> pl.DataFrame:
    """`Store.coverage` of one trajectory; ``asked_at`` as for `read_rows`."""
    del asked_at
    return Store(path, wait_s=_WAIT_S).coverage(Trajectory.parse(key, family), start, end)
