"""The local, faithful service: what machine-rail.md promises, served from data of one's own.

It shares no wire code with the client, so that neither can hide the other's mistakes. The way of
a request: `server` (a socket) -> `rest` (HTTP) -> `access` (whose key) -> `registry` (which
route, what was asked) -> `answers`, `event_logs`, `dashboards` (what is said) -> `pages` (rows,
rendered) and `archive` (event documents) -> a `Source`: `Replay` or `Simulated`.
"""

from toolkit.service.clock import Clock
from toolkit.service.owners import DEMO_OWNERS, Owner
from toolkit.service.replay import Replay
from toolkit.service.server import Config, Running, running, serve
from toolkit.service.simulated import Simulated
from toolkit.service.source import Bars, Source

__all__ = [
    "DEMO_OWNERS",
    "Bars",
    "Clock",
    "Config",
    "Owner",
    "Replay",
    "Running",
    "Simulated",
    "Source",
    "running",
    "serve",
]
