"""Trajectories that a command names, as the store holds them, and their rows in one look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from toolkit.cards import some
from toolkit.cli.options import window
from toolkit.cli.show import errors
from toolkit.errors import EmptyWindowError, InputError
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory, format_ts
from toolkit.statistics.funding import settled_window
from toolkit.statistics.spread import turned
from toolkit.store import Store, held_trajectory, service_clock


@dataclass(frozen=True, slots=True)
class Asked:
    """Trajectories of one family and a window. ``held`` has for each the one that the store holds.

    The two differ where the store holds the pair the other way round.
    """

    family: Family
    held: Mapping[Trajectory, Trajectory]
    window: Interval

    def rows(self, store: Store, read: Interval) -> pl.DataFrame:
        """Return the rows of all of them with ``start <= ts < end``. See `Store.family_series`."""
        rows = store.family_series(self.family, read, set(self.held.values()))
        turns = {wanted: held for wanted, held in self.held.items() if wanted != held}
        if not turns:
            return rows
        as_held = [wanted.key for wanted in self.held if wanted not in turns]
        parts = [rows.filter(pl.col("trajectory").is_in(as_held))]
        for wanted, held in turns.items():
            parts.append(turned(rows.filter(trajectory=held.key), wanted.key))
        return pl.concat(parts)

    def name_silent(self, found: Iterable[str], asked: str) -> None:
        """Name on stderr the trajectories without a row in the window."""
        silent = sorted({wanted.key for wanted in self.held} - set(found))
        if silent:
            errors.print(f"nothing in {asked} of {some(silent)}")


def asked_for(
    store: Store, family: Family, keys: Sequence[str] | None, start: str | None, end: str | None
) -> Asked:
    """Find the trajectories that were named, or all, and the window, or all that is held.

    A pair that is held the other way round is turned, with a word on stderr. Raises
    `UnknownTrajectoryError` for a key that is not held, and `EmptyWindowError` where nothing is.
    """
    named = [Trajectory.parse(key, _two_legs(key, family)) for key in keys or ()]
    with store.reading():
        catalogue = store.catalogue().filter(pl.col("rows") > 0, kind=family.value)
        known = {row["stream"]: row for row in catalogue.iter_rows(named=True)}
        held = {wanted: held_trajectory(store, wanted) for wanted in named}
    if not (known or held):
        loads_some = store.command("sync", "--watchlist")
        raise EmptyWindowError(f"{store.path} holds no {family} yet; `{loads_some}` loads some")
    held = held or {t: t for t in (Trajectory.parse(key, family) for key in known)}
    for wanted, found in held.items():
        if found.key not in known:
            raise EmptyWindowError(
                f"{store.path} holds no rows of {found.key}; "
                f"`{store.command('sync', found.key)}` asks again"
            )
        if found != wanted:
            errors.print(f"{wanted.key} is held as {found.key}: legs and signs are turned")
    rows = [known[found.key] for found in held.values()]
    return Asked(family, held, _window(store, family, rows, start, end))


def _window(
    store: Store, family: Family, rows: list[dict[str, Any]], start: str | None, end: str | None
) -> Interval:
    """Return the window asked for. One of settlements ends where the last sync did."""
    all_held = [_all_of(family, row) for row in rows]
    everything = Interval(min(held.start for held in all_held), max(held.end for held in all_held))
    asked = window(start, end, now=lambda: service_clock(store), default=lambda: everything)
    if family is not Family.FUNDING:
        return asked
    known_until = max(row["served_at"] for row in rows)
    if known_until <= asked.start:
        key = rows[0]["stream"]
        raise EmptyWindowError(
            f"{store.path} knows nothing of {family} after {format_ts(known_until)}; "
            f"`{store.command('sync', key)}` asks for more"
        )
    return Interval(asked.start, min(asked.end, known_until))


def _all_of(family: Family, row: dict[str, Any]) -> Interval:
    """Return the window of all rows of a stream of the catalogue."""
    if family is Family.FUNDING:
        return settled_window(row["first_ts"], row["last_ts"], row["step_s"])
    return Interval(row["first_ts"], row["last_ts"] + (row["step_s"] or 1))


def _two_legs(key: str, family: Family) -> Family:
    if key.count(":") != 2:
        raise InputError("trajectory", key, "two legs: SYMBOL:BUY.market:SELL.market")
    return family
