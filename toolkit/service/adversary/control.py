"""A control route for tests: the switches of a running service, read and set from this machine.

Only `Config(control=True)` adds it. No command line option and no file does.
"""

from __future__ import annotations

import dataclasses

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolkit.errors import InputError
from toolkit.service.accounts.problems import Problem, bad_request
from toolkit.service.adversary.file import adversary_of
from toolkit.service.adversary.settings import ActiveSwitches
from toolkit.service.transports.access import is_loopback

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
