"""Snapshots against a running service: the whole answer, as it was."""

from __future__ import annotations

import itertools
import json

import httpx

from tests import miniature
from tests.listening import Handler, listening
from toolkit.client import Client
from toolkit.errors import PlanRefusedError
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.loader.follow.sweep import Pace, SnapshotPolls
from toolkit.market import SnapshotKind, SnapshotLog
from toolkit.service import Clock, Config
from toolkit.store import Store
from toolkit.wire.findings import Finding
from toolkit.wire.profile.profile import BUILT_IN

from .conftest import client_of

WINDOW = Interval(miniature.START, miniature.END)
CONFIG = Config(miniature.source(), port=0, clock=Clock(fixed_at=miniature.END))


def test_an_answer_is_kept_byte_for_byte_with_the_services_time(store: Store) -> None:
    kinds = list(SnapshotKind)
    with client_of(CONFIG) as client:
        result = sync(client, store, [SnapshotLog(kind) for kind in kinds], WINDOW)
        limits = {"symbols": {"limit": client.profile().symbols_limit}}
        headers = {"apikey": "demo-pro"}
        with httpx.Client(base_url=client.base_url, headers=headers, timeout=30) as plain:
            sent = {
                kind: plain.get(BUILT_IN.snapshots[kind], params=limits.get(kind)).content
                for kind in kinds
            }
    n = len(kinds)
    assert (result.rows.new, result.silent) == (n, ())
    assert str(result).startswith(f"{n} snapshots new, 0 held already; {n} pages, {n} snapshots, ")
    for kind in kinds:
        (kept,) = store.snapshots(kind).to_dicts()
        assert kept["document"].encode() == sent[kind]
        assert kept["served_at"] == miniature.END
        assert json.loads(kept["document"])["type"]


def test_a_later_snapshot_comes_before_the_earlier_one(store: Store) -> None:
    for now in (miniature.END - 3600, miniature.END):
        config = Config(miniature.source(), port=0, clock=Clock(fixed_at=now))
        with client_of(config) as client:
            sync(client, store, [SnapshotLog(SnapshotKind.SPREAD)] * 2, WINDOW)
    assert store.snapshots("spread")["served_at"].to_list() == [miniature.END, miniature.END - 3600]


def test_a_refused_snapshot_is_named_and_stops_no_other(store: Store) -> None:
    logs = [SnapshotLog(SnapshotKind.SYMBOLS), SnapshotLog(SnapshotKind.SPREAD)]
    with client_of(CONFIG, "demo-free") as client:
        done = sync(client, store, logs, WINDOW, workers=1)
    assert {log: type(error) for log, error in done.refused.items()} == {logs[1]: PlanRefusedError}
    assert store.snapshots("symbols").height == 1
    assert store.snapshots("spread").height == 0


ITEM = (
    b'{"symbol":"A_B","exchange":"X","market":"futures","rate":%b,"interval_hours":8,'
    b'"next_funding_time":60}'
)


ODD = {
    "NaN": [b"NaN"],
    "-Infinity": [b"-Infinity"],
    "text that is not Unicode": [b'"\\ud83d"', b'"\xf0\x9f"'],
}


class OddRates(Handler):
    """Answers with no schemas, and a funding overview whose rates after the first are not JSON."""

    def do_GET(self) -> None:
        if self.path.endswith("/schemas"):
            self.reply(200, b"{}")
            return
        items = [ITEM % rate for rate in (b"0.5", *itertools.chain(*ODD.values()))]
        self.reply(200, b'{"items":[%b]}' % b",".join(items))


def test_a_value_of_an_answer_that_is_not_json_costs_that_value_alone(store: Store) -> None:
    log = SnapshotLog(SnapshotKind.FUNDING)
    with listening(OddRates) as url, Client(url, "demo-pro") as client:
        done = sync(client, store, [log], WINDOW)
        polls = SnapshotPolls(client, Pace(), lambda _: None, patient=True)
        polls.ask_for([log])
        (polled,) = polls.poll()
    (kept,) = store.snapshots("funding").to_dicts()
    rates = [item["rate"] for item in json.loads(kept["document"])["items"]]
    assert rates == [0.5, None, None, None, None]
    for says, values in ODD.items():
        found = Finding("not_json", f"{BUILT_IN.snapshots['funding']}.rate", says)
        assert (found, len(values)) in done.findings
        assert polled.findings.count(found) == len(values)
    assert polls.missed == 0
