"""The user's own wire profile: a TOML file that overrides all other layers.

It names only what differs::

    [history.spread]
    parameters = { end_time = "before" }
    fields.spread_pct = { wire = "spread", unit = "bps", reversed = true }

    [spelling]
    markets.futures = "PERP"

docs/interface.md has an example of every name, ``built_in.toml`` its value without a file.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from toolkit.errors import InputError, WireError
from toolkit.fields import read_toml
from toolkit.wire.limits import Limits
from toolkit.wire.profile.layers import Document, check_layer, located
from toolkit.wire.profile.profile import BUILT_IN, Profile, timed, with_schemas, without_schemas


@dataclass(frozen=True, slots=True)
class UserProfile:
    """A user's file: its limits, its SHA-256, and its document."""

    path: Path
    limits: Limits
    hash: str
    document: Document = field(repr=False)

    @classmethod
    def read(cls, path: str | Path) -> UserProfile:
        """Read the file. `InputError` if it is missing, not TOML, or not valid.

        >>> UserProfile.read("none.toml")
        Traceback (most recent call last):
        toolkit.errors.InputError: profile: 'none.toml' is not allowed; allowed: a TOML file ...
        """
        return cls.parsed(Path(path))

    @classmethod
    def parsed(cls, path: Path, text: str | None = None) -> UserProfile:
        r"""Read the text of a file. Errors name ``path`` and line.

        >>> UserProfile.parsed(Path("my.toml"), "[history.price]\ntimes = 'days'")
        Traceback (most recent call last):
        toolkit.errors.InputError: profile my.toml line 2, history.price.times: 'days' is not ...
        """
        text, said = read_toml(path, "profile", "a TOML file of the user's", text=text)
        try:
            check_layer(said)
            _check_pairs(said)
            limits = Limits(**BUILT_IN.over(said).document["limits"])
        except InputError as error:
            raise located(error, path, text) from None
        return cls(path, limits, hashlib.sha256(text.encode()).hexdigest(), said)

    def applied(self, profile: Profile) -> Profile:
        """Lay the file over a profile."""
        return replace(profile.over(self.document), users_hash=self.hash)


def _check_pairs(said: dict[str, Any]) -> None:
    """Raise `InputError` for two entries that exclude or need one another."""
    for kind in ("history", "events"):
        for family, section in said.get(kind, {}).items():
            if {"ask", "parameters"} <= section.keys():
                allowed = "either ask or parameters"
                raise InputError(f"{kind}.{family}.parameters", "with an ask", allowed)
    if "ok" in said and not (said["ok"].keys() == {"place", "value"} and said["ok"]["place"]):
        raise InputError("ok", said["ok"], 'both, e.g. ok = { place = "code", value = "0" }')


def assumed_profile(users: UserProfile | None, limits: Limits) -> Profile:
    """Return the profile before `/schemas`: the built-in one, then the user's.

    >>> from toolkit.wire.limits import LIMITS
    >>> assumed_profile(None, LIMITS).schemas_path
    '/api/v1/data/schemas'
    """
    return (users.applied(BUILT_IN) if users else BUILT_IN).within(limits)


def profile_in_force(users: UserProfile | None, limits: Limits, schemas: bytes | str) -> Profile:
    """Read a `/schemas` body into the profile, under the user's file.

    ``schemas`` is the body, or as text the reason for none. Raises `WireError` if a history has no
    usable time, and for a body that is not JSON, which with a user's file is a finding.

    >>> from toolkit.wire.limits import LIMITS
    >>> profile_in_force(None, LIMITS, b'{"source": {"kind": "replay", "id": "x"}}').source
    Source(kind='replay', id='x')
    """
    assumed = assumed_profile(users, limits)
    if isinstance(schemas, str):
        found = without_schemas(assumed, schemas)
        return (users.applied(found) if users else found).within(limits)
    try:
        found = with_schemas(assumed, schemas)
    except WireError as error:
        if users is None:
            raise
        found = without_schemas(assumed, str(error))
    return timed(users.applied(found) if users else found).within(limits)
