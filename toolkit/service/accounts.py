"""Owners, their keys and sessions, the terms of their plans, and counts of their requests.

A file of owners is read again when it changes. It has one table per owner::

    [owners.ann]
    plan = "builder"           # free, builder or pro
    keys = ["first", "second"] # any number, all use one quota
    revoked = ["lost"]         # refused, even if also listed in keys
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import math
import re
import secrets
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from toolkit.errors import InputError
from toolkit.market import Plan
from toolkit.service.problems import Problem


class Sessions:
    """Unused codes and open sessions, as hashes, until the service ends."""

    def __init__(self) -> None:
        self._codes: dict[bytes, str] = {}
        self._owners: dict[bytes, str] = {}

    def issue(self, owner: str) -> str:
        """Issue a code for signing in once as the owner of this name."""
        code = secrets.token_urlsafe(16)
        self._codes[_hash(code)] = owner
        return code

    def sign_in(self, code: str) -> str | None:
        """Exchange a code for a session's token, None if the code is not valid."""
        owner = self._codes.pop(_hash(code), None)
        if owner is None:
            return None
        token = secrets.token_urlsafe(32)
        self._owners[_hash(token)] = owner
        return token

    def owner_of(self, token: str) -> str | None:
        """Return the name of a session's owner, None without such a session."""
        return self._owners.get(_hash(token))


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


_log = logging.getLogger(__name__)

_FIELDS = {"plan", "keys", "revoked"}
_TABLES = "tables [owners.NAME] of plan, keys and revoked"


@dataclass(frozen=True, slots=True)
class Owner:
    """Someone with a plan and any number of keys. The repr does not show the keys.

    A key in ``revoked`` is refused, whichever owner lists it in ``keys``.

    >>> Owner("ann", Plan.PRO, ("s3cret",))
    Owner(name='ann', plan=<Plan.PRO: 'pro'>)
    """

    name: str
    plan: Plan
    keys: tuple[str, ...] = field(repr=False)
    revoked: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if any(not key or key != key.strip() for key in (*self.keys, *self.revoked)):
            raise InputError("keys", self.name, "keys that are not empty and have no outer blanks")


DEMO_OWNERS: tuple[Owner, ...] = tuple(
    Owner(f"demo-{plan}", plan, (f"demo-{plan}",)) for plan in Plan
)
"""One owner for each plan. The key is the name: demo-free, demo-builder, demo-pro."""


class Owners:
    """A fixed set of owners.

    A key or a name of two owners is an `InputError` that names the owners, not the key.
    """

    def __init__(self, owners: Iterable[Owner]) -> None:
        self._holders: dict[str, Owner] = {}
        self.named: dict[str, Owner] = {}
        for owner in owners:
            if self.named.setdefault(owner.name, owner) is not owner:
                raise InputError("owners", owner.name, "owners of different names")
            for key in owner.keys:
                holder = self._holders.setdefault(key, owner)
                if holder is not owner:
                    both = f"{holder.name}, {owner.name}"
                    raise InputError("keys", both, "keys of one owner each")
        for owner in self.named.values():
            for key in owner.revoked:
                self._holders.pop(key, None)

    def owner_of(self, key: str) -> Owner | None:
        """Return the owner of a key, None for an unknown one.

        Every key is compared in constant time, so that the time reveals nothing.
        """
        offered = key.encode()
        found = None
        for held, owner in self._holders.items():
            if hmac.compare_digest(offered, held.encode()):
                found = owner
        return found


DEMO = Owners(DEMO_OWNERS)
"""The demo owners."""


class OwnersFile:
    """The owners of a TOML file. Rotated and revoked keys take effect at the next request.

    The bytes are read every time, since time stamps miss quick changes. A missing or invalid file
    is an `InputError` at the start. Later the owners stay, and it is logged once, without its
    content.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._read: bytes | None = _bytes(self._path)
        self._owners = _owners(self._path, self._read)

    def __repr__(self) -> str:
        return f"OwnersFile({str(self._path)!r})"

    def owner_of(self, key: str) -> Owner | None:
        """Return the owner of a key, None for an unknown one."""
        return self._current().owner_of(key)

    @property
    def named(self) -> Mapping[str, Owner]:
        """The owners by name, as the file lists them now."""
        return self._current().named

    def _current(self) -> Owners:
        read: bytes | None = None
        try:
            read = _bytes(self._path)
            if read != self._read:
                self._owners = _owners(self._path, read)
        except InputError as error:
            if read != self._read:
                _log.error("the owners stay as they were: %s", error)
        self._read = read
        return self._owners


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _refusal(path, (error.strerror or type(error).__name__).lower()) from None


def _owners(path: Path, read: bytes) -> Owners:
    """Parse the bytes. Errors name owners and places, never the content."""
    try:
        document = tomllib.loads(read.decode())
    except UnicodeDecodeError:
        raise _refusal(path, "it is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line \d+, column \d+|at end of document", str(error))
        raise _refusal(path, f"not TOML {place[0] if place else ''}".rstrip()) from None
    tables = document.get("owners")
    if document.keys() != {"owners"} or not isinstance(tables, dict) or not tables:
        raise _refusal(path, f"it has to hold {_TABLES}, and nothing else")
    return Owners([_owner(path, name, table) for name, table in tables.items()])


def _owner(path: Path, name: str, table: object) -> Owner:
    if not isinstance(table, dict) or not {"plan", "keys"} <= table.keys() <= _FIELDS:
        raise _refusal(path, f"{name} has to hold plan, keys and at most revoked")
    if table["plan"] not in list(Plan):
        raise _refusal(path, f"{name}: plan has to be one of {', '.join(Plan)}")
    texts = []
    for field_name in ("keys", "revoked"):
        given = table.get(field_name, [])
        if not isinstance(given, list) or not all(isinstance(key, str) for key in given):
            raise _refusal(path, f"{name}: {field_name} has to be a list of texts")
        texts.append(tuple(given))
    return Owner(name, Plan(table["plan"]), *texts)


def _refusal(path: Path, advice: str) -> InputError:
    return InputError("owners", str(path), f"a TOML file with {_TABLES}", advice=advice)


_WINDOW_S = 60


class Quotas:
    """Counts the requests of each owner over all keys.

    A window begins with an owner's first request and ends 60 s later, by a monotonic clock. Refused
    requests are not counted.
    """

    def __init__(self, ticks: Callable[[], float] = time.monotonic) -> None:
        self._ticks = ticks
        self._windows: dict[str, tuple[float, int]] = {}  # begun, spent

    def spend(self, owner: str, quota: int, *, policy: str) -> dict[str, str]:
        """Count one request, and return the headers with the quota, named ``policy``, and the rest.

        A spent quota is a 429 `Problem` with the same headers.
        """
        now = self._ticks()
        begun, spent = self._windows.get(owner, (now, 0))
        if now - begun >= _WINDOW_S:
            begun, spent = now, 0
        wait_s = max(1, math.ceil(begun + _WINDOW_S - now))
        is_spent = spent >= quota
        spent += not is_spent
        self._windows[owner] = begun, spent
        headers = {
            "RateLimit-Policy": f'"{policy}";q={quota};w={_WINDOW_S}',
            "RateLimit": f'"{policy}";r={max(quota - spent, 0)};t={wait_s}',
        }
        if is_spent:
            detail = f"The quota of {quota} requests per minute is spent; retry in {wait_s} s."
            headers = {"Retry-After": f"{wait_s}"} | headers
            raise Problem(429, "quota_exhausted", detail, headers=headers)
        return headers


_HOUR_S, _DAY_S = 3_600, 86_400


@dataclass(frozen=True, slots=True)
class Limit:
    """The default and the largest number of rows of a page."""

    default: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Reach:
    """How far back a plan sees (s, None: without limit), and with what delay (s)."""

    retention_s: int | None = None
    delay_s: int = 0


_MONTH = Reach(30 * _DAY_S)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a plan includes (docs/interface.md, "Plans"), beside the tools that name it.

    ``quota``: requests per minute. ``stream_open_delay_s``: how late a socket sends the openings of
    spreads (s).
    """

    quota: int
    page: Limit
    history: Reach = _MONTH
    spread_history: Reach = _MONTH
    spread_events: Reach = _MONTH
    events: Reach = _MONTH
    dashboard: Reach = Reach()
    metadata: Reach = Reach()
    stream_open_delay_s: int = 0


TERMS: Mapping[Plan, Terms] = MappingProxyType(
    {
        Plan.FREE: Terms(
            quota=60,
            page=Limit(500, 1_000),
            history=Reach(7 * _DAY_S),
            spread_history=Reach(7 * _DAY_S, delay_s=60),
            spread_events=Reach(_HOUR_S, delay_s=60),
            metadata=Reach(delay_s=600),
        ),
        Plan.BUILDER: Terms(
            quota=600,
            page=Limit(500, 5_000),
            dashboard=Reach(delay_s=30),
            stream_open_delay_s=30,
        ),
        Plan.PRO: Terms(quota=6_000, page=Limit(500, 10_000)),
    }
)
"""The terms of each plan."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The owners, and the terms of their plans.

    ``retention_s`` (s) and ``quota`` (requests per minute) replace every plan's own; None does not.
    """

    owners: Owners | OwnersFile = DEMO
    retention_s: int | None = None
    quota: int | None = None
    _terms: Mapping[Plan, Terms] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.retention_s is not None and self.retention_s <= 0:
            raise InputError("retention_s", self.retention_s, "seconds above 0, or None")
        if self.quota is not None and self.quota <= 0:
            raise InputError("quota", self.quota, "requests per minute above 0, or None")
        object.__setattr__(self, "_terms", {plan: self._changed(TERMS[plan]) for plan in Plan})

    def terms(self, plan: Plan) -> Terms:
        """Return the terms of a plan at this service."""
        return self._terms[plan]

    def _changed(self, terms: Terms) -> Terms:
        if self.retention_s is not None:
            terms = replace(
                terms,
                history=replace(terms.history, retention_s=self.retention_s),
                spread_history=replace(terms.spread_history, retention_s=self.retention_s),
            )
        return terms if self.quota is None else replace(terms, quota=self.quota)
