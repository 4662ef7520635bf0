"""An analyst's toolkit over a machine-rail market-data service.

The data's path, which is also the order of the folders::

    service -> client -> loader -> store -> statistics -> charts -> app, notebooks, reports

``tk.open()`` gives a workspace (client, store, loader), which reads ``tk.series``. Their methods
call ``tk.statistics`` and ``tk.charts``, which also take your own frames. Everything raised on
purpose is a ``tk.RailError``.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

from toolkit.errors import RailError
from toolkit.market import Leg, Source, Symbol, Trajectory, format_ts, parse_ts

if TYPE_CHECKING:
    __version__: str
    from toolkit import charts, series, statistics
    from toolkit.client import AsyncClient, Client
    from toolkit.reports import report
    from toolkit.store import Store
    from toolkit.workspace import Workspace
    from toolkit.workspace import open_workspace as open  # noqa: A004 - tk.open is the point

# How polars keeps memory that it has done with, read when it is first imported: one stock for all
# threads, given back after a fifth of a second. By default each thread keeps its own for longer,
# and what had 8 MB or more is not used for smaller things.
os.environ.setdefault(
    "_RJEM_MALLOC_CONF", "narenas:1,dirty_decay_ms:200,muzzy_decay_ms:0,oversize_threshold:0"
)

__all__ = [
    "AsyncClient",
    "Client",
    "Leg",
    "RailError",
    "Source",
    "Store",
    "Symbol",
    "Trajectory",
    "Workspace",
    "charts",
    "format_ts",
    "open",
    "parse_ts",
    "report",
    "series",
    "statistics",
]

_LATER = {
    "AsyncClient": ("toolkit.client", "AsyncClient"),
    "Client": ("toolkit.client", "Client"),
    "Store": ("toolkit.store", "Store"),
    "Workspace": ("toolkit.workspace", "Workspace"),
    "charts": ("toolkit.charts", None),
    "open": ("toolkit.workspace", "open_workspace"),
    "report": ("toolkit.reports", "report"),
    "series": ("toolkit.series", None),
    "statistics": ("toolkit.statistics", None),
}


if not TYPE_CHECKING:  # a type checker would take any name that is misspelt for one of these

    def __getattr__(name: str) -> object:
        """Import what is asked for, so that importing the toolkit itself stays cheap."""
        if name == "__version__":
            from importlib.metadata import version  # noqa: PLC0415 - it takes a tenth of a second

            return version("machine-rail-toolkit")
        if name not in _LATER:
            raise AttributeError(f"module 'toolkit' has no attribute {name!r}")
        module, attribute = _LATER[name]
        found = importlib.import_module(module)
        return getattr(found, attribute) if attribute else found


def __dir__() -> list[str]:
    return __all__
