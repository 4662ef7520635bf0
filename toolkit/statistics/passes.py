"""Several statistics in one pass over the rows, some whole trajectories at a time.

Parts of whole trajectories give the same result to the last bit as all rows at once. Statistics of
one column and window share its observations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext

import polars as pl

from toolkit.errors import InputError
from toolkit.statistics.core.contract import checked_frame
from toolkit.statistics.core.observations import shared

Analysis = Callable[[pl.DataFrame], pl.DataFrame]
"""A statistic of rows with everything else that it takes: rows of trajectories to its own rows."""

__all__ = ["Analysis", "in_one_pass"]


def __dir__() -> list[str]:
    return __all__


def in_one_pass(groups: Iterable[pl.DataFrame], *analyses: Analysis) -> list[pl.DataFrame]:
    """Apply statistics to one group of trajectories after another, and join the results.

    ``groups`` are frames of whole trajectories, such as `toolkit.store.Store.groups` yields: at
    least one, which may be empty, and no trajectory in two of them. Returns one frame per analysis.
    Give each statistic its window: rows know only that of their own group. Raises `InputError` for
    no group or no frame, and whatever the analyses raise.

    >>> from toolkit.statistics import spread
    >>> groups = [
    ...     pl.DataFrame({"trajectory": [key] * 2, "ts": [0, 60], "spread_bps": [40.0, 60.0]})
    ...     for key in "ab"
    ... ]
    >>> summaries, episodes = in_one_pass(
    ...     groups,
    ...     lambda rows: spread.summary(rows, 0, 120, column="spread_bps"),
    ...     lambda rows: spread.episodes(rows, 0, 120, enter_bps=50, column="spread_bps"),
    ... )
    >>> summaries["spread_mean_bps"].to_list(), episodes["start_ts"].to_list()
    ([50.0, 50.0], [60, 60])
    """
    found: list[list[pl.DataFrame]] = [[] for _ in analyses]
    for rows in groups:
        checked_frame(rows, "groups")
        with shared(rows) if len(analyses) > 1 else nullcontext():
            for results, analysis in zip(found, analyses, strict=True):
                results.append(analysis(rows))
        del rows
    if not all(found):
        raise InputError("groups", "nothing", "one or more frames of whole trajectories")
    return [pl.concat(results) for results in found]
