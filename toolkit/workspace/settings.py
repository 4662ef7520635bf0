"""Service, key, store and folders of the user, given or from the environment.

Only this module reads ``RAIL_BASE_URL``, ``RAIL_API_KEY``, ``RAIL_ALLOW_HTTP``, ``RAIL_STORE`` and
``RAIL_PROFILE``. Folders are those of the system, or of the ``XDG_..._HOME`` variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from platformdirs import PlatformDirs

from toolkit.client import Client
from toolkit.commands import DEFAULT_BASE_URL, DEFAULT_STORE
from toolkit.errors import InputError, StoreError
from toolkit.market import Source
from toolkit.store import Store
from toolkit.wire.address import base_address, is_loopback
from toolkit.wire.profile.user_profile import UserProfile
from toolkit.wire.secrets import ENVIRONMENT, Secret

FOLDERS = PlatformDirs("machine-rail", appauthor=False)
"""The user's folders of the toolkit, such as ``FOLDERS.user_data_path``."""


def demo_store(source: Source, folder: Path | None = None) -> tuple[Path, list[Path]]:
    """Return the path of the demo's store of a source, and those of other sources.

    It is named after the hash in the source's id. Creates the folder, or raises `StoreError`.
    """
    folder = _made(folder or FOLDERS.user_data_path)
    path = folder / f"demo-{_market(source)}.duckdb"
    return path, sorted(other for other in folder.glob("demo-*.duckdb") if other != path)


def real_store() -> Path:
    """Return the demo's store of real exchanges. Creates its folder as `demo_store`."""
    return _made(FOLDERS.user_data_path) / "real.duckdb"


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StoreError(
            f"the folder {folder} for the demo's store cannot be made: {reason}; "
            "name a file: rail demo --store FILE",
            path=str(folder),
        ) from None
    return folder


def store_beside(path: Path, source: Source) -> Path:
    """Return ``path``, or the file beside it if it is a store of another SIMULATED market.

    That file is named as in `demo_store`. A store of any other source refuses the rows later.
    """
    if not path.is_file():
        return path
    held = Store(path).source
    if held.id == source.id or {held.kind, source.kind} != {"simulated"}:
        return path
    return path.with_name(f"{path.stem}-{_market(source)}{path.suffix}")


def _market(source: Source) -> str:
    return source.id.rpartition("-")[2]


LOCAL_KEY = "demo-pro"
"""The local service's own demo key: not a secret, and sent to loopback addresses only."""

_SWITCH = {"": False, "0": False, "1": True}


class Over(StrEnum):
    """How pages are requested: by HTTP, or the data socket's history actions."""

    HTTP = "http"
    SOCKET = "socket"


@dataclass(frozen=True, slots=True)
class Settings:
    """The address of a service, the key, and the user's wire profile.

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
        """Take the arguments, else the environment, else the local service.

        Without a key a loopback address gets the demo key, any other raises `InputError`.
        ``allow_http``, or ``RAIL_ALLOW_HTTP=1``, sends the key unencrypted to another machine.
        ``profile`` is a wire profile's file.
        """
        api_key = Secret(api_key) if api_key else given_key(environment)
        url = base_address(base_url or environment.get("RAIL_BASE_URL") or DEFAULT_BASE_URL)
        if api_key is None:
            if not is_loopback(urlsplit(url).hostname):
                allowed = "the subscription key of the service"
                raise InputError("api_key", None, allowed, advice="set RAIL_API_KEY")
            api_key = Secret(LOCAL_KEY)
        named = user_profile(environment) if profile is None else UserProfile.read(profile)
        return cls(url, api_key, named, allow_http or allows_http(environment))

    def client(self, over: Over = Over.HTTP) -> Client:
        """Return a client that requests histories and event logs by ``over``.

        It shares the key's quota with the user's other processes through a folder.
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
            quota_folder=FOLDERS.user_state_path,
        )


def store_path(given: str | Path | None = None) -> Path:
    """Return the store's path: the one given, else ``RAIL_STORE``, else ``rail.duckdb``.

    >>> store_path("btc.duckdb")
    PosixPath('btc.duckdb')
    """
    path = given or os.environ.get("RAIL_STORE") or DEFAULT_STORE
    if not isinstance(path, str | os.PathLike):
        raise InputError("store", path, "a path, e.g. 'rail.duckdb'")
    return Path(path)


def given_key(environment: Mapping[str, str] = ENVIRONMENT) -> Secret | None:
    """Return the key in ``RAIL_API_KEY``, or None."""
    key = Secret(environment.get("RAIL_API_KEY") or "")
    return key if key.reveal() else None


def user_profile(environment: Mapping[str, str] = ENVIRONMENT) -> UserProfile | None:
    """Read the wire profile that ``RAIL_PROFILE`` names, or return None."""
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
