"""Which service, with which key, into which store: given, or read from the environment.

The one place that reads ``RAIL_BASE_URL``, ``RAIL_API_KEY``, ``RAIL_STORE``, ``RAIL_PROFILE``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from toolkit.client import Client
from toolkit.errors import InputError
from toolkit.wire.user_profile import UserProfile

__all__ = ["DEFAULT_BASE_URL", "DEFAULT_STORE", "LOCAL_KEY", "Settings"]

DEFAULT_BASE_URL = "http://127.0.0.1:8700"
"""Where `rail serve` listens."""

DEFAULT_STORE = "rail.duckdb"
"""The store, where none is named."""

LOCAL_KEY = "demo-pro"
"""The local service's own demo key: no secret, and used for loopback addresses alone."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Which service, with which key and whose words, into which store.

    Examples
    --------
    >>> Settings.read({"RAIL_API_KEY": "k", "RAIL_BASE_URL": "https://rail.example"})
    Settings(base_url='https://rail.example', store=PosixPath('rail.duckdb'), profile=None)
    """

    base_url: str
    store: Path
    api_key: str = field(repr=False)
    profile: Path | None = None

    @classmethod
    def read(
        cls,
        environment: dict[str, str] | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        store: str | Path | None = None,
    ) -> Settings:
        """What was given, else the environment, else the local service.

        ``RAIL_PROFILE`` names the user's wire profile. A loopback address without a key gets the
        local service's demo key; any other address without one is an `InputError`.
        """
        env = dict(os.environ) if environment is None else environment
        url = base_url or env.get("RAIL_BASE_URL") or DEFAULT_BASE_URL
        key = api_key or env.get("RAIL_API_KEY")
        if not key:
            if not _is_loopback(url):
                raise InputError(
                    "api_key",
                    None,
                    "the subscription key of the service",
                    advice="set RAIL_API_KEY",
                )
            key = LOCAL_KEY
        profile = env.get("RAIL_PROFILE")
        path = Path(store or env.get("RAIL_STORE") or DEFAULT_STORE)
        return cls(url, path, key, Path(profile) if profile else None)

    def client(self) -> Client:
        """A client of the service, with the user's profile where one is named."""
        users = UserProfile.read(self.profile) if self.profile else None
        return Client(self.base_url, self.api_key, profile=users)


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
