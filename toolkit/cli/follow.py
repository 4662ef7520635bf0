"""`rail follow` keeps a watchlist current; `rail alerts` shows the alerts that it found."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import polars as pl
import typer

from toolkit.alerts.channels import Alert
from toolkit.alerts.rules import EXAMPLE as RULES
from toolkit.alerts.rules import AlertRule
from toolkit.cards import counted
from toolkit.cli.options import STREAM_KEYS, asks
from toolkit.cli.output import TableOptions, show, tabled
from toolkit.cli.show import console, errors
from toolkit.columns import schema_of
from toolkit.commands import ExitCode
from toolkit.ending import is_outside
from toolkit.errors import InputError, RailError
from toolkit.intervals import Interval
from toolkit.loader import FollowProgress
from toolkit.market import Stream, format_ts, parse_length
from toolkit.show.sheet import Sheet
from toolkit.statistics.core.conditions import Schema
from toolkit.statistics.fees import FeeModel
from toolkit.store import Store, service_clock
from toolkit.store.writing.alerts import read_alerts
from toolkit.store.writing.follows import Lease, holding
from toolkit.workspace import Settings, Workspace, store_path
from toolkit.workspace.alerts import (
    alert_plan,
    caught,
    caught_words,
    find_alerts,
    matched_streams,
    named_rule,
)
from toolkit.workspace.loading import named_streams, since_of, wanted_watchlist
from toolkit.workspace.rail_toml import EXAMPLE, Watchlist

_COLUMNS = ("stream", "kind", "rule")
_LISTED = schema_of(also=_COLUMNS)
_SECONDS_A_LINE = 60.0


@tabled(lambda: _LISTED, of_now=True)
@asks(
    streams=typer.Argument(help=f"In place of a watchlist: {STREAM_KEYS}"),
    watchlist="--watchlist FILE: The rules. Default: rail.toml beside the store or here, else 5 "
    "symbols.",
    once="Load everything up to now, then exit: for cron.",
    since="Load from this time on, UTC, or 7d. Default: the watchlist's.",
    lasting="--for: Stop after this long: 90s, 10m, 2h, 1d. Default: until Ctrl-C.",
    listed="--list: Print each stream with its rule, then exit.",
    example="Print a watchlist with every field, then exit.",
    lease="--lease FILE: A file, or its address in a bucket, that only one follow at a time holds. "
    "Others with the same lease wait, and take over when the first is gone.",
)
def follow_command(
    streams: list[str] | None = None,
    watchlist: Path | None = None,
    once: bool = False,
    since: str | None = None,
    lasting: str | None = None,
    listed: bool = False,
    example: bool = False,
    lease: str | None = None,
    store: Path | None = None,
    base_url: str | None = None,
    allow_http: bool = False,
    *,
    view: TableOptions,
) -> None:
    """Keep a watchlist current: by streams where the plan has them, else by polling.

    Gaps are backfilled from the archive, as far back as the watchlist asks. It waits out restarts,
    outages, a spent quota and a locked store, and prints its progress every minute. The first
    Ctrl-C or SIGTERM ends it after a last look into the archive, the second at once. The API key is
    read from RAIL_API_KEY.

    With --once the exit code is 0 if every stream was loaded and 3 if some were refused. --list
    takes the options of tables.

    Example: rail follow --once LTC_USDT:AURORA.spot:BOREAS.spot --since 1d

    Example: rail follow --list --top 5

    Example: rail follow --example
    """
    if example:
        typer.echo(EXAMPLE, nl=False)
        return
    seconds = None if lasting is None else parse_length(lasting, parameter="--for")
    settings = Settings.read(base_url=base_url, allow_http=allow_http)
    into = Store(store_path(store))
    if streams and watchlist:
        raise InputError("--watchlist", str(watchlist), "none beside streams")
    wanted = wanted_watchlist(into, streams or None, watchlist)
    since_of(wanted, since, lambda: 1)
    with Workspace(settings.client(), into) as workspace:
        if listed:
            _list(workspace, wanted, view)
            return
        workspace.client.discover()  # while this waits, Ctrl-C has its usual effect
        only, result = None if lease is None else Lease(lease), None
        with _stopping() as (stop, came), holding(only, stop, _say) as held:
            if held:
                result = workspace.follow(
                    watchlist=wanted,
                    since=since,
                    once=once,
                    duration_s=seconds,
                    stop=stop,
                    on_progress=None if once else _lines(),
                    on_note=_say,
                )
    console.print("nothing was asked: another holds the lease" if result is None else str(result))
    if signal.SIGINT in came:
        raise typer.Exit(ExitCode.STOPPED)
    if once and result is not None and result.refused:
        raise typer.Exit(ExitCode.PARTLY)


def _list(workspace: Workspace, watchlist: Watchlist, view: TableOptions) -> None:
    client = workspace.client
    named = named_streams(client, workspace.store, watchlist)
    rows = [(stream.key, stream.kind, rule) for stream, rule in named.items()]
    frame = pl.DataFrame(rows, schema=_LISTED, orient="row")
    source = client.profile().source
    heading = f"{counted(len(rows), 'stream')} of {watchlist.name}"
    show(view, Sheet(heading, source.label if source else client.base_url, frame, _COLUMNS))


@contextlib.contextmanager
def _stopping() -> Iterator[tuple[threading.Event, list[int]]]:
    """Yield an event that the first SIGINT or SIGTERM sets, and the signals that came.

    A second one has its usual effect, and so has a Ctrl-C while this thread itself waits for the
    service, as before the first sweep.
    """
    stop, came = threading.Event(), list[int]()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def usual() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def stopped(number: int, _frame: FrameType | None) -> None:
        usual()
        came.append(number)
        stop.set()
        if number == signal.SIGINT and is_outside(threading.main_thread()):
            signal.raise_signal(number)

    for number in before:
        signal.signal(number, stopped)
    try:
        yield stop, came
    finally:
        usual()


def _lines() -> Callable[[FollowProgress], None]:
    shown_s = -_SECONDS_A_LINE

    def line(progress: FollowProgress) -> None:
        nonlocal shown_s
        if progress.elapsed_s - shown_s >= _SECONDS_A_LINE:
            shown_s = progress.elapsed_s
            _say(str(progress))

    return line


def _say(text: str) -> None:
    errors.print(f"{format_ts(int(time.time()))} {text}")


_ALERTS: Schema = dict(
    schema_of(
        also=(
            *("ts", "rule", "change", "is_open", "about", "subject", "stream", "value", "level"),
            *("unit", "delivery", "reason", "words", "kind", "alert_id", "found_at", "recorded_at"),
        )
    )
) | {"value": pl.Float64()}  # which is a text in another table
_ALERT_COLUMNS = (
    *("ts", "rule", "change", "is_open", "about"),
    *("value", "level", "unit", "delivery", "reason"),
)
_WHAT = ("history", "check", "test", "example")


@tabled(lambda: _ALERTS, of_now=True)
@asks(
    what=typer.Argument(help="history, check (all rules), test (one rule) or example."),
    rule=typer.Argument(help="The rule to test."),
)
def alerts_command(
    what: str = "history", rule: str | None = None, store: Path | None = None, *, view: TableOptions
) -> None:
    """Show the alerts that rail follow found, newest first, and which of them are open.

    Rules are tables [[alert]] in the rail.toml beside the store or here. rail follow evaluates them
    as rows arrive, prints each alert and sends it once to the channels in the environment:
    RAIL_ALERT_WEBHOOK with RAIL_ALERT_SECRET, and RAIL_ALERT_CHAT with apprise addresses for chat
    and mail. It reads changed rules again.

    check shows which streams in the store each rule watches, and what it would have caught in the
    last 24 hours. test RULE sends one alert, marked as a test. example prints rules of every kind.

    Example: rail alerts --where is_open

    Example: rail alerts example

    Example: rail alerts check
    """
    if what not in _WHAT:
        raise InputError("what", what, _WHAT)
    if rule is not None and what != "test":
        raise InputError("rule", rule, "a rule after `rail alerts test` alone")
    if what == "example":
        typer.echo(RULES, nl=False)
        return
    held = Store(store_path(store))
    if what == "check":
        _check(held)
    elif what == "test":
        _test(held, rule)
    else:
        rows = read_alerts(held).select(list(_ALERTS))
        n_open = int(rows["is_open"].sum())
        heading = f"{counted(rows.height, 'change')} of alerts, {n_open:,} open"
        show(view, Sheet(heading, held.source.label, rows, _ALERT_COLUMNS))


def _check(held: Store) -> None:
    book, channels = find_alerts(held.path), alert_plan(held.path).channels
    rules, named = book.rules, {rule.name: rule for rule in book.rules}
    streams = [Stream.parse(k) for k in held.catalogue()["stream"]] if held.path.exists() else []
    for row in matched_streams(rules, streams).iter_rows(named=True):
        first = f", the first is {row['first']}" if row["first"] else ""
        console.print(f"{row['rule']}: {row['condition']}")
        console.print(f"  {counted(row['streams'], 'stream')} of the store{first}")
        if streams and (words := _caught(held, named[row["rule"]], book.fees)):
            console.print(f"  {words}")
    if not rules:
        console.print("no rules: `rail alerts example` prints some for rail.toml")
    to = " and ".join(["the log", *channels])
    console.print(f"{counted(len(rules), 'rule')}, sent to {to}")


def _caught(held: Store, rule: AlertRule, fees: FeeModel | None) -> str:
    now = service_clock(held)
    found = caught(held, rule, Interval(now - 86_400, now), fees)
    return "" if found is None else f"in the last 24 h: {caught_words(found)}"


def _test(held: Store, name: str | None) -> None:
    if name is None:
        rules = [rule.name for rule in find_alerts(held.path).rules]
        raise InputError("rule", None, rules or "none: rail.toml has no [[alert]]")
    rule = named_rule(held.path, name)
    channels = alert_plan(held.path).channels
    asked = {n: to for n, to in channels.items() if rule.send is None or n in rule.send}
    if not asked:
        allowed = "a channel: RAIL_ALERT_WEBHOOK with RAIL_ALERT_SECRET, or RAIL_ALERT_CHAT"
        raise InputError("environment", None, allowed)
    alert = Alert.test_of(rule, int(time.time()))
    console.print(alert.words)
    failed = []
    for channel, to in asked.items():
        sent = to.send(alert)
        console.print(f"  {channel}: {'delivered' if sent.taken else sent.reason}")
        failed += [] if sent.taken else [channel]
    if failed:
        raise RailError(f"the test was not delivered by {' and '.join(failed)}")
