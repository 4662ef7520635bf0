"""Requests and answers as values, refusals as errors, and the retry rule.

Sources: docs/interface.md, RFC 9110 section 10.2.3 (Retry-After).
"""

from __future__ import annotations

import datetime as dt
import email.utils
import functools
import random
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

from toolkit.errors import (
    BadRequestError,
    InputError,
    KeyRefusedError,
    NotFoundError,
    PlanRefusedError,
    QuotaError,
    ServiceError,
    UnavailableError,
    UnreachableError,
    WireError,
)
from toolkit.wire.address import is_loopback
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.message import message_and_code

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What reading a body as JSON may raise: no JSON, no UTF-8, nested too deep."""


def decoded(body: bytes | str | msgspec.Raw, kind: Any = Any, *, strict: bool = True) -> Any:
    """Return the value of JSON, None for what is not JSON or not of a kind.

    >>> decoded(b"[3]"), decoded(b"<html>"), decoded(b"[3]", str)
    ([3], None, None)
    """
    try:
        return msgspec.json.decode(body, type=kind, strict=strict)
    except UNREADABLE:
        return None


HEADER = "header:"
"""What a header is called beside parameters and fields."""

NO_CONTENT = 204
"""The status of an empty page that has no body."""

ANSWERED = frozenset(range(200, 300)) - {205}
"""The statuses of what was asked for. Any other is a refusal, and 205 has no body."""

SPENT = 429
"""The status of a refusal because the quota is spent."""

_RETRIED = frozenset({SPENT, 502, 503, 504, *range(520, 525)})
_SMALL = 8_192
_PAGE = re.compile(rb"\s*<(!doctype html|html)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Request:
    """A GET of one path with its query, in written order, and its headers."""

    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def get(cls, path: str, query: Mapping[str, object]) -> Request:
        """Make a request without the values that are None. ``header:NAME`` becomes that header.

        >>> Request.get("/p", {"symbol": "BTC_USD", "limit": 5, "end_time": None})
        Request(path='/p', query=(('symbol', 'BTC_USD'), ('limit', '5')))
        >>> Request.get("/p", {"header:X-Cursor": "c7"}).headers
        (('X-Cursor', 'c7'),)
        """
        said = [(name, str(value)) for name, value in query.items() if value is not None]
        headers = ((n.removeprefix(HEADER), v) for n, v in said if n.startswith(HEADER))
        return cls(path, tuple(p for p in said if not p[0].startswith(HEADER)), tuple(headers))


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: status, headers (names in lower case) and the body's bytes.

    ``message`` is a refusal's text at the profile's place, or the unclear text of an empty page.
    ``told`` is what an error with status 200 counts as, None for no error: see
    `toolkit.wire.profile.told`.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str = ""
    message: str = field(default="", repr=False)
    told: int | None = field(default=None, repr=False)

    @property
    def answers(self) -> bool:
        """Whether this is what was requested and not a refusal."""
        return self.status in ANSWERED and self.told is None


@dataclass(frozen=True, slots=True)
class Failure:
    """A missing or incomplete answer, and why. ``final``: a retry would bring the same."""

    reason: str
    url: str = ""
    final: bool = False


@dataclass(frozen=True, slots=True)
class Send:
    """A flow's step: send this request. Send back the `Response` or `Failure`."""

    request: Request


@dataclass(frozen=True, slots=True)
class Wait:
    """A flow's step: let this many seconds pass. ``why`` is for display."""

    seconds: float
    why: str = field(default="", compare=False)


Step = Send | Wait
Outcome = Response | Failure | None
Attempts = Generator[Step, Outcome, Response]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When to retry a GET: on transport failures, 429, 502 to 504 and 520 to 524 only.

    The n-th wait is a random part (between half and all) of ``first_wait_s * 2**n``, at most
    ``longest_wait_s``. ``Retry-After`` replaces it, plus a random part of a quarter of it (of at
    least 0.25 s), so that workers refused together return apart. Retries end after ``attempts``
    tries, before waits exceed ``budget_s``, or if the service asks for more than
    ``longest_asked_s``.
    """

    attempts: int = 6
    first_wait_s: float = 0.5
    longest_wait_s: float = 30.0
    budget_s: float = LIMITS.retry_wait_s
    longest_asked_s: float = LIMITS.asked_wait_s
    fraction: Callable[[], float] = field(default=random.random, repr=False)

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InputError("attempts", self.attempts, "1 or more")

    @classmethod
    def within(cls, limits: Limits) -> Self:
        """Make the policy with a client's limits."""
        return cls(budget_s=limits.retry_wait_s, longest_asked_s=limits.asked_wait_s)

    def wait_s(self, tries: int, asked_s: float | None) -> float:
        """Return the seconds to wait after failed try ``tries`` (from 0).

        >>> policy = RetryPolicy(fraction=lambda: 1.0)
        >>> policy.wait_s(0, None), policy.wait_s(2, None), policy.wait_s(0, 7.0)
        (0.5, 2.0, 8.75)
        """
        if asked_s is not None:
            return asked_s + max(0.25, asked_s / 4) * self.fraction()
        whole = min(self.longest_wait_s, self.first_wait_s * 2.0**tries)
        return float(whole * (0.5 + 0.5 * self.fraction()))


@functools.lru_cache(maxsize=64)
def http_date_ts(text: str | None) -> int | None:
    """Parse an HTTP date (UTC) into Unix seconds, None if unreadable.

    >>> http_date_ts("Wed, 22 Mar 2023 00:00:00 GMT")
    1679443200
    """
    if not text:
        return None
    try:
        moment = email.utils.parsedate_to_datetime(text)
        return int(moment.replace(tzinfo=moment.tzinfo or dt.UTC).timestamp())
    except (ValueError, OverflowError):
        return None


def retry_after_s(answer: Response) -> float | None:
    """Return the seconds that ``Retry-After`` asks to wait, None without such a header.

    A date is measured against the answer's own ``Date`` header.

    >>> retry_after_s(Response(429, {"retry-after": "3"}, b""))
    3.0
    """
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    then = http_date_ts(text)
    now = http_date_ts(answer.headers.get("date"))
    if then is None or now is None:
        return None
    return float(max(0, then - now))


def with_retries(request: Request, policy: RetryPolicy) -> Attempts:
    """Send a request until it is answered, and return the answer.

    Yields `Send` and `Wait`. Raises the error of `refusal` or `unreachable` when retries end.
    """
    waited_s = 0.0
    for tries in range(policy.attempts):
        outcome = yield Send(request)
        if isinstance(outcome, Response) and outcome.answers:
            return outcome
        if isinstance(outcome, Response) and (outcome.told or outcome.status) not in _RETRIED:
            break
        if isinstance(outcome, Failure) and outcome.final:
            break
        asked_s = retry_after_s(outcome) if isinstance(outcome, Response) else None
        if (asked_s or 0.0) > policy.longest_asked_s:
            break
        wait_s = policy.wait_s(tries, asked_s)
        if tries + 1 == policy.attempts or waited_s + wait_s > policy.budget_s:
            break
        waited_s += wait_s
        if isinstance(outcome, Response):
            words = f", {message_and_code(outcome.body)[0]}" if outcome.told is not None else ""
            yield Wait(wait_s, f"it answered {outcome.status}{words}")
        else:
            yield Wait(wait_s, outcome.reason if outcome else "")
    if isinstance(outcome, Response):
        raise refusal(outcome, tries=tries + 1)
    raise unreachable(outcome or Failure("nothing was sent", request.path), tries=tries + 1)


def unreachable(failure: Failure, *, tries: int = 1) -> ServiceError:
    """Return the error for a request without an answer, a `WireError` if it was given up.

    >>> print(unreachable(Failure("connection refused", "http://h/p"), tries=2))
    no answer from http://h/p after 2 tries (connection refused); is the service running, and ...
    """
    if failure.final:
        return WireError(f"{failure.url} was given up: {failure.reason}", url=failure.url)
    local = is_loopback(urlsplit(failure.url).hostname)
    start = "; `rail serve` starts a local one, `rail demo` shows it with data" if local else ""
    return UnreachableError(
        f"no answer from {failure.url} after {tries} tries ({failure.reason}); "
        f"is the service running, and is the address right?{start}",
        url=failure.url,
    )


def unreadable(answer: Response, path: str, wanted: str) -> WireError:
    """Return the error for an answer with an unexpected body."""
    message = f"{answer.url or path} answered {answer.status} with a body that is not {wanted}"
    return WireError(message + saying(answer), status=answer.status, url=answer.url)


def saying(answer: Response) -> str:
    """Return the text of a small body, to end an error message, "" for none.

    >>> saying(Response(200, {}, b'{"Note": "5 calls a minute"}'))
    '; it says: 5 calls a minute'
    """
    small = len(answer.body) <= _SMALL
    said = message_and_code(answer.body)[0] if small else ""
    return f"; it says: {said}" if said else ""


def refusal(answer: Response, *, tries: int = 1) -> ServiceError:
    """Return the error for a refusal, chosen by its status or ``told``, with the body's message.

    A 403 with a page for browsers comes from a guard before the service, so it is a `WireError`.

    >>> print(refusal(Response(401, {}, b"<html>", url="http://h/p")))
    http://h/p refused the key (401): no key was sent, or it is not valid; set RAIL_API_KEY
    >>> print(refusal(Response(400, {}, b'{"fault": {"text": "no such pair"}}', url="http://h/p")))
    http://h/p could not read the request (400): no such pair
    """
    detail, code = message_and_code(answer.body, answer.message)
    status, url, asked_s = answer.told or answer.status, answer.url, retry_after_s(answer)
    if status == SPENT:
        kind: type[ServiceError] = QuotaError
        message = f"{url}: the quota is spent (429, after {tries} tries)"
    else:
        failed = UnavailableError, f"failed ({status}, after {tries} tries)"
        odd = WireError, f"answered with an unexpected status {status}"
        kind, words = _REFUSALS.get(status, failed if status >= 500 else odd)
        if status == 403 and _PAGE.match(answer.body):
            kind, words = WireError, _CHALLENGE
        message = f"{url} {words}"
    if detail:
        message += f"; it says: {detail}" if ": " in message[len(url) :] else f": {detail}"
    if answer.told is not None:
        message += f" ({f'code {code}, ' if code else ''}told with status {answer.status})"
    if asked_s is not None:
        message += f"; it asks to wait {asked_s:.0f} s"
    return kind(
        message,
        status=status,
        url=url,
        detail=detail,
        code=code,
        retry_after_s=asked_s,
        challenge=answer.headers.get("www-authenticate", ""),
    )


_CHALLENGE = (
    "answered with a page for browsers (403): a guard before the service refuses programs, or this "
    "machine's address; the service's operator can let them through"
)
_REFUSALS: dict[int, tuple[type[ServiceError], str]] = {
    200: (WireError, "tells of an error"),
    400: (BadRequestError, "could not read the request (400)"),
    401: (
        KeyRefusedError,
        "refused the key (401): no key was sent, or it is not valid; set RAIL_API_KEY",
    ),
    402: (PlanRefusedError, "is not in the key's plan (402)"),
    403: (PlanRefusedError, "is not in the key's plan (403)"),
    404: (NotFoundError, "is not there (404); is the address that of the service?"),
}
