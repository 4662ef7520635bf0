"""Products of matrices that start no threads.

The linear algebra of numpy makes a large product in a thread per processor, which wait for each
other by counting. On a machine with other work that takes several times the processor time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_IN_ONE_THREAD = 2**18
"""Multiplications of one product for which the linear algebra of numpy starts no thread."""
_ROWS = 32


def product(first: Floats, second: Floats) -> Floats:
    """Multiply two matrices a piece of the result at a time.

    Of whole numbers the result is exact, and so the same as in one piece.

    >>> product(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])).tolist()
    [[11.0]]
    """
    found = np.empty((first.shape[0], second.shape[1]))
    columns = max(1, _IN_ONE_THREAD // (_ROWS * max(1, first.shape[1])))
    for row in range(0, first.shape[0], _ROWS):
        for column in range(0, second.shape[1], columns):
            piece = slice(row, row + _ROWS), slice(column, column + columns)
            np.matmul(first[piece[0]], second[:, piece[1]], out=found[piece])
    return found
