"""One attempt at a delivery, against receivers that misbehave over real sockets."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.listening import listening
from toolkit.service import WebhookSettings
from toolkit.service.transports.webhooks.addresses import Target, target_of
from toolkit.service.transports.webhooks.courier import Post, Reply

from .conftest import Sink, serve_sink

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


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_2xx_is_taken(sink: Sink, status: int) -> None:
    sink.script = [(status, {})]
    (reply,) = attempts(sink.url)
    assert (reply.status, reply.taken) == (status, True)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_not_taken(sink: Sink, status: int) -> None:
    sink.script = [(status, {"Location": sink.url})]
    (reply,) = attempts(sink.url)
    assert (reply.status, reply.taken, len(sink.requests)) == (status, False, 1)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("7", 7.0), ("999999999999", 86_400.0), ("soon", 0.0), ("-1", 0.0), ("", 0.0)],
)
def test_retry_after_in_seconds_is_read_and_capped(sink: Sink, said: str, seconds: float) -> None:
    sink.script = [(503, {"Retry-After": said})]
    assert attempts(sink.url) == [Reply(503, seconds)]


def test_retry_after_as_a_date_is_read(sink: Sink) -> None:
    sink.script = [
        (429, {"Retry-After": "Fri, 01 Jan 2100 00:00:00 GMT"}),
        (429, {"Retry-After": "Fri, 01 Jan 1999 00:00:00 GMT"}),
    ]
    later, past = attempts(sink.url, times=2)
    assert (later.retry_after_s, past.retry_after_s) == (86_400.0, 0.0)


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
def test_https_is_believed_only_with_a_certificate_for_the_name(
    certified: Callable[[str], Path],
) -> None:
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
