"""Selections of the trajectories that a command names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple

from toolkit.cards import some
from toolkit.cli.show import errors
from toolkit.errors import InputError
from toolkit.market import Family
from toolkit.workspace.pairs import Joining
from toolkit.workspace.passes import Passes
from toolkit.workspace.selection import Selection

_JOINING = ("--fx", "--multiplier", "--max-stale")
_AS_NAMED = Joining()


Window = tuple[str | None, str | None]
"""The start and the end of a window, as typed."""


def selected(
    passes: Passes,
    family: Family,
    keys: Sequence[str] | None,
    window: Window,
    joined: Joining = _AS_NAMED,
) -> Selection:
    """Return a `Selection`, and name on stderr the pairs that are turned."""
    if not any(key.startswith("pair/") for key in keys or ()):
        for option, given in zip(_JOINING, astuple(joined), strict=True):
            if given is not None:
                raise InputError(option, given, "with keys of pairs: pair/BUY/SELL")
    names = ("--start", "--end")
    asked = Selection.of(passes, family, keys, *window, joining=joined, names=names)
    for words in asked.turned:
        errors.print(words)
    return asked


def name_silent(asked: Selection, found: Iterable[str]) -> None:
    """Name on stderr the trajectories without a row. Raises `EmptyWindowError` if all are."""
    if silent := asked.silent(found):
        errors.print(f"nothing in {asked.stretch} of {some(silent)}")
