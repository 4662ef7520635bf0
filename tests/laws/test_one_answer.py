"""One question has one answer: a series, `rail.measure`, a page, a report and a command agree.

The rows are the same to the bit.

`ROADS` is complete: whatever statistic a series returns and `rail stats` or `rail events` prints is
in it or, with the reason, in `ELSEWHERE`. What needs the store is slow.
"""

from __future__ import annotations

import inspect
import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from toolkit.analyses import analyses
from toolkit.charts.subject import subject_of
from toolkit.cli.event_analyses import app as events_app
from toolkit.cli.stats import app as stats_app
from toolkit.client import Client
from toolkit.dashboard.held_pairs import with_pair
from toolkit.dashboard.reading import (
    measure_each,
    read_held,
    read_rows,
    selected,
    store_version,
)
from toolkit.intervals import Interval
from toolkit.market import Family, Pair, SnapshotLog, Trajectory, format_ts
from toolkit.reports.answering import answered, result_hash
from toolkit.reports.recipe import Part
from toolkit.series import (
    EventSeries,
    FundingSeries,
    PriceSeries,
    RateSeries,
    Series,
    SnapshotSeries,
    SpreadSeries,
)
from toolkit.service import Clock, Config, Simulated, running
from toolkit.statistics import events, funding, spread
from toolkit.statistics.fee_example import example_text
from toolkit.statistics.fees import FeeModel
from toolkit.store import Batch, Edge, LoadOrigin, Snapshot, Store, StoreWriter
from toolkit.tables import ROWS
from toolkit.workspace import Workspace

NOW = 1_793_750_400
WINDOW = Interval(NOW - 3 * 3_600, NOW)
SETTLED = Interval(NOW - 2 * 86_400, NOW)
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
RATE = "snapshot-funding/BTC_USDT:A.futures"
TABLE = example_text(("AURORA", "BOREAS", "CORONA"))
FEES = FeeModel.parse(TABLE)


@dataclass(frozen=True)
class Road:
    """A command, the method of a series that answers the same, and the statistic of both.

    ``typed`` is what the command is given for the ``options`` of the method. Without a
    ``statistic`` there is none that `rail.measure` could apply to rows of trajectories.
    """

    command: str
    of: type[Series]
    method: str
    statistic: Callable[..., pl.DataFrame] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    typed: str = ""
    then: Callable[[pl.DataFrame], pl.DataFrame] = pl.DataFrame.clone

    def __str__(self) -> str:
        return f"{self.command} {self.typed}".strip()


def _net(**options: float) -> dict[str, Any]:
    return {"fees": FEES, **options}


ROADS = (
    Road("stats spread", SpreadSeries, "summary", spread.summary),
    Road("stats spread", SpreadSeries, "summary", None, _net(), "--fees fees.toml"),
    Road("stats stationarity", SpreadSeries, "stationarity", spread.stationarity),
    Road("stats hour-of-week", SpreadSeries, "hour_of_week", spread.hour_of_week),
    Road("stats lead-lag", SpreadSeries, "lead_lag", spread.lead_lag),
    Road("stats tail-index", SpreadSeries, "tail_index", spread.tail_index),
    Road(
        "stats time-to-close",
        SpreadSeries,
        "time_to_close",
        spread.time_to_close,
        {"enter_bps": 8, "exit_bps": 2.0},
        "--enter-bps 8 --exit-bps 2",
    ),
    Road(
        "stats episodes",
        SpreadSeries,
        "episodes",
        spread.episodes,
        {"enter_bps": 8, "absolute": True, "leave_bps": 4.0, "merge_gap_s": 600},
        "--enter-bps 8 --absolute --leave-bps 4 --merge-gap-s 600",
    ),
    Road(
        "stats net-episodes",
        SpreadSeries,
        "net_episodes",
        spread.net_episodes,
        _net(),
        "--fees fees.toml",
    ),
    Road(
        "stats net-time-to-close",
        SpreadSeries,
        "net_time_to_close",
        spread.net_time_to_close,
        _net(exit_bps=5),
        "--exit-bps 5 --fees fees.toml",
    ),
    Road("stats funding", FundingSeries, "summary", funding.summary),
    Road("stats funding", FundingSeries, "summary", None, _net(), "--fees fees.toml"),
    Road("stats funding", RateSeries, "summary"),
    Road(
        "stats persistence",
        FundingSeries,
        "persistence",
        funding.persistence,
        {"band_apr_pct": 1},
        "--band 1",
    ),
    Road(
        "stats heatmap", FundingSeries, "heatmap", funding.heatmap, {"bucket": "1d"}, "--bucket 1d"
    ),
    Road("stats by-hour", FundingSeries, "by_hour", funding.by_hour),
    Road("stats by-weekday", FundingSeries, "by_weekday", funding.by_weekday),
    Road(
        "stats carry",
        FundingSeries,
        "holdings",
        funding.holdings,
        {"horizons": ["8h"]},
        "--horizon 8h",
    ),
    Road("stats events", EventSeries, "summary"),
    Road(
        "events survival", EventSeries, "survival", None, {"by": ["symbol"]}, "spread --by symbol"
    ),
    Road("events stats", EventSeries, "rates", None, {}, "spread"),
    Road("events stats", EventSeries, "league", None, {"by": ["symbol"]}, "spread --by symbol"),
    Road("events study", EventSeries, "study", None, {"every_s": 600}, "spread"),
    Road("events payoff", EventSeries, "positions", then=events.payoff),
)

_PART = "some columns of `summary`"
_LISTED = "rows of the series itself, of which no command prints a table"
_PYTHON = "a statistic that no command prints yet"
ELSEWHERE = {
    "coverage": _PART,
    "quantiles": _PART,
    "half_life": _PART,
    "rolling_z_summary": _PYTHON,
    "net_summary": f"{_PART} with fees",
    "service_differential": _PART,
    "gaps": _LISTED,
    "net_edge": _LISTED,
    "carry": _LISTED,
    "intervals": _LISTED,
    "lifecycles": _LISTED,
    "detections": _LISTED,
    "audited": "what `rail events audit --list` shows of all trajectories",
    "time_above": _PYTHON,
    "cross_correlation": _PYTHON,
    "flags": "columns of `rail screen`",
    "hazard_ratios": _PYTHON,
    "PriceSeries.summary": _PYTHON,
    "SnapshotSeries.items": _LISTED,
    "stats half-life": _PART,
    "stats cross-correlation": _PYTHON,
    "stats time-above": _PYTHON,
    "stats rolling-z": _PYTHON,
    "stats net-edge": _LISTED,
    "stats flags": "columns of `rail screen`",
    "stats dispersion": "of all venues of a symbol, where a series is of one pair",
    "audit": "`rail events audit`, of the rows given",
    "events audit": "of all trajectories held, and without the events of others, which it names",
    "events magnitudes": "no series has it",
    "events together": "of several logs, where a series is of one",
    "events channels": "of the ways by which a store's documents came",
    "events open": "asks the service, and reads no store",
}


OF = (SpreadSeries, FundingSeries, RateSeries, PriceSeries, EventSeries, SnapshotSeries)
APPS = {"stats": stats_app, "events": events_app}


def test_each_statistic_of_a_series_is_in_the_table_or_said_to_be_elsewhere() -> None:
    methods = {
        (of.__name__, name)
        for of in OF
        for name, method in inspect.getmembers(of, inspect.isfunction)
        if hasattr(method, "options")
        and inspect.signature(method).return_annotation in ("pl.DataFrame", "Result")
    }
    there = {(road.of.__name__, road.method) for road in ROADS}
    names = {name for of, method in methods for name in (method, f"{of}.{method}")}
    lacking = {
        f"{of}.{name}"
        for of, name in methods - there
        if name not in ELSEWHERE and f"{of}.{name}" not in ELSEWHERE
    }
    said = {name for name in ELSEWHERE if " " not in name}
    assert (lacking, there - methods, said - names) == (set(), set(), set())


def test_each_command_is_in_the_table_or_said_to_be_elsewhere() -> None:
    commands = {
        f"{group} {command.name}"
        for group, app in APPS.items()
        for command in app.registered_commands
    }
    there = {road.command for road in ROADS}
    commands |= {f"stats {each.command}" for each in analyses() if each.command}
    assert commands - there - set(ELSEWHERE) == set()
    said = {name for name in ELSEWHERE if " " in name}
    assert (said - commands, there - commands, said & there) == (set(), set(), set())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A SIMULATED market, and of the same source a sparse spread, a snapshot and a differential."""
    held = Store(tmp_path_factory.mktemp("roads") / "rail.duckdb")
    config = Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=10**6)
    with running(config) as service, Workspace(Client(service.base_url, "demo-pro"), held) as rail:
        legs = [f"{SYMBOL}:{leg}" for leg in (BUY, SELL)]
        rail.sync([HELD, *legs, "events/spread"], *WINDOW, progress=False)
        rail.sync(RATES, *SETTLED, progress=False)
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


KEYS = {
    SpreadSeries: (SPARSE, KEPT),
    FundingSeries: (RATES, SENT),
    RateSeries: (RATE,),
    EventSeries: ("events/spread",),
}
ASKED = [(road, key) for road in ROADS for key in KEYS[road.of]]
ASKED += [(ROADS[0], key) for key in (HELD, TURNED, PAIRED)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* is held as")
@pytest.mark.parametrize(
    ("road", "key"), [pytest.param(*each, id=", ".join(map(str, each))) for each in ASKED]
)
def test_all_roads_give_the_same_rows(
    road: Road, key: str, store: Store, rail: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    Path("fees.toml").write_text(TABLE)
    own = Workspace(lambda _: None, store)
    window = SETTLED if key.startswith("funding/") else WINDOW
    series: Any = own.series(key, *window)
    rows = [own.around(series)] if road.method in ("study", "positions") else []
    found = road.then(getattr(series, road.method)(*rows, **road.options))
    assert not found.is_empty()
    if not rows and "fees" not in road.options:
        part = Part(road.method, *window, stream=key, options=road.options)
        assert answered(own, part).answer.result_hash == result_hash(found)
    named = [] if isinstance(series, EventSeries) else [key]
    ends = [
        part
        for name, ts in zip(("--start", "--end"), window, strict=True)
        for part in (name, _typed(ts))
    ]
    done = rail(
        *road.command.split(), *named, *road.typed.split(), *ends,
        "--store", str(store.path), "--format", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    if road.command == "stats events":
        printed = [row for row in printed if row["family"] == "spread"]
    for row in printed:
        assert row.pop("source") == store.source.label
    for name in {"window_start", "window_end"} - set(found.columns):  # a table has them anyway
        printed = [{each: row[each] for each in row if each != name} for row in printed]
    _assert_same(printed, found.to_dicts())
    if road.statistic is not None:
        options: dict[str, Any] = {"family": Family.FUNDING if "funding/" in key else Family.SPREAD}
        measured = own.measure(road.statistic, *window, streams=key, **options, **road.options)
        _assert_same(printed, measured.to_dicts())
        if key != TURNED:  # a page shows a pair as it is held
            for shown in _of_pages(key, window, road, store):
                _assert_same(printed, shown.to_dicts())


def _of_pages(key: str, window: Interval, road: Road, store: Store) -> Iterator[pl.DataFrame]:
    """Yield what the pages measure: that of one trajectory, and those of all of a kind."""
    assert road.statistic is not None
    look = with_pair(read_held(store.path, store_version(store.path)), key)
    kind, version = subject_of(key).kind, look.versions[key]
    rows = read_rows(store.path, key, *window, version=version)
    asked = selected(look, kind, window, key)
    yield asked.applied(rows, road.statistic, **road.options)
    if not key.startswith("pair/"):
        options: dict[str, Any] = {"versions": {key: version}, **road.options}
        yield measure_each(look, kind, window, str(road), road.statistic, **options)


def _typed(ts: int) -> str:
    return format_ts(ts).removesuffix(" UTC").replace(" ", "T")


def _assert_same(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    assert list(rows[0]) == list(others[0])
    for here, there in zip(*(sorted(each, key=json.dumps) for each in (rows, others)), strict=True):
        assert {n: (here[n], there[n]) for n in here if here[n] != there[n]} == {}
