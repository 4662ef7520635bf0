"""The page about what is held: what is missing and why, and the buttons that bring it."""

from __future__ import annotations

import polars as pl

from toolkit.cards import counted, duration
from toolkit.columns import column
from toolkit.dashboard.following import TAKES_NO_ROWS, is_followed
from toolkit.dashboard.loads import WATCHLIST, Load, load_button, offer
from toolkit.dashboard.navigation import go_to
from toolkit.dashboard.pages.health.gaps import behind, repair
from toolkit.dashboard.pages.health.measured import Health, measure_cost, measure_health
from toolkit.dashboard.pages.health.store import show_store
from toolkit.dashboard.pages.health.streams import STATES, show_streams
from toolkit.dashboard.parts.rows import opened_key
from toolkit.dashboard.screen import st
from toolkit.dashboard.shell import PageShell, page
from toolkit.foreign import Markdown, markdown
from toolkit.market import EventLog, SnapshotLog, Stream
from toolkit.show.values import heading_of, value_text
from toolkit.store import never_asked

_FRESH_S = 90


def _body(shell: PageShell) -> None:
    if key := opened_key("streams"):
        _open(key)
    held = shell.held
    health = measure_health(held.path, held.version)
    with st.container(gap="xsmall"):
        _show_counts(shell, health)
        if health.lines.is_empty():
            what = Markdown("{} was never asked to hold anything.").format(markdown(held.place))
            offer(held, what, WATCHLIST)
        else:
            _show_repairs(shell, health)
            show_streams(shell, health)
        for each in health.unreadable:
            words = Markdown("**Not readable**: {} ({}). All else is.")
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
    asked = Markdown("Requests left in the plan's window when the service was last asked.")
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
            one = column(name)
            label, shown = heading_of(one, short=True), value_text(value, one)
            st.metric(Markdown.harmless(label), Markdown.harmless(shown), help=words)


def _show_repairs(shell: PageShell, health: Health) -> None:
    missing = health.missing
    now = shell.held.now()
    if shell.held.published:
        st.caption(TAKES_NO_ROWS)
    if missing.is_empty():
        nothing = Markdown(":green[✓] Nothing {}that was asked for is missing.")
        st.markdown(nothing.format("" if health.lost.is_empty() else "else "))
    else:
        _show_repair(shell, Markdown("Repair all"), "repair_all", missing, now)
        causes = missing.partition_by("cause", maintain_order=True)
        for number, of_cause in enumerate(causes if len(causes) > 1 else []):
            _show_repair(shell, Markdown("Repair"), f"repair_{number}", of_cause, now)
    for number, of_cause in enumerate(health.lost.partition_by("cause", maintain_order=True)):
        _show_repair(shell, Markdown("Ask again"), f"lost_{number}", of_cause, now)
    _show_top_up(shell, health, now)
    asked = health.lines.filter(pl.col("answer") != "never asked")["stream"]
    if never := never_asked(map(Stream.parse, asked)):
        logs = [word for word in never if "/" in word]
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
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
        says = Markdown("{}; the first second is lost in {}").format(
            says, duration(max(0, leaves[0] - now))
        )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        cost = Markdown("{}").format(measure_cost(shell.held.path, missing))
        primary = "primary" if key == "repair_all" else "secondary"
        load_button(shell.held, repair(words, missing), key, cost=cost, type=primary)
        st.markdown(says)


def _show_top_up(shell: PageShell, health: Health, now: int) -> None:
    held = shell.held
    if held.published:
        return
    if is_followed(held):
        return
    parts = behind(health.lines, now // 60 * 60)
    since_s = now - int(parts["start_ts"].to_numpy().min()) if parts.height else 0
    if since_s < _FRESH_S:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        cost = Markdown("{}").format(measure_cost(held.path, parts))
        load_button(held, repair(Markdown("Top up"), parts), "top_up", cost=cost)
        st.markdown(
            Markdown("**not asked for since**: {}, the longest for {}").format(
                counted(parts.height, "stream"), duration(since_s)
            )
        )


if __name__ == "__main__":
    page(Markdown("Data health"), _body)
