"""Sessions of the dashboard's routes, opened by a code that is valid once. API keys open none."""

from __future__ import annotations

import hashlib
import secrets


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
