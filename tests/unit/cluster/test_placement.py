"""Screens and statistics on processes are those of this one, to the last bit."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import toolkit as tk
from benchmarks._walks import START, key
from toolkit.cluster import Cluster, PartsDone
from toolkit.errors import ClusterError, InputError
from toolkit.statistics import funding, spread
from toolkit.store import Store
from toolkit.store.publish import PublishedRows
from toolkit.workspace import Workspace

from .conftest import END, SPREADS
from .running import deadly, noted, notes, refusing

FEES = """name = "test"
[[fee]]
exchange = "*"
market = "*"
maker_bps = 1.0
taker_bps = 5.0
"""


@pytest.mark.slow
def test_a_pool_gives_what_this_process_gives(rail: Workspace) -> None:
    for options in ({}, {"family": "funding"}):
        assert rail.screen(**options, cluster=2).equals(rail.screen(**options))
    found = rail.measure(spread.episodes, enter_bps=1.0, cluster="2")
    assert found.height > 0
    assert found.equals(rail.measure(spread.episodes, enter_bps=1.0))
    settled = {"family": "funding", "cluster": 1}
    assert rail.measure(funding.summary, **settled).equals(
        rail.measure(funding.summary, family="funding")
    )


def test_streams_and_a_window_are_those_that_were_named(rail: Workspace) -> None:
    named = [key(3), key(5)]
    window = (START + 600, START + 6_000)
    found = rail.measure(spread.summary, *window, streams=named, cluster=1)
    assert found["trajectory"].to_list() == named
    assert found.equals(rail.measure(spread.summary, *window, streams=named))
    assert set(found["window_end"]) == {window[1]}


def test_a_statistic_that_has_a_step_of_its_own_keeps_it(rail: Workspace) -> None:
    assert rail.measure(spread.rolling_z_summary, window_s=600).height == SPREADS


@pytest.mark.slow
def test_every_pair_of_spreads_is_correlated_in_two_steps_by_the_example_of_the_page(
    rail: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "scale.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"(?ms)^```python\n(# hourly\.py\n.*?)^```$", page)
    module, _, here = example.partition("# here\n")
    (tmp_path / "hourly.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    names = {"rail": rail}
    exec(here.replace('cluster="tls://scheduler:8786"', "cluster=2"), names)
    rows = rail.store.scan("spread").collect().to_pandas()
    rows["log_bps"], rows["hour"] = 1e4 * np.log(rows.sell_price / rows.buy_price), rows.ts // 3600
    hours = rows.pivot_table("log_bps", "hour", "trajectory", aggfunc="mean")[
        names["correlated"].columns
    ]
    assert names["correlated"].width == SPREADS
    assert np.allclose(names["correlated"], hours.dropna().corr(), rtol=0, atol=1e-9)


def test_what_is_kept_is_not_computed_again(archive: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    function = partial(noted, start=START, end=END, log=str(log), pause_s=0.0)
    seen: list[PartsDone] = []
    cluster = Cluster(1, tmp_path / "results", progress=seen.append)
    rows = PublishedRows.of(str(archive), "spread", (START, END), rows=1_200)
    assert len(rows.parts) == 6
    first = cluster.in_one_pass(rows, function)[0]
    assert [(each.done, each.of) for each in seen] == [(n, 6) for n in range(7)]
    assert len(notes(log)) == 6
    assert cluster.in_one_pass(rows, function)[0].equals(first)
    assert len(notes(log)) == 6


@pytest.mark.slow
def test_what_was_done_before_a_failure_is_kept(archive: Path, tmp_path: Path) -> None:
    rows = PublishedRows.of(str(archive), "spread", (START, END), rows=1_200)
    cluster = Cluster(1, tmp_path / "results")
    broken = partial(refusing, start=START, end=END, key=key(11))
    with pytest.raises(ClusterError, match="5 of 6 parts are done and kept, the same call") as one:
        cluster.in_one_pass(rows, broken)
    assert one.value.streams == (key(11),)
    with pytest.raises(ClusterError, match="a process of the pool was killed"):
        cluster.in_one_pass(rows, deadly)


def test_what_is_no_cluster_is_refused(rail: Workspace) -> None:
    for where in ("remote", "tcp:/x", 0, -1, True, 1.5, "udp://h:1"):
        with pytest.raises(
            InputError, match=f"cluster: {where!r} is not allowed; allowed: a number of pro"
        ):
            rail.screen(cluster=where)


def test_a_cluster_needs_published_data_as_it_is(rail: Workspace, archive: Path) -> None:
    plain = Store(archive.parent / "rail.duckdb")
    with tk.open(plain.path) as unpublished, pytest.raises(InputError, match="store publish arch"):
        unpublished.screen(cluster=2)
    with pytest.raises(InputError, match="an older publication"):
        rail.as_of("2026-01-01").screen(cluster=2)
    with pytest.raises(InputError, match="not pairs"):
        rail.screen(pairs=["pair/A_B:X.spot/A_B:Y.spot"], cluster=2)


def test_what_cannot_be_measured_is_refused(rail: Workspace) -> None:
    with pytest.raises(InputError, match="family: 'events'"):
        rail.measure(spread.summary, family="events")
    with pytest.raises(InputError, match=r"A_B:X\.spot:Y\.spot is not held by"):
        rail.measure(spread.summary, streams="A_B:X.spot:Y.spot")
    for function in (lambda *rows: rows[0], partial(lambda *rows: rows[0])):
        with pytest.raises(InputError, match="functions of a module that the workers can import"):
            rail.measure(function, cluster=1)
