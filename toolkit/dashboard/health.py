"""The page about how complete and how old the data is, and what to type to fill a gap."""

from __future__ import annotations

import time

import polars as pl
import streamlit as st

from toolkit.cards import duration
from toolkit.charts import coverage_shares_chart
from toolkit.commands import rail
from toolkit.dashboard.formatting import NULL, command_words
from toolkit.dashboard.health_tables import (
    RUNNING_S,
    STATE_COLUMNS,
    fill_commands,
    load_lines,
    shares_by_kind,
)
from toolkit.dashboard.navigation import go_to
from toolkit.dashboard.reading import measure_coverage
from toolkit.dashboard.shell import PageShell, draw, opened_row, page, say_empty, show_table
from toolkit.foreign import markdown
from toolkit.market import Family, Stream
from toolkit.store import never_asked

_LINES_SHOWN = 500
_LOADS_SHOWN = 50
_COMMANDS_SHOWN = 5


def _body(shell: PageShell) -> None:
    held = shell.held
    lines, rows, store_format = measure_coverage(held.path, held.version)
    _show_figures(shell, store_format)
    if lines.is_empty():
        say_empty(
            f"{markdown(str(held.path))} was never asked to hold anything; load something, then "
            "look here again:",
            rail("sync", "--all-prices", "--all-spreads"),
        )
    else:
        _show_coverage(shell, lines)
    _show_loads(shell, rows)


def _show_figures(shell: PageShell, store_format: int) -> None:
    held = shell.held
    by_kind = dict(held.streams.group_by("kind").agg(pl.col("rows").sum()).iter_rows())
    documents, snapshots = by_kind.pop("events", 0), by_kind.pop("snapshot", 0)
    named = held.loads.filter(pl.col("plan").is_not_null()).head(1).to_dicts()
    plan = named[0] if named else {"plan": None, "quota_left": None, "quota": None}
    with st.grid(4, min_column_width=150):
        series = held.streams.filter(pl.col("kind").is_in(list(Family))).height
        st.metric("Rows", f"{sum(by_kind.values()):,}", help=f"Of {series:,} trajectories.")
        st.metric("Event documents", f"{documents:,}", help=f"Beside {snapshots:,} snapshots.")
        st.metric(
            "Quota left",
            NULL if plan["quota_left"] is None else f"{plan['quota_left']:,}",
            help="Requests left in the plan's window when the service was last asked."
            if named
            else "The service has named none.",
        )
        st.metric(
            "Store", f"{held.path.stat().st_size / 1e6:,.1f} MB", help=f"Format {store_format}."
        )
    quota = (
        f"plan {markdown(plan['plan'])}"
        if plan["plan"] is not None
        else "the service has named no plan and no quota"
    )
    depth = held.streams["retention_s"].drop_nulls()
    reach = f"the plan reaches back {duration(depth.sort()[0])}" if depth.len() else ""
    st.caption(" · ".join(part for part in (markdown(str(held.path)), quota, reach) if part))


def _show_coverage(shell: PageShell, lines: pl.DataFrame) -> None:
    st.subheader("What is held", anchor=False)
    st.caption(
        "Shares of the time from the first second asked for to the service's clock at the stream's "
        "own last answer. held: answered, with rows; empty: the service has no row there; "
        "not yet known: rows may still appear or change; missing: not loaded; unrecoverable: older "
        "than the plan reaches. Of an event log, all that was answered for is held."
    )
    draw(coverage_shares_chart(shares_by_kind(lines), source=shell.held.source), key="shares")
    asked = lines.filter(pl.col("answer") != "never asked")["stream"]
    if kinds := never_asked(map(Stream.parse, asked)):
        st.caption(f"Never asked: {', '.join(kinds)}.")
    _show_lines(shell, lines)
    commands = fill_commands(lines, _COMMANDS_SHOWN)
    if commands:
        missing = lines.filter(pl.col("missing_s") > 0).height
        st.caption(f"{missing:,} have a stretch that is missing. To load the longest:")
        st.code("\n".join(commands), language="bash")


def _show_lines(shell: PageShell, lines: pl.DataFrame) -> None:
    worst = lines.sort(
        (pl.col("held_s") / pl.col("known_s")).fill_nan(None),
        pl.col("stream"),
        maintain_order=True,
        nulls_last=True,
    ).head(_LINES_SHOWN)
    now = shell.held.now()
    worst = worst.join(_facts(shell, now), on="stream", how="left", maintain_order="left")
    st.caption(
        f"{worst.height:,} of {lines.height:,}, the least held first. Age: from the end of the "
        f"newest row to {shell.moment(now)}, the service's clock now."
    )
    opens = pl.when(~pl.col("kind").is_in(["events", "snapshot"])).then(pl.lit("Open"))
    seconds = [*STATE_COLUMNS.values()]
    percent = {f"{name.removesuffix('_s').replace('_', ' ')} (%)": name for name in seconds}
    known_s = pl.when(pl.col("known_s") > 0).then("known_s")
    table = worst.select(
        opens.alias(""),
        "kind",
        "stream",
        *((100 * pl.col(c) / known_s).alias(title) for title, c in percent.items()),
        pl.Series("longest gap", [_gap(line) for line in worst.iter_rows(named=True)]),
        "rows",
        "answer",
        pl.Series("age", [duration(age) for age in worst["age_s"]]),
        "revisions",
    )
    if not table["revisions"].sum():
        table = table.drop("revisions")
    number = st.column_config.NumberColumn
    formats = {title: number(format="%.2f") for title in percent}
    formats |= {name: number(format="localized") for name in ("rows", "revisions")}
    chosen = opened_row(table, "lines", height=min(36 * (table.height + 1), 460), **formats)
    if chosen is not None:
        line = worst.row(chosen, named=True)
        go_to("funding" if line["kind"] == "funding" else "trajectory", trajectory=line["stream"])


def _facts(shell: PageShell, now: int) -> pl.DataFrame:
    """Return rows, revisions and the age (s) of every stream at ``now``, the service's clock."""
    ended = pl.col("last_ts") + pl.col("step_s").fill_null(0)
    return shell.held.streams.select(
        "stream", "rows", "revisions", age_s=(now - ended).clip(lower_bound=0)
    )


def _gap(line: dict[str, object]) -> str:
    start, end = line["gap_start"], line["gap_end"]
    if not isinstance(start, int) or not isinstance(end, int):
        return NULL
    return f"{duration(end - start)}, {line['gap_state']}"


def _show_loads(shell: PageShell, rows: pl.DataFrame) -> None:
    st.subheader("Loads", anchor=False)
    loads = shell.held.loads
    if loads.is_empty():
        st.caption(f"None yet; {command_words('sync', '--watchlist')} is one.")
        return
    shown = loads.head(_LOADS_SHOWN)
    began = shell.moment(int(loads["started_at"][0]))
    lines = load_lines(loads, rows, int(time.time()))
    outcomes = dict(lines.group_by("outcome").len().iter_rows())
    parts = [f"{shown.height:,} of {loads.height:,}, newest first. The newest began at {began}."]
    if count := outcomes.get("running"):
        parts.append(
            f"{count:,} running: no end yet, and begun or answered within {duration(RUNNING_S)}."
        )
    if count := outcomes.get("silent"):
        parts.append(
            f"{count:,} silent: no end yet, no answer for {duration(RUNNING_S)}. They were killed "
            "or wait for quota. What they had committed is held."
        )
    st.caption(" ".join(parts))
    lines = lines.head(_LOADS_SHOWN)
    started = pl.Series(f"started ({shell.timezone})", shell.clock(lines["started_at"]))
    table = lines.drop("started_at").insert_column(1, started)
    number = st.column_config.NumberColumn(format="localized")
    show_table(
        table.with_columns(shown["base_url"].alias("asked at")),
        height=min(36 * (table.height + 1), 460),
        column_config={"rows": number},
    )


if __name__ == "__main__":
    page("Data health", _body)
