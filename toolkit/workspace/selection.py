"""Selection of a store's series for every interface: orientation, window, how wide to read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, Self

import polars as pl

from toolkit.analyses import analysis_of
from toolkit.cards import some
from toolkit.cluster import Cluster
from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval
from toolkit.market import Family, Pair, SnapshotTrajectory, Stream, Trajectory, When, format_ts
from toolkit.series.held_prices import HeldPrices
from toolkit.statistics.core.definition import SameFrame, turned
from toolkit.statistics.families import FAMILIES, extent_of
from toolkit.statistics.funding.carry_marks import PairPrices
from toolkit.statistics.passes import Analysis, in_one_pass
from toolkit.statistics.quality.coverage import PollCount, by_polls, poll_count
from toolkit.store import (
    Store,
    check_known,
    chosen_window,
    held_key,
    held_trajectory,
    pair_advice,
    sync_advice,
)
from toolkit.store.publish import PublishedRows
from toolkit.workspace.pairs import HeldPairs, Joining
from toolkit.workspace.progress import load_progress
from toolkit.workspace.settings import FOLDERS

Where = str | int | object
"""``local``, the address of a Dask scheduler, a number of processes, or a Dask client."""

Function = Callable[..., pl.DataFrame]
"""A statistic: rows, start and end (s), and parameters by name."""


def _applied(
    function: Function, window: Interval, parameters: dict[str, Any], rows: pl.DataFrame
) -> pl.DataFrame:
    return function(rows, *window, **parameters)


def known_steps(catalogue: pl.DataFrame) -> dict[str, int]:
    """Return the known steps (s) of streams by key, from `Store.catalogue`."""
    return dict(catalogue.select("stream", "step_s").drop_nulls().iter_rows())


@dataclass(frozen=True, slots=True)
class Passes:
    """A store, and what computes over it: this process, or a cluster."""

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
        """Check the cluster before anything is read. Default: this process.

        Raises `InputError` for an invalid cluster, or over a store that is not published.
        """
        as_of = store.as_of if as_of is None else as_of
        if cluster is None:
            return cls(store, None, as_of)
        if isinstance(cluster, str) and cluster.isdecimal():
            cluster = int(cluster)
        found = Cluster(cluster, FOLDERS.user_cache_path / "results", plain_text)
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


OfLegs = Trajectory | SnapshotTrajectory
"""A stream with rows by trajectory: loaded, or from snapshots."""
PAIR = "pair"
"""The kind of pairs of two prices."""


@dataclass(frozen=True)
class Selection:
    """Series of one kind, a window, and what computes over their rows.

    ``held`` has the stored one for each, which may be in the other orientation. ``steps`` (s) are
    those known, by key. ``pairs`` are pairs of two prices, in place of ``held``.
    """

    passes: Passes
    kind: str
    held: Mapping[OfLegs, OfLegs]
    window: Interval
    steps: Mapping[str, int] = field(default_factory=dict)
    pairs: HeldPairs | None = None

    @classmethod
    def of(
        cls,
        passes: Passes,
        family: Family,
        keys: Sequence[str] | None = None,
        start: When | None = None,
        end: When | None = None,
        *,
        joining: Joining | None = None,
        names: tuple[str, str] = ("start", "end"),
    ) -> Self:
        """Find the series by keys, by default all of a family, and the window, by default all.

        Keys may have a ``*``, begin with ``snapshot-`` and the family, or be pairs (``pair/``) to
        be joined. Raises `InputError` for keys of two kinds, `UnknownTrajectoryError` for an
        unknown key, and `EmptyWindowError` if nothing is stored.
        """
        named, store = keys or ["*"], passes.store
        kind = _kind_of(named, family)
        if kind == PAIR:
            for key in named:
                if "*" in key:
                    allowed = "a pair's prices by their keys, without a *"
                    raise InputError("trajectories", key, allowed)
            asked = (named, joining or Joining())
            return cls.of_pairs(passes, *asked, start=start, end=end, names=names)
        wanted = {key: None if "*" in key else _parsed(key, family) for key in named}
        with store.reading():
            everything = store.catalogue(as_of=passes.as_of)
            streams, catalogue = set(everything["stream"]), everything.filter(pl.col("rows") > 0)
            known = catalogue.filter(kind=kind)["stream"].to_list()
            if not known and not any(wanted.values()):
                raise _none_held(store, family, kind, catalogue["kind"])
            held: dict[OfLegs, OfLegs] = {}
            for key, series in wanted.items():
                if series is None:
                    held |= {found: found for found in _matching(key, kind, known)}
                elif isinstance(series, SnapshotTrajectory):
                    if key not in streams:
                        check_known(store, series)
                    held[series] = series
                else:
                    at = held_key(series.key, streams)
                    held[series] = Trajectory.parse(at) if at else held_trajectory(store, series)
            return cls.over(passes, kind, held, catalogue, start=start, end=end, names=names)

    @classmethod
    def over(
        cls,
        passes: Passes,
        kind: str,
        held: Mapping[OfLegs, OfLegs],
        catalogue: pl.DataFrame,
        *,
        start: When | None = None,
        end: When | None = None,
        names: tuple[str, str] = ("start", "end"),
        lately_s: int | None = None,
    ) -> Self:
        """Return the selection of some series and a window, by default the last ``lately_s`` (s).

        Raises `EmptyWindowError` for a series without rows.
        """
        store, keys = passes.store, [found.key for found in held.values()]
        known = {row["stream"]: row for row in catalogue.iter_rows(named=True)}
        for key in keys:
            if key not in known:
                advice = sync_advice(store, key, does="asks again")
                raise EmptyWindowError(f"{store.name} holds no rows of {key}; {advice}")
        rows, by_key = [known[key] for key in keys], known_steps(catalogue)
        steps = {each.key: by_key[of.key] for each, of in held.items() if of.key in by_key}
        if kind.startswith("snapshot-"):
            polled = store.polls(kind.removeprefix("snapshot-"), as_of=passes.as_of)["ts"]
            if polled.is_empty():
                raise EmptyWindowError(f"{store.path} held no {kind} then")
            rows = [rows[0] | {"first_ts": polled[0], "last_ts": polled[-1]}]
        window = held_window(store, kind, rows, start, end, names=names, lately_s=lately_s)
        return cls(passes, kind, held, window, steps)

    @classmethod
    def as_held(
        cls,
        passes: Passes,
        kind: str,
        keys: Iterable[str],
        window: Interval,
        steps: Mapping[str, int] | None = None,
    ) -> Self:
        """Return the selection by stored keys, or of pairs, over a known window."""
        if kind == PAIR:
            return cls.of_pairs(passes, keys, Joining(), start=window.start, end=window.end)
        series = [each for each in map(Stream.parse, keys) if isinstance(each, OfLegs)]
        return cls(passes, kind, dict(zip(series, series, strict=True)), window, steps or {})

    @classmethod
    def of_pairs(
        cls,
        passes: Passes,
        pairs: Iterable[Pair | str] | Pair | str,
        joining: Joining,
        *,
        start: When | None = None,
        end: When | None = None,
        names: tuple[str, str] = ("start", "end"),
        lately_s: int | None = None,
    ) -> Self:
        """Return the selection of pairs, by default over the time that their legs share."""
        if passes.cluster is not None:
            raise InputError("cluster", passes.cluster.name, "with stored spreads, not pairs")
        held = HeldPairs.of(passes.store, pairs, joining)
        window = chosen_window(
            passes.store, start, end, held.everything, names=names, lately_s=lately_s
        )
        return cls(passes, PAIR, {}, window, steps=held.steps, pairs=held)

    @property
    def store(self) -> Store:
        """The store."""
        return self.passes.store

    @cached_property
    def polls(self) -> PollCount | None:
        """The polls of the window, None for series not from snapshots."""
        if not self.kind.startswith("snapshot-"):
            return None
        of = self.kind.removeprefix("snapshot-")
        polled = self.store.polls(of, self.window, as_of=self.passes.as_of)
        return poll_count(polled, *self.window)

    @cached_property
    def prices(self) -> HeldPrices:
        """The stored prices of the legs of funding pairs."""
        return HeldPrices(self.store, self.passes.as_of)

    @property
    def keys(self) -> list[str]:
        """The keys as given."""
        return [each.key for each in (self.held if self.pairs is None else self.pairs.pairs)]

    @property
    def turned(self) -> list[str]:
        """A line on each series that is stored in the other orientation."""
        turned = ((wanted.key, found.key) for wanted, found in self.held.items() if wanted != found)
        return [f"{key} is held as {at}: legs and signs are turned" for key, at in turned]

    def measured(self, *statistics: Function, **parameters: Any) -> list[pl.DataFrame]:
        """Apply statistics to all rows, and return a frame each, sorted by trajectory.

        See `analysis` and `by_polls`.
        """
        analyses = [self.analysis(statistic, **parameters) for statistic in statistics]
        return [self.by_polls(found) for found in self.in_one_pass(*analyses)]

    def analysis(self, statistic: Function, **parameters: Any) -> Analysis:
        """Return a statistic for `in_one_pass`, with window, known steps and prices."""
        taken = inspect.signature(statistic).parameters
        lacks = {
            name
            for name, each in taken.items()
            if parameters.get(name) is None and each.default in (None, each.empty)
        }
        if self.kind != Family.FUNDING and "step_s" in lacks:
            parameters["step_s"] = self.steps
        if "start" not in taken:
            return partial(_inside, partial(statistic, **parameters), self.window, self._closed)
        without = parameters.get("funding_only")
        if self.kind != Family.FUNDING or "prices" not in lacks or without:
            return partial(_applied, statistic, self.window, parameters)
        declared = analysis_of(statistic)
        ends = declared is not None and declared.prices == "ends"
        read = self.prices.at_ends if ends else self.prices.over
        if self.passes.cluster:  # workers have no store
            parameters["prices"] = read(self.keys, self.window)
            return partial(_applied, statistic, self.window, parameters)
        return partial(_priced, statistic, self.window, parameters, read)

    @property
    def _closed(self) -> Literal["left", "right"]:
        """The end that belongs to the window: for settlements the right one."""
        return "right" if self.kind == Family.FUNDING else "left"

    @property
    def present(self) -> Analysis:
        """The statistic for `in_one_pass` of the keys with a row in the window."""
        return partial(_present, window=self.window, closed=self._closed)

    def applied(self, rows: pl.DataFrame, statistic: Function, **parameters: Any) -> pl.DataFrame:
        """Apply a statistic, as `measured` does, to rows of these series."""
        return self.by_polls(self.analysis(statistic, **parameters)(rows))

    def in_one_pass(self, *analyses: Analysis) -> list[pl.DataFrame]:
        """Apply statistics to the rows of the window. See `toolkit.statistics.passes`."""
        read = FAMILIES[self.kind].read(self.window)
        if self.passes.cluster is None:
            return in_one_pass(self.groups(read), *analyses)
        ready = [partial(_of_ready, self.kind, self._turns, each) for each in analyses]
        keys = {found.key for found in self.held.values()}
        rows = PublishedRows.of(self.store.published, self.kind, read, keys)
        with load_progress(f"on {self.passes.cluster.name}") as watch:
            return replace(self.passes.cluster, progress=watch.show).in_one_pass(rows, *ready)

    def groups(self, read: Interval) -> Iterator[pl.DataFrame]:
        """Yield the rows of all series with ``start <= ts < end``. See `Store.groups`."""
        store, as_of = self.store, self.passes.as_of
        if self.pairs is not None:
            yield from self.pairs.groups(read, as_of=as_of)
            return
        if not self.held:
            nothing = pl.DataFrame(schema=store.scan(self.kind).collect_schema())
            yield FAMILIES[self.kind].ready(nothing)
            return
        for rows in store.groups(set(self.held.values()), read, as_of=as_of):
            yield _ready(self.kind, self._turns, rows)

    def rows(self) -> pl.DataFrame:
        """Read the rows for the window, widened as in `toolkit.statistics.families`.

        Raises `StoreError` for an unreadable series, which `groups` skips.
        """
        read, as_of = FAMILIES[self.kind].read(self.window), self.passes.as_of
        if not self.held:
            return pl.concat(self.groups(read), how="diagonal")
        held = [
            self.store.series(each, read, as_of=as_of) for each in dict.fromkeys(self.held.values())
        ]
        return _ready(self.kind, self._turns, pl.concat(held))

    def scan(self, read: Interval) -> pl.LazyFrame:
        """Scan the rows with ``start <= ts < end``, without pairs. See `Store.scan`."""
        held = self.store.scan(set(self.held.values()), read, as_of=self.passes.as_of)
        return _ready(self.kind, self._turns, held)

    @property
    def _turns(self) -> _Turns:
        held = self.held.items()
        turned = {found.key: wanted.key for wanted, found in held if wanted != found}
        return turned, [found.key for wanted, found in held if wanted == found]

    def by_polls(self, found: pl.DataFrame) -> pl.DataFrame:
        """Sort results by trajectory, with coverage by polls for series from snapshots."""
        if "trajectory" in found.columns:
            found = found.sort("trajectory", maintain_order=True)
        covered = {"coverage", "method"} <= set(found.columns)
        return by_polls(found, self.polls) if covered and self.polls is not None else found

    @property
    def stretch(self) -> str:
        """The window in words, for settlements with its end, not its start."""
        start, end = map(format_ts, self.window)
        return f"({start}, {end}]" if self.kind == Family.FUNDING else str(self.window)

    def silent(self, found: Iterable[str]) -> list[str]:
        """Return the keys not in ``found``. Raises `EmptyWindowError` if all are."""
        silent = sorted(set(self.keys) - set(found))
        if len(silent) < len(self.keys):
            return silent
        store, held = self.store, {each.key for each in self.held.values()}
        known = store.catalogue().filter(pl.col("stream").is_in(held)).drop_nulls("first_ts")
        times = [*known["first_ts"].to_list(), *known["last_ts"].to_list()]
        other = f"; held: {format_ts(min(times))} to {format_ts(max(times))}" if times else ""
        raise EmptyWindowError(
            f"{store.name} holds nothing in {self.stretch} of {some(self.keys)}{other}"
        )


def _present(
    rows: pl.DataFrame, window: Interval, closed: Literal["left", "right"]
) -> pl.DataFrame:
    inside = pl.col("ts").is_between(*window, closed=closed)
    return rows.filter(inside).select(pl.col("trajectory").unique())


def _inside(
    statistic: Function, window: Interval, closed: Literal["left", "right"], rows: pl.DataFrame
) -> pl.DataFrame:
    """Apply a statistic with a result per row, keeping those of the window."""
    return statistic(rows).filter(pl.col("ts").is_between(*window, closed=closed))


def _priced(
    statistic: Function,
    window: Interval,
    parameters: Mapping[str, Any],
    read: Callable[[Iterable[str], Interval], PairPrices],
    rows: pl.DataFrame,
) -> pl.DataFrame:
    """Apply a statistic with the prices of the rows' pairs only, to save memory."""
    prices = read(rows["trajectory"].unique().to_list(), window)
    return statistic(rows, *window, prices=prices, **parameters)


def held_window(
    store: Store,
    kind: str,
    rows: Sequence[Mapping[str, Any]],
    start: When | None,
    end: When | None,
    *,
    names: tuple[str, str] = ("start", "end"),
    lately_s: int | None = None,
) -> Interval:
    """Return the window given, by default the extent of some rows of the catalogue.

    For settlements it ends with the last sync. ``names`` and ``lately_s`` are as in
    `toolkit.store.chosen_window`.
    """
    everything = extent_of(rows)
    assert everything is not None  # each has rows
    asked = chosen_window(store, start, end, lambda: everything, names=names, lately_s=lately_s)
    if kind != Family.FUNDING:
        return asked
    known_until = max(row["served_at"] for row in rows)
    if known_until <= asked.start:
        advice = sync_advice(store, rows[0]["stream"], does="asks for more")
        knows = f"{store.name} knows nothing of {kind} after {format_ts(known_until)}"
        raise EmptyWindowError(f"{knows}; {advice}")
    return Interval(asked.start, min(asked.end, known_until))


_Turns = tuple[Mapping[str, str], Sequence[str]]
"""Keys given by stored key of those to be turned, and the keys of the others."""


def _ready(kind: str, turns: _Turns, rows: SameFrame) -> SameFrame:
    """Return stored rows in the given orientation, with the columns of statistics."""
    others, as_held = turns
    if others:
        key = pl.col("trajectory")
        named = key.replace_strict(others, return_dtype=pl.String)
        other = turned(rows.filter(key.is_in(list(others)))).with_columns(named)
        rows = pl.concat([rows.filter(key.is_in(as_held)), other])
    ready: SameFrame = FAMILIES[kind].ready(rows)
    return ready


def _of_ready(kind: str, turns: _Turns, analysis: Analysis, rows: pl.DataFrame) -> pl.DataFrame:
    return analysis(_ready(kind, turns, rows))


def _kind_of(named: Iterable[str], family: Family) -> str:
    kept = f"snapshot-{family}"
    others = [kept, PAIR] if family is Family.SPREAD else [kept]
    kinds = {
        next((each for each in others if key.startswith(f"{each}/")), family.value) for key in named
    }
    if len(kinds) > 1:
        one = ", or ".join(f"all of {each}" for each in (family, *(f"{o}/" for o in others)))
        raise InputError("trajectories", ", ".join(named), f"keys of one kind: {one}")
    return kinds.pop()


def _matching(pattern: str, kind: str, keys: Iterable[str]) -> list[OfLegs]:
    either = (pattern, f"{kind}/{pattern}")
    found = [stream for stream in map(Stream.parse, keys) if stream.matches(either)]
    if not found:
        raise InputError("trajectories", pattern, f"a pattern that matches a key held of {kind}")
    return [each for each in found if isinstance(each, OfLegs)]


def _parsed(key: str, family: Family) -> OfLegs:
    if key.startswith(f"snapshot-{family}/"):
        return SnapshotTrajectory.parse(key)
    one_of_own = key.startswith("funding/") and key.count(":") == 1
    if family is not Family.PRICE and key.count(":") != 2 and not one_of_own:
        every = f"'{key}:*' is every one of it" if key and ":" not in key else ""
        raise InputError("trajectory", key, "two legs: SYMBOL:BUY.market:SELL.market", advice=every)
    return Trajectory.parse(key, family)


def _none_held(store: Store, family: Family, kind: str, kinds: pl.Series) -> EmptyWindowError:
    kept = f"snapshot-{family}"
    if kind != kept and kept in kinds:
        shown = store.command("stats", family.value, f"{kept}/*")
        return EmptyWindowError(f"{store.name} holds no {kind}; `{shown}` shows those of snapshots")
    loaded_by = "--watchlist" if kind != kept else f"snapshot/{family}"
    joins = pair_advice(store, "stats", kind) if kind == Family.SPREAD else ""
    advice = joins or sync_advice(store, loaded_by, does="loads some")
    return EmptyWindowError(f"{store.name} holds no {kind} yet; {advice}")
