"""Alerts of `rail follow` over kill -9 and a restart of the service."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.alerts.conftest import Receiver, receiver
from toolkit.service import Config, Simulated, SpedClock, running
from toolkit.store import Store
from toolkit.store.writing.alerts import read_alerts
from toolkit.wire.signatures import Genuine, StandardWebhooks

from .conftest import RAIL
from .kill_loop import KILLS

pytestmark = pytest.mark.slow

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
START = 1_795_046_400 + 7 * 3_600
RULES = """
[follow]
streams = ["BTC_USDT:AURORA.spot:*", "events/spread"]
back = "1h"
snapshots = []

[[alert]]
name = "wide"
kind = "spread"
above_bps = 4
clear_bps = 3.9
for = "1m"
late = "7d"

[[alert]]
name = "events"
kind = "event"
at_least_pct = 0.3
late = "7d"
"""

__all__ = ["receiver"]


def follow(store: Path, base_url: str, receiver: Receiver) -> subprocess.Popen[bytes]:
    settings = {
        "RAIL_BASE_URL": base_url,
        "RAIL_ALERT_WEBHOOK": f"http://{receiver.address}/in",
        "RAIL_ALERT_SECRET": SECRET,
    }
    with store.with_suffix(".err").open("a") as err:
        return subprocess.Popen(
            [RAIL, "follow", "--store", store],
            cwd=store.parent,
            stderr=err,
            stdout=err,
            env=os.environ | settings,
        )


def wait_for(receiver: Receiver, count: int, seconds: float, process: subprocess.Popen) -> None:
    until = time.monotonic() + seconds
    while len(receiver.came) < count and time.monotonic() < until:
        assert process.poll() is None, "the follow ended"
        time.sleep(0.05)


def test_an_alert_arrives_at_least_once_and_with_one_id_whatever_is_killed(
    tmp_path: Path, receiver: Receiver
) -> None:
    store, chance = tmp_path / "s.duckdb", random.Random(1)
    (tmp_path / "rail.toml").write_text(RULES, encoding="utf-8")
    clock = SpedClock(start=START, speed=240.0)
    config = Config(Simulated(7), port=0, clock=clock, quota=10**6)
    with contextlib.ExitStack() as first:
        service = first.enter_context(running(config))
        port = int(service.base_url.rpartition(":")[2])
        for _ in range(max(2, KILLS)):
            had = len(receiver.came)
            process = follow(store, service.base_url, receiver)
            wait_for(receiver, had + chance.randint(1, 4), 40, process)
            time.sleep(chance.uniform(0, 0.3))
            process.kill()
            process.wait()
    again = Config(Simulated(7), port=port, clock=clock, quota=10**6)
    with running(again) as service:  # the service itself was restarted
        had = len(receiver.came)
        process = follow(store, service.base_url, receiver)
        wait_for(receiver, had + 2, 60, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(90) == 0, store.with_suffix(".err").read_text()
    history = read_alerts(Store(store)).reverse()
    assert 0 < len(set(receiver.ids)) >= len(receiver.ids) - max(2, KILLS)  # a kill, a repeat
    assert set(receiver.ids) <= set(history["alert_id"])
    outcomes = {word.removeprefix("webhook ") for word in history["delivery"].drop_nulls()}
    assert outcomes <= {"delivered", "sending", "waiting"}
    delivered = history.filter(delivery="webhook delivered")["alert_id"]
    assert set(delivered) <= set(receiver.ids)
    for headers, body in receiver.came:
        named = [(name.encode(), value.encode()) for name, value in headers.items()]
        lasting = StandardWebhooks([SECRET], window_s=10**6).check(named, body)
        assert lasting == Genuine(json.loads(body)["data"]["alert_id"])
    for changes in history.partition_by("rule", "subject"):
        words = changes["change"].to_list()
        assert words == (["opened", "cleared"] * len(words))[: len(words)]
        assert changes["ts"].is_sorted()
