"""Routes of the dashboard session: signing in, and the endpoint of its owner.

Source: docs/interface.md, "Webhooks".
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolkit.errors import InputError
from toolkit.market import EventFamily
from toolkit.service.accounts import Owner
from toolkit.service.api.calls import Service
from toolkit.service.problems import Problem, bad_request, json_object, tier_required
from toolkit.service.transports.courier import (
    MINIMUM_PLAN,
    Courier,
    Target,
    WebhookSettings,
    target_of,
)

COOKIE = "rail_session"
"""The cookie that holds a session's token."""

_ROOT = "/api/v1/auth"
_LARGEST_BODY = 65_536
_NO_FAMILIES = f"is missing; send a list of one or more of {', '.join(EventFamily)}"


class Webhooks:
    """The endpoints of a service's owners, one each, and their routes."""

    def __init__(
        self,
        service: Service,
        settings: WebhookSettings | None = None,
        courier: Callable[..., Courier] = Courier,
    ) -> None:
        self._service = service
        self._settings = settings or WebhookSettings()
        self._courier = courier
        self._couriers: dict[str, Courier] = {}
        self.routes = [
            Route(f"{_ROOT}/session", self._sign_in, methods=["POST"]),
            Route(f"{_ROOT}/webhooks", self._endpoint, methods=["GET", "PUT", "DELETE"]),
            Route(f"{_ROOT}/webhooks/test", self._test, methods=["POST"]),
        ]

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """End all deliveries with the application."""
        try:
            yield
        finally:
            await asyncio.gather(*(courier.stop() for courier in self._couriers.values()))

    async def _sign_in(self, request: Request) -> Response:
        code = (await _document(request)).get("code")
        if not isinstance(code, str):
            raise bad_request([("code", "is missing; send the one that the service printed")])
        token = self._service.sessions.sign_in(code)
        if token is None:
            raise _no_session("The code is not valid, or was used before.")
        owner = self._owner_of(token)
        answer = _said({"owner": owner.name, "plan": owner.plan})
        secure = request.url.scheme == "https"
        answer.set_cookie(
            COOKIE, token, path=_ROOT, secure=secure, httponly=True, samesite="strict"
        )
        return answer

    async def _endpoint(self, request: Request) -> Response:
        owner = self._allowed(request)
        if request.method == "PUT":
            return await self._set(request, owner)
        if request.method == "DELETE":
            courier = self._couriers.pop(owner.name, None)
            if courier is not None:
                await courier.stop()
            return Response(status_code=204)
        return _said(_shown(self._couriers.get(owner.name)))

    async def _set(self, request: Request, owner: Owner) -> Response:
        url, target, families = self._wanted(await _document(request))
        courier = self._couriers.get(owner.name)
        if courier is not None:
            courier.change(url, target, families)
            return _said(_shown(courier))
        courier = self._courier(
            self._service, self._settings, owner.name, url=url, target=target, families=families
        )
        self._couriers[owner.name] = courier
        return _said(_shown(courier) | {"secret": courier.secret})

    def _wanted(self, said: dict[str, Any]) -> tuple[str, Target, list[EventFamily]]:
        url, given = str(said.get("url") or ""), said.get("families")
        named = given if isinstance(given, list) else []
        errors: list[tuple[str, str]] = []
        target = None
        try:
            target = target_of(url, loopback=self._settings.loopback)
        except InputError as error:
            errors.append(("url", f"is not allowed; allowed: {error.allowed}"))
        if not named or any(name not in list(EventFamily) for name in named):
            errors.append(("families", _NO_FAMILIES))
        if errors or target is None:
            raise bad_request(errors)
        return url, target, [family for family in EventFamily if family in named]

    async def _test(self, request: Request) -> Response:
        owner = self._allowed(request)
        courier = self._couriers.get(owner.name)
        if courier is None:
            raise Problem(404, "not_found", "No endpoint is set; PUT one first.")
        now = self._service.clock.now()
        body = {"type": "webhook.test", "ts": now, "detail": "A test delivery, not an event."}
        reply = await courier.try_once(msgspec.json.encode(body))
        shown = {"delivered": reply.taken, "status": reply.status, "reason": reply.reason or None}
        return _said(shown)

    def _allowed(self, request: Request) -> Owner:
        owner = self._owner_of(request.cookies.get(COOKIE, ""))
        if owner.plan.rank < MINIMUM_PLAN.rank:
            raise tier_required("webhooks", MINIMUM_PLAN, owner.plan, holder="owner")
        return owner

    def _owner_of(self, token: str) -> Owner:
        name = self._service.sessions.owner_of(token)
        owner = None if name is None else self._service.policy.owners.named.get(name)
        if owner is None:
            raise _no_session(
                f"There is no session; POST a code to {_ROOT}/session. API keys do not work here."
            )
        return owner


def _shown(courier: Courier | None) -> dict[str, object]:
    if courier is None:
        return {"url": None, "families": [], "enabled": False, "secret_hint": None}
    return {
        "url": courier.url,
        "families": courier.families,
        "enabled": courier.enabled,
        "secret_hint": f"whsec_...{courier.secret[-4:]}",
    }


def _said(document: Mapping[str, object]) -> Response:
    body = msgspec.json.encode(document)
    return Response(body, headers={"Cache-Control": "no-store"}, media_type="application/json")


def _no_session(detail: str) -> Problem:
    challenge = {"WWW-Authenticate": 'Session realm="machine-rail"'}
    return Problem(401, "unauthorized", detail, headers=challenge)


async def _document(request: Request) -> dict[str, Any]:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LARGEST_BODY:
            raise bad_request([("body", f"has more than {_LARGEST_BODY} bytes")])
    return json_object(body, "body")
