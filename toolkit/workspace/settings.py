"""The service, its key and the store: given, or read from the environment by this module alone.

The variables are ``RAIL_BASE_URL``, ``RAIL_API_KEY``, ``RAIL_ALLOW_HTTP``, ``RAIL_STORE`` and
``RAIL_PROFILE``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from toolkit.client import Client
from toolkit.commands import DEFAULT_BASE_URL, DEFAULT_STORE
from toolkit.errors import InputError
from toolkit.wire.address import base_address, is_loopback
from toolkit.wire.profile.user_profile import UserProfile
from toolkit.wire.secrets import ENVIRONMENT, Secret
from toolkit.workspace.places import state_folder

LOCAL_KEY = "demo-pro"
"""The local service's own demo key: no secret, and used for loopback addresses alone."""

_SWITCH = {"": False, "0": False, "1": True}


class Over(StrEnum):
    """What pages are asked by: requests, or the history actions of the data socket."""

    HTTP = "http"
    SOCKET = "socket"


@dataclass(frozen=True, slots=True)
class Settings:
    """The service to ask: its address, the key, and the user's wire profile.

    >>> Settings.read({"RAIL_API_KEY": "k", "RAIL_BASE_URL": "https://rail.example"})
    Settings(base_url='https://rail.example', profile=None, allow_http=False)
    """

    base_url: str
    api_key: Secret = field(repr=False)
    profile: UserProfile | None = None
    allow_http: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "api_key", Secret(self.api_key))

    @classmethod
    def read(
        cls,
        environment: Mapping[str, str] = ENVIRONMENT,
        *,
        base_url: str | None = None,
        api_key: str | Secret | None = None,
        allow_http: bool = False,
        profile: str | Path | None = None,
    ) -> Settings:
        """Take what is given, else the environment, else the local service.

        A loopback address without a key gets the local service's demo key. Any other address
        without one is an `InputError`. ``allow_http``, or ``RAIL_ALLOW_HTTP=1``, lets the key be
        sent unencrypted to another machine. ``profile`` is the file of a wire profile.
        """
        api_key = Secret(api_key) if api_key else given_key(environment)
        url = base_address(base_url or environment.get("RAIL_BASE_URL") or DEFAULT_BASE_URL)
        if api_key is None:
            if not is_loopback(urlsplit(url).hostname):
                raise InputError(
                    "api_key",
                    None,
                    "the subscription key of the service",
                    advice="set RAIL_API_KEY",
                )
            api_key = Secret(LOCAL_KEY)
        allowed = allow_http or allows_http(environment)
        named = user_profile(environment) if profile is None else UserProfile.read(profile)
        return cls(url, api_key, named, allowed)

    def client(self, over: Over = Over.HTTP) -> Client:
        """Return a client of the service, which asks histories and event logs by ``over``.

        It shares the key's quota with this user's other processes, by a file in `state_folder`.
        """
        kind: type[Client] = Client
        if over == Over.SOCKET:
            from toolkit.client.stream import SocketClient  # noqa: PLC0415 - most never use it

            kind = SocketClient
        return kind(
            self.base_url,
            self.api_key,
            profile=self.profile,
            allow_http=self.allow_http,
            quota_folder=state_folder(),
        )


def store_path(given: str | Path | None = None) -> Path:
    """Return the path of the store: the one given, else ``RAIL_STORE``, else ``rail.duckdb``.

    >>> store_path("btc.duckdb")
    PosixPath('btc.duckdb')
    """
    path = given or os.environ.get("RAIL_STORE") or DEFAULT_STORE
    if not isinstance(path, str | os.PathLike):
        raise InputError("store", path, "a path, e.g. 'rail.duckdb'")
    return Path(path)


def given_key(environment: Mapping[str, str] = ENVIRONMENT) -> Secret | None:
    """Return the key that ``RAIL_API_KEY`` gives, None where it gives none.

    >>> given_key({}) is None
    True
    """
    key = Secret(environment.get("RAIL_API_KEY") or "")
    return key if key.reveal() else None


def user_profile(environment: Mapping[str, str] = ENVIRONMENT) -> UserProfile | None:
    """Read the wire profile that ``RAIL_PROFILE`` names, None where it names none.

    >>> user_profile({}) is None
    True
    """
    path = environment.get("RAIL_PROFILE")
    return UserProfile.read(path) if path else None


def allows_http(environment: Mapping[str, str] = ENVIRONMENT) -> bool:
    """Return whether ``RAIL_ALLOW_HTTP`` lets secrets be sent unencrypted.

    >>> allows_http({"RAIL_ALLOW_HTTP": "1"}), allows_http({})
    (True, False)
    """
    text = environment.get("RAIL_ALLOW_HTTP", "")
    if text not in _SWITCH:
        raise InputError("RAIL_ALLOW_HTTP", text, "1 to allow http off this machine, or 0")
    return _SWITCH[text]
