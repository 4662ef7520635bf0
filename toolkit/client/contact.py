"""State that clients of a service share (key, profile, quota, proxy), and their flows."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import re
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, TypeVar
from urllib.parse import urlsplit

import msgspec
import polars as pl

from toolkit.cards import Card, Shown, duration
from toolkit.errors import InputError, NotFoundError, ServiceError, WireError
from toolkit.files import locked, open_own, read_own, write_own
from toolkit.intervals import Interval
from toolkit.market import SnapshotKind, Source, Trajectory, When, asked_window
from toolkit.wire.address import base_address, is_loopback, sends_key_in_clear
from toolkit.wire.exchange import (
    ANSWERED,
    SPENT,
    UNREADABLE,
    Failure,
    Request,
    Response,
    RetryPolicy,
    http_date_ts,
    retry_after_s,
    unreadable,
    with_retries,
)
from toolkit.wire.findings import Finding
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.listing import as_snapshot
from toolkit.wire.profile.event_routes import EventRoute
from toolkit.wire.profile.history_route import HistoryRoute
from toolkit.wire.profile.places import text_at
from toolkit.wire.profile.profile import BUILT_IN, Profile
from toolkit.wire.profile.told import told
from toolkit.wire.profile.user_profile import UserProfile, assumed_profile, profile_in_force
from toolkit.wire.quota import Allowance, QuotaLeft, Requests, read_allowance
from toolkit.wire.rows.mending import doubled_fields, mended_answer
from toolkit.wire.rows.rows import column_schema
from toolkit.wire.secrets import Secret, Secrets


def proxy_for(base_url: str) -> str | None:
    """Return the environment's proxy for an address, None for http and for this machine.

    It reads ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``. Over http a proxy would read the key.
    Raises `InputError`, without the password, for a proxy that is not HTTP.

    >>> proxy_for("http://127.0.0.1:8700") is None
    True
    """
    parts = urlsplit(base_url)
    if parts.scheme != "https" or is_loopback(parts.hostname):
        return None
    set_to = urllib.request.getproxies()
    proxy, variable = set_to.get("https") or set_to.get("all"), proxy_variable()
    if not proxy or urllib.request.proxy_bypass(parts.netloc):
        return None
    url = proxy if "://" in proxy else f"http://{proxy}"
    try:
        at = urlsplit(url)
        usable = at.scheme in ("http", "https") and at.hostname and at.port != 0 and " " not in url
    except ValueError:
        usable = False
    if not usable:
        raise InputError(
            variable,
            "***",
            "http://HOST[:PORT] or https://HOST[:PORT]",
            advice="NO_PROXY names hosts without one",
        )
    return url


def proxy_variable() -> str:
    """Return what names the proxy: an environment variable, else the system's settings."""
    names = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    return next((name for name in names if os.environ.get(name)), "the system's proxy")


_Result = TypeVar("_Result")
Flow = Generator[Any, Any, _Result]
"""Steps that a client carries out, sending back what came of each: `Step` and `Alone`."""

_LOOK_S, _LOOKS = 0.005, 100
_OLD_S = 86_400


class SharedPace:
    """The quota of a key, shared by all processes of this user.

    Its file is named by a keyed digest, readable by its owner only, and holds no key. If it is
    lost, unreadable or kept locked, requests go as if nothing was known.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one, other = (SharedPace(Path(folder), "http://h", "key") for _ in range(2))
    ...     one.learn(Allowance("free", quota=2, window_s=60, left=1, reset_s=60), None)
    ...     other.wait_s(), one.wait_s() > 59
    (0.0, True)
    """

    def __init__(self, folder: Path, base_url: str, api_key: str | Secret) -> None:
        api_key = Secret(api_key)
        secret = hashlib.blake2b(api_key.reveal().encode()).digest()
        name = hashlib.blake2b(base_url.encode(), key=secret, digest_size=16).hexdigest()
        self.path = folder / f"{name}.quota"
        self._seen = QuotaLeft()
        for other in folder.glob("*.quota"):
            with contextlib.suppress(OSError):
                if other.stat().st_mtime < time.time() - _OLD_S:
                    other.unlink()

    def wait_s(self) -> float:
        """Take a place for the next request and return 0, or the seconds until one may be free."""
        with self._held() as file:
            state, wait_s = _read(file).ask(time.time())
            self._keep(file, state)
        return wait_s

    def learn(self, told: Allowance | None, wait_s: float | None) -> None:
        """Note an answer's quota, and the wait (s) of a refusal."""
        if self._seen.learn(told, wait_s, time.time()) == self._seen:
            return
        with self._held() as file:
            self._keep(file, _read(file).learn(told, wait_s, time.time()))

    def _keep(self, file: int | None, state: QuotaLeft) -> None:
        self._seen = state
        if file is not None:
            with contextlib.suppress(OSError):
                write_own(file, state.written)

    @contextlib.contextmanager
    def _held(self) -> Iterator[int | None]:
        """Yield the file, locked, None if unavailable."""
        file = None
        try:
            with contextlib.suppress(OSError):
                try:
                    file = open_own(self.path)
                except FileNotFoundError:
                    self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    file = open_own(self.path)
            yield file if file is not None and _locked(file) else None
        finally:
            if file is not None:
                os.close(file)


def _locked(file: int) -> bool:
    with contextlib.suppress(OSError):  # where the system has no locks
        for _ in range(_LOOKS):
            if locked(file):
                return True
            time.sleep(_LOOK_S)
    return False


def _read(file: int | None) -> QuotaLeft:
    with contextlib.suppress(OSError):
        if file is not None:
            return QuotaLeft.read(read_own(file)).believed(time.time())
    return QuotaLeft()


def _plan(allowance: Allowance | None) -> str:
    if allowance is None:
        return "not told yet"
    quota, window_s, left = allowance.quota, allowance.window_s, allowance.left
    told = [] if quota is None else [f"{quota:,} requests in {duration(window_s)}"]
    told += [] if left is None else [f"{left:,} left at the last answer"]
    return f"{allowance.plan}: {', '.join(told)}" if told else allowance.plan


def _reach(profile: Profile) -> str:
    routes: dict[str, HistoryRoute | EventRoute] = {
        **{f"{family} history": route for family, route in profile.histories.items()},
        **{f"{family} events": route for family, route in profile.events.items()},
    }
    alike: dict[str, list[str]] = {}
    for name, route in routes.items():
        depth = "everything" if route.retention_s is None else f"{duration(route.retention_s)} back"
        late = f"{duration(route.delay_s)} late" if route.delay_s else "no delay"
        alike.setdefault(f"{depth}, {late}", []).append(name)
    if len(alike) == 1:
        return next(iter(alike))
    return "; ".join(f"{', '.join(names)}: {reach}" for reach, names in alike.items())


_log = logging.getLogger(__name__)
_WARN_FROM_S = 5.0


class ContactOptions(TypedDict, total=False):
    """The options that every client has. `toolkit.client.Client` explains them."""

    profile: UserProfile | None
    retries: RetryPolicy | None
    allow_http: bool
    limits: Limits | None
    quota_folder: Path | None


class Alone(NamedTuple):
    """A step for one thread or task at a time: a flow, whose result is its outcome."""

    flow: Flow[Profile]


class Contact(Shown):
    """A service's address, key and profile, and the last clock and quota.

    >>> contact = Contact("http://127.0.0.1:8700/", "sekrit")
    >>> contact.base_url, contact.without_key("no key sekrit")
    ('http://127.0.0.1:8700', 'no key ***')
    """

    _not_for_users = frozenset(
        {
            *("answer", "ask", "assumed", "get", "key_header", "learn", "proxy", "requests"),
            *("retries", "schemas", "speak", "struck", "without_key"),
        }
    )

    def __init__(
        self,
        base_url: str,
        api_key: str | Secret,
        *,
        profile: UserProfile | None = None,
        retries: RetryPolicy | None = None,
        allow_http: bool = False,
        limits: Limits | None = None,
        quota_folder: Path | None = None,
    ) -> None:
        api_key = Secret(api_key)
        self.base_url = base_address(base_url)
        if sends_key_in_clear(self.base_url, allow_http=allow_http):
            _warn_of_http(self.base_url)
        self.proxy = proxy_for(self.base_url)
        if not isinstance(limits, Limits | None):
            raise InputError("limits", limits, "a toolkit.wire.limits.Limits, or None")
        self.limits = limits or (profile.limits if profile else LIMITS)
        if not isinstance(retries, RetryPolicy | None):
            raise InputError("retries", retries, "a toolkit.wire.exchange.RetryPolicy, or None")
        self.retries = retries or RetryPolicy.within(self.limits)
        if not api_key.sendable:
            allowed = "the key as issued: printable ASCII without blanks"
            raise InputError("api_key", "***", allowed)
        self._key = api_key
        self._secrets = Secrets([self._key.reveal()])
        self._echoed = False
        self._users = profile
        self._profile: Profile | None = None
        self._learned = b"", BUILT_IN
        self._served_at: int | None = None
        self._allowance: Allowance | None = None
        self._pace = SharedPace(quota_folder, self.base_url, self._key) if quota_folder else None
        self._sent = Counter[str]()
        self._counting = threading.Lock()
        self._warned_until = 0.0

    def __repr__(self) -> str:
        address = getattr(self, "base_url", None)  # a traceback may show one that is half made
        return f"{type(self).__name__}({address!r})"

    @property
    def card(self) -> Card:
        """The service in a few facts, each as far as it is known without a request.

        >>> print(Contact("https://rail.example", "sekrit").card)
        Client of https://rail.example
          source  not asked yet
          plan    not told yet
          reach   not asked yet
        """
        source, reach = "not asked yet", "not asked yet"
        if self._profile:
            source = (self._profile.source or Source("unknown", self.base_url)).label
            reach = _reach(self._profile)
        facts = [("source", source), ("plan", _plan(self._allowance)), ("reach", reach)]
        return Card(f"Client of {self.base_url}", facts)

    @property
    def key_header(self) -> dict[str, str]:
        """The header that carries the key, for a socket. Never show it."""
        return {"Authorization": f"Bearer {self._key.reveal()}"}

    @property
    def allowance(self) -> Allowance | None:
        """The plan and quota last received, None before."""
        return self._allowance

    @property
    def requests(self) -> Requests:
        """The requests sent so far, each try counted, by kind."""
        with self._counting:
            return Requests.of(self._profile or self.assumed, self._sent)

    @property
    def assumed(self) -> Profile:
        """The profile before `/schemas` is read: the built-in one, then the user's.

        >>> Contact("http://127.0.0.1:8700", "key").assumed.schemas_path
        '/api/v1/data/schemas'
        """
        return assumed_profile(self._users, self.limits)

    @property
    def schemas(self) -> bytes | None:
        """The body of `/schemas` in the profile, None without one."""
        known = self._profile is not None and self._profile.schema_hash is not None
        return self._learned[0] if known else None

    def learn(self, schemas: bytes) -> Profile:
        """Read a `/schemas` body into the profile. See `toolkit.wire.profile.user_profile`."""
        if schemas != self._learned[0] or not schemas:  # a load asks again at each commit
            self._learned = schemas, profile_in_force(self._users, self.limits, schemas)
        return self.speak(self._learned[1])

    def speak(self, profile: Profile) -> Profile:
        """Use a profile instead of requesting it."""
        self._profile = profile.within(self.limits)
        return self._profile

    def without_key(self, text: str) -> str:
        """Replace the key in a text by stars."""
        return self._secrets.hidden(text)

    def struck(self, data: bytes) -> bytes:
        """Replace the key in stored data, and warn once. See `toolkit.wire.secrets`."""
        struck = self._secrets.struck(data)
        if struck is not data and not self._echoed:
            self._echoed = True
            _log.warning("%s sends the key back; it is kept and shown as ***", self.base_url)
        return struck

    def answer(
        self, status: int, headers: Iterable[tuple[str, str]], body: bytes, url: str
    ) -> Response:
        """Make an answer with the key struck out of its headers and its body.

        >>> contact = Contact("http://127.0.0.1:8700", "sekrit")
        >>> contact.answer(401, [("X-Key", "sekrit")], b"no sekrit", "http://h/p")
        Response(status=401, headers={'x-key': '***'}, body=b'no ***', url='http://h/p')
        """
        said = {name.lower(): self.without_key(value) for name, value in headers}
        counts_as = None
        if status in ANSWERED:
            found = Response(status, said, self.struck(body), url)
            counts_as, says = told(found, (self._profile or self.assumed).ok)
            if counts_as is None:
                return replace(found, message=says) if says else found
        clean = self.without_key(body.decode(errors="replace")).encode()
        message = text_at(clean, self.assumed.error_message)
        return Response(status, said, clean, url, message, counts_as)

    def _clock(self) -> int:
        return self._served_at if self._served_at is not None else int(time.time())

    def _url(self, request: Request) -> str:
        return self.base_url + request.path

    def _count(self, request: Request) -> None:
        with self._counting:
            self._sent[request.path] += 1

    def _answered(
        self, request: Request, status: int, headers: Iterable[tuple[str, str]], body: bytes
    ) -> Response:
        """Make the answer without the key, and note clock and quota."""
        answer = self.answer(status, headers, body, self._url(request))
        self._served_at = http_date_ts(answer.headers.get("date")) or self._served_at
        allowance = read_allowance(answer.headers)
        self._allowance = allowance or self._allowance
        if self._pace is not None:
            spent = SPENT in (status, answer.told)
            self._pace.learn(allowance, retry_after_s(answer) if spent else None)
        return answer

    def _unanswered(self) -> None:
        if self._pace is not None:
            self._pace.learn(None, None)

    def _waits(self) -> Iterator[float]:
        """Yield seconds to wait for a place in the shared quota, within what retries may wait."""
        waited_s = 0.0
        while self._pace is not None and (wait_s := self._pace.wait_s()):
            waited_s += wait_s
            if waited_s > self.retries.budget_s:
                return
            yield self._warned(wait_s, "the processes that share the key have used its quota")

    def _warned(self, wait_s: float, why: str) -> float:
        """Return the seconds to wait, with one warning of a long wait for all threads."""
        now = time.monotonic()
        with self._counting:
            silent = wait_s < _WARN_FROM_S or now < self._warned_until
            self._warned_until = self._warned_until if silent else now + wait_s
        if not silent:
            length, reason = duration(round(wait_s)), self.without_key(why)
            _log.warning("%s is asked again in %s: %s", self.base_url, length, reason)
        return wait_s

    def _failed(self, request: Request, error: Exception) -> Failure:
        self._unanswered()
        if isinstance(error, ServiceError):
            final = isinstance(error, WireError)
            return Failure(self.without_key(str(error)), self._url(request), final=final)
        words = re.sub(r"\[Errno -?\d+\] ", "", " ".join(str(error).split()))
        told = f"{type(error).__name__}: {words}".rstrip(": ")
        if self.proxy is not None:
            told += f", through the proxy of {proxy_variable()}"
        return Failure(self.without_key(told), self._url(request))

    def _late(self, request: Request) -> Failure:
        self._unanswered()
        seconds = f"{self.limits.answer_s:g} s"
        why = f"its answer was not whole after {seconds}; answer_s of the limits allows more"
        return Failure(why, self._url(request), final=True)

    def _ask_profile(self) -> Flow[Profile]:
        """Request the schemas, with few retries: the address may be wrong."""
        request = Request.get(self.assumed.schemas_path, {})
        patience = replace(self.retries, attempts=min(3, self.retries.attempts))
        try:
            answer = yield from with_retries(request, patience)
        except NotFoundError as error:
            if self._users is None:
                raise
            return self.speak(profile_in_force(self._users, self.limits, str(error)))
        return self.learn(answer.body)

    def _ask_once(self) -> Flow[Profile]:
        return self._profile or (yield from self._ask_profile())

    def _ask_window(self, start: When, end: When | None) -> Flow[Interval]:
        """Read a window. One that ends or begins now needs the service's clock."""
        present: list[int] = []

        def now() -> int:
            present.append(self._clock())
            return present[-1]

        def read() -> tuple[int, int]:
            return asked_window(start, end, now=now, default=lambda: (0, now()))

        low, high = read()
        if present:
            yield from self._ask_profile()
            low, high = read()
        return Interval.checked(low, high)

    def _ask_snapshot(
        self, profile: Profile, kind: SnapshotKind | str, findings: list[Finding] | None
    ) -> Flow[bytes]:
        paths = profile.snapshots
        kind = str(kind).removeprefix("snapshot/")
        if kind not in list(paths):
            raise InputError("snapshot", kind, paths)
        of_symbols = kind == "symbols"
        limit = {profile.listing.limit: profile.symbols_limit} if of_symbols else {}
        answer = yield from with_retries(Request.get(paths[kind], limit), self.retries)
        findings = [] if findings is None else findings
        answer = mended_answer(answer, paths[kind], findings)
        findings += doubled_fields([answer.body], paths[kind])
        if of_symbols:
            answer = as_snapshot(profile, answer)
        elif shape := profile.shapes.get(kind):
            answer = shape.ours(answer)
        try:
            msgspec.json.decode(answer.body, type=dict[str, msgspec.Raw])
        except UNREADABLE as error:
            raise unreadable(answer, answer.url, f"a JSON object ({error})") from None
        return answer.body


def history_frame(trajectory: Trajectory, frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Join the frames of pages, sorted by ts, with the trajectory's key first.

    >>> history_frame(Trajectory.parse("BTC_USD:KRAKEN.spot"), []).columns
    ['trajectory', 'ts', 'price', 'mark_price', 'volume', 'extra']
    """
    rows = pl.concat([column_schema(trajectory.family).to_frame(), *frames])
    key = pl.lit(trajectory.key).alias("trajectory")
    return rows.select(key, pl.all()).sort("ts", maintain_order=True)


@functools.cache
def _warn_of_http(address: str) -> None:
    _log.warning("%s: the key is sent unencrypted, as allow_http allows; use https", address)
