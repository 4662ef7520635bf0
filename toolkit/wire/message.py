"""The service's words on a refusal, from a body of any shape."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from toolkit.foreign import plain

_LONGEST, _LONGEST_CODE = 300, 60
_DEEPEST, _MOST = 4, 5
_NAMES = (
    *("detail", "details", "message", "errormessage", "errordescription", "description", "msg"),
    *("reason", "info", "text", "title", "error", "errors", "fault", "information", "note"),
)
_CODES = ("code", "retcode", "errorcode", "errcode", "statuscode", "returncode", "resultcode", "rc")
_ENDINGS = ("message", "msg", "description", "detail", "reason")
_PLACES = ("parameter", "param", "field", "loc", "pointer")
_TITLE = re.compile(r"<(title|message|h1)\b[^>]*>(.*?)</\1", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_READ = 16_384  # characters of a page that are looked at
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def message_and_code(body: bytes, named: str = "") -> tuple[str, str]:
    """Return the message of a refusal's body and its short code, each on one line, "" for none.

    A problem document (RFC 9457) gives ``detail``, else ``title``, and each parameter's fault.
    Other JSON gives the usual fields of a message, at any upper level, else any sentence; HTML its
    title; plain text itself. ``named``, the text at the profile's place, comes first.

    >>> message_and_code(b'{"code": "spent", "detail": "come back at noon"}')
    ('come back at noon', 'spent')
    """
    try:
        said = msgspec.json.decode(body)
    except _UNREADABLE:
        return plain(_text(body), _LONGEST), ""
    error = said.get("error") if isinstance(said, dict) else None
    if isinstance(error, dict) and isinstance(error.get("data"), dict):
        said = {**error["data"], "message": error.get("message")}  # JSON-RPC
        error = None
    code = next(filter(None, map(code_of, (said, error))), "")
    message = named or _message(said) or next(_sentences(said), "")
    return plain(message, _LONGEST), plain(code, _LONGEST_CODE)


def code_of(value: object) -> str:
    """Return an object's code as written, "" for none.

    >>> code_of({"retCode": 10006}), code_of({"err-code": "busy"}), code_of({"code": None})
    ('10006', 'busy', '')
    """
    if not isinstance(value, dict):
        return ""
    fields = {bare(name): each for name, each in value.items()}
    found = [fields[name] for name in _CODES if name in fields]
    status = fields.get("status")
    if isinstance(status, str | int) and str(status).isdecimal():
        found.append(status)
    whole = [e for e in found if isinstance(e, str | int) and not isinstance(e, bool)]
    return plain(str(whole[0]), _LONGEST_CODE) if whole else ""


def message_of(value: object) -> str:
    """Return the message of the usual fields, on one line, "" for none.

    >>> message_of({"retMsg": "Too many visits!", "result": {}}), message_of({"rows": "a b"})
    ('Too many visits!', '')
    """
    return plain(_message(value), _LONGEST)


def bare(name: str) -> str:
    """Return the letters of a name in lower case.

    >>> bare("err-msg"), bare("retCode")
    ('errmsg', 'retcode')
    """
    return re.sub(r"[^a-z]", "", name.lower())


def _text(body: bytes) -> str:
    """Return the words of a body that is not JSON, "" for truncated JSON and no text."""
    try:
        text = body.decode().strip()[:_READ]
    except UnicodeDecodeError:
        return ""
    if text.startswith(("{", "[")) or "\0" in text:
        return ""
    if not text.startswith("<"):
        return text
    found = _TITLE.search(text)
    return _TAG.sub(" ", found[2] if found else text)


def _message(value: Any, depth: int = 0) -> str:
    """Return a value's message, with its parameter's name."""
    if isinstance(value, str):
        return value.strip()
    if depth > _DEEPEST:
        return ""
    if isinstance(value, list):
        return "; ".join(filter(None, (_message(each, depth + 1) for each in value[:_MOST])))
    if not isinstance(value, dict):
        return ""
    fields = dict(_ranked(value))
    name, message = next(
        ((name, found) for name, each in fields.items() if (found := _message(each, depth + 1))),
        ("", ""),
    )
    if message and name not in ("errors", "details") and isinstance(fields.get("errors"), list):
        message = "; ".join(filter(None, (message, _message(fields["errors"], depth + 1))))
    place = next((_place(value[each]) for each in _PLACES if value.get(each)), "")
    return f"{place}: {message}" if place and message else message


def _ranked(said: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the usual fields of a message by plain name, the likeliest first."""
    fields = {bare(name): value for name, value in said.items()}
    yield from ((name, fields[name]) for name in _NAMES if name in fields)
    yield from ((n, each) for n, each in fields.items() if n not in _NAMES and n.endswith(_ENDINGS))


def _place(value: Any) -> str:
    steps = value if isinstance(value, list) else [value]
    return ".".join(str(step) for step in steps if isinstance(step, str | int))


def _sentences(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str) and " " in value.strip():
        yield value
    elif isinstance(value, dict | list) and depth <= _DEEPEST:
        for each in value.values() if isinstance(value, dict) else value[:_MOST]:
            yield from _sentences(each, depth + 1)
