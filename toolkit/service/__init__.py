"""The local, faithful service: what docs/interface.md describes, served from data of one's own.

It shares no wire code with the client, so that neither can hide the other's mistakes. The way of
a request: `server` (a socket) -> `rest` (HTTP) -> `access` (whose key) -> `registry` (which
route, what was asked) -> `answers`, `event_logs`, `dashboards` (what is said) -> `pages` (rows,
rendered) and `archive` (event documents) -> a `Source`: `Replay` or `Simulated`.
"""

from toolkit.service.adversary.file import adversary_of, read_adversary
from toolkit.service.adversary.rest import Accident, RestSwitches
from toolkit.service.adversary.settings import Adversary
from toolkit.service.adversary.webhooks import WebhookSwitches
from toolkit.service.clock import Clock, SpedClock
from toolkit.service.owners import DEMO_OWNERS, Owner
from toolkit.service.replay import Replay
from toolkit.service.server import Config, Running, running, serve
from toolkit.service.simulated import Simulated
from toolkit.service.source import Bars, Source
from toolkit.service.webhooks.settings import WebhookSettings

__all__ = [
    "DEMO_OWNERS",
    "Accident",
    "Adversary",
    "Bars",
    "Clock",
    "Config",
    "Owner",
    "Replay",
    "RestSwitches",
    "Running",
    "Simulated",
    "Source",
    "SpedClock",
    "WebhookSettings",
    "WebhookSwitches",
    "adversary_of",
    "read_adversary",
    "running",
    "serve",
]
