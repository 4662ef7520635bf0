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
    """Cells from ``start`` (s UTC) on, each ``step_s`` long, as runs of each stream.

    Of the last cell, what lies after ``end`` is not known yet.
    """

    start: int
    end: int
    step_s: int
    cells: int
    runs: dict[str, list[Run]]

    @property
    def step_words(self) -> str:
        """How long a cell is."""
        return _NAMES[_LENGTHS.index(self.step_s)]


def coverage_map(stretches: pl.DataFrame, shares: pl.DataFrame | None = None) -> CoverageMap | None:
    """Return the map of stretches: stream, start_ts, end_ts (s UTC), state. None without any.

    ``shares`` are their `coverage_shares`, measured here by default.

    A cell is as short as 62 of them can hold all stretches: a day for 10 to 62 days. The percents
    of a cell that is partly unknown sum to less than 100. Each state present has 1 at least.

    >>> found = coverage_map(pl.DataFrame({"stream": ["a", "a"], "start_ts": [0, 3 * 86400],
    ...     "end_ts": [3 * 86400, 3 * 86400 + 864], "state": ["held", "missing"]}))
    >>> found.step_words, found.runs
    ('4 h', {'a': [[18, 100, 0, 0, 0, 0, 0], [1, 0, 0, 0, 6, 0, 0]]})
    """
    if stretches.is_empty():
        return None
    step_s = cell_s(stretches)
    first, last = _ends(stretches)
    start, count = first // step_s, -(-last // step_s) - first // step_s
    known = coverage_shares(stretches, step_s) if shares is None else shares
    percents: dict[str, list[list[int]]] = {}
    for key, cell, *each in known.iter_rows():
        if key not in percents:
            percents[key] = [[0] * len(LedgerState)] * count
        percents[key][cell - start] = each
    runs = {key: _runs(cells) for key, cells in percents.items()}
    return CoverageMap(start * step_s, last, step_s, count, runs)


def cell_s(stretches: pl.DataFrame) -> int:
    """Return how long a cell of the map of stretches is (s)."""
    first, last = _ends(stretches)
    fitting = [length for length in _LENGTHS if -(-last // length) - first // length <= _MOST]
    return fitting[0] if fitting else _LENGTHS[-1]


def _ends(stretches: pl.DataFrame) -> tuple[int, int]:
    if stretches.is_empty():
        return 0, 0
    return int(stretches["start_ts"].to_numpy().min()), int(stretches["end_ts"].to_numpy().max())


def coverage_shares(stretches: pl.DataFrame, step_s: int) -> pl.DataFrame:
    """Return stream, cell (its start / ``step_s``) and a column of percents for each state."""
    cell_start = pl.col("cell") * step_s
    cell_s = pl.min_horizontal("end_ts", cell_start + step_s) - pl.max_horizontal(
        "start_ts", cell_start
    )
    seconds = (
        stretches.filter(pl.col("start_ts") < pl.col("end_ts"))
        .with_columns(
            cell=pl.int_ranges(pl.col("start_ts") // step_s, (pl.col("end_ts") - 1) // step_s + 1)
        )
        .explode("cell")
        .select(
            "stream",
            "cell",
            *(
                pl.when(pl.col("state") == state).then(cell_s).otherwise(0).alias(state.value)
                for state in LedgerState
            ),
        )
        .group_by("stream", "cell", maintain_order=True)
        .agg(pl.all().sum())
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
