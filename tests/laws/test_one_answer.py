"""One question has one answer: a series, `rail.measure`, a page, a report and a command agree.

The rows are the same to the bit, and so `params_hash` is. The questions are the analyses that are
declared. Whatever else a series returns or `rail stats` and `rail events` print is, with the
reason, in `ELSEWHERE`. What needs the store is slow.
"""

from __future__ import annotations

import functools
import inspect
import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest

from toolkit.analyses import Analysis, analyses
from toolkit.charts.view import subject_of
from toolkit.cli.analyses import stats as stats_app
from toolkit.cli.events import by_hand
from toolkit.client import Client
from toolkit.dashboard.pages.trajectory.page import with_pair
from toolkit.dashboard.reading import measure_each, read_held, read_rows, selected
from toolkit.intervals import Interval
from toolkit.market import Family, Pair, SnapshotLog, Trajectory, format_ts
from toolkit.reports.answering import answered, result_hash
from toolkit.reports.recipe import Part
from toolkit.series import (
    EventSeries,
    FundingSeries,
    PriceSeries,
    RateSeries,
    SnapshotSeries,
    SpreadSeries,
    own_series,
)
from toolkit.series.base import bound_to
from toolkit.service import Clock, Config, Simulated, running
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.fees.fee_table import example_text
from toolkit.store import Batch, Edge, LoadOrigin, Snapshot, Store, StoreWriter
from toolkit.store.file.engine import version_of
from toolkit.tables import ROWS
from toolkit.workspace import Workspace

NOW = 1_793_750_400
WINDOW = Interval(NOW - 3 * 3_600, NOW)
SETTLED = Interval(NOW - 2 * 86_400, NOW)
WEEKS = Interval(NOW - 21 * 86_400, NOW)
SYMBOL, BUY, SELL = "PEPE_USDT", "DEX-SOLARIS.dex", "DEX-LUNARIS.dex"
HELD = f"{SYMBOL}:{BUY}:{SELL}"
TURNED = f"{SYMBOL}:{SELL}:{BUY}"
SPARSE = "ETH_USDT:AURORA.spot:BOREAS.spot"
"""Of each bar of two one is absent in the window, so that the rows alone show a longer step."""
KEPT = f"snapshot-spread/{SYMBOL}:AURORA.spot:BOREAS.spot"
PAIRED = Pair.of(f"{SYMBOL}:{BUY}", f"{SYMBOL}:{SELL}").key
RATES = "funding/BTC_USDT:AURORA.futures:CORONA.futures"
SENT = "funding/ETH_USDT:A.futures:B.futures"
"""The service sends its differential alone, without the rates of the legs."""
VENUES = tuple(f"funding/BTC_USDT:AURORA.futures:{leg}.futures" for leg in ("BOREAS", "CORONA"))
RATE = "snapshot-funding/BTC_USDT:A.futures"
TABLE = example_text(("AURORA", "BOREAS", "CORONA", "DEX-SOLARIS", "DEX-LUNARIS"))
FEES = FeeModel.parse(TABLE)
KINDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "spread": ((SPARSE, HELD, TURNED), (KEPT,), (PAIRED,)),
    "funding": ((RATES, SENT),),
    "rates": ((RATE,),),
    "price": ((f"{SYMBOL}:{BUY}",),),
}
"""The keys of each family, by what a command takes at a time."""
EVENTS = "events/spread"
AROUND = {"values", "spreads"}
"""What a method of an event log takes of `rail.around`, and the command reads."""
COMMANDS = {"rates.summary": "funding"}
"""The command of an analysis of rates in force is that of settlements."""
DECLARED = [each for family in KINDS for each in bound_to(cast("Any", family))]
QUESTIONS = [
    (analysis, keys, costs)
    for analysis in DECLARED
    for keys in KINDS[analysis.family]
    for costs in ([True] if analysis.needs_fees else [False, True] if analysis.net else [False])
]


APART = {
    "events.audit": "the command judges a log by all trajectories held",
    "events.cooccurrence": "of several logs, where a series is of one",
    "events.follow_through": "of prices, which spread events have none of",
}
OF_EVENTS = [each for each in bound_to("events") if each.command and each.result not in APART]

_PART = "some columns of `summary`"
_LISTED = "rows of the series itself, of which no command prints a table"
ELSEWHERE = {
    "coverage": _PART,
    "quantiles": _PART,
    "gaps": _LISTED,
    "lifecycles": _LISTED,
    "detections": _LISTED,
    "PriceSeries.hayashi_yoshida": "of two prices, in commands the legs of a spread",
    "SnapshotSeries.items": _LISTED,
    "events channels": "of the ways by which a store's documents came",
    "events open": "asks the service, and reads no store",
}

OF = (SpreadSeries, FundingSeries, RateSeries, PriceSeries, EventSeries, SnapshotSeries)
APPS = {"stats": stats_app, "events": by_hand}


def test_each_statistic_of_a_series_is_declared_or_said_to_be_elsewhere() -> None:
    methods = {
        (of.__name__, name)
        for of in OF
        for name, method in inspect.getmembers(of, inspect.isfunction)
        if hasattr(method, "options")
        and inspect.signature(method).return_annotation == "pl.DataFrame"
    }
    names = {name for of, method in methods for name in (method, f"{of}.{method}")}
    lacking = {
        f"{of}.{name}"
        for of, name in methods
        if name not in ELSEWHERE and f"{of}.{name}" not in ELSEWHERE
    }
    said = {name for name in ELSEWHERE if " " not in name}
    assert (lacking, said - names) == (set(), set())


def test_each_command_is_declared_or_said_to_be_elsewhere() -> None:
    commands = {
        f"{group} {command.name}"
        for group, app in APPS.items()
        for command in app.registered_commands
    }
    assert commands == {name for name in ELSEWHERE if " " in name}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A SIMULATED market, and of the same source a sparse spread, a snapshot and a differential."""
    held = Store(tmp_path_factory.mktemp("roads") / "rail.duckdb")
    config = Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=10**6)
    with running(config) as service, Workspace(Client(service.base_url, "demo-pro"), held) as rail:
        legs = [f"{SYMBOL}:{leg}" for leg in (BUY, SELL)]
        rail.sync([HELD, *legs, "events/spread"], *WINDOW, progress=False)
        rail.sync(VENUES, *WEEKS, progress=False)
    writer = StoreWriter(held)
    writer.commit(writer.start_load(LoadOrigin("http://x", NOW, None, "0")), _more())
    return held


def _more() -> Batch:
    batch, edge = Batch(), Edge(NOW, step_s=60)
    times = range(WINDOW.start, WINDOW.end, 120)
    prices = [_prices(ts) for ts in times]
    spreads = _rows("spread", pl.DataFrame(prices).with_columns(ts=pl.Series(times)))
    batch.add(Trajectory.parse(SPARSE), spreads, WINDOW, edge)
    hours = pl.DataFrame({"ts": range(*SETTLED, 3_600)}).with_columns(differential_pct_8h=0.02)
    sent = Edge(NOW, step_s=3_600)
    batch.add(Trajectory.parse(SENT), _rows("funding", hours), SETTLED, sent)
    legs = {"symbol": SYMBOL, "buy_market": "spot", "sell_market": "spot", "opened_at": None}
    legs |= {"buy_exchange": "AURORA", "sell_exchange": "BOREAS"}
    leg = {"symbol": "BTC_USDT", "exchange": "A", "market": "futures", "interval_hours": 8}
    for at in range(WINDOW.start, WINDOW.start + 1_800, 60):
        prices = _prices(at)
        percent = 100 * (prices["sell_price"] / prices["buy_price"] - 1)
        items = {
            "spread": legs | prices | {"spread_pct": percent},
            "funding": leg | {"rate": at % 7 / 1e4, "next_funding_time": None},
        }
        for kind, item in items.items():
            document = json.dumps({"items": [item]}).encode()
            batch.add_snapshot(Snapshot(SnapshotLog.named(kind), at, document, 60), edge)
    return batch


def _prices(ts: int) -> dict[str, float]:
    return {"buy_price": 100 + ts % 11 / 100, "sell_price": 100 + ts // 60 % 9 / 10}


def _rows(kind: str, given: pl.DataFrame) -> pl.DataFrame:
    types = {each.name: each.type for each in ROWS[kind].values}
    empty = {name: pl.String if of == "VARCHAR" else pl.Float64 for name, of in types.items()}
    return pl.concat([pl.DataFrame(schema={"ts": pl.Int64, **empty}), given], how="diagonal")


@pytest.fixture(scope="module")
def own(store: Store) -> Workspace:
    return Workspace(lambda _: None, store)


@pytest.fixture(scope="module")
def series(own: Workspace) -> Callable[..., Any]:
    """The series of a key and a window, read once."""
    return functools.cache(own.series)


Printed = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def printed(store: Store, rail: Callable[..., subprocess.CompletedProcess[str]]) -> Printed:
    """Run a command over the store, and return its rows."""

    label = store.source.label

    def run(command: str, keys: Sequence[str], typed: str, window: Interval) -> Any:
        Path("fees.toml").write_text(TABLE)
        start, end = (format_ts(ts).removesuffix(" UTC").replace(" ", "T") for ts in window)
        ends = ("--start", start, "--end", end, "--store", str(store.path), "--format", "json")
        done = rail(*command.split(), *keys, *typed.split(), *ends)
        assert done.returncode == 0, done.stderr
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        for row in rows:
            assert row.pop("source") == label
        return rows

    return run


def _asked(analysis: Analysis) -> dict[str, Any]:
    """Return what has to be given, as examples have it."""
    return {each.name: each.example for each in analysis.parameters if each.required}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* is held as")
@pytest.mark.parametrize(
    "question",
    [
        pytest.param(each, id=f"{each[0].result}, {each[1][0]}{', net' * each[2]}")
        for each in QUESTIONS
    ],
)
def test_all_roads_of_an_analysis_give_the_same_rows(
    question: tuple[Analysis, tuple[str, ...], bool],
    own: Workspace,
    series: Callable[..., Any],
    printed: Printed,
) -> None:
    analysis, keys, costs = question
    options = _asked(analysis)
    fees = {"fees": FEES} if costs else {}
    window = SETTLED if analysis.family == "funding" else WINDOW
    found = pl.DataFrame()
    if not (analysis.net and costs):
        of = Family.FUNDING if analysis.family in ("funding", "rates") else analysis.family
        asked = {"family": of, "streams": keys} | options | fees
        found = own.measure(analysis.function, *window, **asked)
    methods = []
    for key in keys:
        given = getattr(series(key, *window), analysis.name)(**options, **fees)
        methods.append(given)
        if not fees and key == keys[0]:
            part = Part(analysis.name, *window, stream=key, options=options)
            assert answered(own, part).answer.result_hash == result_hash(given)
            for shown in _of_pages(key, window, analysis, options, own.store):
                _assert_same(shown, given, analysis)
    rows = pl.concat(methods)
    assert not rows.is_empty()
    if not found.is_empty():
        _assert_same(found, rows, analysis)
    if command := analysis.command or COMMANDS.get(analysis.result):
        typed = " ".join(f"--{name.replace('_', '-')} {each}" for name, each in options.items())
        typed += " --fees fees.toml" if costs else ""
        _assert_same(printed(f"stats {command}", keys, typed, window), rows, analysis)


def _of_pages(
    key: str, window: Interval, analysis: Analysis, options: dict[str, Any], store: Store
) -> Iterator[pl.DataFrame]:
    """Yield what the pages measure: that of one trajectory, and those of all of a kind."""
    if key == TURNED:  # a page shows a pair as it is held
        return
    look = with_pair(read_held(store.path, version_of(store.path)), key)
    kind, version = subject_of(key).kind, look.versions[key]
    rows = read_rows(store.path, key, *window, version=version)
    asked = selected(look, kind, window, key)
    yield asked.applied(rows, analysis.function, **options)
    if not key.startswith("pair/"):
        given: dict[str, Any] = {"versions": {key: version}, **options}
        yield measure_each(look, kind, window, analysis.result, analysis.function, **given)


@pytest.mark.slow
@pytest.mark.parametrize(
    "analysis", [each for each in analyses() if each.across], ids=lambda each: each.result
)
def test_an_analysis_that_compares_series_and_its_command_give_the_same_rows(
    analysis: Analysis, own: Workspace, printed: Printed
) -> None:
    options = _asked(analysis)
    asked: dict[str, Any] = {"family": Family.FUNDING, "streams": VENUES} | options
    found = own.measure(analysis.function, *WEEKS, **asked)
    assert not found.is_empty()
    typed = " ".join(f"--{name.replace('_', '-')} {each}" for name, each in options.items())
    _assert_same(printed(f"stats {analysis.command}", VENUES, typed, WEEKS), found, analysis)


OWN = {"spread": HELD, "price": f"{SYMBOL}:{BUY}"}
"""What rows alone say as well as a store: settlements and snapshots need what it knows of them."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "analysis", [each for each in DECLARED if each.family in OWN], ids=lambda each: each.result
)
def test_rows_of_ones_own_have_the_answer_of_the_same_rows_of_a_store(
    analysis: Analysis, series: Callable[..., Any]
) -> None:
    key = OWN[analysis.family]
    stored = series(key, *WINDOW)
    values = [each.name for each in ROWS[analysis.family].values if each.name != "extra"]
    rows = stored.df.select("ts", *values)
    own: Any = own_series(rows, key, stamped="start", step_s=60)
    assert own.window == WINDOW
    fees = {"fees": FEES} if analysis.needs_fees else {}
    asked = _asked(analysis) | fees
    here, there = (getattr(each, analysis.name)(**asked) for each in (own, stored))
    _assert_same(here, there, analysis)


@pytest.mark.slow
@pytest.mark.parametrize("analysis", OF_EVENTS, ids=lambda each: each.result)
def test_a_log_of_events_and_its_command_and_report_give_the_same_rows(
    analysis: Analysis, own: Workspace, printed: Printed
) -> None:
    series = own.events("spread", *WINDOW)
    given = {"length_s": 3_600}
    short = {name: value for name, value in given.items() if name in analysis.takes}
    around = [own.around(series)] if AROUND & analysis.takes else []
    found = getattr(series, analysis.name)(*around, **short)
    assert not found.is_empty()
    if not around:
        part = Part(analysis.name, *WINDOW, stream=EVENTS, options=short)
        assert answered(own, part).answer.result_hash == result_hash(found)
    typed = " ".join(f"--{name.removesuffix('_s')} {each}" for name, each in short.items())
    named = [] if analysis.name == "payoff" else ["spread"]
    _assert_same(printed(f"events {analysis.command}", named, typed, WINDOW), found)


def _assert_same(
    rows: list[dict[str, Any]] | pl.DataFrame,
    others: pl.DataFrame,
    analysis: Analysis | None = None,
) -> None:
    """Compare rows in any order. A table has the window, even where the result has not.

    One that adds to rows hands on what the rows of each road have.
    """
    names = others.columns
    if analysis is not None and "start" not in analysis.takes:
        own = {*analysis.schema(), *analysis.key}
        names = [name for name in names if name in own]
    given = rows.to_dicts() if isinstance(rows, pl.DataFrame) else rows
    assert [name for name in given[0] if name in names] == names
    assert set(given[0]) - set(others.columns) <= _WINDOW or len(names) < len(others.columns)
    both = (
        [{name: row[name] for name in names} for row in each] for each in (given, others.to_dicts())
    )
    for here, there in zip(*(sorted(each, key=json.dumps) for each in both), strict=True):
        assert {
            name: (here[name], there[name]) for name in names if here[name] != there[name]
        } == {}


_WINDOW = {"window_start", "window_end"}
