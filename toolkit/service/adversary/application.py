"""The application of a service that misbehaves: the faithful one, in wrappers."""

from __future__ import annotations

from functools import partial

from starlette.applications import Starlette
from starlette.middleware import Middleware

from toolkit.service.adversary.accidents import Accidents
from toolkit.service.adversary.control import control_route
from toolkit.service.adversary.deliveries import FaultyCourier
from toolkit.service.adversary.empty_pages import EmptyPages
from toolkit.service.adversary.settings import ActiveSwitches, Adversary
from toolkit.service.adversary.streams import FaultyFeed, SocketFaults
from toolkit.service.adversary.tools import adverse_tools
from toolkit.service.api.calls import Service
from toolkit.service.api.registry import TOOLS
from toolkit.service.transports.capacity import Gate
from toolkit.service.transports.rest import application
from toolkit.service.transports.webhooks.routes import Webhooks
from toolkit.service.transports.webhooks.settings import WebhookSettings


def adverse_application(
    service: Service,
    adversary: Adversary,
    *,
    gate: Gate | None = None,
    webhooks: WebhookSettings | None = None,
    control: bool = False,
) -> Starlette:
    """Return the ASGI application of a service that misbehaves by the switches.

    ``control`` adds the route on which a test sets the switches.
    """
    active = ActiveSwitches(adversary)
    return application(
        service,
        adverse_tools(TOOLS, active),
        gate=gate,
        webhooks=Webhooks(service, webhooks, partial(FaultyCourier, active=active)),
        feed=FaultyFeed(service, active),
        routes=[control_route(active)] if control else [],
        middleware=[
            Middleware(Accidents, active, service.clock),
            Middleware(EmptyPages, active),
            Middleware(SocketFaults, active),
        ],
    )
