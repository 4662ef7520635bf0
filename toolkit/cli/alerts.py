"""`rail alerts`: the history of alerts, a check of the rules, and a test of delivery."""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl
import typer

from toolkit.alerts.channels import Alert
from toolkit.alerts.rules import EXAMPLE, AlertRule
from toolkit.cards import counted
from toolkit.cli.options import asks
from toolkit.cli.show import console
from toolkit.cli.tables import TableOptions, show, tabled
from toolkit.errors import InputError, RailError
from toolkit.intervals import Interval
from toolkit.market import Stream
from toolkit.show.sheet import Sheet
from toolkit.statistics.core.conditions import Schema
from toolkit.statistics.fees import FeeModel
from toolkit.store import Store, service_clock
from toolkit.store.writing.alerts import read_alerts
from toolkit.workspace import store_path
from toolkit.workspace.alerts import (
    alert_plan,
    caught,
    caught_words,
    find_alerts,
    matched_streams,
    named_rule,
)

ALERTS: Schema = {
    "ts": pl.Int64(),
    "rule": pl.String(),
    "change": pl.String(),
    "is_open": pl.Boolean(),
    "about": pl.String(),
    "subject": pl.String(),
    "stream": pl.String(),
    "value": pl.Float64(),
    "level": pl.Float64(),
    "unit": pl.String(),
    "delivery": pl.String(),
    "reason": pl.String(),
    "words": pl.String(),
    "kind": pl.String(),
    "alert_id": pl.String(),
    "found_at": pl.Int64(),
    "recorded_at": pl.Int64(),
}
"""The columns of the history, as `toolkit.store.writing.alerts.read_alerts` explains them."""

_COLUMNS = (
    "ts",
    "rule",
    "change",
    "is_open",
    "about",
    "value",
    "level",
    "unit",
    "delivery",
    "reason",
)
_WHAT = ("history", "check", "test", "example")


@tabled(lambda: ALERTS, of_now=True)
@asks(
    what=typer.Argument(help="history, check (the rules), test (one rule) or example."),
    rule=typer.Argument(help="The rule to test."),
)
def alerts_command(
    what: str = "history", rule: str | None = None, store: Path | None = None, *, view: TableOptions
) -> None:
    """Show the alerts that rail follow found, newest first, and which of them are open.

    Rules are tables [[alert]] in the rail.toml beside the store or here. rail follow evaluates them
    as rows come, and reads them again when they change. It prints each change and sends it once to
    the channels in the environment: RAIL_ALERT_WEBHOOK with RAIL_ALERT_SECRET, and RAIL_ALERT_CHAT
    with apprise addresses for chat and mail.

    check shows which streams in the store each rule watches, and what it would have caught in the
    last 24 hours. test RULE sends one alert marked as a test. example prints rules of every kind.

    Example: rail alerts --where is_open

    Example: rail alerts example

    Example: rail alerts check
    """
    if what not in _WHAT:
        raise InputError("what", what, _WHAT)
    if rule is not None and what != "test":
        raise InputError("rule", rule, "a rule after `rail alerts test` alone")
    if what == "example":
        typer.echo(EXAMPLE, nl=False)
        return
    held = Store(store_path(store))
    if what == "check":
        _check(held)
    elif what == "test":
        _test(held, rule)
    else:
        rows = read_alerts(held).select(list(ALERTS))
        n_open = int(rows["is_open"].sum())
        heading = f"{counted(rows.height, 'change')} of alerts, {n_open:,} open"
        show(view, Sheet(heading, held.source.label, rows, _COLUMNS))


def _check(held: Store) -> None:
    book, channels = find_alerts(held.path), alert_plan(held.path).channels
    rules = book.rules
    streams = [Stream.parse(k) for k in held.catalogue()["stream"]] if held.path.exists() else []
    named = {rule.name: rule for rule in rules}
    for row in matched_streams(rules, streams).iter_rows(named=True):
        first = f", the first is {row['first']}" if row["first"] else ""
        console.print(f"{row['rule']}: {row['condition']}")
        console.print(f"  {counted(row['streams'], 'stream')} of the store{first}")
        if streams and (words := _caught(held, named[row["rule"]], book.fees)):
            console.print(f"  {words}")
    if not rules:
        console.print("no rules: `rail alerts example` prints some for rail.toml")
    to = " and ".join(["the log", *channels])
    console.print(f"{counted(len(rules), 'rule')}, sent to {to}")


def _caught(held: Store, rule: AlertRule, fees: FeeModel | None) -> str:
    now = service_clock(held)
    found = caught(held, rule, Interval(now - 86_400, now), fees)
    if found is None:
        return ""
    return f"in the last 24 h: {caught_words(found)}"


def _test(held: Store, name: str | None) -> None:
    if name is None:
        rules = [rule.name for rule in find_alerts(held.path).rules]
        raise InputError("rule", None, rules or "none: rail.toml has no [[alert]]")
    rule = named_rule(held.path, name)
    channels = alert_plan(held.path).channels
    asked = {n: to for n, to in channels.items() if rule.send is None or n in rule.send}
    if not asked:
        allowed = "a channel: RAIL_ALERT_WEBHOOK with RAIL_ALERT_SECRET, or RAIL_ALERT_CHAT"
        raise InputError("environment", None, allowed)
    alert = Alert.test_of(rule, int(time.time()))
    console.print(alert.words)
    failed = []
    for channel, to in asked.items():
        sent = to.send(alert)
        console.print(f"  {channel}: {'delivered' if sent.taken else sent.reason}")
        failed += [] if sent.taken else [channel]
    if failed:
        raise RailError(f"the test was not delivered by {' and '.join(failed)}")
