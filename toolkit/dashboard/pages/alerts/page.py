"""The page of alerts: what is open, what was, and the rules with a form that changes them."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from toolkit.alerts.channels import read_channels
from toolkit.columns import column
from toolkit.dashboard.alert_news import SHOWN, read_changes
from toolkit.dashboard.export import hand_over, literal
from toolkit.dashboard.following import follow_button, is_followed
from toolkit.dashboard.navigation import go_to
from toolkit.dashboard.pages.alerts.form import choose_rule, follow_link, show_form
from toolkit.dashboard.parts.rows import RowColumn, opened_key, row_column, show_rows, time_column
from toolkit.dashboard.screen import st
from toolkit.dashboard.shell import PageShell, page
from toolkit.errors import RailError
from toolkit.foreign import Markdown, markdown
from toolkit.market import Stream
from toolkit.show.values import value_text
from toolkit.store.writing.follows import running_follow
from toolkit.tables import SNAPSHOT_SERIES
from toolkit.workspace.alerts import find_alerts, matched_streams
from toolkit.workspace.rules import find_watchlist
from toolkit.workspace.user_files import alert_file

_OPEN_MOST, _HISTORY_MOST, _RULES_MOST = 8, 14, 8
_PUBLISHED = Markdown(
    "This is published data: rules are kept, and evaluated, where the service is followed."
)
_PAGES = dict.fromkeys(("spread", "price", *SNAPSHOT_SERIES), "trajectory") | {"funding": "funding"}


def _body(shell: PageShell) -> None:
    held = shell.held
    changes = read_changes(held.path, held.version)
    for key in ("alerts_open", "alerts_history"):
        if (opened := opened_key(key)) is not None:
            _go(changes, opened)
    if held.published:
        st.caption(_PUBLISHED)
        _show_open(shell, changes.filter("is_open"))
        _show_history(shell, changes)
        return
    try:
        rules = find_alerts(held.path).rules
    except RailError as error:
        st.error(Markdown.harmless(str(error)))
        return
    follow_link(rules)
    if (opened := opened_key("alerts_rules")) is not None:
        choose_rule(next((rule for rule in rules if rule.name == opened), None))
    show_form(shell)
    with st.grid(2, min_column_width=480):
        with st.container():
            _show_open(shell, changes.filter("is_open"))
        with st.container():
            _show_rules(shell, changes)
    _show_history(shell, changes)


def _go(changes: pl.DataFrame, change_id: str) -> None:
    row = changes.filter(pl.col("change_id").cast(pl.String) == change_id).row(0, named=True)
    stream = Stream.parse(row["stream"])
    if stream.kind in _PAGES:
        go_to(_PAGES[stream.kind], trajectory=stream.key)
    go_to("events" if stream.kind == "events" else "health")


def _show_open(shell: PageShell, rows: pl.DataFrame) -> None:
    st.markdown(Markdown("**Open now** · {:,}").format(rows.height))
    if rows.is_empty():
        st.caption(Markdown("No alert is open."))
        return
    now = shell.held.now()
    open_for = rows.with_columns(for_s=(now - pl.col("ts")).clip(lower_bound=0))
    columns = [
        *(row_column(rows, name) for name in ("rule", "about")),
        _values(rows),
        row_column(open_for, "for_s", narrow=False),
    ]
    keys = rows["change_id"].cast(pl.String).to_list()
    show_rows(Markdown("Alerts that are open"), keys, columns, "alerts_open", _OPEN_MOST)


def _show_rules(shell: PageShell, changes: pl.DataFrame) -> None:
    held = shell.held
    rules = find_alerts(held.path).rules
    streams = [Stream.parse(key) for key in held.streams["stream"]]
    found = matched_streams(rules, streams)
    sent_to = Markdown(" and ").join(["the log", *(markdown(name) for name in read_channels())])
    st.markdown(
        Markdown("**Rules** · {:,}").format(len(rules)),
        help=Markdown(
            "The tables {} of {}. `rail follow` evaluates them as rows come and sends each change "
            "once, to {}. A click on a rule changes, tests or removes it."
        ).format(markdown("[[alert]]"), markdown(alert_file(held.path).name), sent_to),
    )
    if not rules:
        st.caption(Markdown("None yet. The row above makes one."))
    else:
        opened = changes.filter("is_open")["rule"].value_counts()
        n_open = dict(opened.iter_rows())
        columns = [
            *(row_column(found, name) for name in ("rule", "condition")),
            row_column(found, "streams", narrow=False),
            RowColumn("open", "number", [n_open.get(rule.name, 0) for rule in rules]),
        ]
        names = [rule.name for rule in rules]
        show_rows(Markdown("Rules of alerts"), names, columns, "alerts_rules", _RULES_MOST)
    _show_watched(shell)


def _show_watched(shell: PageShell) -> None:
    held = shell.held
    watched = find_watchlist(held.path)
    named = ", ".join([*watched.streams, *watched.symbols]) or watched.name
    st.caption(
        Markdown("`rail follow` keeps up to date, and rules watch: {}.").format(
            markdown(named, 160)
        ),
        help=Markdown("The table {} of rail.toml names what is followed.").format(
            markdown("[follow]")
        ),
    )
    running = running_follow(held.path)
    if running is not None and running.evaluated_at is not None:
        at = shell.clock(pl.Series([int(running.evaluated_at)]))[0]
        words = Markdown("The rules were last evaluated at {} {}.")
        st.caption(words.format(at, shell.timezone))
    elif is_followed(held):
        st.caption(Markdown("A follow has begun, and evaluates the rules from its first rows on."))
    else:
        st.markdown(Markdown(":orange[**⚠**] Nothing evaluates the rules now."))
        follow_button(held, "alerts_follow")


def _show_history(shell: PageShell, changes: pl.DataFrame) -> None:
    newest = Markdown(", the newest") if changes.height == SHOWN else Markdown("")
    bar = st.container(horizontal=True, vertical_alignment="center", gap="small")
    with bar:
        st.markdown(Markdown("**History** · {:,} changes{}").format(changes.height, newest))
    if changes.is_empty():
        st.caption(Markdown("Nothing has happened yet. What a follow finds is kept here."))
        return
    path = literal(shell.held.place)
    python = f"import toolkit as tk\n\nwith tk.open({path}) as rail:\n    found = rail.alerts()\n"
    hand_over(bar, changes, shell.held.source, f"alerts_{changes['change_id'][0]}", python)
    sent = changes.with_columns(pl.col("delivery").fill_null("log"))
    columns = [
        time_column(changes, "ts", shell.timezone, year=False),
        row_column(changes, "rule", narrow=False),
        *(row_column(changes, name) for name in ("change", "about")),
        _values(changes),
        row_column(sent, "delivery", titles=changes["reason"].to_list(), narrow=False),
    ]
    keys = changes["change_id"].cast(pl.String).to_list()
    show_rows(Markdown("History of alerts"), keys, columns, "alerts_history", _HISTORY_MOST)


def _values(rows: pl.DataFrame) -> RowColumn:
    one = column("value", "tables")
    texts = [
        (value_text(value, replace(one, unit=unit)), "" if value is None or unit == "s" else unit)
        for value, unit in rows.select("value", "unit").iter_rows()
    ]
    shown = [" ".join(filter(None, each)) for each in texts]
    return row_column(rows, "value", result="tables", shown=shown, narrow=False)


if __name__ == "__main__":
    page(Markdown("Alerts"), _body)
