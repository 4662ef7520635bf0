"""The map of coverage: of each stream, cell by cell of time, the share of each state."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from toolkit.tables import LedgerState

_DAY_S = 86_400
_MOST = 62
_LENGTHS = (300, 3_600, 14_400, _DAY_S, 2 * _DAY_S, 7 * _DAY_S, 28 * _DAY_S, 364 * _DAY_S)
_NAMES = ("5 min", "1 h", "4 h", "1 day", "2 days", "1 week", "4 weeks", "52 weeks")

Run = list[int]
"""A number of equal cells, and the percent of each `LedgerState` in each of them."""


class CoverageMap(NamedTuple):
    """Cells from ``start`` (s UTC) on, each ``step_s`` long, as runs of each stream."""

    start: int
    step_s: int
    cells: int
    runs: dict[str, list[Run]]

    @property
    def step_words(self) -> str:
        """How long a cell is."""
        return _NAMES[_LENGTHS.index(self.step_s)]


def coverage_map(stretches: pl.DataFrame) -> CoverageMap | None:
    """Return the map of stretches: stream, start_ts, end_ts (s UTC), state. None without any.

    A cell is as short as 62 of them can hold all stretches: of 10 to 62 days it is a day. Where a
    part of a cell is not known, its percents sum to less than 100. A state of which there is
    something has 1 percent at least.

    >>> found = coverage_map(pl.DataFrame({"stream": ["a", "a"], "start_ts": [0, 3 * 86400],
    ...     "end_ts": [3 * 86400, 3 * 86400 + 864], "state": ["held", "missing"]}))
    >>> found.step_words, found.runs
    ('4 h', {'a': [[18, 100, 0, 0, 0, 0], [1, 0, 0, 0, 6, 0]]})
    """
    if stretches.is_empty():
        return None
    first = int(stretches["start_ts"].to_numpy().min())
    last = int(stretches["end_ts"].to_numpy().max())
    fitting = [length for length in _LENGTHS if -(-last // length) - first // length <= _MOST]
    step_s = fitting[0] if fitting else _LENGTHS[-1]
    start = first // step_s * step_s
    count = -(-(last - start) // step_s)
    shares = _shares(stretches, start, step_s)
    percents: dict[str, list[list[int]]] = {}
    for key, cell, *each in shares.iter_rows():
        if key not in percents:
            percents[key] = [[0] * len(LedgerState)] * count
        percents[key][cell] = each
    runs = {key: _runs(cells) for key, cells in percents.items()}
    return CoverageMap(start, step_s, count, runs)


def _shares(stretches: pl.DataFrame, start: int, step_s: int) -> pl.DataFrame:
    """Return stream, cell and a column of percents for each state."""
    begins, ends = pl.col("start_ts") - start, pl.col("end_ts") - start
    cell_s = pl.min_horizontal(ends, (pl.col("cell") + 1) * step_s) - pl.max_horizontal(
        begins, pl.col("cell") * step_s
    )
    seconds = (
        stretches.filter(pl.col("start_ts") < pl.col("end_ts"))
        .with_columns(cell=pl.int_ranges(begins // step_s, (ends - 1) // step_s + 1))
        .explode("cell")
        .with_columns(cell_s=cell_s)
        .group_by("stream", "cell", maintain_order=True)
        .agg(
            pl.col("cell_s").filter(pl.col("state") == state).sum().alias(state.value)
            for state in LedgerState
        )
    )
    percents = {state.value: 100 * pl.col(state.value) / step_s for state in LedgerState}
    whole = [
        pl.when(share > 0).then(share.round().clip(1, 100)).otherwise(0).cast(pl.Int64).alias(name)
        for name, share in percents.items()
    ]
    return seconds.select("stream", "cell", *whole)


def _runs(percents: list[list[int]]) -> list[Run]:
    runs: list[Run] = []
    for each in percents:
        if runs and runs[-1][1:] == each:
            runs[-1][0] += 1
        else:
            runs.append([1, *each])
    return runs
