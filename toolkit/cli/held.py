"""Trajectories that a command names, as the store holds them, and their rows in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from typing import Annotated

import polars as pl
import typer

from toolkit.cards import some
from toolkit.cli.options import (
    ClusterName,
    FxLeg,
    MaxStale,
    Multiplier,
    PlainText,
    StoredWindow,
)
from toolkit.cli.show import errors
from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval
from toolkit.market import Family, SnapshotTrajectory, Stream, Trajectory, parse_length
from toolkit.statistics.passes import Analysis, in_one_pass
from toolkit.statistics.polls import PollCount, by_polls
from toolkit.statistics.spread import turned
from toolkit.store import Store, check_known, held_trajectory, pair_advice, sync_advice
from toolkit.workspace.pairs import HeldPairs, Joining
from toolkit.workspace.passes import Function, Passes, applied, known_steps
from toolkit.workspace.screening import held_window, polled_window

_Series = Trajectory | SnapshotTrajectory
_PAIR = "pair"
_NAMES = ("--start", "--end")
_JOINING = ("--fx", "--multiplier", "--max-stale")
_AS_NAMED = Joining()


@dataclass(frozen=True, slots=True)
class Asked:
    """Trajectories of one kind and a window. ``held`` has for each the one that the store holds.

    The two differ where the store holds the pair the other way round. ``polls`` are those of series
    kept from snapshots, None for others. ``steps`` (s) are those known, by key. ``pairs`` are those
    whose prices are held, which have nothing in ``held``.
    """

    kind: str
    held: Mapping[_Series, _Series]
    window: Interval
    polls: PollCount | None = None
    steps: Mapping[str, int] = field(default_factory=dict)
    pairs: HeldPairs | None = None
    passes: Passes | None = None

    def on(self, store: Store, cluster: str | None, *, plain_text: bool) -> Asked:
        """Return the same, computed where ``--cluster`` says."""
        passes = Passes.of(store, cluster, plain_text=plain_text)
        if passes.cluster is not None and self.pairs is not None:
            raise InputError("--cluster", cluster, "with stored trajectories, not pairs of prices")
        return replace(self, passes=passes)

    def in_one_pass(self, store: Store, read: Interval, *analyses: Analysis) -> list[pl.DataFrame]:
        """Apply statistics to the rows of all of them, with a frame for each."""
        if self.passes is None or self.passes.cluster is None:
            return in_one_pass(self.groups(store, read), *analyses)
        if self._turns:
            analyses = tuple(
                partial(_of_turned, replace(self, passes=None), each) for each in analyses
            )
        keys = {held.key for held in self.held.values()}
        return self.passes.over(self.kind, read, *analyses, keys=keys)

    def analysis(self, statistic: Function) -> Analysis:
        """Return a statistic of bars as `in_one_pass` takes it, over the window."""
        return applied(statistic, self.window, step_s=self.steps)

    def measured(self, store: Store, *statistics: Function) -> list[pl.DataFrame]:
        """Apply statistics of bars to the rows of all. Of snapshots the coverage is by polls."""
        return [
            self.by_polls(found)
            for found in self.in_one_pass(store, self.window, *map(self.analysis, statistics))
        ]

    def by_polls(self, found: pl.DataFrame) -> pl.DataFrame:
        """Return results by trajectory, with their coverage by polls where they are of any."""
        found = found.sort("trajectory", maintain_order=True)
        return found if self.polls is None else by_polls(found, self.polls)

    @property
    def keys(self) -> list[str]:
        """The keys that were asked for."""
        asked = self.held if self.pairs is None else self.pairs.pairs
        return [each.key for each in asked]

    def groups(self, store: Store, read: Interval) -> Iterator[pl.DataFrame]:
        """Yield the rows of all of them with ``start <= ts < end``. See `Store.groups`."""
        if self.pairs is not None:
            yield from self.pairs.groups(read)
            return
        groups = store.groups(set(self.held.values()), read)
        yield from map(self.turned, groups) if self._turns else groups

    @property
    def _turns(self) -> list[tuple[_Series, _Series]]:
        return [(wanted, held) for wanted, held in self.held.items() if wanted != held]

    def turned(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows as they are held as those of what was asked for."""
        as_held = [wanted.key for wanted, held in self.held.items() if wanted == held]
        parts = [rows.filter(pl.col("trajectory").is_in(as_held))]
        for wanted, held in self._turns:
            parts.append(turned(rows.filter(trajectory=held.key), wanted.key))
        return pl.concat(parts)

    def name_silent(self, found: Iterable[str], asked: str) -> None:
        """Name on stderr the trajectories without a row in the window."""
        silent = sorted(set(self.keys) - set(found))
        if silent:
            errors.print(f"nothing in {asked} of {some(silent)}")


def _of_turned(asked: Asked, analysis: Analysis, rows: pl.DataFrame) -> pl.DataFrame:
    return analysis(asked.turned(rows))


SpreadKeys = Annotated[
    list[str] | None,
    typer.Argument(
        help="Keys SYMBOL:BUY.market:SELL.market, or patterns such as BTC_USDT:*. Kept from "
        "snapshots: snapshot-spread/SYMBOL:BUY.market:SELL.market, all: 'snapshot-spread/*'. Of "
        "any two prices held: pair/SYMBOL:EXCHANGE.market/SYMBOL:EXCHANGE.market."
    ),
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
        self,
        store: Store,
        family: Family,
        keys: Sequence[str] | None,
        joined: Joining = _AS_NAMED,
    ) -> Asked:
        """Find what was asked for in a store. See `asked_for`."""
        asked = asked_for(store, family, keys, self.start, self.end, joined)
        return asked.on(store, self.cluster, plain_text=self.plain_text)


def asked_for(
    store: Store,
    family: Family,
    keys: Sequence[str] | None,
    start: str | None,
    end: str | None,
    joined: Joining = _AS_NAMED,
) -> Asked:
    """Find the trajectories that were named, or all, and the window, or all that is held.

    A key with a ``*`` stands for all held ones that match. A key that begins with ``snapshot-`` and
    the family is of a series kept from snapshots. One that begins with ``pair/`` names two prices,
    which are joined as ``joined`` has it. A pair that is held the other way round is
    turned, with a word on stderr. Raises `InputError` for keys of two kinds,
    `UnknownTrajectoryError` for a key that is not held, and `EmptyWindowError` where nothing is.
    """
    asked = keys or ["*"]
    kind = _kind_of(asked, family)
    if kind == _PAIR:
        return _paired(store, asked, start, end, joined)
    for option, given in zip(_JOINING, astuple(joined), strict=True):
        if given is not None:
            raise InputError(option, given, "with keys of pairs: pair/BUY/SELL")
    named = {key: None if "*" in key else _parsed(key, family) for key in asked}
    with store.reading():
        catalogue = store.catalogue().filter(pl.col("rows") > 0)
        known = {row["stream"]: row for row in catalogue.filter(kind=kind).iter_rows(named=True)}
        if not known and not any(named.values()):
            raise _none_held(store, family, kind, catalogue["kind"])
        held: dict[_Series, _Series] = {}
        for key, wanted in named.items():
            if wanted is None:
                held |= {found: found for found in _matching(key, kind, known)}
            elif isinstance(wanted, SnapshotTrajectory):
                check_known(store, wanted)
                held[wanted] = wanted
            else:
                held[wanted] = held_trajectory(store, wanted)
        for wanted, found in held.items():
            if found.key not in known:
                raise EmptyWindowError(
                    f"{store.name} holds no rows of {found.key}; "
                    + sync_advice(store, found.key, does="asks again")
                )
            if found != wanted:
                errors.print(f"{wanted.key} is held as {found.key}: legs and signs are turned")
        rows = [known[found.key] for found in held.values()]
        by_key = known_steps(catalogue)
        steps = {each.key: by_key[of.key] for each, of in held.items() if of.key in by_key}
        if kind != family:
            period_s = rows[0]["step_s"]
            polled = polled_window(store, kind, period_s, start, end, names=_NAMES)
            return Asked(kind, held, *polled, steps)
    window = held_window(store, family, rows, start, end, names=_NAMES)
    return Asked(kind, held, window, steps=steps)


def _paired(
    store: Store, keys: Sequence[str], start: str | None, end: str | None, joined: Joining
) -> Asked:
    """Return what was asked for of pairs, whose prices are held."""
    for key in keys:
        if "*" in key:
            raise InputError("trajectories", key, "a pair's prices by their keys, without a *")
    pairs = HeldPairs.of(store, keys, joined)
    window = pairs.window(start, end, names=_NAMES)
    return Asked(_PAIR, {}, window, steps=pairs.steps, pairs=pairs)


def _kind_of(named: Iterable[str], family: Family) -> str:
    """Return of which kind keys and patterns are, which is one."""
    kept = f"snapshot-{family}"
    others = [kept, _PAIR] if family is Family.SPREAD else [kept]
    kinds = {
        next((each for each in others if key.startswith(f"{each}/")), family.value) for key in named
    }
    if len(kinds) > 1:
        one = ", or ".join(f"all of {each}" for each in (family, *(f"{o}/" for o in others)))
        raise InputError("trajectories", ", ".join(named), f"keys of one kind: {one}")
    return kinds.pop()


def _matching(pattern: str, kind: str, keys: Iterable[str]) -> list[_Series]:
    """Return the series that a pattern stands for. That of funding may lack its prefix."""
    either = (pattern, f"{kind}/{pattern}")
    found = [stream for stream in map(Stream.parse, keys) if stream.matches(either)]
    if not found:
        raise InputError("trajectories", pattern, f"a pattern that matches a key held of {kind}")
    return [each for each in found if isinstance(each, Trajectory | SnapshotTrajectory)]


def _parsed(key: str, family: Family) -> _Series:
    if key.startswith(f"snapshot-{family}/"):
        return SnapshotTrajectory.parse(key)
    one_of_own = key.startswith("funding/") and key.count(":") == 1
    if key.count(":") != 2 and not one_of_own:
        every = f"'{key}:*' is every one of it" if key and ":" not in key else ""
        raise InputError("trajectory", key, "two legs: SYMBOL:BUY.market:SELL.market", advice=every)
    return Trajectory.parse(key, family)


def _none_held(store: Store, family: Family, kind: str, kinds: pl.Series) -> EmptyWindowError:
    """Return the error where nothing is held of a kind, with what is held or loads some."""
    kept = f"snapshot-{family}"
    if kind != kept and kept in kinds:
        shown = store.command("stats", family.value, f"{kept}/*")
        return EmptyWindowError(f"{store.name} holds no {kind}; `{shown}` shows those of snapshots")
    loaded_by = "--watchlist" if kind != kept else f"snapshot/{family}"
    joins = pair_advice(store, "stats", kind) if kind == Family.SPREAD else ""
    advice = joins or sync_advice(store, loaded_by, does="loads some")
    return EmptyWindowError(f"{store.name} holds no {kind} yet; {advice}")
