"""Errors sent with status 200: how they are recognised, and the status each counts as.

With the profile's ``ok`` the value at its place decides alone. Otherwise an answer with rows is not
an error, and one without is judged by its top, ``error``, ``status``, ``meta`` or ``head``:

===============================================  ===================================================
what it says                                     the answer is
===============================================  ===================================================
too many requests, an invalid key, not in        an error, whatever else it says
the plan
no data, records, rows                           an empty page
a code of success (0, 00000, 200, 200000, OK)    an empty page
or ``success`` true, or a status of "ok"
``success`` false, a status of "error", an       an error
``error`` that is not empty
a negative code, or one of 400 and more          an error, unless its message is "OK" or "success",
                                                 or it has none and the code is a power of ten
another code or none, with a message or code     an error
that has a word such as error, invalid, failed
anything else                                    an empty page, and what it says is a finding
===============================================  ===================================================

Sources: the documentation of OKX, Bybit, Bitget, KuCoin, MEXC, Kraken, Kraken Futures, Deribit,
Gate, Binance, Hyperliquid and Coinbase.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from toolkit.wire.exchange import HEADER, SPENT, UNREADABLE, Response, decoded
from toolkit.wire.message import bare, code_of, message_of
from toolkit.wire.profile.places import value_at

_LARGEST = 4_096  # bytes: what is larger has rows
_FINE = frozenset({"", "ok", "okay", "success", "successful", "succeeded", "true", "none", "成功"})
_FAILED = frozenset({"error", "err", "fail", "failed", "failure", "false"})
_FLAGS = ("success", "succeeded", "issuccess", "ok", "status", "response", "result")
_ERRORS = ("error", "errors", "fault")
_ENVELOPES = ("error", "fault", "status", "meta", "head", "header")
_NO_ROWS = re.compile(r"err|fault|message|msg|limit|param|detail|request|args|ext|meta|head|status")
_GOOD_CODE = re.compile(r"0+|20\d0*")
_BAD_CODE = re.compile(r"-\d+|[4-9]\d\d|\d{4,}")
_POWER_OF_TEN = re.compile(r"10*")
_HTTP_CODE = re.compile(r"([45]\d\d)(000)?")
_SPENT_WORDS = (
    r"too.?many.?(requests|calls|visits|attempts|connections)|too frequent|throttled|slow down"
    r"|call frequency|rate.?limited|rate.?limit.{0,20}(exceed|reached)|over.{0,9}rate.?limit"
    r"|exceed\w*.{0,30}(rate.?limit|quota)|quota.{0,20}(exceed|reached|exhausted|spent)"
)
_KEY_WORDS = (
    r"(invalid|incorrect|unknown|missing|expired|wrong).{0,5}(api|access).?key"
    r"|(api|access).?key.{0,20}(invalid|missing|expired|required|incorrect|not valid)"
    r"|unauthori[sz]ed|not authenticated"
)
_PLAN_WORDS = r"forbidden|(permission|access).?denied|upgrade your|in your (plan|subscription)"
_REFUSALS = tuple(
    (status, re.compile(words, re.IGNORECASE))
    for status, words in ((SPENT, _SPENT_WORDS), (401, _KEY_WORDS), (403, _PLAN_WORDS))
)
_BUSY = re.compile(r"busy|unavailable|maintenance|overload|try again|time.?out", re.IGNORECASE)
_NOTHING = re.compile(
    r"\bno (more )?(data|records?|results?|rows?|candles?|klines?|trades?|entries|error)\b",
    re.IGNORECASE,
)
_WRONG = re.compile(
    r"^\W*(invalid|illegal|unknown|unsupported|missing|bad|wrong|rejected)\b"
    r"|(\b|_)(error|invalid|denied|failed|failure|exception)(\b|_)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Ok:
    """The place and value of a successful answer: the profile's ``ok``.

    >>> Ok("code", "0").holds(0), Ok("error", []).holds(["EAPI:Rate limit exceeded"])
    (True, False)
    """

    place: str
    value: str | int | bool | list[Any]

    def holds(self, found: object) -> bool:
        """Check a value. A number may be text, and null is ``""``."""
        if isinstance(found, bool) or isinstance(self.value, bool | list):
            return found is self.value if isinstance(found, bool) else found == self.value
        return str("" if found is None else found) == str(self.value)


def told(answer: Response, ok: Ok | None = None) -> tuple[int | None, str]:
    """Return the status that an answer of status 200 counts as, None if it is not an error.

    Without a known one it is 200. The second value is the unclear text of an empty page.

    >>> told(Response(200, {}, b'{"code": "50011", "msg": "Too Many Requests", "data": []}'))
    (429, '')
    """
    sent = decoded(answer.body) if len(answer.body) <= _LARGEST else None
    said = sent if isinstance(sent, dict) else {}
    if ok is None or (found := _at(answer, ok.place)) is _ABSENT:
        return _judged(said)
    message, code = _words(said)
    return None if ok.holds(found) else _counts_as(f"{message} {code}", code), ""


_ABSENT = object()


def _at(answer: Response, place: str) -> object:
    """Return the value at a place, without decoding the rows."""
    if place.startswith(HEADER):
        return answer.headers.get(place.removeprefix(HEADER).lower(), _ABSENT)
    first = re.split(r"[.\[]", place, maxsplit=1)[0]
    try:
        top = msgspec.json.decode(answer.body, type=dict[str, msgspec.Raw])
        name = place if place in top else first
        found = value_at({name: msgspec.json.decode(top[name])}, place)
    except (*UNREADABLE, KeyError):
        return _ABSENT
    return _ABSENT if found is None and name != place else found


def _judged(said: Mapping[str, Any]) -> tuple[int | None, str]:
    if any(_has_rows(name, value) for name, value in said.items()):
        return None, ""
    message, code = _words(said)
    text = f"{message} {code}"
    fields = {bare(name): value for name, value in said.items()}
    flags = {_word(v) for f in _FLAGS if isinstance(v := fields.get(f), str | bool)}
    nothing, fine = bool(_NOTHING.search(message)), _word(message) in _FINE
    failed = bool(flags & _FAILED) or any(_is_error(fields.get(name)) for name in _ERRORS)
    good = _is_good(code) or bool(flags & _FINE)
    wrong = bool(_WRONG.search(text))
    if _BAD_CODE.fullmatch(code):
        wrong = not (fine and (message or _POWER_OF_TEN.fullmatch(code)))
    refused = any(words.search(text) for _, words in _REFUSALS)
    if refused or (not nothing and (failed or (wrong and not good))):
        return _counts_as(text, code), ""
    clear = nothing or good or (fine and (message or not code))
    return None, "" if clear else f"{message} (code {code})" if code else message


def _has_rows(name: str, value: object) -> bool:
    if _NO_ROWS.search(bare(name)):
        return False
    below = value.values() if isinstance(value, dict) else [value]
    return any(isinstance(each, list | dict) and each for each in below)


def _is_error(value: object) -> bool:
    if isinstance(value, dict):
        code = code_of(value)
        return _word(message_of(value)) not in _FINE or bool(code and not _is_good(code))
    return _word(value) not in {*_FINE, "false", "0"} if isinstance(value, str) else bool(value)


def _is_good(code: str) -> bool:
    return bool(_GOOD_CODE.fullmatch(code) or (code and _word(code) in _FINE))


def _word(said: str | bool) -> str:
    return re.sub(r"[\W_]", "", str(said).lower())


def _words(said: Mapping[str, Any]) -> tuple[str, str]:
    parts = [said, *(v for n, v in said.items() if bare(n) in _ENVELOPES and isinstance(v, dict))]
    message = next((found for part in parts if (found := message_of(part))), "")
    return message, next((found for part in parts if (found := code_of(part))), "")


def _counts_as(text: str, code: str) -> int:
    for status, words in _REFUSALS:
        if words.search(text):
            return status
    if told := _HTTP_CODE.fullmatch(code):
        return int(told[1])
    return 503 if _BUSY.search(text) else 200
