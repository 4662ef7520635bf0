"""Few combinations in place of all, in which any two values of different axes meet."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

Cell = tuple[object, ...]
Pair = tuple[int, object, int, object]


def pairs_of(cell: Cell) -> set[Pair]:
    """Return which values meet in a cell, each with the number of its axis."""
    numbered = list(enumerate(cell))
    return {(i, a, j, b) for (i, a), (j, b) in itertools.combinations(numbered, 2)}


def all_pairs(axes: Sequence[Sequence[object]]) -> set[Pair]:
    """Return every two values of different axes."""
    return {
        (i, a, j, b)
        for (i, one), (j, other) in itertools.combinations(enumerate(axes), 2)
        for a, b in itertools.product(one, other)
    }


def spanning(axes: Sequence[Sequence[object]]) -> list[Cell]:
    """Choose cells in which every two values of different axes meet; the same every time."""
    draw, left, cells = random.Random(1), all_pairs(axes), []
    while left:
        i, a, j, b = min(left, key=repr)
        tries = []
        for _ in range(30):
            cell = [draw.choice(values) for values in axes]
            cell[i], cell[j] = a, b
            tries.append(tuple(cell))
        best = max(tries, key=lambda cell: len(pairs_of(cell) & left))
        left -= pairs_of(best)
        cells.append(best)
    return cells
