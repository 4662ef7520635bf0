"""Opening a workspace: its store, and the service that loads it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from toolkit.client import Client
from toolkit.errors import InputError
from toolkit.market import Window
from toolkit.statistics.fees.fee_table import FeeModel
from toolkit.store import Store
from toolkit.store.publish import is_published, open_published
from toolkit.wire.secrets import Secret
from toolkit.workspace.local import (
    ExchangeChoice,
    archive_beside,
    exchanges_service,
    simulated_service,
)
from toolkit.workspace.settings import FOLDERS, LOCAL_KEY, Settings, store_path
from toolkit.workspace.workspace import Workspace


def open_workspace(
    store: str | Path | None = None,
    *,
    window: Window | None = None,
    base_url: str | None = None,
    api_key: str | Secret | None = None,
    allow_http: bool = False,
    profile: str | Path | None = None,
    fees: FeeModel | str | Path | None = None,
    exchanges: str | Iterable[str] | None = None,
    symbols: str | Iterable[str] | None = None,
    renames: Mapping[str, str] | None = None,
) -> Workspace:
    """Open a store, to read it and to load into it.

    ``base_url``, ``api_key``, ``allow_http`` and ``profile`` are as in `Settings.read`, ``store``
    as in `store_path`. ``window`` is the default for reading and loading: a window's name (``7d``,
    ``2023-03``), or a start and an end. ``fees`` is a fee table or its file, by default that of
    ``rail.toml``: see `Workspace.fees`.

    The service is contacted on first use. Without an address it is a local service on a SIMULATED
    market, one per process. A source is never loaded into the store of another.

    With ``exchanges`` (``["binance", "okx"]``, or ``"usual"`` for five) the local service reads
    real ones, without an account: ``symbols`` (by default five) from 7 days back on. The same call
    continues from their answers in ``STORE.exchanges.duckdb``. ``renames`` makes legs of another
    quote comparable: ``{"USDC": "USDT"}``.

    ``store`` may also be published data, which takes no rows: a folder, an address, or the
    ``manifest.json`` in it. The user's cache has a copy.
    """
    api_key = Secret(api_key) if api_key else None
    held = named_store(store)
    choice = None if exchanges is None else ExchangeChoice.read(exchanges, symbols, renames)
    others = {"base_url": base_url} if choice else {"symbols": symbols, "renames": renames}
    for name, given in others.items():
        if given is not None:
            allowed = f"none {'beside' if choice else 'without'} exchanges"
            raise InputError(name, str(given), allowed)
    if not choice and (base_url or os.environ.get("RAIL_BASE_URL")):
        settings = Settings.read(
            base_url=base_url, api_key=api_key, allow_http=allow_http, profile=profile
        )
        return Workspace(settings.client(), held, window=window, fees=fees)
    if profile is not None:
        raise InputError("profile", str(profile), "none without the service's address (base_url)")
    return Workspace(
        lambda closing: _local_client(held, choice, closing), held, window=window, fees=fees
    )


def named_store(store: str | Path | None = None) -> Store:
    """Return the store, or published data, of a path as in `open_workspace`."""
    if is_published(store):
        return open_published(store, FOLDERS.user_cache_path)
    return Store(store_path(store))


def _local_client(
    store: Store, choice: ExchangeChoice | None, closing: contextlib.ExitStack
) -> Client:
    if choice:
        service = exchanges_service(choice, archive_beside(store.path))
    elif store.path.exists() and (source := store.source).kind != "simulated":
        by_ccxt = "give tk.open(exchanges=...) as before"
        by_address = "give tk.open(base_url=...) or set RAIL_BASE_URL"
        raise InputError(
            "base_url",
            None,
            f"the address of the service whose data {store.path} holds ({source.label})",
            advice=by_ccxt if source.by_ccxt else by_address,
        )
    else:
        service = simulated_service()
    client = Client(closing.enter_context(service), LOCAL_KEY)
    client.discover()  # it is there for certain, and so its name and reach can be shown
    return client
