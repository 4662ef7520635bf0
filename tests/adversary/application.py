"""The application of a service that misbehaves: the faithful one, in wrappers."""

from __future__ import annotations

import dataclasses
from functools import partial

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.adversary.accidents import Accidents, EmptyPages
from tests.adversary.archive import ArchiveSettings, FaultyArchive
from tests.adversary.deliveries import FaultyCourier
from tests.adversary.settings import KIND, ActiveSwitches, Adversary, adversary_of
from tests.adversary.streams import FaultyFeed, SocketFaults
from tests.adversary.tools import adverse_tools
from toolkit.errors import InputError
from toolkit.service import Application
from toolkit.service.api.calls import Service
from toolkit.service.api.registry import TOOLS
from toolkit.service.problems import Problem, bad_request
from toolkit.service.transports.access import Gate, is_loopback
from toolkit.service.transports.courier import WebhookSettings
from toolkit.service.transports.rest import application
from toolkit.service.transports.webhooks import Webhooks

PATH = "/control/adversary"


def control_route(active: ActiveSwitches) -> Route:
    """Return the route on which ``GET`` shows the switches as JSON and ``PUT`` sets them all.

    It answers this machine only. An unknown switch is a 400, and changes nothing.

    >>> control_route(ActiveSwitches()).path
    '/control/adversary'
    """

    async def endpoint(request: Request) -> Response:
        if request.client is None or not is_loopback(request.client.host):
            raise Problem(404, "not_found", "No such path; the data routes are under /api/v1/data.")
        if request.method == "PUT":
            try:
                said = msgspec.json.decode(await request.body(), type=dict[str, object])
                active.adversary = adversary_of(said)
            except (InputError, msgspec.DecodeError) as error:
                raise bad_request([("adversary", str(error))]) from None
        body = msgspec.json.encode(dataclasses.asdict(active.adversary))
        return Response(body, media_type="application/json")

    return Route(PATH, endpoint, methods=["GET", "PUT"])


def adverse(
    adversary: Adversary = KIND, *, events: ArchiveSettings | None = None, control: bool = False
) -> Application:
    """Return what makes the application of a service that misbehaves, for its `Config`.

    ``events`` are the faults of its event logs, and what counts as an event. ``control`` adds a
    route on which a test sets the switches, for callers on this machine.
    """

    def made(service: Service, gate: Gate, webhooks: WebhookSettings) -> Starlette:
        active = ActiveSwitches(adversary)
        if events is not None:
            service = dataclasses.replace(service, event_logs=FaultyArchive(service.source, events))
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

    return made
