"""Arrays of numbers, and products of matrices that start no threads.

numpy's threads wait for each other by spinning, which on a busy machine takes several times the
processor time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Waves = npt.NDArray[np.complex128]

_IN_ONE_THREAD = 2**18
"""The most multiplications for which numpy starts no thread."""
_ROWS = 32


def product(first: Floats, second: Floats) -> Floats:
    """Multiply two matrices (whole numbers exactly), one piece of the result at a time."""
    found = np.empty((first.shape[0], second.shape[1]))
    columns = max(1, _IN_ONE_THREAD // (_ROWS * max(1, first.shape[1])))
    for row in range(0, first.shape[0], _ROWS):
        for column in range(0, second.shape[1], columns):
            piece = slice(row, row + _ROWS), slice(column, column + columns)
            np.matmul(first[piece[0]], second[:, piece[1]], out=found[piece])
    return found
