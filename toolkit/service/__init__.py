"""The local service: what docs/interface.md describes, from recorded, simulated or live data.

It shares no wire code with the client, so that neither can hide the other's mistakes. Its parts,
each of which imports only those before it: `market` (rows), `events` (detected in them), `problems`
(refusals), `accounts` (owners and plans), `api` (answers), `transports` (in and out).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from starlette.types import ASGIApp

from toolkit.service.accounts import DEMO_OWNERS, Owner, Owners, OwnersFile, Policy, Sessions
from toolkit.service.api.calls import Service
from toolkit.service.events.archive import EventArchive
from toolkit.service.events.lives import DetectorSettings
from toolkit.service.market.replay import Replay
from toolkit.service.market.simulator import Simulated
from toolkit.service.market.source import (
    WALL_CLOCK,
    Bars,
    Clock,
    MarketSource,
    RevealedClock,
    SpedClock,
)
from toolkit.service.transports.access import DEFAULT_CAPACITY, Gate
from toolkit.service.transports.courier import WebhookSettings
from toolkit.service.transports.rest import application
from toolkit.service.transports.webhooks import Webhooks
from toolkit.serving import ServerSettings, run, run_in_thread

__all__ = [
    "DEMO_OWNERS",
    "Application",
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
    "faithful",
    "running",
    "serve",
    "server_settings",
]

_GRACE_S = 2  # for connections to close, after 3 s for answers under way


Application = Callable[[Service, Gate, WebhookSettings], ASGIApp]
"""What makes the application that answers for a service."""


def faithful(service: Service, gate: Gate, webhooks: WebhookSettings) -> ASGIApp:
    """Return the application of a service that behaves as agreed."""
    return application(service, gate=gate, webhooks=Webhooks(service, webhooks))


@dataclass(frozen=True, slots=True)
class Config:
    """What to serve, where, at what time and to whom.

    ``port`` 0 takes a free one. ``owners_file``, a TOML file (`toolkit.service.accounts`), replaces
    ``owners``. ``retention_s`` (s) and ``quota`` (requests per minute) replace every plan's own,
    None does not. ``events`` defines what counts as an event. More concurrent requests than
    ``capacity`` are refused (503). ``webhooks`` defines how deliveries are made, ``sessions``
    issues the codes for signing in, ``application`` makes what answers.

    >>> from toolkit.service import Simulated
    >>> config = Config(Simulated(7), port=0)
    >>> config.host, config.retention_s, [owner.name for owner in config.owners]
    ('127.0.0.1', None, ['demo-free', 'demo-builder', 'demo-pro'])
    """

    source: MarketSource = field(repr=False)
    host: str = "127.0.0.1"
    port: int = 8700
    clock: Clock = WALL_CLOCK
    retention_s: int | None = None
    quota: int | None = None
    owners: tuple[Owner, ...] = DEMO_OWNERS
    owners_file: Path | None = None
    events: DetectorSettings = field(default_factory=DetectorSettings)
    capacity: int = DEFAULT_CAPACITY
    webhooks: WebhookSettings = field(default_factory=WebhookSettings)
    sessions: Sessions = field(default_factory=Sessions, repr=False)
    application: Application = field(default=faithful, repr=False)


@dataclass(frozen=True, slots=True)
class Running:
    """A service that accepts connections at ``base_url``."""

    base_url: str


def serve(config: Config, *, ready: Callable[[str], object] | None = None) -> None:
    """Serve until SIGINT or SIGTERM, then finish the answers under way (5 s at most).

    Meanwhile new requests are refused (503, ``Retry-After``). ``ready`` is called once with the
    base URL when the service accepts connections. A port that is taken, or a host that is not this
    machine's, is an `InputError`.

    >>> import os, signal
    >>> from toolkit.service import Simulated
    >>> config = Config(Simulated(7), port=0)
    >>> serve(config, ready=lambda url: os.kill(os.getpid(), signal.SIGTERM))
    """
    run(server_settings(config), config.host, config.port, ready=ready)


@contextmanager
def running(config: Config) -> Iterator[Running]:
    """Serve in a thread for the length of a ``with`` block. Errors as `serve`.

    >>> import urllib.error, urllib.request
    >>> from toolkit.service import Simulated
    >>> with running(Config(Simulated(7), port=0)) as service:
    ...     try:
    ...         urllib.request.urlopen(service.base_url)
    ...     except urllib.error.HTTPError as refusal:
    ...         with refusal:
    ...             refusal.code, refusal.headers["content-type"]
    (404, 'application/problem+json')
    """
    with run_in_thread(server_settings(config), config.host, config.port) as base_url:
        yield Running(base_url)


def server_settings(config: Config) -> ServerSettings:
    """Build the application and its server settings."""
    gate, clock, source = Gate(config.capacity), config.clock, config.source
    file = config.owners_file
    owners = Owners(config.owners) if file is None else OwnersFile(file)
    service = Service(
        source,
        clock if source.known_until is None else RevealedClock(own=clock, source=source),
        Policy(owners, retention_s=config.retention_s, quota=config.quota),
        EventArchive(source, config.events),
        config.sessions,
    )
    app = config.application(service, gate, config.webhooks)
    return ServerSettings(app, _GRACE_S, websockets=True, date_header=False, requests=gate)
