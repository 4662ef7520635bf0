"""`rail mcp`: over HTTP for this machine alone, over stdio with nothing else on the stream."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import polars as pl
import pytest

from toolkit.assistant import TOOLS, questions
from toolkit.assistant.server import application
from toolkit.serving import ServerSettings, run_in_thread
from toolkit.workspace import Workspace

from .conftest import FUNDING, PRICE, SPREAD

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture(scope="module")
def client(rail: Workspace) -> Iterator[httpx.Client]:
    settings = ServerSettings(application(rail), grace_s=1)
    with (
        run_in_thread(settings, "127.0.0.1", 0) as base_url,
        httpx.Client(base_url=base_url, timeout=60) as found,
    ):
        yield found


def sent(client: httpx.Client, method: str, **headers: str) -> Callable[..., httpx.Response]:
    """Return what sends a message of the protocol."""

    def send(**params: Any) -> httpx.Response:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | {"_meta": META}}
        known = {"mcp-protocol-version": MODERN, "mcp-method": method}
        return client.post("/mcp", json=message, headers=known | headers)

    return send


def called(client: httpx.Client, name: str, **arguments: Any) -> dict[str, Any]:
    """Return the answer to a call."""
    answer = sent(client, "tools/call", **{"mcp-name": name})(name=name, arguments=arguments)
    found: dict[str, Any] = answer.json()
    return found


def test_every_answer_fits_the_schema_that_its_tool_is_listed_with(client: httpx.Client) -> None:
    listed = sent(client, "tools/list")().json()["result"]["tools"]
    assert [tool["name"] for tool in listed] == [tool.name for tool in TOOLS]
    schemas = {tool["name"]: tool["outputSchema"] for tool in listed}
    assert all(tool["annotations"]["readOnlyHint"] for tool in listed)
    for name, arguments in (
        ("search_streams", {}),
        ("summary", {"stream": SPREAD}),
        ("screen", {"family": "funding"}),
        ("holdings", {"stream": FUNDING}),
        ("survival", {"stream": "events/spread"}),
        ("coverage", {"stream": PRICE, "start": "2026-11-03", "end": "2026-11-04"}),
        ("chart", {"stream": "events/spread"}),
        ("sql", {"query": "SELECT 1 AS one, NULL AS none"}),
        ("sql", {"query": "SELECT NULL AS none, max(time) - min(time) AS length FROM prices"}),
        ("sql", {"query": "SELECT NULL AS none, [union_value(a := 1)] AS reason"}),
    ):
        found = called(client, name, **arguments)["result"]
        assert not found["isError"], found["content"]
        assert json.loads(found["content"][0]["text"]) == found["structuredContent"]
        jsonschema.validate(found["structuredContent"], schemas[name])
        assert found["structuredContent"].keys() == schemas[name]["properties"].keys()
        assert len(json.dumps(schemas[name])) < 700  # it is listed once per tool
        assert found["structuredContent"]["simulated"]


def test_a_figure_is_a_resource_for_the_user(client: httpx.Client) -> None:
    found = called(client, "chart", stream=FUNDING, figure=True)["result"]
    words, figure = found["content"]
    assert words["type"] == "text"
    assert figure["annotations"] == {"audience": ["user"]}
    assert figure["resource"]["mimeType"] == "application/vnd.plotly.v1+json"
    assert json.loads(figure["resource"]["text"])["layout"]["title"]["text"]


def test_a_refusal_is_a_tool_error_of_one_line_that_keeps_what_is_nearest(
    client: httpx.Client,
) -> None:
    found = called(client, "summary", stream="BTC_USDT:NOWHERE.spot")["result"]
    assert found["isError"]
    (words,) = found["content"]
    assert "BTC_USDT:NOWHERE.spot is not held" in words["text"]
    assert "\n" not in words["text"]
    found = called(client, "screen", where="half_lif_s < 60")["result"]
    assert "; nearest: half_life_s;" in found["content"][0]["text"]


def test_an_unknown_tool_and_an_unknown_page_are_errors_of_the_protocol(
    client: httpx.Client,
) -> None:
    assert called(client, "sell_everything")["error"]["message"] == "Unknown tool: sell_everything"
    page = sent(client, "tools/list")(cursor="2").json()
    assert page["error"]["message"] == "No such cursor: all tools are on the first page."


@pytest.mark.parametrize("failure", [KeyError, pl.exceptions.PanicException])
def test_an_unforeseen_failure_is_logged_and_not_shown(
    client: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failure: type[BaseException],
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise failure("a secret of the machine")

    monkeypatch.setattr(Workspace, "sql", broken)
    with caplog.at_level(logging.ERROR):
        found = called(client, "sql", query="SELECT 1")
    assert found["error"]["message"] == "The toolkit failed; its log says why."
    assert "unforeseen failure in answering sql" in caplog.text


def test_an_answer_that_takes_too_long_is_given_up(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.assistant.server.ANSWER_S", 0.2)
    monkeypatch.setattr(questions, "SQL_S", 1.0)
    endless = "SELECT count(*) FROM range(100000000000) a, range(1000) b"
    found = called(client, "sql", query=endless)["result"]
    assert found["content"][0]["text"].startswith("no answer within 0.2 s")


@pytest.mark.slow
def test_a_query_that_takes_all_it_can_get_leaves_the_next_its_answer(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "SQL_S", 0.5)
    found = called(client, "sql", query="SELECT repeat('x', 2000000000)")["result"]
    assert "allowed: one that takes at most 0.5 s" in found["content"][0]["text"]
    monkeypatch.undo()
    found = called(client, "sql", query="SELECT 1 AS one")["result"]
    assert found["structuredContent"]["rows"] == [{"one": 1}]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "rail.example.org"}, 421),
        ({"origin": "https://example.org"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1.example.org"}, 403),
        ({"origin": "http://localhost:3000"}, 200),
        ({"host": "localhost:8701"}, 200),
    ],
)
def test_a_page_or_a_name_of_another_machine_is_refused(
    client: httpx.Client, headers: dict[str, str], status: int
) -> None:
    assert sent(client, "tools/list", **headers)().status_code == status


def test_no_other_origin_may_read_an_answer(client: httpx.Client) -> None:
    answer = sent(client, "tools/list", origin="http://localhost:3000")()
    assert [name for name in answer.headers if name.startswith("access-control")] == []
    assert client.get("/mcp").status_code == 405
    assert client.post("/").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["input", "Ctrl-C"])
def test_over_stdio_nothing_but_messages_is_written(rail: Workspace, ends: str) -> None:
    params = {"protocolVersion": "2025-06-18", "capabilities": {}}
    params["clientInfo"] = {"name": "test", "version": "1"}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call"}
        | {"params": {"name": "summary", "arguments": {"stream": SPREAD}}},
    ]
    running = subprocess.Popen(
        [Path(sys.executable).with_name("rail"), "mcp", "--store", str(rail.store.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdin is not None
    assert running.stdout is not None
    assert running.stderr is not None
    with running:
        running.stdin.writelines(f"{json.dumps(each)}\n" for each in messages)
        running.stdin.flush()
        answers = [json.loads(running.stdout.readline()) for _ in range(2)]
        if ends == "Ctrl-C":
            endless = {"query": "SELECT count(*) FROM range(10 ** 15)"}
            asked = {"name": "sql", "arguments": endless}
            messages = [
                {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": asked},
                {"jsonrpc": "2.0", "id": 4, "method": "ping"},
            ]
            running.stdin.writelines(f"{json.dumps(each)}\n" for each in messages)
            running.stdin.flush()
            assert json.loads(running.stdout.readline())["id"] == 4
            running.send_signal(signal.SIGINT)
        else:
            running.stdin.close()
        rest, errors = running.stdout.read(), running.stderr.read()
    assert [each["id"] for each in answers] == [1, 2]
    assert answers[0]["result"]["serverInfo"]["name"] == "machine-rail-store"
    assert answers[1]["result"]["structuredContent"]["n"] == 120
    assert (rest, errors, running.returncode) == ("", "", 0)
