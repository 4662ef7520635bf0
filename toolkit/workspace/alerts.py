"""Alerts of a store: rules in ``rail.toml``, channels, and history."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from toolkit.alerts import AlertKind, AlertRule, read_alerts
from toolkit.alerts.channels import read_channels
from toolkit.alerts.evaluation import (
    MARKS,
    event_marks,
    level_marks,
    level_values,
    longest_s,
    transitions,
)
from toolkit.alerts.watch import AlertPlan, Rulebook
from toolkit.cards import counted
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import EventLog, Stream, format_ts
from toolkit.statistics.fees import FeeModel
from toolkit.store import Store
from toolkit.store.writing.alerts import read_alerts as kept_alerts
from toolkit.tables import AlertChange
from toolkit.workspace.rail_toml import find_fees, read_settings, settings_file
from toolkit.workspace.selection import Passes, Selection

_SET_UP = {"webhook": "RAIL_ALERT_WEBHOOK", "chat": "RAIL_ALERT_CHAT"}


def find_alerts(store: Path) -> Rulebook:
    """Return the rules ``[[alert]]`` of the ``rail.toml`` of `settings_file`, else none.

    Raises `InputError` for an invalid rule, and a net rule without a fee table.

    >>> find_alerts(Path("none/rail.duckdb")).rules
    ()
    """
    found = settings_file(store)
    if found is None:
        return Rulebook()
    rules = read_alerts(read_settings(found, "alerts").get("alert", []), f"{found} alert")
    net = next((rule for rule in rules if rule.net), None)
    fees = find_fees(store) if net is not None else None
    if net is not None and fees is None:
        advice = '`fees = "fees.toml"` at the head of the file names one'
        raise InputError(f"{found} alert {net.name} net", True, "false without fees", advice=advice)
    return Rulebook(rules, fees)


def alert_plan(store: Path) -> AlertPlan:
    """Return the alerts of a follow. Changed rules are reloaded.

    Raises `InputError` as `find_alerts`, and for an invalid or missing channel.
    """
    channels, path = read_channels(), settings_file(store)
    for rule in find_alerts(store).rules:
        for name in rule.send or ():
            if name not in channels:
                allowed = [*channels] or "nothing: the environment sets up no channel"
                advice = f"set {_SET_UP[name]}"
                raise InputError(f"{path} alert {rule.name} send", name, allowed, advice=advice)
    return AlertPlan(lambda: find_alerts(store), channels)


def matched_streams(rules: tuple[AlertRule, ...], streams: list[Stream]) -> pl.DataFrame:
    """Count the streams that each rule watches: one row per rule, in their order.

    Snapshots of a pair count unless the pair itself is among the streams. Columns: rule, kind,
    condition (in words), streams (count) and first (key, null for none).

    >>> rule = AlertRule.of({"name": "a", "kind": "loss", "within": "1d"})
    >>> matched_streams((rule,), [Stream.parse("events/splash")]).row(0)
    ('a', 'loss', 'dropped by the archive within 1 d', 1, 'events/splash')
    """
    rows, followed = [], frozenset(streams)
    for rule in rules:
        found = [stream.key for stream in streams if rule.matches(stream, followed)]
        rows.append((rule.name, rule.kind.value, str(rule), len(found), next(iter(found), None)))
    schema = dict.fromkeys(("rule", "kind", "condition", "streams", "first"), pl.String)
    return pl.DataFrame(rows, schema={**schema, "streams": pl.Int64}, orient="row")


CAUGHT = {"stream": pl.String, "about": pl.String, "ts": pl.Int64, "value": pl.Float64}
"""The columns of `caught`."""


def caught(
    store: Store, rule: AlertRule, window: Interval, fees: FeeModel | None = None
) -> pl.DataFrame | None:
    """Return the alerts that a rule would have opened in a window, by the rows in the store.

    One row per alert, oldest first: stream (key), about (the stream, or symbol and legs), ts (s
    UTC) and value (in the rule's unit, null without a size). None for a rule of ages or losses.
    Raises `StoreError` as `Store.reading`.
    """
    if rule.kind in (AlertKind.STALE, AlertKind.LOSS):
        return None
    catalogue = store.catalogue()
    streams = [Stream.parse(key) for key in catalogue["stream"]]
    followed = frozenset(streams)
    watched = [stream for stream in streams if rule.matches(stream, followed)]
    if rule.kind is AlertKind.EVENT:
        logs = [stream for stream in watched if isinstance(stream, EventLog)]
        documents = [store.events(log.family, window, whole=False) for log in logs]
        marks = [event_marks(each, rule) for each in documents]
    else:
        steps = dict(catalogue.select("stream", "step_s").iter_rows())
        longest = {s.key: longest_s(s.kind, steps[s.key]) for s in watched}
        back_s = rule.for_s + round(max(longest.values(), default=0)) + 1
        reach = Interval(window.start - back_s, window.end)
        marks = [
            level_marks(level_values(rows, rule, fees), rule, longest)
            for kind in dict.fromkeys(stream.kind for stream in watched)
            for rows in Selection.as_held(
                Passes.of(store), kind, [s.key for s in watched if s.kind == kind], reach
            ).groups(reach)
        ]
    found = pl.concat([pl.DataFrame(schema=MARKS), *marks])
    opened = transitions(found, set()).filter(
        pl.col("ts") >= window.start, change=AlertChange.OPENED.value
    )
    return opened.select(*CAUGHT)


def caught_words(found: pl.DataFrame) -> str:
    """Summarize `caught`: the number of alerts and subjects, and the newest one.

    >>> caught_words(pl.DataFrame([("s", "A_B X.spot", 60, 9.0)], schema=CAUGHT, orient="row"))
    '1 alert of 1 pair or event, the newest at 1970-01-01 00:01 UTC: A_B X.spot'
    """
    if found.is_empty():
        return "no alert"
    newest = found.row(-1, named=True)
    subjects = counted(found["about"].n_unique(), "pair or event", "pairs or events")
    last = f"the newest at {format_ts(newest['ts'])}: {newest['about']}"
    return f"{counted(found.height, 'alert')} of {subjects}, {last}"


def named_rule(store: Path, name: str) -> AlertRule:
    """Return the rule of a name. Raises `InputError` for an unknown one."""
    rules = {rule.name: rule for rule in find_alerts(store).rules}
    if name not in rules:
        raise InputError("rule", name, list(rules) or "none: rail.toml has no [[alert]]")
    return rules[name]


def alert_history(store: Store, as_of: int | None) -> pl.DataFrame:
    """Return a store's alerts, as known at a time (s, None for now)."""
    found = kept_alerts(store)
    if as_of is None:
        return found
    known = found.filter(pl.col("recorded_at") <= as_of)
    newest = pl.struct("rule", "subject").is_first_distinct()
    return known.with_columns(is_open=newest & (pl.col("change") == AlertChange.OPENED))
