"""Which service with which key, and which store: given, or read from the environment.

The one place that reads ``RAIL_BASE_URL``, ``RAIL_API_KEY``, ``RAIL_STORE``, ``RAIL_PROFILE``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from toolkit.client import Client
from toolkit.errors import InputError
from toolkit.wire.user_profile import UserProfile

DEFAULT_BASE_URL = "http://127.0.0.1:8700"
"""Where `rail serve` listens."""

DEFAULT_STORE = "rail.duckdb"
"""The store, where none is named."""

LOCAL_KEY = "demo-pro"
"""The local service's own demo key: no secret, and used for loopback addresses alone."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The service to ask: its address, the key, and the user's wire profile.

    >>> Settings.read({"RAIL_API_KEY": "k", "RAIL_BASE_URL": "https://rail.example"})
    Settings(base_url='https://rail.example', profile=None)
    """

    base_url: str
    api_key: str = field(repr=False)
    profile: UserProfile | None = None

    @classmethod
    def read(
        cls,
        environment: Mapping[str, str] = os.environ,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
    ) -> Settings:
        """Take what is given, else the environment, else the local service.

        A loopback address without a key gets the local service's demo key. Any other address
        without a key is an `InputError`.
        """
        url = base_url or environment.get("RAIL_BASE_URL") or DEFAULT_BASE_URL
        key = api_key or environment.get("RAIL_API_KEY")
        if not key:
            if not _is_loopback(url):
                raise InputError(
                    "api_key",
                    None,
                    "the subscription key of the service",
                    advice="set RAIL_API_KEY",
                )
            key = LOCAL_KEY
        return cls(url, key, user_profile(environment))

    def client(self) -> Client:
        """Return a client of the service, with the user's profile where one is named."""
        return Client(self.base_url, self.api_key, profile=self.profile)


def store_path(given: str | Path | None = None) -> Path:
    """Return the path of the store: the one given, else ``RAIL_STORE``, else ``rail.duckdb``.

    >>> store_path("btc.duckdb")
    PosixPath('btc.duckdb')
    """
    return Path(given or os.environ.get("RAIL_STORE") or DEFAULT_STORE)


def user_profile(environment: Mapping[str, str] = os.environ) -> UserProfile | None:
    """Read the wire profile that ``RAIL_PROFILE`` names, None where it names none.

    >>> user_profile({}) is None
    True
    """
    path = environment.get("RAIL_PROFILE")
    return UserProfile.read(path) if path else None


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
