"""The webhook receiver, served over a real socket into a real file."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp

from tests.empty_store import empty_store
from toolkit.errors import InputError, StoreError
from toolkit.intervals import Interval
from toolkit.loader.webhook.webhooks import WebhookApp, webhook_app
from toolkit.market import EventFamily, Source
from toolkit.service.transports.courier import new_secret, signed_headers
from toolkit.serving import ServerSettings, run_in_thread
from toolkit.store import Store, read_deliveries
from toolkit.wire.limits import Limits
from toolkit.wire.signatures import HmacSignature

OLD, NEW = new_secret(), new_secret()
TS = 1_795_000_000
LIMIT = 20_000


def document(number: int = 0, **changes: object) -> bytes:
    """An event document with blanks in it, which have to survive."""
    given = {"schema": "svc.splash.v1", "event_type": "splash.pump", "event_id": f"e{number}"}
    given |= {"ts": TS, "ts_ms": TS * 1000 + number, "pct": 2.5}
    return json.dumps(given | changes, indent=1).encode()


def served(app: ASGIApp) -> AbstractContextManager[str]:
    """The address of an application that a server runs, with its start and its end."""
    return run_in_thread(ServerSettings(app, grace_s=3), "127.0.0.1", 0)


@pytest.fixture
def store(store: Store) -> Store:
    return empty_store(store.path, Source("simulated", "seed-7"), wait_s=1.0)


@pytest.fixture
def app(store: Store) -> WebhookApp:
    return webhook_app(store, secrets=[OLD, NEW], limits=Limits(delivery_bytes=LIMIT))


@pytest.fixture
def sender(app: WebhookApp) -> Iterator[httpx.Client]:
    with served(app) as address, httpx.Client(base_url=address, timeout=30) as client:
        yield client


def deliver(
    client: httpx.Client, body: bytes, identity: str = "msg_1", secret: str = NEW, path: str = "/"
) -> httpx.Response:
    headers = signed_headers(secret, identity, int(time.time()), body)
    return client.post(path, content=body, headers=headers)


def held(store: Store) -> list[str]:
    return store.events(EventFamily.SPLASH, Interval(TS, TS + 1))["document"].to_list()


def test_a_genuine_delivery_is_in_the_store_byte_for_byte_when_it_is_answered(
    sender: httpx.Client, store: Store
) -> None:
    for number in range(2):
        answer = deliver(sender, document(number), f"msg_{number}")
        assert (answer.status_code, answer.content) == (204, b"")
        assert held(store) == [document(n).decode() for n in range(number + 1)]
    kept = read_deliveries(store).drop("received_at", "load_id").rows()
    assert kept == [(f"msg_{number}", "splash", None) for number in range(2)]
    assert store.ledger() == {}, "webhooks claim nothing about the logs"


def test_a_delivery_is_known_again_by_its_id_and_an_event_by_its_own(
    sender: httpx.Client, store: Store, app: WebhookApp
) -> None:
    assert [deliver(sender, document()).status_code for _ in range(3)] == [204] * 3
    assert (len(held(store)), len(read_deliveries(store))) == (1, 1)
    assert (app.receipts.stored, app.receipts.repeated, app.receipts.events) == (1, 2, 1)
    assert deliver(sender, document(), "msg_2").status_code == 204
    assert (len(held(store)), len(read_deliveries(store))) == (1, 2)
    assert deliver(sender, document(1)).status_code == 204, "another event under the same id"
    assert (len(held(store)), len(read_deliveries(store))) == (2, 2)


def test_what_is_not_shown_to_be_genuine_is_refused_and_leaves_no_trace(
    sender: httpx.Client, store: Store, app: WebhookApp
) -> None:
    now, body = int(time.time()), document()
    good = signed_headers(NEW, "msg_1", now, body)
    old = signed_headers(NEW, "msg_1", now - 600, body)
    for headers, content in [
        (good, body + b" "),
        (good | {"webhook-id": "msg_2"}, body),
        (good | {"webhook-signature": "v1"}, body),
        (good | {"webhook-timestamp": str(now + 1)}, body),
        (good | {"webhook-timestamp": "soon"}, body),
        ({}, body),
        (old, body),
        ({}, b"not even JSON"),
    ]:
        answer = sender.post("/", content=content, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Webhook-Signature"
        assert answer.headers["content-type"] == "application/problem+json"
    assert app.receipts.refused == 8
    assert (held(store), len(read_deliveries(store)), len(store.loads())) == ([], 0, 0)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_above_the_limit_is_not_read_and_one_at_the_limit_is(
    sender: httpx.Client, store: Store, app: WebhookApp, *, chunked: bool
) -> None:
    padded = document(pad="")
    fits = document(pad="x" * (LIMIT - len(padded)))
    for body, status in [(fits, 204), (fits + b" ", 413), (fits * 50, 413)]:
        headers = signed_headers(NEW, "msg_1", int(time.time()), body)
        parts = iter([body[:1000], body[1000:]]) if chunked else body
        answer = sender.post("/", content=parts, headers=headers)
        assert answer.status_code == status
    assert app.receipts.too_large == 2
    assert read_deliveries(store)["document"].to_list() == [fits.decode()]
    assert not held(store), "it is too large for an event, and kept whole"
    asyncio.run(app.close())
    assert "document_too_large" in store.loads()["finding"][0]


def test_genuine_bytes_that_are_no_json_object_are_a_400(
    sender: httpx.Client, store: Store
) -> None:
    bodies = (b"", b"[]", b"7", b'{"a":', b"\xff{}")
    answers = {body: deliver(sender, body).status_code for body in bodies}
    assert answers == dict.fromkeys(bodies, 400)
    assert read_deliveries(store).is_empty()


def test_genuine_json_that_is_no_event_is_kept_whole(
    sender: httpx.Client, store: Store, app: WebhookApp
) -> None:
    said = b'{ "type": "webhook.test" }'
    assert [deliver(sender, said).status_code for _ in range(2)] == [204, 204]
    assert read_deliveries(store)["document"].to_list() == [said.decode()]
    assert (app.receipts.kept, app.receipts.events) == (1, 0)
    assert str(app.receipts) == "1 stored (0 new events, 1 kept whole), 1 repeated, 0 refused"


def test_only_post_brings_a_delivery(sender: httpx.Client) -> None:
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
        answer = sender.request(method, "/")
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST"), method


@pytest.mark.slow
def test_deliveries_that_come_together_are_all_stored_once(
    sender: httpx.Client, store: Store, app: WebhookApp
) -> None:
    numbers = [*range(150), *range(50)]
    with ThreadPoolExecutor(50) as threads:
        answers = list(
            threads.map(lambda n: deliver(sender, document(n), f"msg_{n}").status_code, numbers)
        )
    assert answers == [204] * 200
    assert held(store) == [document(number).decode() for number in range(150)]
    assert len(read_deliveries(store)) == app.receipts.stored == 150
    assert app.receipts.repeated == 50


HOLD = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_while_another_process_holds_the_store_deliveries_are_asked_to_come_again(
    sender: httpx.Client, store: Store, app: WebhookApp
) -> None:
    command = [sys.executable, "-c", HOLD, str(store.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        refused = deliver(sender, document())
        holder.communicate()
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    assert app.receipts.postponed == 1
    assert deliver(sender, document()).status_code == 204
    assert held(store) == [document().decode()]


def test_a_sender_that_goes_away_in_mid_body_harms_nobody(
    sender: httpx.Client, store: Store
) -> None:
    for _ in range(3):
        with socket.create_connection((sender.base_url.host, sender.base_url.port or 80)) as half:
            half.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    assert deliver(sender, document()).status_code == 204
    assert len(held(store)) == 1


def test_a_run_is_recorded_as_a_load_with_what_it_found_odd(app: WebhookApp, store: Store) -> None:
    with served(app) as address, httpx.Client(base_url=address) as client:
        assert store.loads().is_empty()
        for number in range(2):
            odd = document(number, pct="much")
            assert deliver(client, odd, f"msg_{number}").status_code == 204
    (load,) = store.loads().rows(named=True)
    assert load["base_url"] == "webhook"
    assert load["finished_at"] is not None
    (finding,) = json.loads(load["finding"])
    assert (finding["kind"], finding["says"], finding["times"]) == ("type_changed", "str", 2)
    assert store.rows_by_load().rows() == [(load["load_id"], 2, None)]


def test_it_can_be_mounted_in_another_application(app: WebhookApp, store: Store) -> None:
    outer = Starlette(routes=[Mount("/hooks/rail", app)])
    with served(outer) as address, httpx.Client(base_url=address) as client:
        assert deliver(client, document(), path="/hooks/rail/").status_code == 204
        assert deliver(client, document(), path="/elsewhere").status_code == 404
    assert len(held(store)) == 1
    assert store.loads()["finished_at"].to_list() == [None]
    asyncio.run(app.close())
    assert None not in store.loads()["finished_at"].to_list()


def test_another_scheme_takes_the_place_of_standard_webhooks(store: Store) -> None:
    app = webhook_app(store, verifier=HmacSignature(["It's a Secret to Everybody"]))
    signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    with served(app) as address, httpx.Client(base_url=address) as client:
        answer = client.post(
            "/", content=b"Hello, World!", headers={"X-Hub-Signature-256": signature}
        )
        assert answer.status_code == 400
        wrong = client.post("/", content=b"Hello", headers={"X-Hub-Signature-256": signature})
        assert wrong.status_code == 401


def test_either_of_two_secrets_is_taken_and_none_reaches_a_log_a_repr_an_answer_or_the_store(
    app: WebhookApp, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.DEBUG),
        served(app) as address,
        httpx.Client(base_url=address) as client,
    ):
        secrets = (OLD, NEW, new_secret())
        answers = [deliver(client, document(n), f"m{n}", each) for n, each in enumerate(secrets)]
    assert [answer.status_code for answer in answers] == [204, 204, 401]
    assert len(held(store)) == 2
    said = caplog.text + repr(app) + "".join(answer.text for answer in answers)
    for secret in (OLD, NEW):
        text = secret.removeprefix("whsec_")
        assert text not in said
        assert text.encode() not in store.path.read_bytes()


def test_a_receiver_needs_a_store_that_is_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        webhook_app(Store(tmp_path / "none.duckdb"), secrets=[NEW])


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({}, "verifier"),
        ({"secrets": [NEW], "verifier": HmacSignature(["x"])}, "verifier"),
        ({"secrets": ["short"]}, "secrets"),
    ],
)
def test_it_is_told_apart_how_to_verify(
    store: Store, options: dict[str, object], wrong: str
) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(wrong)}:"):
        webhook_app(store, **options)


def test_a_body_that_does_not_come_is_given_up_and_the_next_delivery_is_stored(
    store: Store,
) -> None:
    impatient = webhook_app(store, secrets=[NEW], limits=Limits(delivery_s=0.2))
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"
    with served(impatient) as address, httpx.Client(base_url=address) as client:
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as slow:
            slow.sendall(head)
            assert slow.recv(100).startswith(b"HTTP/1.1 408 ")
        assert deliver(client, document()).status_code == 204
    assert impatient.receipts.unreadable == 1
    assert len(held(store)) == 1


def test_secrets_that_come_back_in_a_body_are_struck_out_before_it_is_stored(store: Store) -> None:
    app = webhook_app(store, secrets=[NEW], withheld=["api-key-4711"])
    with served(app) as address, httpx.Client(base_url=address) as sender:
        body = document(1, trace=f"{NEW} and api-key-4711")
        assert deliver(sender, body).status_code == 204
    (kept,) = held(store)
    assert NEW not in kept
    assert "api-key-4711" not in kept
    assert kept.count("***") == 2
