"""`rail status`: what the store holds, how complete it is, how old, and where it is from."""

from __future__ import annotations

import time

import polars as pl

from toolkit.cli.options import StorePath
from toolkit.cli.show import console, duration, plain_table
from toolkit.errors import EmptyWindowError
from toolkit.intervals import Interval, total_s
from toolkit.market import Family, Trajectory, format_ts
from toolkit.store import Ledger, Store
from toolkit.workspace import store_path

__all__ = ["status_command"]

_WIDE = 118
"""Columns of a terminal on which the table's every column has room."""


def status_command(store: StorePath = None) -> None:
    """Show what the store holds: coverage, gaps, age and source of every trajectory.

    answered: the share of the time from the first to the last second asked for that the service
    has answered for. holes: where rows are further apart than 1.5 steps (and how far at most).
    behind: from the newest row to the service's clock at the last sync. Times are UTC.

    Example: rail status --store rail.duckdb
    """
    held = Store(store_path(store))
    source = held.source
    catalogue = held.catalogue().join(
        held.continuity(), on=["trajectory", "family"], how="left", maintain_order="left"
    )
    if catalogue.is_empty():
        raise EmptyWindowError(f"{held.path} holds no trajectory yet; `rail sync` loads some")
    ledger = held.ledger()
    console.print(f"{held.path} · {source.label}")
    wide = console.width >= _WIDE
    headings = ["trajectory", "rows", "first", "last", "answered", "holes", "behind"]
    table = plain_table(*(h for h in headings if wide or h != "first"))
    for row in catalogue.iter_rows(named=True):
        trajectory = Trajectory.parse(row["trajectory"], Family(row["family"]))
        cells = _cells(row, ledger[trajectory])
        table.add_row(*(c for h, c in zip(headings, cells, strict=True) if wide or h != "first"))
    console.print(table)
    console.print(_age(catalogue))


def _cells(row: dict[str, int | str | None], ledger: Ledger) -> list[str]:
    answered = ledger.answered
    asked = Interval(answered[0].start, answered[-1].end) if answered else Interval(0, 0)
    share = total_s(answered) / asked.length_s if answered else 0.0
    first, last = row["first_ts"], row["last_ts"]
    return [
        str(row["trajectory"]),
        f"{row['rows']:,}",
        _short(first),
        _short(last),
        f"{share:.2%}",
        _holes(row),
        duration(ledger.edge.served_at - last) if isinstance(last, int) else "–",
    ]


def _short(ts: object) -> str:
    return format_ts(ts).removesuffix(" UTC") if isinstance(ts, int) else "–"


def _holes(row: dict[str, int | str | None]) -> str:
    if not row["holes"]:
        return "0"
    return f"{row['holes']:,} (to {duration(float(row['longest_hole_s'] or 0))})"


def _age(catalogue: pl.DataFrame) -> str:
    newest = catalogue.sort("asked_at").tail(1).to_dicts()[0]
    ago_s = max(0, int(time.time()) - int(newest["asked_at"]))
    total = int(catalogue["rows"].sum())
    return (
        f"{total:,} rows of {catalogue.height:,} trajectories; last sync {duration(ago_s)} ago, "
        f"when the service's clock read {format_ts(int(newest['served_at']))}"
    )
