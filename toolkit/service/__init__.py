"""The local service: what docs/interface.md describes, from recorded, simulated or live data.

It shares no wire code with the client, so that neither can hide the other's mistakes. Its folders,
each of which imports only those before it: `market` (rows), `events` (what is detected in them),
`accounts` (who may ask), `api` (questions and answers), `transports` (in and out).
"""

from toolkit.service.accounts.owners import DEMO_OWNERS, Owner
from toolkit.service.market.clock import Clock, SpedClock
from toolkit.service.market.replay import Replay
from toolkit.service.market.simulated import Simulated
from toolkit.service.market.source import Bars, MarketSource
from toolkit.service.server import Config, Running, running, serve
from toolkit.service.transports.webhooks.courier import WebhookSettings

__all__ = [
    "DEMO_OWNERS",
    "Bars",
    "Clock",
    "Config",
    "MarketSource",
    "Owner",
    "Replay",
    "Running",
    "Simulated",
    "SpedClock",
    "WebhookSettings",
    "running",
    "serve",
]
