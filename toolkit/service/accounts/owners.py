"""Owners, their keys and sessions. A file of owners is read again when it changes.

One table per owner::

    [owners.ann]
    plan = "builder"           # free, builder or pro
    keys = ["first", "second"] # any number, all use one quota
    revoked = ["lost"]         # refused, even if also listed in keys
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from toolkit.errors import InputError
from toolkit.market import Plan


class Sessions:
    """The codes not used yet and the open sessions, as hashes, until the service ends."""

    def __init__(self) -> None:
        self._codes: dict[bytes, str] = {}
        self._owners: dict[bytes, str] = {}

    def issue(self, owner: str) -> str:
        """Issue a new code for signing in once, as the owner of this name."""
        code = secrets.token_urlsafe(16)
        self._codes[_hash(code)] = owner
        return code

    def sign_in(self, code: str) -> str | None:
        """Exchange a code for a session's token, None for a code that is not valid."""
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

    >>> Owners([Owner("ann", Plan.PRO, ("k",)), Owner("bob", Plan.FREE, ("k",))])
    Traceback (most recent call last):
    toolkit.errors.InputError: keys: 'ann, bob' is not allowed; allowed: keys of one owner each
    """

    def __init__(self, owners: Iterable[Owner]) -> None:
        self._holders: dict[str, Owner] = {}
        listed = tuple(owners)
        named: dict[str, Owner] = {}
        for owner in listed:
            if named.setdefault(owner.name, owner) is not owner:
                raise InputError("owners", owner.name, "owners of different names")
            for key in owner.keys:
                holder = self._holders.setdefault(key, owner)
                if holder is not owner:
                    both = f"{holder.name}, {owner.name}"
                    raise InputError("keys", both, "keys of one owner each")
        for owner in listed:
            for key in owner.revoked:
                self._holders.pop(key, None)
        self._named = MappingProxyType(named)

    @property
    def named(self) -> Mapping[str, Owner]:
        """The owners by name."""
        return self._named

    def owner_of(self, key: str) -> Owner | None:
        """Return the owner of a key, None for an unknown one.

        Every key is compared, each in constant time, so that the time taken reveals nothing.
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
    r"""The owners of a TOML file. Rotated and revoked keys take effect at the next request.

    The bytes are read every time, since time stamps do not distinguish two quick changes, and
    parsed if they differ. A file that is missing or not valid is an `InputError` at the start;
    later it leaves the owners unchanged, and is logged once, without its content.
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
    """Parse the bytes. Errors name owners and places, and never show the content."""
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
