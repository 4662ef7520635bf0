"""What a service says of a refusal is found, whatever the shape of its body."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.wire.message import message_and_code

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
SAID = {
    "problem": {"type": "about:blank", "title": "Bad Request", "detail": "no such pair"},
    "title alone": {"type": "about:blank", "title": "no such pair", "status": 400},
    "error": {"error": "no such pair"},
    "message": {"message": "no such pair", "status": "error"},
    "message beside error": {"error": "Forbidden", "message": "no such pair"},
    "nested": {"error": {"code": 1002, "message": "no such pair"}},
    "OAuth": {"error": "invalid_request", "error_description": "no such pair"},
    "camel case": {"errorMessage": "no such pair"},
    "exchange": {"retCode": 10001, "retMsg": "no such pair", "result": {}},
    "list of texts": {"errors": ["no such pair"]},
    "list of objects": {"errors": [{"message": "no such pair"}]},
    "list at the top": [{"message": "no such pair"}],
    "fault": {"fault": {"text": "no such pair"}},
    "unheard of": {"ok": False, "qwx": {"zz": ["e17", "no such pair"]}},
    "a text": "no such pair",
    "JSON-RPC": {"jsonrpc": "2.0", "error": {"code": -32602, "message": "no such pair"}},
    "JSON-RPC with a problem": {"error": {"message": "x y", "data": {"detail": "no such pair"}}},
}


@pytest.mark.parametrize("body", SAID.values(), ids=SAID)
def test_the_message_is_found_in_any_field(body: object) -> None:
    assert message_and_code(json.dumps(body).encode())[0] == "no such pair"


def test_what_is_wrong_with_each_parameter_is_named() -> None:
    fastapi = {"detail": [{"loc": ["query", "limit"], "msg": "not a number", "type": "int"}]}
    assert message_and_code(json.dumps(fastapi).encode())[0] == "query.limit: not a number"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"upstream timed out\n", "upstream timed out"),
        (b"<html><head><title>\n502 Bad\nGateway</title></head>", "502 Bad Gateway"),
        (b"<html><style>p {}</style><p>Too <b>many</b></p>", "Too many"),
        (b"<?xml version='1.0'?><Error><Message>no such pair</Message></Error>", "no such pair"),
        (b'{"title": "Forbid', ""),
        (b"\x89PNG\r\n\x1a\n\0", ""),
        (b"", ""),
        (b"7", ""),
        (b"{}", ""),
        (b"null", ""),
        (b"[" * 100_000, ""),
    ],
)
def test_what_is_no_json_gives_its_words_and_noise_gives_none(body: bytes, said: str) -> None:
    assert message_and_code(body)[0] == said


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"code": "spent", "detail": "x"}, "spent"),
        ({"error": {"code": "spent", "message": "x"}}, "spent"),
        ({"retCode": 10006, "retMsg": "x"}, "10006"),
        ({"code": None}, ""),
    ],
)
def test_the_code_is_that_of_the_error(body: object, code: str) -> None:
    assert message_and_code(json.dumps(body).encode())[1] == code


@given(JSON)
def test_any_json_gives_one_short_line(body: object) -> None:
    message, code = message_and_code(json.dumps(body).encode())
    assert len(message) <= 300
    assert (message + code).isprintable()
