"""docs/store.md, made from the tables of the store: `make docs` writes it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from toolkit import tables
from toolkit.store.file.schema import FORMAT_VERSION, STORAGE_VERSION
from toolkit.store.reading.views import VIEWS, SqlView
from toolkit.store.writing.pages import KEPT_DAYS, MOST_BYTES
from toolkit.tables import TABLES, Field, Table

PAGE = Path(__file__).parents[2] / "docs" / "store.md"

HEAD = f"""\
# The tables of a store

A store is one DuckDB file. Programs with DuckDB {STORAGE_VERSION[1:4]} or newer can read it; 1.4
refuses a file of "version number 68". `make docs` writes this page from `toolkit/tables.csv`. The
format is {FORMAT_VERSION}.

Times are UTC, and a time in seconds is a Unix time. Intervals include their start and exclude their
end. A column is never null unless its line says so. No two rows of a table share its key, although
the file [declares none](design.md#no-primary-key).

Tables have the stream's number, times as numbers, and every revision of a row. For SQL, use the
[views](#views) instead. Open a store read-only and close it after each query, because a program
that keeps it open locks out all others. [concepts.md](concepts.md) explains the terms.
"""

PAGES = f"""\
## Pages

The answers from which rows of trajectories were read are in an SQLite file beside the store, such
as `rail.duckdb.pages`. `rail store remap` reads them again under a corrected wire profile. Event
documents are in the store itself, byte for byte.

Pages are kept for {KEPT_DAYS} days, or for `pages_days` in `rail.toml` or of `rail.sync` in Python
(0 for none), and for at most {MOST_BYTES // 2**30} GiB, the oldest removed first, at the next
commit. `rail store backup` copies the file, `rail store compact` leaves it unchanged, `rail store
verify` reads it, and a publication has none. Move the store and its pages together. Without pages
the store is complete, and only a remap is refused.

On the simulated market (20 trajectories, 25 days, pages of 5,000 rows) a row takes 13 bytes for a
price, 21 for a spread and 17 for funding. Pages add 6 to 7.5 % to the CPU time of a load, and 30 to
50 MB of memory. A follow keeps about 50 bytes per request: 36 MB per day for 500 trajectories every
minute. A remap of 1.4 million rows took 4.3 s of CPU time and 460 MB of memory.

"""

VIEWS_HEAD = """\
## Views

The views are in the file, so any program that reads DuckDB sees them. They have the stream's key,
times as TIMESTAMP in UTC (without a zone, so a session's zone does not change them), and only the
newest revision of each row. `ts` is the start of a bar and its price is the close: to join events
with what was known, add the step to `ts`. The order of rows is undefined without ORDER BY.

Each process renews the views at its first write. It replaces other views of these names and leaves
tables.

In Python `Store.sql` runs one SELECT over them:

<!-- run by tests/unit/store/test_views.py -->

```sql
SELECT trajectory, count(*) AS n, quantile_cont(spread_log_bps, 0.95) AS q95_log_bps
FROM spreads WHERE time >= '2023-03-10' AND time < '2023-03-13' GROUP BY trajectory
```

`Store.sql` writes nothing and reads no other file. A child process runs the query, with a quarter
of the memory and for at most `within_s` seconds. It defines the views itself, so nothing that
somebody put into a file is executed. A program of yours that opens a stranger's file does execute
its views.

`held_coverage` has the ledger's records: asked, provisional, settled, lost. The states of a window
(held, empty, not yet known, missing, unrecoverable, lost at the source) are computed from them,
the rows and the plan. `Store.coverage(key, (start, end))` returns a window's stretches with their
states, as a frame that DuckDB can query:

<!-- run by tests/unit/store/test_views.py -->

```python
states = store.coverage("BTC_USD:KRAKEN.spot", ("2023-03-10", "2023-03-13"))
duckdb.sql("SELECT state, sum(end_ts - start_ts) AS seconds FROM states GROUP BY state")
```

| view | rows |
|---|---|"""


def store_page() -> str:
    """Return the whole page: an overview, each table, then the words some columns hold."""
    parts = [HEAD, "\n".join(["| table | rows |", "|---|---|", *overview(TABLES), ""])]
    parts += [section(table, "##") for table in TABLES]
    parts.append(PAGES)
    parts.append("\n".join([VIEWS_HEAD, *overview(VIEWS), ""]))
    parts += [section(view, "###") for view in VIEWS]
    return "\n".join(parts + [words(each) for each in vars(tables).values() if is_words(each)])


def overview(listed: Sequence[Table | SqlView]) -> list[str]:
    return [f"| [{each.name}](#{each.name}) | {markdown(each.meaning)} |" for each in listed]


def section(of: Table | SqlView, heading: str) -> str:
    """Return the heading, key, order and columns of a table or a view."""
    order = f" Sorted by {names(of.order)}." if isinstance(of, Table) and of.order else ""
    columns = "\n".join(map(line, of.columns))
    return (
        f"{heading} {of.name}\n\n{markdown(of.meaning)}\n\nKey: {names(of.key)}.{order}\n\n"
        f"| column | type | unit | meaning |\n|---|---|---|---|\n{columns}\n"
    )


def line(column: Field) -> str:
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
    return ", ".join(f"`{word}`" for word in words_)


def markdown(text: str) -> str:
    """Return a docstring's text as Markdown that may stand in a table."""
    return text.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(store_page(), encoding="utf-8")
