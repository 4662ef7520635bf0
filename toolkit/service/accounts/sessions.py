"""Signing in to the dashboard's routes, with a code that is valid once. API keys do not sign in."""

from __future__ import annotations

import hashlib
import secrets


class Sessions:
    """The codes issued and not used yet, and the open sessions, until the service ends.

    Only hashes of codes and tokens are kept.
    """

    def __init__(self) -> None:
        self._codes: dict[bytes, str] = {}
        self._owners: dict[bytes, str] = {}

    def issue(self, owner: str) -> str:
        """Issue a new code for signing in once, as the owner of this name.

        >>> Sessions().issue("ann") == Sessions().issue("ann")
        False
        """
        code = secrets.token_urlsafe(16)
        self._codes[_hash(code)] = owner
        return code

    def sign_in(self, code: str) -> str | None:
        """Exchange a code for a session's token. Returns None for a code that is not valid.

        >>> Sessions().sign_in("guess") is None
        True
        """
        owner = self._codes.pop(_hash(code), None)
        if owner is None:
            return None
        token = secrets.token_urlsafe(32)
        self._owners[_hash(token)] = owner
        return token

    def owner_of(self, token: str) -> str | None:
        """Return the name of a session's owner, or None if there is no such session."""
        return self._owners.get(_hash(token))


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
