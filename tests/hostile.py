"""A store full of hostile strings, wherever a service or a stranger could have put one."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import polars as pl

from toolkit.intervals import Interval
from toolkit.market import (
    EventFamily,
    EventLog,
    Family,
    Leg,
    Market,
    SnapshotKind,
    SnapshotLog,
    Source,
    Stream,
    Symbol,
    Trajectory,
)
from toolkit.store import Batch, Edge, LoadOrigin, Snapshot, Store, StoreWriter
from toolkit.tables import BROUGHT, EVENT
from toolkit.wire.quota import Allowance

START = 1_678_406_400  # 2023-03-10 00:00 UTC
MINUTES = 120
END = START + 60 * MINUTES

SYMBOL = Symbol("=$(touch${IFS}PWNED)`touch${IFS}PWNED`<b>![x][red]", "U'S\"D;id|@")
"""The worst that still is a symbol."""


def texts(address: str) -> dict[str, str]:
    """Return the strings by what each attacks. An address that is asked for shows that one hit."""
    return {
        "rich": "[/red][link=x]y[/nothing][bold",
        "image": f"![x]({address}/markdown.png)",
        "label": f"`]![x]({address}/label.png)[`",
        "fence": f"`` ![x]({address}/fence.png) ``",
        "html": f'<img src="{address}/html.png"><script src="{address}/script.js"></script>',
        "svg": f'<a href="{address}/link" target="_self">go</a>{{%{{x}}<extra></extra>',
        "shell": "x';touch PWNED;'$(touch PWNED)`touch PWNED`\ntouch PWNED\n",
        "formula": "=cmd|'/C calc'!A0",
        "terminal": "\x1b]0;title\x07\x1b[2J\x1b[31mred\x9b31m\r\nrail: all is well",
        "direction": "A\u202eDSU\u2066_B\u200b",
        "option": f"--base-url={address}",
        "long": "L" * 5_000,
    }


def store_of(path: Path, address: str) -> Store:
    """Write the store: in every field that holds text of others, all of the strings."""
    strings = texts(address)
    every = " ".join(strings.values())
    store = Store(path)
    writer = StoreWriter(store)
    writer.bind(Source(every, every))
    origin = LoadOrigin(every, END, None, every, Allowance(every, 600, 60, 594))
    load = writer.start_load(origin)
    batch = Batch()
    edge, whole = Edge(END, delay_s=0, retention_s=None, step_s=60), Interval(START, END)
    a, b = Leg("A" * 60, Market.FUTURES), Leg("KRAKEN", Market.FUTURES)
    series = {
        Trajectory(Family.PRICE, SYMBOL, (a,)): prices(every),
        Trajectory(Family.SPREAD, SYMBOL, (a, b)): spreads(every),
        Trajectory(Family.FUNDING, SYMBOL, (a, b)): rates(every),
    }
    for trajectory, rows in series.items():
        batch.add(trajectory, rows, whole, edge)
    for family in EventFamily:
        batch.add_documents(EventLog(family), documents(family, strings), whole, edge)
    for kind in SnapshotKind:
        document = json.dumps({"items": items(kind, strings)}).encode()
        batch.add_snapshot(Snapshot(SnapshotLog(kind), END, document), Edge(END))
    writer.commit(load, batch)
    finding = {"kind": every, "where": every, "says": every, "times": 2}
    writer.finish_load(load, [finding])
    unanswered = writer.start_load(origin)
    pair = Trajectory(Family.SPREAD, SYMBOL, (b, a))
    asked = Batch()
    asked.add(pair, spreads(every).head(10), Interval(START, START + 600), edge)
    writer.commit(unanswered, asked)
    return store


def name_functions_as_duckdbs(path: Path) -> None:
    """Give a file a function of its own in place of each of DuckDB's. None of them may run."""
    listed = (
        "SELECT DISTINCT function_name, function_type IN ('table', 'table_macro', 'pragma') "
        "FROM duckdb_functions() WHERE internal AND function_name <> 'error'"
    )
    with duckdb.connect(str(path)) as connection:
        names = connection.execute(listed).fetchall()
        connection.execute("BEGIN")
        for name, gives_rows in names:
            body = "TABLE SELECT error('it ran')" if gives_rows else "error('it ran')"
            connection.execute(f'CREATE MACRO "{name}"(x) AS {body}')
        connection.execute("COMMIT")


def streams() -> list[Stream]:
    """Return the trajectories of the store."""
    a, b = Leg("A" * 60, Market.FUTURES), Leg("KRAKEN", Market.FUTURES)
    return [Trajectory(Family.PRICE, SYMBOL, (a,)), Trajectory(Family.SPREAD, SYMBOL, (a, b))]


def prices(text: str) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "ts": [START + 60 * m for m in range(MINUTES)],
            "price": [100.0 + m % 7 for m in range(MINUTES)],
            "mark_price": None,
            "volume": 1.5,
            "extra": json.dumps({text: text}),
        },
        schema_overrides={"mark_price": pl.Float64},
    )


def spreads(text: str) -> pl.DataFrame:
    return prices(text).select(
        "ts",
        pl.col("price").alias("buy_price"),
        (pl.col("price") * 1.001).alias("sell_price"),
        pl.lit(0.1).alias("spread_pct"),
        "extra",
    )


def rates(text: str) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "ts": [START + 3600, START + 7200 - 60],
            "buy_rate": [0.0001, 0.0002],
            "sell_rate": [0.0003, 0.0001],
            "buy_interval_hours": 1.0,
            "sell_interval_hours": 1.0,
            "differential_pct_8h": 0.1,
            "extra": json.dumps({text: text}),
        }
    )


def documents(family: EventFamily, strings: dict[str, str]) -> pl.DataFrame:
    """Return two events for each string, which is in each of their columns. One is of its type."""
    given = []
    for minute, (name, text) in enumerate(strings.items()):
        for kind, lifecycle in ((f"{family}.opened", "open"), (text, None)):
            given.append(
                {
                    "family": family.value,
                    "schema_id": text,
                    "event_id": text,
                    "event_type": kind,
                    "ts_ms": 1000 * (END - 3600 + 60 * minute),
                    "ts": END - 3600 + 60 * minute,
                    "lifecycle": lifecycle,
                    "symbol": str(SYMBOL) if name == "rich" else text,
                    "buy_exchange": text,
                    "buy_market": text,
                    "sell_exchange": text,
                    "sell_market": text,
                    "magnitude_pct": 1.5,
                    "close_reason": text,
                    "document": json.dumps({text: text}),
                }
            )
    columns = {n: t for n, t in EVENT.schema.items() if n not in ("revision", *BROUGHT)}
    return pl.DataFrame(given, schema=columns)


def items(kind: SnapshotKind, strings: dict[str, str]) -> list[dict[str, object]]:
    """Return an item for each string, and one of a symbol that is one."""
    found: list[dict[str, object]] = []
    for text in (*strings.values(), str(SYMBOL)):
        venue = text if text != str(SYMBOL) else "KRAKEN"
        both = (venue, venue if text != str(SYMBOL) else "BYBIT")
        if kind is SnapshotKind.FUNDING:
            found += [
                {"symbol": text, "exchange": name, "market": "futures", "rate": 0.01 * n}
                | {"interval_hours": 8, "next_funding_time": END}
                for n, name in enumerate(dict.fromkeys((*both, "OTHER")))
            ]
        elif kind is SnapshotKind.SPREAD:
            found.append(
                {"symbol": text, "buy_exchange": both[0], "buy_market": "spot"}
                | {"sell_exchange": both[1], "sell_market": "spot"}
                | {"spread_pct": 2.5, "opened_at": END - 600}
            )
        else:
            found.append({"symbol": text, "venues": [{"exchange": venue, "market": "spot"}]})
    return found
