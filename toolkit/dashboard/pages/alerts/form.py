"""The rule that is being made or changed on the page of alerts, in one row of controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from streamlit import cache_data

from toolkit.alerts import AlertKind, AlertRule
from toolkit.alerts.channels import Alert, read_channels
from toolkit.cards import counted, duration
from toolkit.dashboard.choice import PageLink
from toolkit.dashboard.desk import held_symbols
from toolkit.dashboard.link import read_option
from toolkit.dashboard.screen import st
from toolkit.dashboard.shell import PageShell
from toolkit.errors import RailError
from toolkit.foreign import Markdown, markdown
from toolkit.intervals import Interval
from toolkit.market import Stream
from toolkit.store import Store
from toolkit.workspace import fees_file
from toolkit.workspace.alerts import caught, caught_words, matched_streams, named_rule
from toolkit.workspace.rules import find_fees
from toolkit.workspace.user_files import alert_file, keep_rule, remove_rule

_KINDS = {
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
_LINK = PageLink("alerts", ("rule", "kind"))


def choose_rule(rule: AlertRule | None) -> None:
    """Put a rule into the controls, None for a new one. Call it before they are drawn."""
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


def follow_link(rules: Sequence[AlertRule]) -> None:
    """Put the rule or the kind that a link names into the controls."""
    state = st.session_state
    params = _LINK.to_follow("alert_kind")
    if params is None:
        return
    faults: list[Markdown] = []
    name = read_option(params, "rule", [_NONE, *(rule.name for rule in rules)], _NONE, faults)
    rule = next((rule for rule in rules if rule.name == name), None)
    choose_rule(rule)
    if rule is None:
        kind = read_option(params, "kind", list(AlertKind), AlertKind.SPREAD, faults)
        state["alert_kind"] = AlertKind(kind)
    _LINK.keep_faults(faults)


def show_form(shell: PageShell) -> None:
    """Draw the controls of the rule, and the buttons that keep, test and remove it."""
    state = st.session_state
    for name, usual in _USUAL.items():  # Streamlit forgets what a kind does not draw
        state.setdefault(name, usual)
    changed = state.get(_RULE)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        kind = st.selectbox(
            Markdown("Alert me of"),
            list(AlertKind),
            format_func=lambda each: _KINDS[each],
            key="alert_kind",
            disabled=changed is not None,
            width=190,
        )
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
    named = {"rule": changed} if changed else {"kind": kind.value}
    _LINK.write({} if named == {"kind": AlertKind.SPREAD.value} else named)
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
            Markdown("Watches {} of {} that the store holds, and what comes beside them.").format(
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
    """Return what a rule would have caught in the day up to ``end`` (s), once for each hour."""
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
    if kind is not AlertKind.STALE and kind is not AlertKind.LOSS:
        known = {*held_symbols(shell.held), *state["alert_symbols"]}
        st.multiselect(
            Markdown("of"), sorted(known), key="alert_symbols", placeholder="all symbols", width=190
        )


def _keep(shell: PageShell, field: str) -> None:
    state = st.session_state
    table = table_of(state, field)
    try:
        rule = AlertRule.of({name: value for name, value in table.items() if value is not None})
        path = alert_file(shell.held.path)
        keep_rule(path, table, state[_RULE])
    except RailError as error:
        _say(Markdown.harmless(str(error)), good=False)
        return
    choose_rule(None)
    kept = Markdown("{} is in {}: {}. A follow reads it within seconds.")
    _say(kept.format(markdown(rule.name), markdown(path.name), markdown(str(rule), 200)))


def table_of(state: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return the fields of the rule in the controls, None for those that are as by default."""
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
    try:
        remove_rule(alert_file(shell.held.path), name)
    except RailError as error:
        _say(Markdown.harmless(str(error)), good=False)
        return
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
