"""The page Data health: coverage, missing data and repairs, and the store file."""

from __future__ import annotations

import time
from typing import Any

import polars as pl

from toolkit import commands
from toolkit.cards import counted, duration
from toolkit.columns import column
from toolkit.dashboard.export import hand_over
from toolkit.dashboard.link import go_to
from toolkit.dashboard.loads import (
    TAKES_NO_ROWS,
    WATCHLIST,
    Load,
    follower_of,
    is_followed,
    load_button,
    offer,
)
from toolkit.dashboard.pages.health.measured import (
    CoverageMap,
    Health,
    measure_cost,
    measure_health,
)
from toolkit.dashboard.pages.health.tables import (
    RUNNING_S,
    STATE_COLUMNS,
    behind,
    found_lines,
    load_lines,
    repair,
    retention_lines,
)
from toolkit.dashboard.parts.age import age_column, stream_ages
from toolkit.dashboard.parts.rows import RowColumn, opened_key, row_column, show_rows, time_column
from toolkit.dashboard.shell import PageShell, page, show_metric
from toolkit.dashboard.widgets import side_by_side, st
from toolkit.foreign import LONGEST, Markdown, markdown
from toolkit.market import EventLog, SnapshotLog, SnapshotTrajectory, Stream, Trajectory, format_ts
from toolkit.show.values import value_text
from toolkit.store import never_asked, profile_words, waiting_for

_LOADS_SHOWN = 50
_FINDINGS_SHOWN = 12


def show_store(shell: PageShell, health: Health) -> None:
    """Show the parts below the table of streams."""
    with st.grid(2, min_column_width=460):
        with st.container(gap="xsmall"):
            _show_retention(shell, health)
        with st.container(gap="xsmall"):
            _show_findings(shell)
    _show_loads(shell, health.rows)
    _show_file(shell)


def _show_retention(shell: PageShell, health: Health) -> None:
    if health.lines.is_empty():
        return
    heading = Markdown("**When the archive drops data not loaded yet**")
    lines = retention_lines(health.lines, health.missing, shell.held.now())
    if lines.is_empty():
        st.markdown(heading)
        st.caption(Markdown("Never: no retention of the service's archive is known."))
        return
    st.markdown(
        heading,
        help=Markdown(
            "**retention**: how far back the service's archive reaches. **lost in**: the time "
            "until it drops the first second that is not loaded."
        ),
    )
    columns = [
        row_column(lines, "kind"),
        row_column(lines, "streams", narrow=False),
        row_column(lines, "retention_s"),
        time_column(lines, "not_held_from", shell.timezone, narrow=False),
        row_column(lines, "lost_in_s"),
    ]
    show_rows(Markdown("Retention"), lines["kind"].to_list(), columns, "retention", opens=False)


def _show_findings(shell: PageShell) -> None:
    found = found_lines(shell.held.loads.head(_LOADS_SHOWN))
    st.markdown(
        Markdown("**How the service deviated from the expected interface**"),
        help=Markdown("In the last {} loads.").format(_LOADS_SHOWN),
    )
    if not found:
        st.caption(Markdown("Nothing."))
        return
    lines = [Markdown("- {}").format(markdown(each, LONGEST)) for each in found[:_FINDINGS_SHOWN]]
    if len(found) > _FINDINGS_SHOWN:
        lines.append(Markdown("- and {:,} more").format(len(found) - _FINDINGS_SHOWN))
    st.markdown(Markdown("\n").join(lines))


def _show_loads(shell: PageShell, rows: pl.DataFrame) -> None:
    loads = shell.held.loads
    if loads.is_empty():
        return
    lines = load_lines(loads, rows, int(time.time()))
    outcomes = dict(lines.group_by("outcome").len().iter_rows())
    parts = [
        Markdown("**Loads** · {:,}, the newest began at {}").format(
            loads.height, shell.moment(int(loads["started_at"][0]))
        )
    ]
    parts += [
        Markdown("{:,} {}").format(outcomes[outcome], outcome)
        for outcome in ("running", "stalled")
        if outcome in outcomes
    ]
    st.markdown(
        Markdown(", ").join(parts),
        help=Markdown(
            "**running**: not ended, and begun or answered within {}. **stalled**: not ended, and "
            "no answer for that long. It was killed or waits for quota; what it committed is kept."
        ).format(duration(RUNNING_S)),
    )
    shown = lines.head(_LOADS_SHOWN)
    several = shown["base_url"].n_unique() > 1
    columns = [
        time_column(shown, "started_at", shell.timezone),
        *(row_column(shown, name) for name in ("took_s", "rows", "outcome")),
        *(
            row_column(shown, name, narrow=False)
            for name in ("quota_left", "quota", "findings", *(["base_url"] if several else []))
        ),
    ]
    keys = [str(load) for load in shown["load_id"]]
    show_rows(Markdown("Loads, newest first"), keys, columns, "loads", 8, opens=False)
    if words := profile_words(loads, rows, commands.rail("store", "remap", store=shell.held.path)):
        st.caption(Markdown("{}").format(markdown(words, LONGEST)))


def _show_file(shell: PageShell) -> None:
    path = shell.held.path
    waiting = waiting_for(path)
    follower = follower_of(path)
    copied = bool(shell.held.published)
    use = "read from a copy in the cache" if copied else "opened for each use only"
    words = [Markdown("{}: {}").format(markdown(shell.held.place, 200), use)]
    if waiting:
        words.append(
            Markdown("{} for it now: {}").format(
                counted(len(waiting), "use waits", "uses wait"),
                ", ".join(f"process {pid} to {what}" for pid, what in waiting),
            )
        )
    if follower.pid is not None:
        words.append(Markdown("process {} follows the service").format(follower.pid))
    if (base_url := shell.held.base_url) is not None:
        words.append(Markdown("asked last: {}").format(markdown(base_url)))
    st.caption(Markdown(" · ").join(words))


STATES = Markdown(
    "**held**: answered, with rows. **empty**: the service has no row there. **not yet known**: "
    "rows may still appear or change. **missing**: not loaded. **unrecoverable**: older than the "
    "plan's retention. **lost at the source**: reported so by the service.\n\nShares are of the "
    "time from the first second requested to the service's clock at its last answer."
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
    label = Markdown("Streams, most missing first")
    show_rows(label, lines["stream"].to_list(), columns, "streams", _HIGH)
    below = side_by_side()
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
    """Add rows, ages and held (percent, null if nothing is known), and sort the lines."""
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
    """Return the symbol of a stream and its legs, for a log its key and ""."""
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
    return ", ".join(parts) or "no rows are known to be due"


def _gap_columns(lines: pl.DataFrame) -> list[RowColumn]:
    """Build the columns of the missing time, if any, and of the longest gap."""
    missing_s = pl.col("missing_s")
    found = lines.with_columns(
        pl.when(missing_s > 0).then(missing_s), longest_gap=pl.col("gap_end") - pl.col("gap_start")
    )
    names = ("missing_s", "longest_gap", "gap_state")
    return [row_column(found, name, narrow=False) for name in names]


_FRESH_S = 90


def _body(shell: PageShell) -> None:
    if key := opened_key("streams"):
        _open(key)
    held = shell.held
    health = measure_health(held.path, held.version)
    with st.container(gap="xsmall"):
        _show_counts(shell, health)
        if health.lines.is_empty():
            what = Markdown("{} is empty: nothing was loaded yet.").format(markdown(held.place))
            offer(held, what, WATCHLIST)
        else:
            _show_repairs(shell, health)
            show_streams(shell, health)
        for each in health.unreadable:
            words = Markdown("**Not readable**: {} ({}). Everything else is readable.")
            st.warning(words.format(markdown(each.stream), markdown(each.why)))
        show_store(shell, health)


def _open(key: str) -> None:
    stream = Stream.parse(key)
    if isinstance(stream, EventLog):
        go_to("events", family=stream.family.value)
    if isinstance(stream, SnapshotLog):
        go_to("overview")
    go_to("funding" if stream.kind == "funding" else "trajectory", trajectory=key)


def _show_counts(shell: PageShell, health: Health) -> None:
    held, lines = shell.held, health.lines
    by_kind = dict(held.streams.group_by("kind").agg(pl.col("rows").sum()).iter_rows())
    documents, snapshots = by_kind.pop("events", 0), by_kind.pop("snapshot", 0)
    named = held.loads.filter(pl.col("plan").is_not_null()).head(1).to_dicts()
    left = named[0]["quota_left"] if named else None
    held_s, known_s = (sum(lines[name]) if lines.height else 0 for name in ("held_s", "known_s"))
    of_file = Markdown("Format {}.").format(health.store_format)
    asked = Markdown("Requests left in the plan's window at the service's last answer.")
    figures = [
        ("held", 100 * held_s / known_s if known_s else None, STATES),
        ("missing", health.missing.height, None),
        ("rows", sum(by_kind.values()), None),
        ("documents", documents, Markdown("Beside {:,} snapshots.").format(snapshots)),
        ("quota_left", left, asked if named else Markdown("The service has named none.")),
        ("store_mb", held.path.stat().st_size / 1e6, of_file),
    ]
    with st.container(horizontal=True, gap="medium", key="counts"):
        for name, value, words in figures:
            show_metric({name: value}, name, sign=words)


def _show_repairs(shell: PageShell, health: Health) -> None:
    missing = health.missing
    now = shell.held.now()
    if shell.held.published:
        st.caption(TAKES_NO_ROWS)
    if missing.is_empty():
        nothing = Markdown(":green[✓] Nothing {}that was requested is missing.")
        st.markdown(nothing.format("" if health.lost.is_empty() else "else "))
    else:
        _show_repair(shell, Markdown("Repair all"), "repair_all", missing, now)
        causes = missing.partition_by("cause", maintain_order=True)
        for number, of_cause in enumerate(causes if len(causes) > 1 else []):
            _show_repair(shell, Markdown("Repair"), f"repair_{number}", of_cause, now)
    for number, of_cause in enumerate(health.lost.partition_by("cause", maintain_order=True)):
        _show_repair(shell, Markdown("Ask again"), f"lost_{number}", of_cause, now)
    _show_top_up(shell, health, now)
    asked = health.lines.filter(pl.col("answer") != "not requested yet")["stream"]
    if never := never_asked(map(Stream.parse, asked)):
        logs = [word for word in never if "/" in word]
        with side_by_side():
            if logs:
                load = Load.of(Markdown("Load the event logs not requested yet"), *logs, since="7d")
                load_button(shell.held, load, "load_never")
            st.caption(Markdown("Not requested yet: {}.").format(", ".join(never)))


def _show_repair(
    shell: PageShell, words: Markdown, key: str, missing: pl.DataFrame, now: int
) -> None:
    length_s = int((missing["end_ts"] - missing["start_ts"]).sum())
    streams = missing["stream"].n_unique()
    says = Markdown("{} of {}, {} of data").format(
        counted(missing.height, "stretch", "stretches"),
        counted(streams, "stream"),
        duration(length_s),
    )
    if missing["cause"].n_unique() == 1:
        says = Markdown("**{}**: {}").format(missing["cause"][0], says)
    if leaves := missing["leaves_at"].drop_nulls().sort().to_list()[:1]:
        lost = Markdown("{}; the first second is lost in {}")
        says = lost.format(says, duration(max(0, leaves[0] - now)))
    with side_by_side():
        cost = Markdown("{}").format(measure_cost(shell.held.path, missing))
        primary = "primary" if key == "repair_all" else "secondary"
        load_button(shell.held, repair(words, missing), key, cost=cost, type=primary)
        st.markdown(says)


def _show_top_up(shell: PageShell, health: Health, now: int) -> None:
    held = shell.held
    if held.published or is_followed(held):
        return
    parts = behind(health.lines, now // 60 * 60)
    since_s = now - int(parts["start_ts"].to_numpy().min()) if parts.height else 0
    if since_s < _FRESH_S:
        return
    with side_by_side():
        cost = Markdown("{}").format(measure_cost(held.path, parts))
        load_button(held, repair(Markdown("Top up"), parts), "top_up", cost=cost)
        st.markdown(
            Markdown("**not updated since**: {}, the longest for {}").format(
                counted(parts.height, "stream"), duration(since_s)
            )
        )


if __name__ == "__main__":
    page(Markdown("Data health"), _body)
