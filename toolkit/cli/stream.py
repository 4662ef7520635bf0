"""`rail stream`: keep the store up to date from the service's streams."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Annotated

import polars as pl
import typer

from toolkit.cards import duration
from toolkit.cli.options import STREAM_KEYS, AllowHttp, BaseUrl, StorePath
from toolkit.cli.show import console, errors, plain_table
from toolkit.errors import InputError
from toolkit.loader import CaptureProgress, CaptureResult, capture
from toolkit.loader.capture import checked_streams
from toolkit.market import Stream, format_ts, parse_ts
from toolkit.store import Store
from toolkit.tables import GapStatus
from toolkit.workspace import Settings, store_path

_SECONDS_A_LINE = 10
_GAPS_SHOWN = 20
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def stream_command(
    streams: Annotated[list[str] | None, typer.Argument(help=STREAM_KEYS)] = None,
    lasting: Annotated[
        str | None,
        typer.Option("--for", help="Stop after this long: 90s, 10m, 2h, 1d. Default: Ctrl-C."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="Fill up from here, UTC. Default: where the store ends."),
    ] = None,
    sweep: Annotated[
        float, typer.Option("--sweep", help="Seconds between two looks into the archive.")
    ] = 60.0,
    store: StorePath = None,
    base_url: BaseUrl = None,
    allow_http: AllowHttp = False,
) -> None:
    """Bring rows and event documents into the store as they happen, without a gap.

    What a lost connection did not bring is asked from the archive. Each loss is listed at the end:
    a connection that is quiet and answers pings is none. Ctrl-C ends it cleanly, with a
    last look into the archive. A second one cuts it short. The key is read from RAIL_API_KEY.

    Example: rail stream LTC_USDT:AURORA.spot:BOREAS.spot --for 10s
    """
    wanted = [Stream.parse(key) for key in streams or []]
    seconds = None if lasting is None else _seconds(lasting)
    start = None if since is None else parse_ts(since, parameter="--since")
    settings = Settings.read(base_url=base_url, allow_http=allow_http)
    client, into = settings.client(), Store(store_path(store))
    checked_streams(wanted, sweep_every_s=sweep, duration_s=seconds)
    client.discover()  # while this waits, Ctrl-C has its usual effect
    with contextlib.closing(client), _stopping() as stop, _progress() as show:
        result = capture(
            client,
            into,
            wanted,
            since=start,
            duration_s=seconds,
            stop=stop,
            sweep_every_s=sweep,
            on_progress=show,
        )
    _print_result(result)
    _print_gaps(into.gaps().filter(load_id=result.load_id))


def _seconds(text: str) -> int:
    """Return the seconds of a length of time such as 90s, 10m, 2h or 1d."""
    match = re.fullmatch(r"(?P<number>[1-9]\d{0,8})(?P<unit>[smhd]?)", text)
    if match is None:
        raise InputError("--for", text, "a whole number and s, m, h or d, e.g. 10m")
    return int(match["number"]) * _UNITS[match["unit"]]


@contextlib.contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Yield an event that the first SIGINT or SIGTERM sets. The second has its usual effect."""
    stop = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}

    def usual() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def stopped(_number: int, _frame: FrameType | None) -> None:
        usual()
        stop.set()

    for number in signals:
        signal.signal(number, stopped)
    try:
        yield stop
    finally:
        usual()


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[CaptureProgress], None]]:
    """Show a line that changes on a terminal, elsewhere a line every ten seconds."""
    if errors.is_terminal:
        with errors.status("connecting") as status:
            yield lambda progress: status.update(_line(progress))
        return
    shown_s = -_SECONDS_A_LINE

    def show(progress: CaptureProgress) -> None:
        nonlocal shown_s
        if progress.elapsed_s - shown_s >= _SECONDS_A_LINE:
            shown_s = round(progress.elapsed_s)
            errors.print(_line(progress))

    yield show


def _line(progress: CaptureProgress) -> str:
    return (
        f"{duration(round(progress.elapsed_s))}: {progress.messages:,} messages, "
        f"{progress.new:,} new, {progress.connected} of {progress.streams} streams connected, "
        f"{progress.gaps:,} gaps"
    )


def _print_result(result: CaptureResult) -> None:
    """Print the total, then the gaps that are open or lost for good, and what was odd."""
    console.print(str(result))
    if result.gaps.get(GapStatus.OPEN):
        errors.print("open gaps are asked for again by the next load of these streams")
    if lost := result.gaps.get(GapStatus.UNREPAIRABLE):
        errors.print(f"{lost:,} gaps reach back beyond what the archive still holds")
    for finding, count in result.findings:
        errors.print(f"finding: {finding.kind} at {finding.where} ({count}x): {finding.says}")


def _print_gaps(gaps: pl.DataFrame) -> None:
    """Print the losses of a capture, the newest first: of which stream, when, why, what became."""
    if gaps.is_empty():
        return
    table = plain_table("gap in", "from", "to", "cause", "status")
    for gap in gaps.head(_GAPS_SHOWN).iter_rows(named=True):
        end = "not ended" if gap["end_ts"] is None else format_ts(gap["end_ts"])
        table.add_row(gap["stream"], format_ts(gap["start_ts"]), end, gap["cause"], gap["status"])
    console.print(table)
    if gaps.height > _GAPS_SHOWN:
        console.print(f"and {gaps.height - _GAPS_SHOWN:,} earlier ones")
