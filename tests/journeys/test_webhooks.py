"""The local service delivers to the receiver over real sockets: every event stored, once.

RAIL_DELIVERIES sets how many deliveries are made under fault; `make soak` makes 100,000.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import polars as pl
import pytest

from tests import miniature
from tests.adversary import Adversary, ArchiveSettings, FaultyArchive, WebhookSwitches, adverse
from tests.adversary.deliveries import befall
from tests.counting import SetClock
from tests.listening import free_port
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.loader import FollowProgress, follow, sync
from toolkit.market import EventFamily, EventLog, Source
from toolkit.service import Config, Simulated, WebhookSettings, running
from toolkit.service.events.archive import EventArchive
from toolkit.service.transports.courier import WebhookMessage, new_secret, signed_headers
from toolkit.statistics.events import channels
from toolkit.store import Store, StoreWriter, read_deliveries

from .conftest import RAIL, serving

DELIVERIES = int(os.environ.get("RAIL_DELIVERIES", "500"))
DAY_S = 86_400
START = 20_786 * DAY_S
ENDPOINT = "/api/v1/auth/webhooks"
SECRET_ENV = "RECEIVERS_SECRET"


@contextmanager
def receiving(
    store: Path, secret: str, port: int, *options: str
) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A `rail webhook` in a process of its own, and the lines that it says."""
    said: list[str] = []
    process = subprocess.Popen(
        [
            *(RAIL, "webhook", "--secret-env", SECRET_ENV, "--store", store),
            *("--port", str(port), *options),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1", SECRET_ENV: secret},
    )
    output = process.stdout
    assert output is not None

    def read() -> None:
        for line in output:
            said.append(line)  # noqa: PERF402 - each line is there when it is said

    reading = threading.Thread(target=read)
    reading.start()
    try:
        wait_for(
            lambda: process.poll() is not None or any("listening at" in line for line in said),
            every_s=0.05,
        )
        yield process, said
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        ended = process.wait(300)
        reading.join()
        output.close()
    assert ended in (0, -signal.SIGKILL), said


@contextmanager
def signed_in(config: Config, base_url: str, owner: str = "demo-pro") -> Iterator[httpx.Client]:
    """A client with the session of an owner."""
    with httpx.Client(base_url=base_url, timeout=120) as client:
        code = config.sessions.issue(owner)
        assert client.post("/api/v1/auth/session", json={"code": code}).status_code == 200
        yield client


def wait_for(condition: Callable[[], bool], *, every_s: float) -> None:
    """Wait for the store to hold something; each look keeps the receiver out of it."""
    deadline = time.monotonic() + 240.0 + DELIVERIES / 25
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(every_s)


def counted(line: str, what: str) -> int:
    found = re.search(rf"([\d,]+) {what}", line)
    return int(found[1].replace(",", "")) if found else 0


def test_every_genuine_delivery_is_stored_once_and_every_other_one_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    switches = WebhookSwitches(duplicated=0.05, reordered=0.05, tampered=0.01, replayed=0.01)
    market, settings = Simulated(7), ArchiveSettings(burst=DELIVERIES)
    archive = FaultyArchive(market, settings)
    at = busiest_second(archive, EventFamily.SPREAD)
    wanted = [body for _, body in archive.documents(EventFamily.SPREAD, at, at + 1)]
    made = befall(
        [WebhookMessage.of("demo-pro", body) for body in wanted], switches, random.Random(3)
    )
    tampered, replayed = (sum(getattr(d, a) for d in made) for a in ("tampered", "replayed"))
    clock = SetClock(moments=[at])
    config = Config(
        market,
        port=0,
        clock=clock,
        application=adverse(Adversary(seed=3, webhooks=switches), events=settings),
        webhooks=WebhookSettings(loopback=True, in_flight=256, retries_s=(0.2, 1.0, 5.0, 10.0)),
    )
    port, path = free_port(), tmp_path / "rail.duckdb"
    store = Store(path)
    StoreWriter(store).bind(Source(market.kind, market.id))
    with running(config) as service, signed_in(config, service.base_url) as session:
        endpoint = {"url": f"http://127.0.0.1:{port}/", "families": ["spread"]}
        secret = session.put(ENDPOINT, json=endpoint).json()["secret"]
        with receiving(path, secret, port) as (_, said):
            began = time.monotonic()
            clock.moments.append(at + 1)
            wait_for(lambda: len(read_deliveries(store)) == len(wanted), every_s=2)
            took_s = time.monotonic() - began
            repeats = f"{len(made) - replayed - len(wanted):,} repeated, "
            done = f"{repeats}{tampered + replayed:,} refused"
            wait_for(lambda: said[-1].rstrip().endswith(done), every_s=0.2)
        asked = Store(tmp_path / "asked.duckdb")
        with Client(service.base_url, "demo-pro") as client:
            sync(client, asked, [EventLog(EventFamily.SPREAD)], Interval(at, at + 1))
    with capsys.disabled():
        rate = len(made) / took_s
        sys.stdout.write(f"\n{len(made):,} deliveries: {said[-1].strip()}; {rate:,.0f}/s\n")
    held = store.events(EventFamily.SPREAD, Interval(at, at + 1))
    assert sorted(held["document"]) == sorted(body.decode() for body in wanted)
    assert counted(said[-1], "stored") == len(wanted) == len(read_deliveries(store))
    assert said[-1].rstrip().endswith(done)
    assert min(tampered, replayed) > 0
    assert "Traceback" not in "".join(said)
    came = {"rest": asked, "webhook": store}
    found = channels({name: of.arrivals("spread", (at, at + 1)) for name, of in came.items()})
    assert (found["n_both"].unique().item(), *found["n_lost"]) == (len(wanted), 0, 0)


def busiest_second(archive: EventArchive, family: EventFamily) -> int:
    day = archive.documents(family, START, START + DAY_S)
    return Counter(int(json.loads(body)["ts"]) for _, body in day).most_common(1)[0][0]


def test_a_receiver_killed_in_mid_delivery_loses_and_doubles_nothing(tmp_path: Path) -> None:
    settings = ArchiveSettings(burst=150)
    market, archive = Simulated(7), FaultyArchive(Simulated(7), settings)
    at = busiest_second(archive, EventFamily.SPREAD)
    # Each receiver has something to wait for that is not sent before it is there.
    ends = (at + 1, at + 1_800, at + 3_600)
    wanted = [body.decode() for _, body in archive.documents(EventFamily.SPREAD, at, ends[-1])]
    clock = SetClock(moments=[at])
    waits_s = (0.2, 0.5, 1.0, *[2.0] * 125)  # a busy machine starts a receiver slowly
    delivering = WebhookSettings(loopback=True, in_flight=8, retries_s=waits_s)
    faulty = adverse(events=settings)
    config = Config(market, port=0, clock=clock, application=faulty, webhooks=delivering)
    port, path = free_port(), tmp_path / "rail.duckdb"
    store = Store(path)
    StoreWriter(store).bind(Source(market.kind, market.id))
    held = [0]
    with running(config) as service, signed_in(config, service.base_url) as session:
        endpoint = {"url": f"http://127.0.0.1:{port}/", "families": ["spread"]}
        secret = session.put(ENDPOINT, json=endpoint).json()["secret"]
        for end in ends[:2]:
            clock.moments.append(end)
            with receiving(path, secret, port) as (process, _):
                wait_for(lambda: len(read_deliveries(store)) > held[-1], every_s=0.05)
                process.kill()
                process.wait()
            held.append(len(read_deliveries(store)))
        assert 0 < held[1] < held[2] < len(wanted)
        clock.moments.append(ends[-1])
        with receiving(path, secret, port):
            wait_for(lambda: len(read_deliveries(store)) == len(wanted), every_s=0.5)
    found = store.events(EventFamily.SPREAD, Interval(at, ends[-1]))
    assert sorted(found["document"]) == sorted(wanted)
    assert store.counts(Interval(at, ends[-1])) == {EventLog(EventFamily.SPREAD): len(wanted)}
    assert store.loads()["finished_at"].null_count() == 2


def test_an_event_that_comes_by_socket_archive_and_webhook_is_one_event(tmp_path: Path) -> None:
    market, archive, families = Simulated(7), EventArchive(Simulated(7)), tuple(EventFamily)
    start, end = START + 6 * 3600, START + 9 * 3600
    wanted = {
        family: sorted(body.decode() for _, body in archive.documents(family, start, end))
        for family in families
    }
    clock = SetClock(moments=[start])
    config = Config(market, port=0, clock=clock, webhooks=WebhookSettings(loopback=True))
    port, path = free_port(), tmp_path / "rail.duckdb"
    store = Store(path)
    StoreWriter(store).bind(Source(market.kind, market.id))
    logs = [EventLog(family) for family in families]
    stop, hears = threading.Event(), threading.Event()

    def listening(progress: FollowProgress) -> None:
        if progress.connected == len(families):
            hears.set()

    with (
        running(config) as service,
        signed_in(config, service.base_url) as session,
        Client(service.base_url, "demo-pro") as client,
    ):
        endpoint = {"url": f"http://127.0.0.1:{port}/", "families": families}
        secret = session.put(ENDPOINT, json=endpoint).json()["secret"]
        with receiving(path, secret, port) as (_, said), ThreadPoolExecutor(1) as threads:
            captured = threads.submit(follow, client, store, logs, stop=stop, on_progress=listening)
            assert hears.wait(300)
            for now in range(start, end + 1, 1200):
                clock.moments.append(now)
                time.sleep(0.3)
            total = sum(map(len, wanted.values()))
            wait_for(lambda: len(read_deliveries(store)) == total, every_s=0.5)
            stop.set()
            result = captured.result(300)
        clock.moments.append(end + 3600)
        again = sync(client, store, [*map(EventLog, families)], Interval(start, end - 1))
    assert total > 100
    assert result.messages >= total
    assert counted(said[-1], "stored") == total
    assert (again.rows.new, again.rows.revised) == (0, 0)
    for family in families:
        assert sorted(store.events(family, Interval(start, end))["document"]) == wanted[family]
    assert sum(store.counts(Interval(start, end)).values()) == total
    compared = channels(pl.concat(store.arrivals(family, (start, end - 1)) for family in families))
    assert set(compared["channel"]) == {"archive", "socket", "webhook"}
    assert compared["n_lost"].to_list() == compared["n_doubled"].to_list() == [0] * compared.height


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_receiver_cleanly_with_its_counts(
    tmp_path: Path, number: signal.Signals
) -> None:
    store = Store(tmp_path / "rail.duckdb")
    StoreWriter(store).bind(Source("simulated", "seed-7"))
    secret, port = new_secret(), free_port()
    with receiving(store.path, secret, port) as (process, said):
        body = b'{"schema":"svc.splash.v1","event_type":"splash.pump","ts":60}'
        headers = signed_headers(secret, "msg_1", int(time.time()), body)
        assert httpx.post(f"http://127.0.0.1:{port}/", content=body, headers=headers).is_success
        assert httpx.post(f"http://127.0.0.1:{port}/", content=body).status_code == 401
        process.send_signal(number)
        assert process.wait(300) == 0
    assert said[-1].strip() == "stopped: 1 stored (1 new events), 0 repeated, 1 refused"
    assert said[0].startswith("SIMULATED")
    assert secret.removeprefix("whsec_") not in "".join(said)
    assert store.loads()["finished_at"].null_count() == 0


def test_a_service_that_is_named_makes_the_store_for_its_source(tmp_path: Path) -> None:
    path = tmp_path / "new.duckdb"
    market = miniature.write(tmp_path / "prices.parquet")
    with serving("--replay", str(market), "--now", "2026-11-04") as base_url:
        with receiving(path, new_secret(), free_port(), "--base-url", base_url):
            pass
        with Client(base_url, "demo-pro") as client:
            assert Store(path).source == client.profile().source


def test_serve_prints_a_code_that_signs_in_and_delivers_to_this_machine_unusual(
    tmp_path: Path,
) -> None:
    command = [RAIL, "serve", "--port", "0", "--webhooks-to-loopback"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        said = "".join(process.stdout.readline() for _ in range(3))
        code = re.search(r"demo-pro (\S+)", said.splitlines()[-1])
        address = re.search(r"listening at (http://\S+);", said)
        assert code is not None
        assert address is not None
        with httpx.Client(base_url=address[1]) as client:
            signed = client.post("/api/v1/auth/session", json={"code": code[1]})
            port = free_port()
            put = client.put(
                ENDPOINT, json={"url": f"http://127.0.0.1:{port}/", "families": ["spread"]}
            )
            store = Store(tmp_path / "rail.duckdb")
            StoreWriter(store).bind(Source("simulated", "seed-7"))
            with receiving(store.path, put.json()["secret"], port):
                tried = client.post(f"{ENDPOINT}/test").json()
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    assert signed.json() == {"owner": "demo-pro", "plan": "pro"}
    assert tried == {"delivered": True, "status": 204, "reason": None}
    documents = read_deliveries(store)["document"].drop_nulls()  # an event's own is in its log
    assert [json.loads(each)["type"] for each in documents] == ["webhook.test"]
