"""The page Alerts: the open ones, their history, and the rules with a form to change them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from streamlit import cache_data

from toolkit.alerts import AlertKind, AlertRule
from toolkit.alerts.channels import Alert, read_channels
from toolkit.cards import counted, duration
from toolkit.columns import column
from toolkit.dashboard.choice import Choices, Picked
from toolkit.dashboard.desk import held_symbols
from toolkit.dashboard.export import hand_over, literal
from toolkit.dashboard.link import go_to, read_option
from toolkit.dashboard.loads import follow_button, is_followed
from toolkit.dashboard.parts.rows import RowColumn, opened_key, row_column, show_rows, time_column
from toolkit.dashboard.shell import SHOWN, PageShell, page, read_changes
from toolkit.dashboard.widgets import side_by_side, st
from toolkit.errors import RailError
from toolkit.foreign import Markdown, markdown
from toolkit.intervals import Interval
from toolkit.market import Stream
from toolkit.show.values import value_text
from toolkit.store import Store
from toolkit.store.writing.follows import running_follow
from toolkit.tables import SNAPSHOT_SERIES
from toolkit.workspace import fees_file
from toolkit.workspace.alerts import caught, caught_words, find_alerts, matched_streams, named_rule
from toolkit.workspace.rail_toml import find_fees, find_watchlist
from toolkit.workspace.user_files import alert_file, keep_rule, remove_rule

_KINDS: Mapping[str, str] = {
    AlertKind.SPREAD: "|Spread| above",
    AlertKind.FUNDING: "Funding difference above",
    AlertKind.EVENT: "Event of at least",
    AlertKind.STALE: "No new data for",
    AlertKind.LOSS: "Lost within",
}
_FIELDS = {
    AlertKind.SPREAD: ("above_bps", Markdown("bps"), 50.0),
    AlertKind.FUNDING: ("above_apr_pct", Markdown("APR %"), 30.0),
    AlertKind.EVENT: ("at_least_pct", Markdown("%"), 5.0),
    AlertKind.STALE: ("older_than", Markdown("min"), 10.0),
    AlertKind.LOSS: ("within", Markdown("min"), 360.0),
}
_FOR_S = (0, 60, 300, 900, 3_600)
_MINUTE_S, _HOUR_S = 60, 3_600
_ALL = "*"
_USUAL = {"alert_for": 300, "alert_net": False, "alert_symbols": []}
_RULE, _OUTCOME = "alert_rule", "alert_outcome"
_NONE = "none"
_CHOICES = Choices(
    "alerts",
    (
        Picked(
            "kind",
            Markdown("Alert me of"),
            AlertKind.SPREAD,
            key="alert_kind",
            allowed=_KINDS,
            looks={"width": 190},
        ),
    ),
    also=("rule",),
)


def choose_rule(rule: AlertRule | None) -> None:
    """Fill the form with a rule, None for a new one, before it is drawn."""
    state = st.session_state
    kind = rule.kind if rule else AlertKind.SPREAD
    state[_RULE] = rule.name if rule else None
    state["alert_kind"] = kind
    timed = kind in (AlertKind.STALE, AlertKind.LOSS)
    level = _FIELDS[kind][2] if rule is None else rule.level / (_MINUTE_S if timed else 1)
    state[f"alert_level_{kind}"] = level
    state["alert_for"] = rule.for_s if rule else 300
    state["alert_net"] = bool(rule and rule.net)
    state["alert_symbols"] = list(rule.symbols) if rule else []
    state["alert_streams"] = ", ".join(rule.streams) if rule else _ALL
    state["alert_name"] = rule.name if rule else ""


def _read_rule(params: dict[str, str], rules: Sequence[AlertRule], faults: list[Markdown]) -> None:
    """Fill the form with the rule of a link, which has its own kind."""
    name = read_option(params, "rule", [_NONE, *(rule.name for rule in rules)], _NONE, faults)
    rule = next((rule for rule in rules if rule.name == name), None)
    choose_rule(rule)
    if rule is not None:
        params["kind"] = rule.kind


def show_form(shell: PageShell) -> None:
    """Draw the form of the rule, and the buttons that save, test and remove it."""
    state = st.session_state
    for name, usual in _USUAL.items():  # Streamlit forgets what a kind does not draw
        state.setdefault(name, usual)
    changed = state.get(_RULE)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        _CHOICES.draw("kind", disabled=changed is not None)
        kind = AlertKind(state["alert_kind"])
        field, unit, usual = _FIELDS[kind]
        state.setdefault(f"alert_level_{kind}", usual)
        st.number_input(unit, 0.0, key=f"alert_level_{kind}", step=1.0, width=130)
        _choose_scope(shell, kind)
        st.text_input(
            Markdown("Streams"),
            key="alert_streams",
            width=170,
            help=Markdown("Keys and patterns, such as {}, with commas between.").format(
                markdown("BTC_USDT:*, events/splash")
            ),
        )
        st.text_input(Markdown("Name"), key="alert_name", placeholder="made from it", width=170)
        words = Markdown("Add alert") if changed is None else Markdown("Save")
        st.button(words, key="alert_keep", on_click=_keep, args=(shell, field))
        if changed is not None:
            st.button(Markdown("Test"), key="alert_test", on_click=_test, args=(shell, changed))
            st.button(
                Markdown("Remove"), key="alert_remove", on_click=_remove, args=(shell, changed)
            )
            st.button(Markdown("Close"), key="alert_close", on_click=choose_rule, args=(None,))
    _show_caught(shell, field)
    if changed:
        _CHOICES.given(kind={"usual": kind}).write({"rule": changed})
    else:
        _CHOICES.write()
    good, outcome = state.get(_OUTCOME) or (True, None)
    if outcome is not None:
        (st.caption if good else st.error)(outcome)


def _show_caught(shell: PageShell, field: str) -> None:
    held, state = shell.held, st.session_state
    if held.published:
        return
    try:
        rule = AlertRule.of({k: v for k, v in table_of(state, field).items() if v is not None})
        (watched,) = matched_streams((rule,), [Stream.parse(k) for k in held.streams["stream"]])[
            "streams"
        ]
        parts = [
            Markdown("Watches {} of {} in the store, and new ones that match.").format(
                counted(watched, "stream"), counted(held.streams.height, "stream")
            )
        ]
        end = (held.as_of or held.now()) // _HOUR_S * _HOUR_S
        first = tuple(held.loads["started_at"].tail(1))
        found = _caught(held.path, rule, end, first)
    except RailError as error:
        st.caption(Markdown.harmless(str(error)))
        return
    if found is not None:
        words = Markdown("In the 24 hours up to {} {} it would have opened {}.")
        at = shell.clock(pl.Series([end]))[0]
        counts, _, newest = caught_words(found).partition(", the newest at ")
        last = Markdown(", the newest at {}").format(markdown(newest, 200)) if newest else ""
        parts.append(words.format(at, shell.timezone, Markdown("{}{}").format(counts, last)))
    st.caption(Markdown(" ").join(parts))


@cache_data(ttl=3_600, max_entries=32, show_spinner="Trying the rule on the last day")
def _caught(path: Path, rule: AlertRule, end: int, first: tuple[int, ...]) -> pl.DataFrame | None:
    """Return what a rule would have caught in the day up to ``end`` (s), cached by the hour."""
    del first
    store = Store(path, wait_s=3.0)
    fees = find_fees(path) if rule.net else None
    return caught(store, rule, Interval(end - 24 * _HOUR_S, end), fees)


def _choose_scope(shell: PageShell, kind: AlertKind) -> None:
    state = st.session_state
    if kind in (AlertKind.SPREAD, AlertKind.FUNDING):
        st.selectbox(
            Markdown("for"),
            sorted({*_FOR_S, state["alert_for"]}),
            format_func=lambda each: duration(each) if each else "at once",
            key="alert_for",
            width=120,
        )
    if kind is AlertKind.SPREAD and (fees_file(shell.held.path) is not None or state["alert_net"]):
        st.toggle(Markdown("net"), key="alert_net", help=Markdown("Less a round trip's cost."))
    if kind not in (AlertKind.STALE, AlertKind.LOSS):
        known = {*held_symbols(shell.held), *state["alert_symbols"]}
        st.multiselect(
            Markdown("of"), sorted(known), key="alert_symbols", placeholder="all symbols", width=190
        )


@contextmanager
def _faults_said() -> Iterator[None]:
    """Say why what a button does failed, and do no more of it."""
    try:
        yield
    except RailError as error:
        _say(Markdown.harmless(str(error)), good=False)


def _keep(shell: PageShell, field: str) -> None:
    state = st.session_state
    table = table_of(state, field)
    with _faults_said():
        rule = AlertRule.of({name: value for name, value in table.items() if value is not None})
        path = alert_file(shell.held.path)
        keep_rule(path, table, state[_RULE])
        choose_rule(None)
        kept = Markdown("{} is in {}: {}. A follow reads it within seconds.")
        _say(kept.format(markdown(rule.name), markdown(path.name), markdown(str(rule), 200)))


def table_of(state: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return the fields of the rule in the form, None for defaults."""
    kind = AlertKind(state["alert_kind"])
    level = float(state[f"alert_level_{kind}"] or 0)
    timed = kind in (AlertKind.STALE, AlertKind.LOSS)
    amount: object = int(level) if level.is_integer() else level
    words = f"{_KINDS[kind]} {level:g} {_FIELDS[kind][1]}"
    table: dict[str, Any] = {
        "kind": kind.value,
        field: f"{round(level * _MINUTE_S)}s" if timed else amount,
    }
    if kind in (AlertKind.SPREAD, AlertKind.FUNDING):
        seconds = int(state["alert_for"])
        table["for"] = f"{seconds // 60}m" if seconds else None
        words += f" for {duration(seconds)}" if seconds else ""
    if kind is AlertKind.SPREAD:
        table["net"] = True if state.get("alert_net") else None
        words = f"Net {words.lower()}" if table["net"] else words
    streams = [each.strip() for each in state["alert_streams"].split(",") if each.strip()]
    table["streams"] = streams if streams not in ([], [_ALL]) else None
    table["symbols"] = list(state.get("alert_symbols") or []) or None
    about = ", ".join([*(table["symbols"] or []), *(table["streams"] or [])])
    name = state["alert_name"].strip() or (f"{words}, {about}" if about else words)
    return {"name": name} | table


def _remove(shell: PageShell, name: str) -> None:
    with _faults_said():
        remove_rule(alert_file(shell.held.path), name)
        choose_rule(None)
        _say(Markdown("{} is removed.").format(markdown(name)))


def _test(shell: PageShell, name: str) -> None:
    try:
        rule = named_rule(shell.held.path, name)
        channels = read_channels()
    except RailError as error:
        _say(Markdown.harmless(str(error)), good=False)
        return
    alert = Alert.test_of(rule, shell.held.now())
    st.toast(Markdown.harmless(alert.words), duration="long")
    sent = {
        channel: to.send(alert)
        for channel, to in channels.items()
        if rule.send is None or channel in rule.send
    }
    parts = [f"{n}: {'delivered' if s.taken else s.reason}" for n, s in sent.items()]
    none = "no webhook and no chat is set up, see RAIL_ALERT_WEBHOOK and RAIL_ALERT_CHAT"
    words = Markdown("Test of {}: {}").format(
        markdown(name), markdown(", ".join(parts) or none, 300)
    )
    _say(words, good=all(s.taken for s in sent.values()))


def _say(words: Markdown, *, good: bool = True) -> None:
    st.session_state[_OUTCOME] = (good, words)


_OPEN_MOST, _HISTORY_MOST, _RULES_MOST = 8, 14, 8
_PUBLISHED = Markdown(
    "This is published data: rules are stored and evaluated where `rail follow` runs."
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
    _CHOICES.follow(lambda params, faults: _read_rule(params, rules, faults))
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
            "The tables {} of {}. `rail follow` evaluates them on new rows and sends each change "
            "once, to {}. Click a rule to change, test or remove it."
        ).format(markdown("[[alert]]"), markdown(alert_file(held.path).name), sent_to),
    )
    if not rules:
        st.caption(Markdown("None yet. Add one above."))
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
        Markdown("`rail follow` updates, and rules watch: {}.").format(markdown(named, 160)),
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
        st.caption(Markdown("A follow has started, and evaluates the rules on its first rows."))
    else:
        st.markdown(Markdown(":orange[**⚠**] Nothing evaluates the rules now."))
        follow_button(held, "alerts_follow")


def _show_history(shell: PageShell, changes: pl.DataFrame) -> None:
    newest = Markdown(", the newest") if changes.height == SHOWN else Markdown("")
    bar = side_by_side()
    with bar:
        st.markdown(Markdown("**History** · {:,} changes{}").format(changes.height, newest))
    if changes.is_empty():
        st.caption(Markdown("No alert yet. Those that a follow finds are listed here."))
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
