"""What a user opens: settings, a workspace over a service and a store, a local service."""

from toolkit.workspace.local import (
    Serving,
    serve_local,
    simulated_half_lives_s,
    simulated_service,
    simulated_window,
)
from toolkit.workspace.opening import When, Workspace, open_workspace
from toolkit.workspace.settings import DEFAULT_BASE_URL, DEFAULT_STORE, LOCAL_KEY, Settings

__all__ = [
    "DEFAULT_BASE_URL",
    "DEFAULT_STORE",
    "LOCAL_KEY",
    "Serving",
    "Settings",
    "When",
    "Workspace",
    "open_workspace",
    "serve_local",
    "simulated_half_lives_s",
    "simulated_service",
    "simulated_window",
]
