"""A task has what another process needs, and says what failed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import polars as pl
import pytest

from benchmarks._walks import START, key
from toolkit.cluster.task import Software, Task, packed
from toolkit.errors import ClusterError
from toolkit.statistics import spread
from toolkit.store.publish import PublishedRows

from .conftest import END
from .running import refusing


def task(archive: Path, function: partial[pl.DataFrame], end: int = END) -> Task:
    """The task of the first part."""
    rows = PublishedRows.of(str(archive), "spread", (START, end))
    return Task.of(rows.parts[0], *packed([function]), Software.here())


def summary(end: int = END) -> partial[pl.DataFrame]:
    return partial(spread.summary, start=START, end=end)


def test_a_result_is_known_by_data_function_parameters_and_software(archive: Path) -> None:
    one = task(archive, summary())
    assert one.key == task(archive, summary()).key
    others = [
        task(archive, summary(END - 60)),
        task(archive, summary(), END - 60),
        task(archive, partial(spread.episodes, start=START, end=END, enter_bps=1.0)),
        Task.of(one.part, *packed([summary()]), Software("3.0", "2", "x")),
    ]
    assert len({one.key, *(each.key for each in others)}) == 5


def test_the_trajectory_that_fails_is_named(archive: Path) -> None:
    broken = partial(refusing, start=START, end=END, key=key(7))
    with pytest.raises(ClusterError) as failed:
        task(archive, broken).run()
    assert str(failed.value) == f"{key(7)} failed: ArithmeticError: a level below 0"
    assert failed.value.streams == (key(7),)


def test_a_worker_of_other_software_is_refused(archive: Path) -> None:
    one = task(archive, summary())
    other = Task(one.part, one.functions, one.software._replace(polars="1.0"), one.key)
    with pytest.raises(ClusterError, match=r"has polars \S+, the caller 1\.0; install the same"):
        other.run()
