"""Processes that share a key share its quota: one file, no key in it, no harm where it is lost."""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.listening import Handler, listening
from toolkit.client import Client
from toolkit.client.contact import SharedPace
from toolkit.errors import UnreachableError
from toolkit.files import locked
from toolkit.wire.exchange import Request, RetryPolicy
from toolkit.wire.quota import Allowance, QuotaLeft

KEY = "a-key-of-some-length"
QUOTA, WINDOW_S = 8, 2
PROCESS = """
import sys
from pathlib import Path
from toolkit.client import Client
from toolkit.wire.exchange import Request

with Client(sys.argv[1], sys.argv[2], quota_folder=Path(sys.argv[3])) as client:
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(int(sys.argv[4])):
        assert client.ask(Request("/")).status == 200
"""


class Limited(Handler):
    """Answers so many requests per window, which begins with the first of them."""

    protocol_version = "HTTP/1.1"
    server: Service

    def do_GET(self) -> None:
        with self.server.lock:
            now = time.monotonic()
            if now - self.server.begun >= WINDOW_S:
                self.server.begun, self.server.spent = now, 0
            status = 200 if self.server.spent < QUOTA else 429
            self.server.spent += status == 200
            self.server.statuses[status] += 1
            left_s = math.ceil(self.server.begun + WINDOW_S - now)
            left = QUOTA - self.server.spent
        headers = {
            "RateLimit-Policy": f'"free";q={QUOTA};w={WINDOW_S}',
            "RateLimit": f'"free";r={left};t={left_s}',
        }
        self.reply(status, b"{}", headers | ({"Retry-After": str(left_s)} if status == 429 else {}))


class Service(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Limited)
        self.lock, self.statuses = threading.Lock(), Counter[int]()
        self.begun, self.spent = -math.inf, 0
        self.base_url = f"http://127.0.0.1:{self.server_address[1]}"


@pytest.fixture
def limited() -> Iterator[Service]:
    server = Service()
    with listening(server):
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 3])
def test_processes_over_one_key_are_never_refused_and_make_no_request_more(
    limited: Service, tmp_path: Path, processes: int
) -> None:
    each = 24 // processes
    with contextlib.ExitStack() as closing:
        arguments = (limited.base_url, KEY, str(tmp_path / "state"), str(each))
        started = [
            closing.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", PROCESS, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
            for _ in range(processes)
        ]
        for process in started:
            assert process.stdout.readline() == b"ready\n"
        for process in started:
            process.stdin.write(b"\n")
            process.stdin.flush()
        assert [process.wait(60) for process in started] == [0] * processes
    assert limited.statuses == {200: 24}


def test_a_client_waits_before_the_quota_is_spent_and_its_neighbour_knows(
    limited: Service, tmp_path: Path
) -> None:
    waits: list[float] = []
    clients = [
        Client(limited.base_url, KEY, quota_folder=tmp_path, sleep=waits.append) for _ in range(2)
    ]
    for n in range(QUOTA):
        assert clients[n % 2].ask(Request("/")).status == 200
    assert waits == []
    assert clients[0].ask(Request("/")).status == 429  # after a wait that the test does not wait
    assert 0 < waits[0] <= WINDOW_S
    for client in clients:
        client.close()


def test_the_wait_of_a_refusal_is_known_to_all(tmp_path: Path) -> None:
    one, other = (SharedPace(tmp_path, "http://h", KEY) for _ in range(2))
    elsewhere = [SharedPace(tmp_path, "http://h", "k"), SharedPace(tmp_path, "http://i", KEY)]
    one.learn(None, 30.0)
    assert 0 < other.wait_s() <= 30
    assert [each.wait_s() for each in elsewhere] == [0.0, 0.0]


def test_the_file_names_no_key_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    pace = SharedPace(tmp_path / "new", "http://host.example", KEY)
    pace.learn(Allowance("free", quota=2, window_s=60, left=1, reset_s=60), None)
    assert stat.S_IMODE(pace.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(pace.path.parent.stat().st_mode) == 0o700
    content = pace.path.name + pace.path.read_text()
    assert not [secret for secret in (KEY, "host.example") if secret in content]
    assert set(json.loads(pace.path.read_text())) == {
        "left",
        "quota",
        "window_s",
        "ends",
        "wait_until",
        "unanswered",
    }


def spent(folder: Path) -> SharedPace:
    pace = SharedPace(folder, "http://h", KEY)
    pace.learn(Allowance("free", quota=2, window_s=60, left=0, reset_s=60), None)
    assert 0 < pace.wait_s() <= 60
    return pace


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b'{"left": "x"}', b'{"ends": 1e300}', b'{"wait_until": 1e300}']
)
def test_a_file_that_is_lost_or_means_nothing_is_a_lost_hint(
    tmp_path: Path, content: bytes
) -> None:
    pace = spent(tmp_path)
    pace.path.write_bytes(content)
    assert pace.wait_s() == 0.0
    pace = spent(tmp_path)
    pace.path.unlink()
    assert pace.wait_s() == 0.0


def test_a_folder_that_cannot_be_made_and_a_lock_that_is_kept_stop_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    pace = SharedPace(tmp_path / "file" / "state", "http://h", KEY)
    pace.learn(None, 30.0)
    assert pace.wait_s() == 0.0
    pace = spent(tmp_path)
    with pace.path.open("rb") as held:
        assert locked(held.fileno())
        assert pace.wait_s() == 0.0
    assert 0 < pace.wait_s() <= 60


def test_a_link_is_not_followed_and_old_files_go(tmp_path: Path) -> None:
    pace = SharedPace(tmp_path, "http://h", KEY)
    (tmp_path / "other").write_text("theirs")
    pace.path.symlink_to(tmp_path / "other")
    pace.learn(None, 30.0)
    assert (tmp_path / "other").read_text() == "theirs"
    old = tmp_path / "old.quota"
    old.write_text("{}")
    os.utime(old, (0, 0))
    SharedPace(tmp_path, "http://h", KEY)
    assert not old.exists()


@pytest.mark.parametrize(("asked_s", "waited"), [(90.0, 2), (500.0, 0)])
def test_a_shared_wait_is_told_once_however_many_wait_and_a_longer_one_than_retries_is_not_waited(
    limited: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture, asked_s: float, waited: int
) -> None:
    waits: list[float] = []
    SharedPace(tmp_path, limited.base_url, KEY).learn(None, asked_s)
    options = {"retries": RetryPolicy(budget_s=120.0), "sleep": waits.append}
    with Client(limited.base_url, KEY, quota_folder=tmp_path, **options) as client:
        assert [client.ask(Request("/")).status for _ in range(2)] == [200, 200]
    assert len(waits) == waited
    said = "is asked again in 1 min 30 s: the processes that share the key have used"
    assert [said in line for line in caplog.messages] == [True] * bool(waited)


@given(
    quota=st.integers(1, 9),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=60),
)
def test_no_more_requests_go_than_the_quota_allows(
    quota: int, steps: list[tuple[bool, int]]
) -> None:
    pace, now, begun, counted = QuotaLeft(), 0.0, 0.0, 0
    pace = pace.learn(Allowance("p", quota, 5, quota, 5), None, now)
    for asks, quarters in steps:
        now += quarters / 4  # without a rounding error
        if asks:
            pace, wait_s = pace.ask(now)
            now += wait_s
            if wait_s:
                pace, wait_s = pace.ask(now)
                assert wait_s == 0.0
            if now - begun >= 5:
                begun, counted = now, 0
            counted += 1
            assert counted <= quota
            reset_s = max(1, math.ceil(begun + 5 - now))
            pace = pace.learn(Allowance("p", quota, 5, quota - counted, reset_s), None, now)


def test_requests_that_failed_before_a_quota_was_known_use_nothing_of_it(tmp_path: Path) -> None:
    with Service() as server:
        base_url = server.base_url  # listens, and is closed before anything is asked
    policy = RetryPolicy(attempts=1)
    with Client(base_url, KEY, quota_folder=tmp_path, retries=policy) as client:
        for _ in range(5):
            with pytest.raises(UnreachableError):
                client.profile()
    state = next(tmp_path.glob("*.quota"))
    assert json.loads(state.read_text())["unanswered"] == 0


@given(quota=st.integers(4, 9), steps=st.lists(st.integers(0, 3), min_size=40, max_size=60))
@example(quota=4, steps=[0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0, 1, 1, 2, 2])
def test_in_whatever_order_requests_and_answers_come_no_more_go_than_the_quota_allows(
    quota: int, steps: list[int]
) -> None:
    pace, arrived = QuotaLeft(), 0
    under_way: dict[int, Allowance | None] = {}
    for process in steps:  # asks, then is answered by the service, then learns from the answer
        if process not in under_way:
            pace, wait_s = pace.ask(0.0)
            if wait_s == 0.0:
                under_way[process] = None
        elif under_way[process] is None:
            arrived += 1
            under_way[process] = Allowance("p", quota, 5, quota - arrived, 5)
        else:
            pace = pace.learn(under_way.pop(process), None, 0.0)
        assert arrived <= quota
