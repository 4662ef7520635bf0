"""The sections below the streams: retention deadlines, findings, the last loads, and the file."""

from __future__ import annotations

import time

import polars as pl

from toolkit import commands
from toolkit.cards import counted, duration
from toolkit.dashboard.following import follower_of
from toolkit.dashboard.pages.health.measured import Health
from toolkit.dashboard.pages.health.tables import (
    RUNNING_S,
    found_lines,
    load_lines,
    retention_lines,
)
from toolkit.dashboard.parts.rows import row_column, show_rows, time_column
from toolkit.dashboard.screen import st
from toolkit.dashboard.shell import PageShell
from toolkit.foreign import LONGEST, Markdown, markdown
from toolkit.store import profile_words, waiting_for

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
    lines = retention_lines(health.lines, health.missing, shell.held.now())
    if lines.is_empty():
        st.markdown(Markdown("**When the archive drops what is not held**"))
        st.caption(Markdown("Nothing: the service's archive forgets nothing of this, as known."))
        return
    st.markdown(
        Markdown("**When the archive drops what is not held**"),
        help=Markdown(
            "The service keeps its archive for so long. **lost in**: until the first second of the "
            "kind that is not held leaves it, where nothing is loaded meanwhile."
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
        for outcome in ("running", "stalled")
        if outcome in outcomes
    ]
    st.markdown(
        Markdown(", ").join(parts),
        help=Markdown(
            "**running**: no end yet, and begun or answered within {}. **stalled**: no end yet and "
            "no answer for that long. It was killed or waits for quota, and what it had committed "
            "is held."
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
