"""The table of all streams: their coverage over time as a map, and how much of it is held."""

from __future__ import annotations

from typing import Any

import polars as pl

from toolkit.cards import counted
from toolkit.columns import column
from toolkit.dashboard.export import hand_over
from toolkit.dashboard.pages.health.map import CoverageMap
from toolkit.dashboard.pages.health.measured import Health
from toolkit.dashboard.pages.health.tables import STATE_COLUMNS
from toolkit.dashboard.parts.age import age_column, stream_ages
from toolkit.dashboard.parts.rows import RowColumn, row_column, show_rows
from toolkit.dashboard.screen import st
from toolkit.dashboard.shell import PageShell
from toolkit.foreign import Markdown
from toolkit.market import SnapshotTrajectory, Stream, Trajectory, format_ts
from toolkit.show.values import value_text

STATES = Markdown(
    "**held**: answered, with rows. **empty**: the service has no row there. **not yet known**: "
    "rows may still appear or change. **missing**: not loaded. **unrecoverable**: older than the "
    "plan reaches. **lost at the source**: so the service says.\n\nShares are of the time from the "
    "first second asked for to the service's clock at its last answer. A log holds all its answers."
)
_SHOWN = 500
_HIGH = 16


def show_streams(shell: PageShell, health: Health) -> None:
    """Show the table, most missing first."""
    lines = _measured(shell, health.lines).head(_SHOWN)
    legs = [_name_and_legs(key) for key in lines["stream"]]
    columns = [
        RowColumn("stream", "text", [name for name, _ in legs]),
        RowColumn("legs", "text", [legs for _, legs in legs]),
        row_column(lines, "kind", narrow=False),
        *_map_column(shell, lines, health.map),
        row_column(lines, "held"),
        *_gap_columns(lines),
        row_column(lines, "rows", narrow=False),
        age_column(lines),
    ]
    if lines["answer"].n_unique() > 1:
        columns.append(row_column(lines, "answer", narrow=False))
    show_rows(
        Markdown("Streams, most missing first"),
        lines["stream"].to_list(),
        columns,
        "streams",
        _HIGH,
    )
    below = st.container(horizontal=True, vertical_alignment="center", gap="small")
    limited = Markdown("{:,} of ").format(_SHOWN) if health.lines.height > _SHOWN else Markdown("")
    with below:
        st.caption(
            Markdown("{}{}, most missing first. A row opens its page.").format(
                limited, counted(health.lines.height, "stream")
            ),
            help=STATES,
        )
    path, now = shell.held.place, shell.held.now()
    python = f"import toolkit as tk\n\nwith tk.open({path!r}) as rail:\n    found = rail.status()\n"
    rows = lines.drop("late_s", "old_s", "stands").with_columns(ts=pl.lit(now))
    hand_over(below, rows, shell.held.source, f"streams_{format_ts(now)}", python)


def _measured(shell: PageShell, lines: pl.DataFrame) -> pl.DataFrame:
    """Add rows, ages and held (percent, null where nothing is known), and sort the lines."""
    streams = shell.held.streams
    ages = stream_ages(streams, shell.held.now(), stands=shell.held.clock_stands)
    facts = streams.select("stream", "rows").join(ages, on="stream")
    held = pl.when(pl.col("known_s") > 0).then(100 * pl.col("held_s") / pl.col("known_s"))
    return (
        lines.with_columns(held=held)
        .join(facts, on="stream", how="left", maintain_order="left")
        .sort(
            pl.col("missing_s") > 0,
            "held",
            "stream",
            descending=[True, False, False],
            nulls_last=True,
        )
    )


def _name_and_legs(key: str) -> tuple[str, str]:
    """Return the symbol of a stream and its legs. Of a log its key, and no legs.

    >>> _name_and_legs("A_B:X.spot:Y.dex"), _name_and_legs("events/splash")
    (('A_B', 'X.spot → Y.dex'), ('events/splash', ''))
    """
    stream = Stream.parse(key)
    if isinstance(stream, Trajectory | SnapshotTrajectory):
        return str(stream.symbol), " → ".join(map(str, stream.legs))
    return key, ""


def _map_column(
    shell: PageShell, lines: pl.DataFrame, found: CoverageMap | None
) -> list[RowColumn]:
    if found is None:
        return []
    ends = shell.clock(pl.Series([found.start, found.end]))
    return [
        RowColumn(
            "map",
            "map",
            [found.runs.get(key) for key in lines["stream"]],
            help=f"each cell is {found.step_words}",
            of=" to ".join(end.removesuffix(" 00:00") for end in ends),
            shown=[_shares_words(row) for row in lines.iter_rows(named=True)],
            cells=(found.start, found.step_s),
        )
    ]


def _shares_words(row: dict[str, Any]) -> str:
    known_s, share = row["known_s"], column("coverage")
    parts = [
        f"{state.value} {value_text(row[name] / known_s, share)}"
        for state, name in STATE_COLUMNS.items()
        if known_s and row[name]
    ]
    return ", ".join(parts) or "nothing is known to be due"


def _gap_columns(lines: pl.DataFrame) -> list[RowColumn]:
    """Return the time that is missing, where any is, and the longest stretch that is not held."""
    missing_s = pl.col("missing_s")
    found = lines.with_columns(
        pl.when(missing_s > 0).then(missing_s), longest_gap=pl.col("gap_end") - pl.col("gap_start")
    )
    names = ("missing_s", "longest_gap", "gap_state")
    return [row_column(found, name, narrow=False) for name in names]
