"""`rail demo`: a market, a load and a dashboard in one command."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import Popen

import polars as pl

from toolkit.cards import signed
from toolkit.cli.dashboard import (
    check_dashboard,
    check_ended,
    claim_port,
    dashboard,
    ended_by_signals,
)
from toolkit.cli.options import DashboardPort, asks
from toolkit.cli.show import console
from toolkit.client import Client
from toolkit.errors import InputError, StoppedError
from toolkit.foreign import Command, command
from toolkit.intervals import Interval
from toolkit.loader import LoadResult
from toolkit.market import (
    EventFamily,
    EventLog,
    Family,
    SnapshotKind,
    SnapshotLog,
    Source,
    Stream,
    Trajectory,
)
from toolkit.statistics import events as event_statistics
from toolkit.statistics import funding, spread
from toolkit.store import Store, event_logs
from toolkit.workspace import (
    DEFAULT_WINDOW_S,
    LOCAL_KEY,
    Workspace,
    demo_store,
    exchanges_service,
    front_page,
    load_progress,
    real_store,
    simulated_service,
    store_beside,
    watchlist,
)
from toolkit.workspace.local import ExchangeChoice, archive_beside
from toolkit.workspace.rail_toml import Watchlist

_SYMBOLS = 3
_DAY_S = 86_400
_LOGGED_S = 2 * _DAY_S  # Overview compares 24 h with the 24 h before; to detect a day takes 1 s
_POLL_S, _SWEEP_S = 20.0, 120.0
_SERVICE_PORT = 8701  # beside the one where `rail serve` listens
_HOST = "127.0.0.1"
_OF_THE_MARKET: tuple[Stream, ...] = (*map(EventLog, EventFamily), *map(SnapshotLog, SnapshotKind))


@asks(
    once="Exit after the figures, without the dashboard.",
    store="The DuckDB file. Default: one in your data folder.",
)
def demo_command(
    once: bool = False,
    store: Path | None = None,
    port: DashboardPort = 8501,
    browser: bool = True,
    exchanges: str | None = None,
    symbols: str | None = None,
) -> None:
    """Start a service on a SIMULATED market, load a week of it, open a dashboard that follows it.

    It loads prices, spreads and funding of three symbols, the series on the first page, two days of
    events and the snapshots, all on this machine. The store is kept, and the next run loads what is
    new. The market of an earlier version keeps its own store. New rows go into the store while the
    dashboard is open, until Ctrl-C.

    --exchanges usual, or names of exchanges, takes a real market: ccxt asks public endpoints,
    without an account. `rail serve --check-exchanges` shows what they answer here.

    Example: rail demo --once
    """
    choice = None
    if exchanges is not None:
        choice = ExchangeChoice.read(exchanges, symbols)
    elif symbols is not None:
        raise InputError("--symbols", symbols, "one with --exchanges")
    kept: list[Store] = []
    try:
        with ended_by_signals():
            _run(kept, choice, once=once, given=store, port=port, browser=browser)
    except KeyboardInterrupt:
        given = {"--exchanges": exchanges, "--symbols": symbols, "--store": store}
        raise StoppedError(_kept(given, began=bool(kept))) from None


def _run(
    kept: list[Store],
    choice: ExchangeChoice | None,
    *,
    once: bool,
    given: Path | None,
    port: int,
    browser: bool,
) -> None:
    with contextlib.ExitStack() as closing:
        claimed = None
        if not once:
            check_dashboard()
            claimed = closing.enter_context(claim_port(_HOST, port))
            port = claimed.getsockname()[1]
            _line("dashboard", f"http://{_HOST}:{port}, once the market is loaded")
        base_url = closing.enter_context(_service(choice, given))
        client = Client(base_url, LOCAL_KEY)
        source = client.discover().source or Source("unknown", base_url)
        _line("market", f"{source.label}, at {base_url}")
        held = Store(given or real_store() if choice else _store_for(source, given))
        _line("store", str(held.path))
        kept.append(held)
        workspace = closing.enter_context(Workspace(client, held))
        wanted = _load(workspace, len(choice.symbols) if choice else _SYMBOLS)
        _print_figures(workspace, wanted)
        console.print("for commands on it:")
        console.print(Command("export RAIL_STORE={}").format(str(held.path.absolute())))
        console.print(Command("export RAIL_BASE_URL={}").format(base_url))
        if claimed:
            claimed.close()
            with dashboard(held, host=_HOST, port=port, browser=browser, follows=True) as process:
                _line("streaming", "new rows go into the store; Ctrl-C ends it and keeps the store")
                _follow(workspace, wanted, process)


def _line(name: str, text: str) -> None:
    console.print(f"{name}: {text}")


def _service(
    choice: ExchangeChoice | None, given: Path | None
) -> contextlib.AbstractContextManager[str]:
    if choice is None:
        return simulated_service(port=_SERVICE_PORT)
    return exchanges_service(choice, archive_beside(given or real_store()), port=_SERVICE_PORT)


def _kept(given: Mapping[str, object], *, began: bool) -> str:
    words = [word for name, value in given.items() if value for word in (name, str(value))]
    again = command("rail", "demo", *words)
    if not began:
        return f"nothing was loaded yet, `{again}` begins anew"
    return f"the store keeps what was loaded, `{again}` goes on from there"


def _store_for(source: Source, given: Path | None) -> Path:
    path, others = (store_beside(given, source), [given]) if given else demo_store(source)
    if path not in others and others and (given or not path.exists()):
        names = ", ".join(other.name for other in others)
        new = "its file is beside" if path.exists() else "so a new file"
        _line("note", f"{names} is kept; this version's market differs, {new}")
    return path


def _load(workspace: Workspace, symbols: int) -> list[Trajectory]:
    watched = watchlist(workspace.client.symbols(), symbols=symbols)
    trajectories = [each for each in watched if isinstance(each, Trajectory)]
    now = workspace.client.served_at()
    logs = _loaded(workspace, "events of two days", _OF_THE_MARKET, _LOGGED_S, now)
    wanted = list(dict.fromkeys([*trajectories, *front_page(workspace.store)]))
    rows = _loaded(workspace, f"{len(wanted)} trajectories", wanted, DEFAULT_WINDOW_S, now)
    new = f"{rows.rows.new:,} rows of {len(wanted)} trajectories, {logs.rows.new:,} documents"
    took_s = rows.elapsed_s + logs.elapsed_s
    _line("loaded", f"{new} new, in {took_s:.0f} s")
    return wanted


def _loaded(
    workspace: Workspace, title: str, streams: Sequence[Stream], length_s: int, now: int
) -> LoadResult:
    with load_progress(title, lines=True) as watch:
        return workspace.sync(streams, now - length_s, now, on_progress=watch.show)


def _print_figures(workspace: Workspace, wanted: Sequence[Trajectory]) -> None:
    store, now = workspace.store, workspace.client.served_at()
    week = Interval(now - DEFAULT_WINDOW_S, now)
    with_rows = store.catalogue().filter(pl.col("rows") > 0)["stream"]
    figures = (
        ("widest spread", spread.summary, Family.SPREAD, "spread_mean_log_bps", ", 7-day mean"),
        ("best carry", funding.summary, Family.FUNDING, "carry_bps", " in 7 days"),
    )
    for name, statistic, family, figure, over in figures:
        streams = [each for each in wanted if each.family is family and each.key in with_rows]
        if not streams:
            continue
        found = workspace.measure(statistic, *week, family=family, streams=streams)
        found = found.select("trajectory", figure).drop_nulls()
        for key, bps in found.top_k(1, by=figure).iter_rows():
            legs = Trajectory.parse(key).legs_key
            _line(name, f"{legs}, {signed(bps, 1)} bps{over}")
    _line("events", f"{_events(store, Interval(now - _DAY_S, now))} in 24 h")


def _events(store: Store, day: Interval) -> str:
    with store.reading():
        logs = event_logs(store.catalogue())
        read = event_statistics.documents_window(day)
        documents = pl.concat([store.events(family, read, whole=False) for family in EventFamily])
    found = event_statistics.event_lifecycles(documents, *day, logs=logs)
    opened = found.filter(pl.col("t_open").is_between(*day, closed="left"))
    return ", ".join(f"{opened.filter(family=f.value).height:,} {f}" for f in EventFamily)


def _follow(workspace: Workspace, wanted: Sequence[Stream], process: Popen[bytes]) -> None:
    """Bring new rows into the store while the dashboard is open.

    Streams that come to the first page are followed before the page can list them.
    """
    ended = threading.Event()

    def look(_: object) -> None:
        if process.poll() is not None:
            ended.set()

    watched = Watchlist(
        streams=[stream.key for stream in (*wanted, *_OF_THE_MARKET)],
        open_now=True,
        widest_funding=True,
        back="2d",
        rules_s=_POLL_S,
        poll_s=_POLL_S,
        sweep_s=_SWEEP_S,
    )
    workspace.follow(watchlist=watched, stop=ended, on_progress=look)
    check_ended(process.wait())
