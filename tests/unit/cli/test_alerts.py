"""`rail alerts`: the history, the rules and what they watch, a test that is marked as one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.empty_store import empty_store
from tests.unit.alerts.conftest import Receiver, receiver
from tests.unit.store.test_alerts import found
from toolkit.intervals import Interval
from toolkit.market import Source, Stream
from toolkit.store import LoadOrigin, Store, StoreWriter
from toolkit.store.writing.alerts import AlertRecord

from .conftest import Rail

__all__ = ["receiver"]

RULES = """
[[alert]]
name = "wide"
kind = "spread"
above_bps = 50
for = "5m"
"""
PAIR = "BTC_USDT:A.spot:B.spot"


@pytest.fixture(autouse=True)
def store(workdir: Path) -> Store:
    held = empty_store(workdir / "rail.duckdb", Source("replay", "example"))
    writer = StoreWriter(held)
    load_id = writer.start_load(LoadOrigin("http://127.0.0.1:1", 1, None, "0"))
    with writer.writing(load_id) as connection:
        rows = found((PAIR, "opened", 60), (PAIR, "cleared", 120), ("other", "opened", 180))
        AlertRecord(connection, load_id).record(rows, {rows["alert_id"][0]: ("chat",)}, ())
    writer.ask({Stream.parse(PAIR): Interval(0, 60)})
    (workdir / "rail.toml").write_text(RULES, encoding="utf-8")
    return held


def test_the_history_has_what_is_open(rail: Rail) -> None:
    shown = rail("alerts", "--format", "json")
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [(row["subject"], row["change"], row["is_open"]) for row in rows] == [
        ("other", "opened", True),
        (PAIR, "cleared", False),
        (PAIR, "opened", False),
    ]
    assert rows[2]["delivery"] == "chat waiting"
    assert "3 changes of alerts, 1 open" in rail("alerts").stdout


def test_check_shows_what_each_rule_watches(rail: Rail) -> None:
    shown = rail("alerts", "check").stdout
    assert "wide: |spread| above 50 bps for 5 min, over at 40" in shown
    assert f"1 stream of the store, the first is {PAIR}" in shown
    assert "1 rule, sent to the log" in shown


def test_a_test_is_sent_and_marked(rail: Rail, receiver: Receiver) -> None:
    to = {
        "alert_webhook": f"http://{receiver.address}/",
        "alert_secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    }
    refused = rail("alerts", "test", "wide")
    assert refused.returncode == 1
    assert "webhook: delivered" in rail("alerts", "test", "wide", **to).stdout
    document = json.loads(receiver.came[0][1])
    assert document["type"] == "alert.test"
    assert document["data"]["words"].startswith("TEST wide")
    receiver.answers = [500]
    assert rail("alerts", "test", "wide", **to).returncode == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["alerts", "test", "wid"], "nearest: wide"),
        (["alerts", "test"], "rule: nothing is given; allowed: wide"),
        (["alerts", "histry"], "nearest: history"),
        (["alerts", "check", "wide"], "rule: 'wide'"),
    ],
)
def test_a_mistake_is_one_line(rail: Rail, words: list[str], says: str) -> None:
    failed = rail(*words)
    assert failed.returncode == 1
    assert says in failed.stderr
