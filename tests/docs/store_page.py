"""docs/store.md, made from the tables of the store: `make docs` writes it."""

from __future__ import annotations

import inspect
from enum import StrEnum
from pathlib import Path

from toolkit import tables
from toolkit.store.pages import KEPT_DAYS, MOST_BYTES
from toolkit.store.schema import FORMAT_VERSION, STORAGE_VERSION
from toolkit.store.views import VIEWS, SqlView
from toolkit.tables import TABLES, Field, Table

PAGE = Path(__file__).parents[2] / "docs" / "store.md"

HEAD = f"""\
# The tables of a store

A store is one DuckDB file. Any program with DuckDB {STORAGE_VERSION[1:4]} or newer can read it,
and none with an older one: 1.4 says that it can't read a file of "version number 68".
This page is made from `toolkit/tables.py` by `make docs`, and a test keeps the two equal. Its
format is {FORMAT_VERSION}.

Times are UTC. A time in seconds is a Unix time. An interval contains its start and not its end.
A column is never null unless its line says so. No two rows of a table share its key. The key is not
declared in the file: see [design.md](design.md#no-primary-key).

Tables have the stream's number, times as numbers, and every revision of a row. To read a store with
SQL, take the [views](#views) instead.

Open a store read-only and close it after each query. A program that keeps the file open locks every
other program out. The words used here are explained in [concepts.md](concepts.md).
"""

PAGES = f"""\
## Pages

Beside a store lies what its rows were read from: the service's answers with rows of trajectories,
in a file of SQLite such as `rail.duckdb.pages`. `rail store remap` reads them again under a
corrected wire profile. Event documents are in the store itself, byte for byte.

They are kept for {KEPT_DAYS} days after they came. `pages_days` in `rail.toml`, or of `rail.sync`
in Python, sets another number, 0 for none. They take at most {MOST_BYTES // 2**30} GiB: the
oldest go first. What is too old goes with the next commit. `rail store backup` copies the file,
`rail store compact` leaves it as it is, `rail store verify` reads it, and a publication has none.
Move the store and its pages together. Without them the store is whole, and only a remap refuses.

Measured on the simulated market, 20 trajectories over 25 days in pages of 5,000 rows: 13 bytes a
row of prices, 21 of spreads, whose figure alone has 17 digits, and 17 of funding. Packing and
writing them adds 7.5 % to the CPU time of a load of 600,000 prices in pages of 5,000 rows, 6 % in
pages of 1,000, and 30 to 50 MB of memory. With `pages_days` 0 nothing is packed. A follow keeps
about 50 bytes of each question, also where it asks for the same youngest rows again: of 500
trajectories every minute 36 MB a day. A remap of 1.4 million rows took 4.3 s of CPU time and 460
MB of memory.

"""

VIEWS_HEAD = """\
## Views

The views are in the file, so that any program that reads DuckDB sees them. They have the stream's
key, times as TIMESTAMP in UTC, and of each row the newest revision alone. A TIMESTAMP has no zone:
a session's zone does not change it. `ts` is the start of the row's interval, and its price is that
at the end. So an event at `ts` + 10 s came before that price: to join events with what was known,
add the interval to `ts`. Rows come in no order but that of an ORDER BY.

A store that was made before there were views gets them when it is next written to. Each process
makes them anew at its first write. A view of such a name that somebody put there is replaced, and a
table of such a name is left.

In Python `Store.sql` runs one SELECT over them:

<!-- run by tests/unit/store/test_views.py -->

```sql
SELECT trajectory, count(*) AS n, quantile_cont(spread_log_bps, 0.95) AS q95_log_bps
FROM spreads WHERE time >= '2023-03-10' AND time < '2023-03-13' GROUP BY trajectory
```

`Store.sql` can write nothing and reads no other file. Another process runs the query, in a quarter
of the memory and for `within_s` seconds at most. It makes the views for each query itself, and
looks up no name in the file. So what somebody may have put into a file does not run. A program of
yours that opens a stranger's file runs the views of that file.

`held_coverage` has what the ledger records: asked, provisional, settled, lost. The states of a
window (held, empty, not yet known, missing, unrecoverable, lost at the source) are computed from
that, from the rows and their step, and from the plan's reach and delay. They have one place, in
Python: `Store.coverage(key, (start, end))` gives the stretches of a window with their states, as a
frame that DuckDB can query:

<!-- run by tests/unit/store/test_views.py -->

```python
states = store.coverage("BTC_USD:KRAKEN.spot", ("2023-03-10", "2023-03-13"))
duckdb.sql("SELECT state, sum(end_ts - start_ts) AS seconds FROM states GROUP BY state")
```

| view | rows |
|---|---|"""


def store_page() -> str:
    """Return the whole page: an overview, each table, then the words some columns hold."""
    overview = [
        f"| [{table.name}](#{table.name}) | {markdown(table.meaning)} |" for table in TABLES
    ]
    parts = [HEAD, "\n".join(["| table | rows |", "|---|---|", *overview, ""])]
    parts += [section(table) for table in TABLES]
    parts.append(PAGES)
    parts.append("\n".join([VIEWS_HEAD, *overview_of_views(), ""]))
    parts += [view_section(view) for view in VIEWS]
    named = vars(tables).values()
    parts += [words(each) for each in named if is_words(each)]
    return "\n".join(parts)


def overview_of_views() -> list[str]:
    """Return one line for each view."""
    return [f"| [{view.name}](#{view.name}) | {markdown(view.meaning)} |" for view in VIEWS]


def view_section(view: SqlView) -> str:
    """Return one view's heading, key and columns."""
    columns = "\n".join(map(line, view.columns))
    return (
        f"### {view.name}\n\n{markdown(view.meaning)}\n\nKey: {names(view.key)}.\n\n"
        f"| column | type | unit | meaning |\n|---|---|---|---|\n{columns}\n"
    )


def section(table: Table) -> str:
    """Return one table's heading, key, order and columns."""
    order = f" Sorted by {names(table.order)}." if table.order else ""
    columns = "\n".join(map(line, table.columns))
    return (
        f"## {table.name}\n\n{markdown(table.meaning)}\n\nKey: {names(table.key)}.{order}\n\n"
        f"| column | type | unit | meaning |\n|---|---|---|---|\n{columns}\n"
    )


def line(column: Field) -> str:
    """Return the line of one column."""
    meaning = markdown(column.meaning) + (" (may be null)" if column.nullable else "")
    return f"| `{column.name}` | {column.type} | {column.unit} | {meaning} |"


def words(kind: type[StrEnum]) -> str:
    """Return the heading and the text of a set of words, and the words themselves."""
    text = markdown(inspect.cleandoc(kind.__doc__ or ""))
    return f"## {kind.__name__}\n\n{text}\n\nWords: {names(tuple(kind))}.\n"


def is_words(each: object) -> bool:
    """Return whether something is a set of words that the modules of tables define."""
    return (
        inspect.isclass(each) and issubclass(each, StrEnum) and each.__module__ == tables.__name__
    )


def names(words_: tuple[str, ...]) -> str:
    """Return words as code, with commas between them."""
    return ", ".join(f"`{word}`" for word in words_)


def markdown(text: str) -> str:
    """Return a docstring's text as Markdown that may stand in a table."""
    return text.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(store_page(), encoding="utf-8")
