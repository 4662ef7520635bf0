"""`rail follow`: keep a watchlist current, without anybody watching."""

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

from toolkit.cards import counted
from toolkit.cli.exit_codes import ExitCode
from toolkit.cli.options import STREAM_KEYS, asks
from toolkit.cli.show import console, errors
from toolkit.cli.tables import TableOptions, show, tabled
from toolkit.columns import schema_of
from toolkit.ending import is_outside
from toolkit.errors import InputError
from toolkit.loader import FollowProgress
from toolkit.market import format_ts, parse_length
from toolkit.show.sheet import Sheet
from toolkit.store import Store
from toolkit.store.writing.lease import Lease, holding
from toolkit.workspace import Settings, Workspace, store_path
from toolkit.workspace.loading import named_streams, since_of, wanted_watchlist
from toolkit.workspace.rules import EXAMPLE, Watchlist

_LISTED = schema_of(also=("stream", "kind", "rule"))
_COLUMNS = ("stream", "kind", "rule")
_SECONDS_A_LINE = 60.0


@tabled(lambda: _LISTED, of_now=True)
@asks(
    streams=typer.Argument(help=f"In place of a watchlist: {STREAM_KEYS}"),
    watchlist="--watchlist FILE: Rules. Default: rail.toml beside the store or here, else 5 "
    "symbols.",
    once="Load everything up to now, then exit: for cron.",
    since="Load from this time on, UTC, or 7d. Default: the watchlist's.",
    lasting="--for: Stop after this long: 90s, 10m, 2h, 1d. Default: Ctrl-C.",
    listed="--list: Print the streams and the rule of each, then exit.",
    example="Print a watchlist with every field, then exit.",
    lease="--lease FILE: A file, or its address in a bucket, that one follow at a time holds. "
    "Others with the same one wait, and go on when it is gone.",
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
    outages, a spent quota and a locked store, and prints its progress every minute. Ctrl-C and
    SIGTERM end it after a last look into the archive, a second one at once. The key is read from
    RAIL_API_KEY.

    With --once the exit code is 0 when every stream was loaded and 3 when some were refused. The
    options of tables apply to --list.

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
        only = None if lease is None else Lease(lease)
        with _stopping() as (stop, came), holding(only, stop, _say) as held:
            result = None
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
    """Yield an event that the first SIGINT or SIGTERM sets, and which of them came.

    The second has its usual effect, and so has a Ctrl-C while this thread itself waits for the
    service, as a follow does before its first sweep.
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
