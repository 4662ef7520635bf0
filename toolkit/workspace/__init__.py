"""The user's entry: settings, a workspace over service and store, a local service."""

from toolkit.commands import DEFAULT_BASE_URL, DEFAULT_STORE
from toolkit.workspace.listed import front_page, watchlist
from toolkit.workspace.loading import DEFAULT_WINDOW_S
from toolkit.workspace.local import (
    DEFAULT_SEED,
    Serving,
    exchanges_service,
    serve_local,
    simulated_service,
)
from toolkit.workspace.opening import named_store, open_workspace
from toolkit.workspace.progress import Watch, load_progress
from toolkit.workspace.rail_toml import fees_file, find_fees
from toolkit.workspace.settings import (
    LOCAL_KEY,
    Settings,
    demo_store,
    real_store,
    store_beside,
    store_path,
    user_profile,
)
from toolkit.workspace.workspace import Workspace

__all__ = [
    "DEFAULT_BASE_URL",
    "DEFAULT_SEED",
    "DEFAULT_STORE",
    "DEFAULT_WINDOW_S",
    "LOCAL_KEY",
    "Serving",
    "Settings",
    "Watch",
    "Workspace",
    "demo_store",
    "exchanges_service",
    "fees_file",
    "find_fees",
    "front_page",
    "load_progress",
    "named_store",
    "open_workspace",
    "real_store",
    "serve_local",
    "simulated_service",
    "store_beside",
    "store_path",
    "user_profile",
    "watchlist",
]
