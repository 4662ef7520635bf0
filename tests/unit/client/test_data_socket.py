"""Pages by the history actions of the data socket: the same rows, ledger and errors as by HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from websockets.sync.server import ServerConnection, serve

from tests import miniature
from tests.adversary import Adversary, adverse
from tests.listening import listening
from tests.other_services import rows
from tests.other_services.data import NOW, START, sample
from tests.other_services.kinds import running_other
from tests.other_services.server import API_KEY
from toolkit.client import Client
from toolkit.client.stream import SocketClient
from toolkit.errors import (
    BadRequestError,
    KeyRefusedError,
    PlanRefusedError,
    QuotaError,
    ServiceError,
    WireError,
)
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.market import EventFamily, EventLog, Stream, Trajectory
from toolkit.service import Clock, Config, running
from toolkit.store import Store
from toolkit.wire.exchange import RetryPolicy
from toolkit.wire.limits import Limits
from toolkit.wire.profile.profile import BUILT_IN, Profile
from toolkit.wire.profile.user_profile import UserProfile

END = miniature.END
WINDOW = Interval(END - 2 * 86_400, END)
KEYS = (
    "BTC_USDT:AURORA.spot",
    "BTC_USDT:AURORA.spot:BOREAS.spot",
    "funding/BTC_USDT:AURORA.spot:CORONA.futures",
    *(f"events/{family}" for family in EventFamily),
    "snapshot/spread",
)
QUICK = RetryPolicy(attempts=40, first_wait_s=0.01, longest_wait_s=0.02)


@contextmanager
def local(**options: Any) -> Iterator[str]:
    with running(Config(miniature.source(), port=0, clock=Clock(fixed_at=END), **options)) as found:
        yield found.base_url


def loaded(client: Client, path: Path) -> tuple[Store, Any]:
    store = Store(path)
    return store, sync(client, store, [Stream.parse(key) for key in KEYS], WINDOW, workers=3)


def assert_same(one: Store, other: Store) -> None:
    """Compare all rows, documents and answered time of two stores."""
    for key in KEYS[:3]:
        trajectory = Trajectory.parse(key)
        rows = [each.series(trajectory, WINDOW) for each in (one, other)]
        assert rows[0].height > 0 or key.startswith("funding")
        assert_frame_equal(*rows)
    for family in EventFamily:
        assert_frame_equal(*(each.events(family, WINDOW) for each in (one, other)))
    streams = [Trajectory.parse(key) for key in KEYS[:3]] + [EventLog(f) for f in EventFamily]
    assert one.ledger(streams) == other.ledger(streams)


@pytest.mark.slow
@pytest.mark.parametrize("faults", [{}, {"drop_at_message": (2, 9)}])
def test_a_load_over_the_socket_is_that_of_http(
    base_url: str, tmp_path: Path, faults: dict[str, Any]
) -> None:
    with Client(base_url, "demo-pro") as client:
        store, by_http = loaded(client, tmp_path / "http.duckdb")
    adversary = Adversary(**faults)
    with (
        local(quota=10**6, application=adverse(adversary)) as address,
        SocketClient(address, "demo-pro", retries=QUICK) as client,
    ):
        over, by_socket = loaded(client, tmp_path / "socket.duckdb")
    assert_same(store, over)
    assert by_socket.rows.new == by_http.rows.new
    if not faults:
        assert by_socket.requests == by_http.requests


def test_a_refused_upgrade_is_the_error_of_its_status(base_url: str) -> None:
    for key, kind in {"demo-free": PlanRefusedError, "nobody": KeyRefusedError}.items():
        with SocketClient(base_url, key) as client:
            client.speak(BUILT_IN)
            with pytest.raises(kind):
                client.history(KEYS[0], WINDOW.start, WINDOW.end)


def test_a_bad_question_is_refused_as_over_http(base_url: str) -> None:
    says = []
    for kind in (Client, SocketClient):
        with kind(base_url, "demo-pro") as client, pytest.raises(BadRequestError) as refused:
            client.history("NO_SUCH:AURORA.spot", WINDOW.start, WINDOW.end)
        says.append((refused.value.detail, refused.value.code, str(refused.value)))
    assert says[0] == says[1]


def test_a_spent_quota_says_when_to_come_back() -> None:
    retries = RetryPolicy(attempts=1)
    with local(quota=1) as address, SocketClient(address, "demo-pro", retries=retries) as client:
        client.profile()
        with pytest.raises(QuotaError) as refused:
            client.history(KEYS[0], WINDOW.start, WINDOW.end)
    assert refused.value.retry_after_s is not None
    assert 0 < refused.value.retry_after_s <= 60


Treatment = Callable[[ServerConnection, dict[str, Any]], object]


@contextmanager
def scripted(treat: Treatment) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve a data socket that treats each question as it is told."""
    asked: list[dict[str, Any]] = []

    def handle(connection: ServerConnection) -> None:
        for message in connection:
            asked.append(json.loads(message))
            treat(connection, asked[-1])

    with listening(serve(handle, "127.0.0.1", 0)) as address:
        yield address, asked


def asks(address: str, profile: Profile = BUILT_IN, **options: Any) -> pl.DataFrame:
    options = {"retries": RetryPolicy(attempts=2, first_wait_s=0.01), **options}
    with SocketClient(address, "sekrit-0815", **options) as client:
        client.speak(profile)
        return client.history("A_B:X.spot", 0, 120)


PAGE = {"items": [{"ts": 60, "price": 1.5, "mark_price": None, "volume": 2.0}]}


@pytest.mark.parametrize(
    "asked_by",
    [
        "parameters = { end_time = 'before', symbol = 'pair', limit = 'n' }",
        "ask = {pair = '{symbol}', exchange = '{exchange}', before = '{end_time}', n = '{limit}'}",
    ],
    ids=["parameters", "templates"],
)
def test_other_words_are_a_matter_of_the_profile(asked_by: str) -> None:
    said = (
        "[streams]\nfields = { action = 'op', id = 'ref', type = 'kind' }\n"
        "words = { 'history/price' = 'prices' }\n"
        f"[history.price]\n{asked_by}\nitems = 'rows'\n"
    )
    profile = UserProfile.parsed(Path("profile.toml"), said).applied(BUILT_IN)

    def treat(connection: ServerConnection, asked: dict[str, Any]) -> None:
        connection.send(json.dumps({"ref": asked["ref"] + 1, "rows": []}))  # of someone else
        connection.send(json.dumps({"ref": 99, "item": {"ts": 1}}))
        rows = PAGE["items"] if asked["before"] > 60 else []
        connection.send(json.dumps({"ref": asked["ref"], "rows": rows, "next_end_time": None}))

    with scripted(treat) as (address, asked):
        assert asks(address, profile)["price"].to_list() == [1.5]
    first = asked[0]
    assert (first["op"], first["pair"], first["exchange"]) == ("prices", "A_B", "X")
    assert type(first["before"]) is type(first["n"]) is int


def test_what_a_profile_pages_by_headers_is_asked_by_rest() -> None:
    users = UserProfile.read(Path(rows.__file__).with_suffix(".toml"))
    key, frame = next(iter(sample().rows.items()))
    with (
        running_other("rows", sample()) as base_url,  # it has no socket
        SocketClient(base_url, API_KEY, profile=users) as client,
    ):
        found = client.history(key, START, NOW)
    assert found["ts"].to_list() == frame["ts"].sort().to_list()


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"type": "error", "status": 403, "message": "too small"}, PlanRefusedError),
        ({"type": "error", "message": "too small"}, ServiceError),
        ({"type": "error", "status": 200, "message": "too small"}, ServiceError),
        ({"rows": []}, WireError),
    ],
)
def test_a_message_of_an_error_is_that_error(said: dict[str, Any], kind: type) -> None:
    with (
        scripted(lambda to, asked: to.send(json.dumps(said | {"id": asked["id"]}))) as (address, _),
        pytest.raises(kind) as refused,
    ):
        asks(address)
    assert "message" not in said or "too small" in str(refused.value)


def test_what_is_no_json_and_what_is_too_large_is_an_error() -> None:
    with scripted(lambda to, _: to.send("[" * 9)) as (address, _), pytest.raises(WireError):
        asks(address)
    with scripted(lambda to, _: to.send("x" * 2_000)) as (address, _), pytest.raises(ServiceError):
        asks(address, limits=Limits(body_bytes=1_000))


def test_a_mute_socket_is_given_up_in_time_and_the_key_shows_nowhere() -> None:
    with scripted(lambda *_: None) as (address, _), pytest.raises(ServiceError) as late:
        asks(address, limits=Limits(answer_s=0.2))
    assert "answer_s" in str(late.value)
    with (
        scripted(lambda to, _: to.close(1011, "no sekrit-0815")) as (address, asked),
        pytest.raises(ServiceError) as lost,
    ):
        asks(address)
    assert len(asked) == 2
    assert "sekrit-0815" not in str(lost.value)


def test_a_connection_is_used_again_and_closed_with_the_client(base_url: str) -> None:
    with SocketClient(base_url, "demo-pro") as client:
        client.history(KEYS[0], WINDOW.start, WINDOW.end)
        (first,) = client._free
        client.history(KEYS[0], WINDOW.start, WINDOW.end)
        assert list(client._free) == [first]
    assert first[0].close_code is not None
