"""`rail store` and `rail import`: work on a whole store."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import typer

from toolkit.cards import counted
from toolkit.cli.options import asks
from toolkit.cli.show import console
from toolkit.errors import InputError, StoreError
from toolkit.market import format_ts, parse_length
from toolkit.series import own_series
from toolkit.series.own import Rates, Shared
from toolkit.series.own_files import LAYOUTS, Decimal, is_rows_file
from toolkit.series.own_times import Stamp, Unit
from toolkit.store import Store
from toolkit.store.file.backup import back_up_store
from toolkit.store.file.compaction import compact
from toolkit.store.file.verification import verify
from toolkit.store.publish import import_store, publications, publish
from toolkit.store.writing.remap import remap
from toolkit.workspace import store_path
from toolkit.workspace.own_store import keep_own
from toolkit.workspace.settings import user_profile

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _root() -> None:
    """Publish, check, rewrite, copy or read a store anew, while others use it."""


@app.command("publish")
@asks(
    where=typer.Argument(help="A folder, or the address of an object store: s3://BUCKET/FOLDER."),
    keep="Remove publications older than this (30d), and files that no other one names.",
)
def publish_command(where: str, keep: str | None = None, store: Path | None = None) -> None:
    """Publish the store: one Parquet file per stream and month of UTC, and manifest.json.

    Files are named by their content, so unchanged ones are not written again. The manifest is
    replaced last. Polars, DuckDB and pandas read the files, `rail import` makes a store from them.
    Object stores need the extra "publish" and take their credentials from the environment.

    The last line is the address of this publication, which can be read until --keep removes it.

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

    The address of each stays the same. Give it to --store, `rail import` or `tk.open`.

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

    It reads every byte and checks keys, revisions, loads, streams, counters and the ledger. The
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
    as the store has. It pays after large loads or many small ones.

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
@asks()
def backup_command(target: str, store: Path | None = None) -> None:
    """Copy the store to a new file, as it is between two commits.

    Loads wait meanwhile. The copy is a store.

    Example: rail store backup copy.duckdb
    """
    held = Store(store_path(store))
    size = back_up_store(held, target)
    console.print(f"{target}: {size:,} bytes, a copy of {held.path}")


@app.command("remap")
@asks()
def remap_command(store: Path | None = None) -> None:
    """Read the store again under the wire profile that RAIL_PROFILE names.

    Use it after a profile had a wrong unit, sign, field or word. Rows come from the pages that
    loads keep beside the store for 30 days (pages_days in rail.toml), the columns of events from
    their documents. No service is asked. The store is then as if it had been loaded under this
    profile. If the page of a row is gone, it names the streams and times and changes nothing:
    rail sync --again loads them again. Stop loads and follows first.

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
    mapped="--map: Names in the file for our columns: ts=time,price=close.",
    columns="Names or places of ts and the other columns: 1,5 or 1+2,6.",
    decimal="The decimal mark, . or a comma.",
    unit="Unit of times that are numbers: s (default), ms, us, ns.",
    form="--format: Format of times, such as %d/%m/%Y %H:%M.",
    timezone="Time zone of times without one, such as UTC.",
    stamped="Whether a row's time is the start or the end of its bar.",
    step="Length of a bar: 1m. Default: the commonest.",
    shared="Of rows in one second take the first, last or mean.",
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

    The store of a manifest equals the one that was published. Each file is checked by its SHA-256:
    if one is missing or damaged, nothing is made. An existing store is left alone.

    With --stream the rows of a file are your own prices, spreads, funding or events, as in
    `rail import btc.csv --as binance-klines --stream BTC_USDT:BINANCE.spot`. They are checked and
    kept in a store that takes no service's data. More files may follow. Check the printed times of
    the first and last row.

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
    pairs = [pair.partition("=") for pair in (text or "").split(",") if pair.strip()]
    for ours, equals, theirs in pairs:
        if not (ours.strip() and equals and theirs.strip()):
            raise InputError("--map", text, "ours=theirs,ours=theirs, e.g. ts=time,price=close")
    return {ours.strip(): theirs.strip() for ours, _, theirs in pairs}


def _places(text: str, mapped: str | None) -> tuple[str, ...]:
    places = tuple(each.strip() for each in text.split(","))
    if mapped is not None or not all(places):
        raise InputError("--columns", text, "names or places such as 1,5, without --map")
    return places


def _files(files: int, size: int) -> str:
    return f"{counted(files, 'file')}, {size:,} bytes"
