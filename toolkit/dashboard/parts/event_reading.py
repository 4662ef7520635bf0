"""Events of the pages: read and paired once for each state of their logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
from streamlit import cache_resource

from toolkit.dashboard.reading import WAIT_S, StoreState, StreamVersion
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventRole
from toolkit.show.values import NULL
from toolkit.statistics.events import documents_window, event_lifecycles
from toolkit.statistics.events.documents import identified
from toolkit.statistics.events.exposure import with_losses
from toolkit.store import Store

MOVES = ("spread", "pump", "dump", "splash", "funding")
"""The kinds of events in their order. A splash is one neither pump nor dump."""

_DAY_S = 86_400
_KEEP_S = 600


def held_events(held: StoreState) -> Interval:
    """Return the window from any log's oldest document to the newest log's end."""
    logs = held.logs
    end = -(-max(logs["known_until"].fill_null(logs["served_at"])) // 60) * 60
    first = [ts for ts in logs["first_ts"] if ts is not None]
    return Interval(min([*first, end - 86_400]) // 60 * 60, end)


def read_documents(held: StoreState, window: Interval) -> pl.DataFrame:
    """Read the identified documents of a window and of the days before, for pairing."""
    return _documents(held.path, *window, versions=_versions(held))


def read_text(held: StoreState, document: Mapping[str, Any]) -> str | None:
    """Read the original text of a document of `read_documents`.

    None if the store was remapped since.
    """
    store, ts = Store(held.path, wait_s=WAIT_S), document["ts"]
    of_its_second = store.events(document["family"], Interval(ts, ts + 1))
    keys = ("schema_id", "event_id", "event_type", "ts_ms")
    its_own = of_its_second.filter(pl.col(key).eq_missing(document[key]) for key in keys)
    return next(iter(its_own["document"]), None)


def read_lifecycles(held: StoreState, window: Interval) -> pl.DataFrame:
    """Return the lifecycles of a window, with the column ``move``, one of `MOVES`.

    An unknown symbol or legs are a dash.
    """
    found = _lifecycles(held.path, *window, versions=_versions(held), _logs=held.logs)
    return with_losses(found, Store(held.path, wait_s=WAIT_S).gaps())


def kept_answer(
    held: StoreState, choices: str, question: str, measure: Callable[[], pl.DataFrame]
) -> pl.DataFrame:
    """Measure events, cached until their logs or the ``choices`` change."""
    return _answer(held.path, choices, question, versions=_versions(held), _measure=measure)


def log_days(held: StoreState) -> dict[str, Interval]:
    """Return the last 24 h of each event log, up to the end of its own answers."""
    known = held.logs.select("family", "known_until").drop_nulls()
    return {family: Interval(end - _DAY_S, end) for family, end in known.iter_rows()}


def read_lately(held: StoreState) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return documents and lifecycles of each log for `log_days` and the day before.

    The documents begin a week earlier, which pairing needs.
    """
    return _lately(held.path, versions=_versions(held), _held=held)


def with_moves(lives: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Add ``move`` to lifecycles: the family, for a splash pump or dump by its opening.

    >>> lives = pl.DataFrame({"family": ["splash"] * 2, "event": ["a", "b"], "since": [60, 90]})
    >>> documents = pl.DataFrame({"family": ["splash"], "event": ["a"], "ts": [60],
    ...                           "role": ["opens"], "event_type": ["splash.dump"]})
    >>> with_moves(lives, documents)["move"].to_list()
    ['dump', 'splash']
    """
    word = pl.col("event_type").str.split(".").list.last()
    opened = documents.filter(
        word.is_in(["pump", "dump"]), role=EventRole.OPENS.value, family=EventFamily.SPLASH.value
    )
    of = opened.select("family", "event", since="ts", move=word)
    return lives.join(
        of.unique(["family", "event", "since"], keep="first", maintain_order=True),
        on=["family", "event", "since"],
        how="left",
        maintain_order="left",
    ).with_columns(pl.col("move").fill_null(pl.col("family")))


def _versions(held: StoreState) -> tuple[StreamVersion, ...]:
    """Return what changes with every commit of an event log, and only then."""
    known = held.logs.select("family", "known_until").iter_rows()
    return tuple((*held.versions[f"events/{family}"], until) for family, until in known)


@cache_resource(ttl=_KEEP_S, max_entries=32, show_spinner=False)
def _answer(
    path: Path,
    choices: str,
    question: str,
    *,
    versions: tuple[StreamVersion, ...],
    _measure: Callable[[], pl.DataFrame],
) -> pl.DataFrame:
    del path, choices, question, versions
    return _measure()


@cache_resource(ttl=_KEEP_S, max_entries=4, show_spinner="Reading the events")
def _documents(
    path: Path, start: int, end: int, *, versions: tuple[StreamVersion, ...]
) -> pl.DataFrame:
    del versions
    store, window = Store(path, wait_s=WAIT_S), documents_window(Interval(start, end))
    with store.reading():
        logs = [store.events(family, window, whole=False) for family in EventFamily]
        return identified(pl.concat(logs))


@cache_resource(ttl=_KEEP_S, max_entries=4, show_spinner="Pairing the events")
def _lately(
    path: Path, *, versions: tuple[StreamVersion, ...], _held: StoreState
) -> tuple[pl.DataFrame, pl.DataFrame]:
    del versions
    store, days, documents, lifecycles = Store(path, wait_s=WAIT_S), log_days(_held), [], []
    with store.reading():
        for family in EventFamily:
            day = days.get(family, Interval(0, _DAY_S))
            two_days = Interval(day.start - _DAY_S, day.end)
            read = documents_window(two_days)
            documents.append(identified(store.events(family, read, whole=False)))
            logs = _held.logs.filter(family=family.value)
            lifecycles.append(event_lifecycles(documents[-1], *two_days, logs=logs))
    return pl.concat(documents), pl.concat(lifecycles)


@cache_resource(ttl=_KEEP_S, max_entries=8, show_spinner="Pairing the events")
def _lifecycles(
    path: Path, start: int, end: int, *, versions: tuple[StreamVersion, ...], _logs: pl.DataFrame
) -> pl.DataFrame:
    documents = _documents(path, start, end, versions=versions)
    found = event_lifecycles(documents, start, end, logs=_logs)
    named = found.with_columns(pl.col("symbol", "legs").fill_null(NULL))
    return with_moves(named, documents)
