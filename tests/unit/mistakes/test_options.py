"""Options that make no sense: of charts, statistics, fees, series, loads and clients."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from toolkit.errors import InputError, RailError
from toolkit.statistics.fees import FeeModel, net_edge
from toolkit.workspace import Workspace

from .conftest import PAIR, PRICE
from .judged import Row, fault

MISTAKES: list[Row] = [
    ("pair.plot(theme='blue')", InputError, ("theme: 'blue'", "light, dark")),
    ("pair.plot(theme='Dark')", InputError, ("'Dark'", "nearest: dark")),
    ("pair.plot(timezone='Mars')", InputError, ("timezone: 'Mars'", "Europe/London")),
    ("pair.plot(timezone='europe/london')", InputError, ("timezone", "Europe/London")),
    ("price.pandas('Mars')", InputError, ("timezone: 'Mars'", "Europe/London")),
    ("pair.plot(points=0)", InputError, ("points: 0",)),
    ("pair.plot(points=99.5)", InputError, ("points: 99.5",)),
    ("pair.plot(step_s=0)", InputError, ("'step_s'", "timezone, theme, points")),
    ("pair.plot(thresholds_bps=25)", InputError, ("thresholds_bps: 25", "[25]")),
    ("pair.plot(thresholds_bps=['25'])", InputError, ("thresholds_bps: '25'", "numbers")),
    ("pair.plot(thresholds_bps=[float('nan')])", InputError, ("thresholds_bps", "finite")),
    ("pair.plot(colour='red')", InputError, ("'colour'", "theme", "timezone")),
    ("price.plot(events=events)", InputError, ("'events'", "points")),
    ("events.plot(limits=5)", InputError, ("'limits'", "nearest: limit")),
    ("events.plot(limit=0)", InputError, ("limit: 0",)),
    ("pair.episodes(10, leave=5)", InputError, ("'leave'", "nearest: leave_bps")),
    ("pair.time_above(10, colum='spread_bps')", InputError, ("'colum'", "nearest: column")),
    ("pair.net_edge(example, notional=1e3, exit=5)", InputError, ("'exit'", "nearest: exit_bps")),
    ("rates.summary(coverage=0.5)", InputError, ("'coverage'", "min_coverage")),
    ("rates.carry(min_coverage=95)", InputError, ("min_coverage: 95", "0 to 1")),
    ("rates.summary(min_coverage=float('nan'))", InputError, ("min_coverage", "0 to 1")),
    ("pair.plot(trajectory=PRICE)", InputError, ("'trajectory'", "events, logs")),
    ("charts.spread_chart(frame, source=None)", InputError,
     ("source: nothing is given", "tk.Source")),
    ("charts.in_unit(pl.DataFrame({'rate': [0.1], 'interval_hours': [8]}), 'bps')", InputError,
     ("unit: 'bps'", "% per 8 h")),
    ("charts.in_unit(pl.DataFrame({'rate': [0.1], 'interval_hours': [8]}), ['%'])", InputError,
     ("unit", "% per 8 h")),
    ("charts.downsample(price.df, 'prise')", InputError, ("'prise'", "nearest: price")),
    # thresholds
    ("pair.episodes(-5)", InputError, ("enter_bps: -5", "above 0")),
    ("pair.episodes('10 bps')", InputError, ("enter_bps: '10 bps'", "above 0")),
    ("pair.episodes(float('nan'))", InputError, ("enter_bps: nan",)),
    ("pair.episodes(10, leave_bps=20)", InputError, ("leave_bps: 20", "at most")),
    ("pair.episodes(10, merge_gap_s='5q')", InputError, ("merge_gap_s: '5q'", "such as")),
    ("pair.episodes(10, min_duration_s=1.5)", InputError, ("min_duration_s: 1.5", "seconds")),
    ("pair.time_above(0)", InputError, ("threshold_bps: 0", "above 0")),
    ("spread.rolling_z(frame, window_s='1d')", InputError, ("window_s: '1d'",)),
    ("spread.summary(frame, step_s=60.0)", InputError, ("step_s: 60.0", "whole")),
    ("spread.summary(frame, max_stale_s=0)", InputError, ("max_stale_s: 0",)),
    ("pair.resample('7m')", InputError, ("every: '7m'", "divides a day")),
    ("pair.resample('5 minutes')", InputError, ("every: '5 minutes'", "5m")),
    # fees
    ("pair.net_edge(10.0, notional=1e3)", InputError, ("fees: 10.0", "FeeModel")),
    ("pair.net_edge('fees.toml', notional=1e3)",
     InputError, ("fees: 'fees.toml'", "FeeModel.read")),
    ("pair.net_edge({'AURORA': 5}, notional=1e3)", InputError, ("fees", "FeeModel")),
    ("pair.net_edge(example, notional=1e3)",
     InputError, ("AURORA.spot", "CORONA.futures", "[[fee]]")),
    ("pair.net_edge(lacking, notional=1e3)", InputError, ("'mine'", "CORONA.futures")),
    ("lacking and pair.net_edge(lacking, notional=1e3, style='maker')", InputError,
     ("maker_bps of AURORA.spot",)),
    ("pair.net_edge(lacking, notional=0)", InputError, ("notional: 0", "above 0")),
    ("pair.net_edge(lacking, notional=1e3, style='takr')",
     InputError, ("'takr'", "nearest: taker")),
    ("pair.net_edge(lacking, notional=1e3, exit_bps=None)",
     InputError, ("exit_bps: nothing is given",)),
    ("fees.parse('name = 1')", InputError, ("a name",)),
    ("fees.parse('name = ')", InputError, ("fees", "TOML")),
    ("fees.parse(5)", InputError, ("fees: 5", "TOML")),
    ("fees.parse('name = \"a\"\\n[[fee]]\\nexchange = \"X\"\\ntaker = 5')",
     InputError, ("'taker'", "nearest: taker_bps")),
    ("fees.parse('name = \"a\"\\n[[fee]]\\nexchange = \"X\"\\ntaker_bps = 5')", InputError,
     ("valid_from",)),
    ("example.round_trip_bps(PRICE, 1e3, 'prefunded', at=NOW)", InputError,
     ("style: 'prefunded'", "taker, maker", "has one leg")),
    ("example.round_trip_bps(PAIR, 1e3, at=NOW * 1_000)", InputError, ("at:", "milliseconds")),
    # loads and clients
    ("rail.sync(PRICE, '1h', workers=0)", InputError, ("workers: 0",)),
    ("rail.sync(PRICE, '1h', workers='4')", InputError, ("workers: '4'",)),
    ("rail.sync(PRICE, '1h', workers=10**6)", InputError, ("workers: 1000000",)),
    ("Client(service, 'demo-pro', limits=30)", InputError, ("limits: 30", "Limits")),
    ("tk.AsyncClient(service, 'demo-pro', limits='1 MB')", InputError, ("limits: '1 MB'",)),
    ("Client(service, 'demo-pro', retries=3)", InputError, ("retries: 3", "RetryPolicy")),
    ("tk.Store('x.duckdb', wait_s='10')", InputError, ("wait_s: '10'",)),
    ("rail.store.coverage(price.stream, price.window, tolerance_s='2m')", InputError,
     ("tolerance_s: '2m'",)),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "kind", "words"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_wrong_option_is_one_line_that_names_those_allowed(
    ground: dict[str, Any], typed: str, kind: type[RailError], words: tuple[str, ...]
) -> None:
    assert fault(typed, ground, kind, words) == ""


def test_numbers_of_numpy_are_as_good_as_pythons(rail: Workspace) -> None:
    pair = rail.spread(PAIR)
    assert pair.episodes(np.float64(10)).equals(pair.episodes(10))
    assert pair.episodes(np.int64(10)).equals(pair.episodes(10))
    assert pair.plot(thresholds_bps=np.array([10.0])).data[-1].name == "threshold +10 bps"
    step = rail.prices(PRICE)
    assert step.plot(points=np.int64(50)).to_json() == step.plot(points=50).to_json()


def test_a_table_that_lacks_one_of_several_pairs_leaves_that_pair_null(rail: Workspace) -> None:
    frame = rail.spread(PAIR).df
    other = frame.with_columns(trajectory=pl.lit(PAIR.replace("CORONA", "X")))
    both = frame.vstack(other)
    lines = [
        f'[[fee]]\nexchange = "{name}"\nvalid_from = 2017-01-01\ntaker_bps = 5\nslippage_bps = 1'
        for name in ("AURORA", "CORONA")
    ]
    fees = FeeModel.parse("\n".join(['name = "mine"', *lines]))
    found = net_edge(both, fees, notional=1e3)
    assert found.filter(trajectory=PAIR)["cost_reason"].null_count() == len(frame)
    assert found["cost_reason"].drop_nulls().unique().to_list() == ["unknown_fee"]


def test_an_unknown_attribute_is_pythons_own(rail: Workspace) -> None:
    for thing in (rail, rail.spread(PAIR), rail.store):
        with pytest.raises(AttributeError, match="no attribute 'sumary'"):
            thing.sumary  # noqa: B018 - what is asked for
