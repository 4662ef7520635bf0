"""What is brought to an endpoint, when, and what follows from its answers."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from standardwebhooks.webhooks import Webhook

from tests.listening import listening
from toolkit.market import EventFamily
from toolkit.service import WebhookSettings, running
from toolkit.service.events.archive import EventArchive
from toolkit.service.transports.courier import RETRIES_S, Post, Reply, Target, target_of

from .conftest import DAY, ENDPOINT, Sink, serve_sink, wait_until

SignIn = Callable[..., httpx.Client]


@pytest.fixture
def endpoint(config, sign_in, sink) -> Callable[..., contextmanager[httpx.Client]]:
    """A running service whose owner has an endpoint at the sink."""

    @contextmanager
    def run(
        families: tuple[str, ...] = ("spread",), owner: str = "demo-pro", **changed: object
    ) -> Iterator[tuple[httpx.Client, str]]:
        service_config = dataclasses.replace(config, **changed)
        with running(service_config) as service:
            client = sign_in(service_config, service.base_url, owner)
            made = client.put(ENDPOINT, json={"url": sink.url, "families": families}).json()
            yield client, made["secret"]

    return run


def moments(archive: EventArchive, family: EventFamily) -> list[int]:
    """The seconds after DAY in which something of a family came into being, in order."""
    found = archive.documents(family, DAY, DAY + 86_400)
    return sorted({json.loads(body)["ts"] for _, body in found})


def patient(*retries_s: float, **changed: object) -> WebhookSettings:
    return WebhookSettings(loopback=True, retries_s=retries_s, timeout_s=2.0, **changed)


@pytest.mark.parametrize("family", EventFamily)
@pytest.mark.slow
def test_each_new_document_is_delivered_once_as_the_archive_has_it(
    endpoint, archive, clock, sink, family
) -> None:
    until = moments(archive, family)[:6][-1] + 1
    wanted = [body for _, body in archive.documents(family, DAY, until)]
    with endpoint((family.value,)) as (_, secret):
        for now in range(DAY + 1, until + 1, max(1, (until - DAY) // 7)):
            clock.moments.append(now)
        clock.moments.append(until)
        requests = list(sink.wait_for(len(wanted)))
    assert sorted(sink.bodies) == sorted(wanted)
    assert len({request.headers["webhook-id"] for request in requests}) == len(wanted)
    for request in requests:
        Webhook(secret).verify(request.body, request.headers)


@pytest.mark.slow
def test_families_that_were_not_asked_for_are_not_delivered(endpoint, archive, clock, sink) -> None:
    until = max(moments(archive, family)[2] for family in EventFamily) + 1
    wanted = [
        body
        for family in (EventFamily.SPLASH, EventFamily.FUNDING)
        for _, body in archive.documents(family, DAY, until)
    ]
    with endpoint(("splash", "funding")):
        clock.moments.append(until)
        sink.wait_for(len(wanted))
    assert sorted(sink.bodies) == sorted(wanted)


@pytest.mark.slow
def test_builder_is_told_of_openings_30_seconds_late_and_of_the_rest_at_once(
    endpoint, archive, clock, sink
) -> None:
    documents = [body for _, body in archive.documents(EventFamily.SPREAD, DAY, DAY + 7200)]
    opened = [b for b in documents if json.loads(b)["event_type"] == "spread.opened"]
    first = json.loads(opened[0])["ts"]
    at_once = [b for b in documents if b not in opened and json.loads(b)["ts"] <= first + 29]
    late = [b for b in opened if json.loads(b)["ts"] == first]
    with endpoint(owner="demo-builder") as (client, _):
        clock.moments.append(first + 30)
        assert client.post(f"{ENDPOINT}/test").json()["delivered"]
        sink.wait_for(len(at_once) + 1)
        before = [json.loads(body) for body in sink.bodies]
        assert not any(said.get("event_type") == "spread.opened" for said in before)
        clock.moments.append(first + 31)
        wait_until(lambda: set(late) <= set(sink.bodies))


@pytest.mark.slow
def test_a_delivery_that_is_not_taken_comes_again_under_its_id_with_a_new_time(
    endpoint, archive, clock, sink
) -> None:
    at = moments(archive, EventFamily.FUNDING)[0]
    count = len(archive.documents(EventFamily.FUNDING, at, at + 1))
    sink.script = [(500, {}), (302, {"Location": sink.url}), (401, {})] * count
    settings = patient(0.5, 1.0, 1.0, in_flight=1)
    with endpoint(("funding",), webhooks=settings) as (_, secret):
        clock.moments.append(at + 1)
        requests = list(sink.wait_for(4 * count))
    for identity in {request.headers["webhook-id"] for request in requests}:
        tries = [r for r in requests if r.headers["webhook-id"] == identity]
        assert len(tries) == 4
        assert len({attempt.body for attempt in tries}) == 1
        waits = [later.at - sooner.at for sooner, later in pairwise(tries)]
        assert all(w >= s for w, s in zip(waits, (0.5, 1.0, 1.0), strict=True))
        times = [int(attempt.headers["webhook-timestamp"]) for attempt in tries]
        assert times[-1] > times[0]
        for attempt in tries:
            Webhook(secret).verify(attempt.body, attempt.headers)


def test_the_waits_are_those_agreed() -> None:
    assert WebhookSettings().retries_s == RETRIES_S == (5.0, 30.0, 120.0, 600.0, 3600.0)
    assert WebhookSettings().timeout_s == 15.0


def test_after_the_last_wait_a_delivery_is_given_up_and_that_is_logged(
    endpoint, archive, clock, sink, caplog
) -> None:
    at = moments(archive, EventFamily.FUNDING)[0]
    count = len(archive.documents(EventFamily.FUNDING, at, at + 1))
    sink.script = [(500, {})] * (3 * count)
    with caplog.at_level(logging.WARNING), endpoint(("funding",), webhooks=patient(0.05, 0.05)):
        clock.moments.append(at + 1)
        wait_until(lambda: caplog.text.count("given up after 3 attempts") == count)
    assert len(sink.requests) == 3 * count
    assert "demo-pro" in caplog.text
    assert "hook?x=1" not in caplog.text


def test_410_ends_deliveries_until_the_endpoint_is_set_again(endpoint, archive, clock, sink):
    first, second, third = moments(archive, EventFamily.FUNDING)[:3]
    with endpoint(("funding",), webhooks=patient(0.05, in_flight=1)) as (client, _):
        sink.script = [(410, {})]
        clock.moments.append(first + 1)
        wait_until(lambda: not client.get(ENDPOINT).json()["enabled"])
        clock.moments.append(second + 1)
        wait_until(lambda: clock.looked_at(second + 1))
        assert client.post(f"{ENDPOINT}/test").json()["delivered"]
        wait_until(lambda: len(sink.requests) >= 2)
        again = client.put(ENDPOINT, json={"url": sink.url, "families": ["funding"]}).json()
        assert again["enabled"]
        clock.moments.append(third + 1)
        wanted = {body for _, body in archive.documents(EventFamily.FUNDING, third, third + 1)}
        wait_until(lambda: wanted <= set(sink.bodies[2:]))
    skipped = {body for _, body in archive.documents(EventFamily.FUNDING, second, second + 1)}
    assert skipped.isdisjoint(sink.bodies)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.slow
def test_an_endpoint_that_asks_to_wait_is_left_alone_that_long(
    endpoint, archive, clock, sink, status
) -> None:
    until = moments(archive, EventFamily.SPREAD)[3] + 1
    count = len(archive.documents(EventFamily.SPREAD, DAY, until))
    sink.script = [(status, {"Retry-After": "1"})]
    with endpoint(webhooks=patient(0.01, in_flight=1)):
        clock.moments.append(until)
        requests = list(sink.wait_for(count + 1))
    assert requests[1].at - requests[0].at >= 1.0
    assert len(set(sink.bodies)) == count


@pytest.mark.slow
def test_nothing_is_delivered_to_an_owner_whose_plan_was_lowered(
    endpoint, archive, clock, sink, tmp_path
) -> None:
    file = tmp_path / "owners.toml"
    file.write_text('[owners.ann]\nplan = "pro"\nkeys = ["k"]\n')
    first, second, third = moments(archive, EventFamily.FUNDING)[:3]
    with endpoint(("funding",), "ann", owners_file=file):
        clock.moments.append(first + 1)
        sink.wait_for(len(archive.documents(EventFamily.FUNDING, first, first + 1)))
        file.write_text('[owners.ann]\nplan = "free"\nkeys = ["k"]\n')
        clock.moments.append(second + 1)
        wait_until(lambda: clock.looked_at(second + 1))
        file.write_text('[owners.ann]\nplan = "pro"\nkeys = ["k"]\n')
        clock.moments.append(third + 1)
        wanted = {body for _, body in archive.documents(EventFamily.FUNDING, third, third + 1)}
        wait_until(lambda: wanted <= set(sink.bodies))
    skipped = {body for _, body in archive.documents(EventFamily.FUNDING, second, second + 1)}
    assert skipped.isdisjoint(sink.bodies)


def test_after_a_delete_nothing_more_is_delivered(endpoint, archive, clock, sink) -> None:
    first, second = moments(archive, EventFamily.FUNDING)[:2]
    sink.script = [(500, {})] * 500
    elsewhere = f"{sink.url}&set=again"
    with endpoint(("funding",), webhooks=patient(*[0.1] * 50)) as (client, _):
        clock.moments.append(first + 1)
        sink.wait_for(1)
        assert client.delete(ENDPOINT).status_code == 204
        # An attempt that was under way may still arrive; what waits for its next one may not.
        sink.wait_for_silence(1.0)
        clock.moments.append(second + 1)
        made = client.put(ENDPOINT, json={"url": elsewhere, "families": ["splash"]})
        assert made.status_code == 200
        sink.script = []
        assert client.post(f"{ENDPOINT}/test").json()["delivered"]
    after = [body for _, body in archive.documents(EventFamily.FUNDING, second, second + 1)]
    assert set(after).isdisjoint(sink.bodies)
    assert [request.path for request in sink.requests].count("/hook?x=1&set=again") == 1


HERE = WebhookSettings(loopback=True, timeout_s=1.0)
BODY = b'{ "a": 1 }'


def attempts(url: str, settings: WebhookSettings = HERE, times: int = 1) -> list[Reply]:
    """What came of attempts made one after another by one `Post`."""

    async def make() -> list[Reply]:
        post, target = Post(settings), target_of(url, loopback=True)
        try:
            return [await post.send(target, {"webhook-id": "m"}, BODY) for _ in range(times)]
        finally:
            post.close()

    return asyncio.run(make())


@contextmanager
def answering(*answers: bytes | None) -> Iterator[str]:
    """A server that sends raw bytes, one for each connection, and closes; None: says nothing."""
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def serve() -> None:
        for answer in answers:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                if answer is None:
                    ended.wait(30)
                else:
                    connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        ended.set()
        thread.join()
        listener.close()


def test_the_exact_bytes_are_posted_with_the_headers(sink: Sink) -> None:
    assert attempts(sink.url) == [Reply(204)]
    (request,) = sink.requests
    assert (request.path, request.body) == ("/hook?x=1", BODY)
    assert request.headers["webhook-id"] == "m"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["host"] == sink.url.split("/")[2]


@pytest.mark.parametrize("status", [200, 201, 204, 299, 301, 302, 303, 307, 308])
def test_2xx_is_taken_and_a_redirect_is_not_followed(sink: Sink, status: int) -> None:
    sink.script = [(status, {"Location": sink.url})]
    (reply,) = attempts(sink.url)
    assert (reply.status, reply.taken, len(sink.requests)) == (status, status < 300, 1)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        *(("7", 7.0), ("999999999999", 86_400.0), ("soon", 0.0), ("-1", 0.0), ("", 0.0)),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 86_400.0),
        ("Fri, 01 Jan 1999 00:00:00 GMT", 0.0),
    ],
)
def test_retry_after_in_seconds_or_as_a_date_is_read_and_capped(
    sink: Sink, said: str, seconds: float
) -> None:
    sink.script = [(503, {"Retry-After": said})]
    assert attempts(sink.url) == [Reply(503, seconds)]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 2",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 204\n\n",
        b"HTTP/1.1 999 Odd\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
)
def test_what_is_no_answer_is_a_failure_with_a_reason(answer: bytes) -> None:
    with answering(answer) as url:
        (reply,) = attempts(url)
    assert (reply.status, reply.taken) == (None, False)
    assert reply.reason


def test_informational_answers_are_passed_over() -> None:
    with answering(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n") as url:
        assert attempts(url) == [Reply(202)]


def test_an_answer_whose_body_never_ends_is_judged_by_its_status() -> None:
    with answering(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_000) as url:
        assert attempts(url) == [Reply(200)]


def test_silence_ends_after_the_time_allowed() -> None:
    with answering(None) as url:
        (reply,) = attempts(url, WebhookSettings(loopback=True, timeout_s=0.2))
    assert reply == Reply(None, reason="no answer within 0.2 s")


def test_a_connection_is_kept_and_replaced_when_the_other_side_closed_it(sink: Sink) -> None:
    assert attempts(sink.url, times=3) == [Reply(204)] * 3
    closing = b"HTTP/1.1 204 No Content\r\n\r\n"
    with answering(closing, closing) as url:
        assert attempts(url, times=2) == [Reply(204)] * 2


def test_nobody_listening_is_a_failure_with_a_reason() -> None:
    (reply,) = attempts("http://127.0.0.1:9/")
    assert reply.status is None
    assert "refused" in reply.reason.lower()


def test_a_name_that_leads_to_a_private_address_is_not_connected_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        target = Target(True, "localhost", port, f"localhost:{port}", "/")
        assert target == target_of(f"https://localhost:{port}/", loopback=False)
        reply = asyncio.run(Post(WebhookSettings()).send(target, {}, BODY))
        listener.settimeout(0.2)
        with pytest.raises(TimeoutError):
            listener.accept()
    assert reply.status is None
    assert "no address that deliveries may go to" in reply.reason


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a certificate, with its key beside, for a name; it is its own authority."""

    def certify(name: str) -> Path:
        path = tmp_path_factory.mktemp("tls") / "certificate.pem"
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        command += ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
        command += ["-keyout", str(path.with_name("key.pem")), "-out", str(path)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except FileNotFoundError:
            pytest.skip("openssl is not installed, so no certificate can be made")
        return path

    return certify


@contextmanager
def encrypted(sink: Sink, certificate: Path) -> Iterator[str]:
    server = serve_sink(sink)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with listening(server):
        yield f"https://localhost:{server.server_port}/"


@pytest.mark.slow
def test_https_is_believed_only_with_a_certificate_for_the_name(certified) -> None:
    right, wrong, sink = certified("localhost"), certified("elsewhere.example"), Sink()
    trusting = {
        path: WebhookSettings(loopback=True, timeout_s=5.0, authorities=path)
        for path in (right, wrong)
    }
    with encrypted(sink, right) as url:
        assert attempts(url, trusting[right], times=2) == [Reply(204)] * 2
        (stranger,) = attempts(url, trusting[wrong])
    with encrypted(sink, wrong) as url:
        (misnamed,) = attempts(url, trusting[wrong])
    assert len(sink.requests) == 2
    for reply in (stranger, misnamed):
        assert reply.status is None
        assert "certificate verify failed" in reply.reason.lower()


def test_a_process_that_ends_takes_no_more_work_and_that_is_no_fault_of_the_service() -> None:
    async def make() -> Reply:
        loop, pool = asyncio.get_running_loop(), ThreadPoolExecutor(1)
        loop.set_default_executor(pool)
        pool.shutdown()
        return await Post(HERE).send(target_of("http://localhost:9/", loopback=True), {}, BODY)

    reply = asyncio.run(make())
    assert reply.status is None
    assert "the service ends" in reply.reason
