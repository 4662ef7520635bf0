"""What is below the streams: when what is lost, what was odd, the last loads, and the file."""

from __future__ import annotations

import time

import polars as pl

from toolkit import commands
from toolkit.cards import counted, duration
from toolkit.dashboard.following import follower_of
from toolkit.dashboard.health_measured import Health
from toolkit.dashboard.health_tables import (
    RUNNING_S,
    found_lines,
    load_lines,
    retention_lines,
)
from toolkit.dashboard.rows import RowColumn, show_rows
from toolkit.dashboard.screen import st
from toolkit.dashboard.shell import PageShell
from toolkit.foreign import LONGEST, Markdown, markdown
from toolkit.store import profile_words, waiting_for

_LOADS_SHOWN = 50
_YEAR_S, _MANY_YEARS = 31_557_600, 10
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
    lines = retention_lines(health.lines, health.missing, shell.held.now())
    if lines.is_empty():
        st.markdown(Markdown("**Lost when**"))
        st.caption(Markdown("Nothing: the service's archive forgets nothing of this, as known."))
        return
    st.markdown(
        Markdown("**Lost when**"),
        help=Markdown(
            "The service keeps its archive for so long. **lost in**: until the first second of the "
            "kind that is not held leaves it, where nothing is loaded meanwhile."
        ),
    )
    columns = [
        RowColumn("kind", "text", lines["kind"].to_list()),
        RowColumn("streams", "number", lines["streams"].to_list(), digits=0, narrow=False),
        RowColumn("kept for", "text", [_long(s) for s in lines["retention_s"]]),
        RowColumn(
            f"not held from ({shell.timezone})",
            "text",
            shell.clock(lines["first_ts"]).to_list(),
            narrow=False,
        ),
        RowColumn(
            "lost in",
            "number",
            lines["lost_in_s"].to_list(),
            shown=[_long(s) for s in lines["lost_in_s"]],
        ),
    ]
    show_rows(Markdown("Retention"), lines["kind"].to_list(), columns, "retention", opens=False)


def _long(seconds: int) -> str:
    """Format a length of time, one that nobody waits for in years."""
    years = seconds // _YEAR_S
    return f"{years} years" if years >= _MANY_YEARS else duration(seconds)


def _show_findings(shell: PageShell) -> None:
    """Show in words what the service did otherwise than assumed."""
    found = found_lines(shell.held.loads.head(_LOADS_SHOWN))
    st.markdown(
        Markdown("**What the service did otherwise than assumed**"),
        help=Markdown("Of the last {} loads.").format(_LOADS_SHOWN),
    )
    if not found:
        st.caption(Markdown("Nothing that was noticed."))
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
        for outcome in ("running", "silent")
        if outcome in outcomes
    ]
    st.markdown(
        Markdown(", ").join(parts),
        help=Markdown(
            "**running**: no end yet, and begun or answered within {}. **silent**: no end yet and "
            "no answer for that long. It was killed or waits for quota, and what it had committed "
            "is held."
        ).format(duration(RUNNING_S)),
    )
    shown = lines.head(_LOADS_SHOWN)
    asked_at = loads.head(_LOADS_SHOWN)["base_url"].to_list()
    columns = [
        RowColumn(f"began ({shell.timezone})", "text", shell.clock(shown["started_at"]).to_list()),
        RowColumn("took", "text", shown["took"].to_list()),
        RowColumn("rows", "number", shown["rows"].to_list(), digits=0),
        RowColumn("outcome", "text", shown["outcome"].to_list()),
        RowColumn("quota left", "text", shown["quota left"].to_list(), narrow=False),
        RowColumn("findings", "text", shown["findings"].to_list(), narrow=False),
    ]
    if len(set(asked_at)) > 1:
        columns.append(RowColumn("asked at", "text", asked_at, narrow=False))
    keys = [str(load) for load in shown["load"]]
    show_rows(Markdown("Loads, newest first"), keys, columns, "loads", 8, opens=False)
    if words := profile_words(loads, rows, commands.rail("store", "remap", store=shell.held.path)):
        st.caption(Markdown("{}").format(markdown(words, LONGEST)))


def _show_file(shell: PageShell) -> None:
    """Show the file, and who waits for it or follows the service for it."""
    path = shell.held.path
    waiting = waiting_for(path)
    follower = follower_of(path)
    use = "opened for each use, held by nobody for long"
    if shell.held.published:
        use = "read from a copy in the cache"
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
