"""`rail status`, `rail store` and `rail import`: the contents of a store, and work on all of it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, cast

import polars as pl
import typer

from toolkit.cards import counted, duration, some
from toolkit.cli.options import asks
from toolkit.cli.output import TableOptions, show, store_as_of, tabled
from toolkit.cli.show import console
from toolkit.columns import schema_of
from toolkit.errors import EmptyWindowError, InputError, StoreError
from toolkit.market import SnapshotKind, SnapshotLog, format_ts, parse_length
from toolkit.series import own_series
from toolkit.series.own import Rates, Shared
from toolkit.series.own_files import LAYOUTS, Decimal, Stamp, Unit, is_rows_file
from toolkit.show.sheet import Cells, Sheet
from toolkit.store import Store, profile_words, read_deliveries, sync_advice
from toolkit.store.file.maintenance import back_up_store, compact, scattered, verify
from toolkit.store.ledger.contents import never_asked
from toolkit.store.publish import import_store, publications, publish
from toolkit.store.writing.remap import remap
from toolkit.tables import GapStatus
from toolkit.wire.finding_words import explained
from toolkit.wire.rows.snapshot_rows import snapshot_items
from toolkit.workspace import store_path
from toolkit.workspace.holdings import stream_states
from toolkit.workspace.loading import keep_own
from toolkit.workspace.settings import user_profile

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _root() -> None:
    """Publish, check, rewrite or copy a store, or read it again, while others use it."""


@app.command("publish")
@asks(
    where=typer.Argument(help="A folder, or the address of an object store: s3://BUCKET/FOLDER."),
    keep="Remove publications older than this (30d), and files that no other one needs.",
)
def publish_command(where: str, keep: str | None = None, store: Path | None = None) -> None:
    """Publish the store: one Parquet file per stream and month of UTC, and manifest.json.

    Files are named by their content, so unchanged ones are not written again. The manifest is
    replaced last. Polars, DuckDB and pandas read the files; `rail import` makes a store from them.
    Object stores need the extra "publish" and take their credentials from the environment.

    The last line is the address of this publication, readable until --keep removes it.

    Example: rail store publish archive

    Example: rail store publish archive --keep 30d
    """
    done = publish(Store(store_path(store)), where, keep=keep)
    console.print(f"{done.where}: {counted(done.rows, 'row')}, {_files(done.files, done.bytes)}")
    console.print(f"uploaded {_files(done.uploaded_files, done.uploaded_bytes)}")
    console.print(f"kept {_files(done.kept_files, done.kept_bytes)}")
    if keep is not None:
        console.print(f"removed {counted(done.removed_files, 'file')}")
    console.print(done.address, soft_wrap=True)


@app.command("publications")
@asks(where=typer.Argument(help="Where the store was published."))
def publications_command(where: str) -> None:
    """List the publications that can be read, the newest first.

    The address of a publication never changes: give it to --store, `rail import` or `tk.open`.

    Before: rail store publish archive

    Example: rail store publications archive
    """
    found = publications(where)
    for each in found.iter_rows(named=True):
        published, size = format_ts(each["published_at"]), _files(each["files"], each["bytes"])
        console.print(f"{published}  {counted(each['rows'], 'row')}, {size}")
        console.print(f"  {each['address']}", soft_wrap=True)
    if found.is_empty():
        raise StoreError(f"nothing is published in {where}; `rail store publish` does", path=where)


@app.command("verify")
@asks()
def verify_command(store: Path | None = None) -> None:
    """Check that the store is whole, and name each fault.

    This reads every byte and checks keys, revisions, loads, streams, counters and the ledger. The
    exit code is 1 if there is a fault. Loads go on meanwhile.

    Example: rail store verify
    """
    held = Store(store_path(store))
    faults = verify(held)
    for fault in faults:
        console.print(fault)
    if faults:
        raise StoreError(
            f"{held.path} has {counted(len(faults), 'fault')}; put a sound copy in its place, or "
            "load into a new store",
            path=str(held.path),
        )
    console.print(f"{held.path} is whole")


@app.command("compact")
@asks()
def compact_command(store: Path | None = None) -> None:
    """Rewrite the store sorted by key, which reads faster and takes less space.

    Loads go on meanwhile. The new file replaces the store at the end, and needs as much free space
    as the store takes. It pays after large loads or many small ones.

    Example: rail store compact
    """
    held = Store(store_path(store))
    done = compact(held)
    console.print(
        f"{held.path}: {counted(done.rows, 'row')}, {done.before_bytes:,} bytes before, "
        f"{done.after_bytes:,} after"
    )


@app.command("backup")
@asks(target=typer.Argument(help="The file to make."))
def backup_command(target: str, store: Path | None = None) -> None:
    """Copy the store to a new file, as it is between two commits.

    Loads wait meanwhile. The copy is a store itself.

    Example: rail store backup copy.duckdb
    """
    held = Store(store_path(store))
    size = back_up_store(held, target)
    console.print(f"{target}: {size:,} bytes, a copy of {held.path}")


@app.command("remap")
@asks()
def remap_command(store: Path | None = None) -> None:
    """Read the store again under the wire profile that RAIL_PROFILE names.

    Use this after correcting a profile. Rows are read from the pages that loads keep beside the
    store for 30 days (pages_days in rail.toml), the columns of events from their documents. No
    service is asked. The store is then as if it had been loaded under this profile. If the page of
    a row is gone, the command names the stream and time and changes nothing: rail sync --again
    loads it. Stop loads and follows first.

    Example: rail store remap
    """
    held = Store(store_path(store))
    done = remap(held, user_profile())
    console.print(
        f"{held.path}: {counted(done.rows, 'row')} read anew from {counted(done.pages, 'page')}, "
        f"{done.changed_rows:,} of them changed; {counted(done.documents, 'event document')}, "
        f"{done.changed_documents:,} of them changed"
    )


@asks(
    data=typer.Argument(
        help="A manifest.json, the folder or address it is in, or a file of rows: .csv, .json, "
        ".parquet and more."
    ),
    stream="The key of your own rows: BTC_USD:VENDOR.spot, events/splash.",
    layout=f"--as: A known layout: {', '.join(LAYOUTS)}.",
    mapped="--map: The file's names for our columns: ts=time,price=close.",
    columns="Names or positions of ts and the other columns: 1,5 or 1+2,6.",
    decimal="The decimal mark: . or a comma.",
    unit="Unit of times that are numbers: s (default), ms, us, ns.",
    form="--format: Format of times, such as %d/%m/%Y %H:%M.",
    timezone="Time zone of times that state none, such as UTC.",
    stamped="Whether a row's time is the start or the end of its bar.",
    step="Length of a bar: 1m. Default: the most common one.",
    shared="Which of several rows in one second to take: first, last or mean.",
    rates="Unit of funding rates: fraction or percent.",
)
def import_command(
    data: str,
    stream: str | None = None,
    layout: str | None = None,
    mapped: str | None = None,
    columns: str | None = None,
    decimal: str | None = None,
    unit: str | None = None,
    form: str | None = None,
    timezone: str | None = None,
    stamped: str = "start",
    step: str | None = None,
    shared: str | None = None,
    rates: str | None = None,
    store: Path | None = None,
) -> None:
    """Make a store from published data, or keep your own rows in a store of their own.

    A store made from a manifest equals the published one. Each file is checked by its SHA-256: if
    one is missing or damaged, nothing is made. An existing store is left alone.

    With --stream the rows of a file are your own prices, spreads, funding or events, as in
    `rail import btc.csv --as binance-klines --stream BTC_USDT:BINANCE.spot`. They are checked and
    stored apart from any service's data. More files may follow. Check the printed times of the
    first and last row.

    Before: rail store publish archive

    Example: rail import archive/manifest.json --store again.duckdb
    """
    path = store_path(store)
    if stream is not None:
        mine = own_series(
            data,
            stream,
            layout=layout,
            columns=_names(mapped) if columns is None else _places(columns, mapped),
            decimal=cast("Decimal | None", decimal),
            unit=cast("Unit | None", unit),
            format=form,
            timezone=timezone,
            stamped=cast("Stamp", stamped),
            step_s=None if step is None else parse_length(step, parameter="--step"),
            shared=cast("Shared | None", shared),
            rates=cast("Rates | None", rates),
        )
        done = keep_own(mine, path)
        rows = f"{counted(done.new, 'row')} new, {done.revised:,} revised, {done.repeated:,} known"
        console.print(f"{path}: {rows}, of {mine.stream} over {mine.window}, {mine.source.label}")
        for note in mine.origin.notes[1:]:
            console.print(note)
        return
    if is_rows_file(data):
        raise InputError("--stream", None, "what the rows are, e.g. BTC_USD:VENDOR.spot")
    made = import_store(data, path)
    streams = made.catalogue()
    rows = counted(int(streams["rows"].sum()), "row")
    console.print(f"{made.path}: {counted(streams.height, 'stream')}, {rows}, {made.source.label}")


def _names(text: str | None) -> dict[str, str]:
    found = {}
    for pair in (each for each in (text or "").split(",") if each.strip()):
        ours, theirs = map(str.strip, pair.partition("=")[::2])
        if not (ours and theirs):
            raise InputError("--map", text, "ours=theirs,ours=theirs, e.g. ts=time,price=close")
        found[ours] = theirs
    return found


def _places(text: str, mapped: str | None) -> tuple[str, ...]:
    places = tuple(each.strip() for each in text.split(","))
    if mapped is not None or not all(places):
        raise InputError("--columns", text, "names or places such as 1,5, without --map")
    return places


def _files(files: int, size: int) -> str:
    return f"{counted(files, 'file')}, {size:,} bytes"


_COLUMNS = (
    *("stream", "rows", "answered_share", "behind_s", "holes", "open_gaps"),
    *("longest_hole_s", "last_ts", "first_ts"),
)
_CELLS: Cells = {"rows": lambda row: f"{row['rows']:,}" if row["rows"] else row["state"]}

_STATUS = schema_of(
    "holdings.stream_states", also=("snapshot_oddity", "deliveries", "last_load_findings")
)
"""The columns of a stream's row. The last two are those of the store."""


@tabled(lambda: _STATUS)
def status_command(store: Path | None = None, *, view: TableOptions) -> None:
    """Show what the store holds: one line per trajectory, event log and kind of snapshot.

    held: rows, documents or snapshots, else "nothing there", "no answer" or "not requested yet".
    answered: the share of the requested time that the service has answered for, as far as it can be
    known by now. behind: the time from the last row or answer to now, by the service's clock.
    holes: how often rows are more than 1.5 steps apart, and the longest hole. gaps: losses of live
    capture that are still open. Times are UTC.

    Example: rail status --store rail.duckdb

    Example: rail status --where "answered_share < 1" --sort -behind_s
    """
    held = store_as_of(store, view.as_of)
    with held.reading():
        catalogue, frame = held.catalogue(), stream_states(held)
        logs = [log for log in map(SnapshotLog, SnapshotKind) if log.key in catalogue["stream"]]
        odd = {log.key: words for log in logs if (words := _odd(held, log.of))}
        own, never = held.source.kind == "own", never_asked(held.ledger())
        deliveries, findings = read_deliveries(held).height, _findings(held)
        loads, remap = held.loads(), held.command("store", "remap")
        profiles = profile_words(loads, held.rows_by_load(), remap)
        order = _order(held) if held.as_of is None else ""
    if catalogue.is_empty() and not deliveries:
        advice = sync_advice(held, "--watchlist", does="loads some")
        raise EmptyWindowError(f"{held.name} holds nothing yet; {advice}")
    now = int(time.time()) if held.as_of is None else held.as_of
    notes = [
        _totals(catalogue, deliveries) + ("" if own else _last_answer(catalogue, now)),
        f"not requested yet: {', '.join(never)}" if never and not own else "",
        *(f"{key}: {words}" for key, words in odd.items()),
        _ties(frame),
        _gaps(frame),
        _lost(held.gaps()),
        *(f"the last load found: {line}" for line in explained(findings)),
        profiles,
        order,
    ]
    found = some([f"{f['kind']} at {f['where']} ({f.get('times', 1)}x)" for f in findings])
    frame = frame.with_columns(
        pl.col("stream")
        .replace_strict(odd, default=None, return_dtype=pl.String)
        .alias("snapshot_oddity"),
        pl.lit(deliveries, pl.Int64).alias("deliveries"),
        pl.lit(found if findings else None, pl.String).alias("last_load_findings"),
    )
    lost = frame["open_gaps"].sum()
    columns = [each for each in _COLUMNS if lost or each != "open_gaps"]
    show(view, Sheet(str(held.path), held.source.label, frame, columns, notes=notes, cells=_CELLS))


def _totals(catalogue: pl.DataFrame, deliveries: int) -> str:
    of_kind = {kind: catalogue.filter(kind=kind) for kind in ("events", "snapshot")}
    kept = pl.col("kind").str.starts_with("snapshot-")
    series = catalogue.filter(~pl.col("kind").is_in(list(of_kind)) & ~kept)
    kept_rows = ("row kept from them", "rows kept from them")
    parts = [
        (series, ("row", "rows"), ("trajectory", "trajectories")),
        (of_kind["events"], ("event document",), ("log",)),
        (of_kind["snapshot"], ("snapshot",), ("kind",)),
        (catalogue.filter(kept), kept_rows, ("pair or leg", "pairs or legs")),
    ]
    held = [
        f"{counted(int(frame['rows'].sum()), *things)} of {counted(frame.height, *of)}"
        for frame, things, of in parts
        if frame.height
    ]
    if deliveries:
        held.append(counted(deliveries, "webhook delivery", "webhook deliveries"))
    return ", ".join(held)


def _last_answer(catalogue: pl.DataFrame, now: int) -> str:
    asked = catalogue.drop_nulls("asked_at").sort("asked_at").tail(1).to_dicts()
    if not asked:
        return "; the service has answered nothing yet"
    ago_s = max(0, now - int(asked[0]["asked_at"]))
    clock = format_ts(int(asked[0]["served_at"]))
    return f"; last answer {duration(ago_s)} ago, when the service's clock was {clock}"


def _odd(store: Store, kind: SnapshotKind) -> str:
    newest = store.snapshots(kind, newest=True)["document"].to_list()
    return snapshot_items(kind.value, newest[0]).words if newest else ""


def _ties(frame: pl.DataFrame) -> str:
    tied = frame.filter(pl.col("tied_rows") > 0)
    if tied.is_empty():
        return ""
    rows = counted(int(tied["tied_rows"].sum()), "row shares its time", "rows share their time")
    names = some(tied["stream"].to_list())
    return f"{rows} with another, of {names}: statistics use the last of each time"


def _gaps(frame: pl.DataFrame) -> str:
    counts = {status: int(frame[f"{status}_gaps"].sum()) for status in GapStatus}
    del counts[GapStatus.LOST]
    parts = [f"{count:,} {status}" for status, count in counts.items() if count]
    return f"gaps of live capture: {', '.join(parts)}" if parts else ""


def _lost(gaps: pl.DataFrame) -> str:
    rows = gaps.filter(status=GapStatus.LOST.value).select("stream", "start_ts", "end_ts", "cause")
    says = [f"{key} {format_ts(a)} to {format_ts(b)}, {why}" for key, a, b, why in rows.iter_rows()]
    return f"lost at the source, each load asks again: {some(says)}" if says else ""


def _order(store: Store) -> str:
    if (found := scattered(store)) is None:
        return ""
    return (
        f"the rows of a trajectory lie in {found[0]:.0f} parts of the file, as they came; "
        f"`{store.command('store', 'compact')}` brings them into {found[1]:.0f}, "
        "which is read faster"
    )


def _findings(store: Store) -> list[dict[str, Any]]:
    last = store.loads().head(1)["finding"].drop_nulls().to_list()
    return json.loads(last[0]) if last else []
