"""Products in pieces, against those in one piece."""

from __future__ import annotations

import numpy as np
import pytest

from toolkit.statistics.numeric.arrays import product


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (33, 7, 65), (100, 400, 513), (3, 20_000, 2), (2, 0, 3)]
)
def test_of_whole_numbers_the_pieces_give_the_same_product(shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(1)
    rows, inner, columns = shape
    first = rng.integers(0, 9, (rows, inner)).astype(float)
    second = rng.integers(0, 9, (inner, columns)).astype(float)
    assert np.array_equal(product(first, second), first @ second)
