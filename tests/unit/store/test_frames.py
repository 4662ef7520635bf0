"""What a query answers becomes a frame without pyarrow, and without a word at the end."""

from __future__ import annotations

import subprocess
import sys

import duckdb
import pytest

from toolkit.store.reading.frames import frame_of

PROGRAM = """
import sys, duckdb
from toolkit.store.reading.frames import frame_of
print(frame_of(duckdb.connect(), "SELECT 1 AS one").rows(), "pyarrow" in sys.modules)
"""


def test_a_query_is_read_without_pyarrow_and_leaves_nothing_behind() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("[(1,)] False\n", "")


@pytest.mark.parametrize("rows", [1, 1_000_000])
def test_an_error_of_a_query_is_that_of_duckdb_also_midway_through_its_rows(rows: int) -> None:
    query = f"SELECT CASE x WHEN {rows - 1} THEN error('boom') END AS a FROM range({rows}) t(x)"
    with duckdb.connect() as connection, pytest.raises(duckdb.InvalidInputException, match="boom"):
        frame_of(connection, query)
