"""HTTP clients that carry out the steps of `toolkit.wire` over a pool of connections.

Only this module, `toolkit.client.transport` and `toolkit.client.webhook_session` import httpx.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
)
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
    overload,
)

import httpx
import polars as pl

from toolkit.client.contact import Alone, Contact, ContactOptions, Flow, history_frame
from toolkit.client.transport import (
    FAILURES,
    LIMITS,
    Connections,
    Deadline,
    check_open,
    named,
    options_of,
    tls,
)
from toolkit.ending import outside
from toolkit.errors import ServiceError
from toolkit.market import (
    EventFamily,
    EventLog,
    SnapshotKind,
    Trajectory,
    When,
    Window,
    window_ends,
)
from toolkit.wire.event_log import EventPage, event_pages
from toolkit.wire.exchange import (
    Failure,
    Outcome,
    Request,
    Response,
    Send,
    Step,
    Wait,
    with_retries,
)
from toolkit.wire.findings import Finding
from toolkit.wire.history_page import Page
from toolkit.wire.listing import Listing, list_symbols
from toolkit.wire.paging import trajectory_pages
from toolkit.wire.profile.profile import Profile
from toolkit.wire.rows.body import Body
from toolkit.wire.secrets import Secret

_Result = TypeVar("_Result")
_Item = TypeVar("_Item")
_P = ParamSpec("_P")
Production = Generator[Step | _Item, Outcome, None]
"""Steps, and between them what is produced."""

_Awaited = TypeVar("_Awaited")

if TYPE_CHECKING:

    class _Method(Generic[_P, _Result, _Awaited]):
        @overload
        def __get__(self, client: Client, kind: Any = None) -> Callable[_P, _Result]: ...
        @overload
        def __get__(self, client: AsyncClient, kind: Any = None) -> Callable[_P, _Awaited]: ...
        def __get__(self, client: Any, kind: Any = None) -> Any: ...


def _asked(
    flow: Callable[Concatenate[Any, _P], Flow[_Result]],
) -> _Method[_P, _Result, Coroutine[None, None, _Result]]:
    """Make a method of a flow, which a client returns and an `AsyncClient` awaits."""
    method: _Method[_P, _Result, Coroutine[None, None, _Result]] = _carried_out(flow, "_finish")
    return method


def _produced(
    flow: Callable[Concatenate[Any, _P], Flow[Production[_Item]]],
) -> _Method[_P, Iterator[_Item], AsyncGenerator[_Item, None]]:
    """Make a method of a flow that returns one, whose items a client yields."""
    method: _Method[_P, Iterator[_Item], AsyncGenerator[_Item, None]]
    method = _carried_out(flow, "_drive")
    return method


def _next(flow: Production[_Item]) -> Flow[_Item | None]:
    """Take steps to the next item, None at the end."""
    outcome = None
    with contextlib.suppress(StopIteration):
        while isinstance(step := flow.send(outcome), Send | Wait):
            outcome = yield step
        return step
    return None


def _carried_out(flow: Callable[..., Flow[Any]], driver: str) -> Any:
    returned = flow.__annotations__["return"].removeprefix("Flow[").removesuffix("]")
    flow.__annotations__["return"] = returned.replace("Production", "Iterator")

    @functools.wraps(flow)
    def method(self: _Asks, *args: Any, **options: Any) -> Any:
        return getattr(self, driver)(flow(self, *args, **options))

    return method


class _Asks(Contact):
    """The methods of both clients, as flows."""

    def _known(self) -> Flow[Profile]:
        found: Profile = yield Alone(self._ask_once())
        return found

    def _pages(
        self, trajectory: Trajectory | str, window: Window, floor: Callable[[], int] | None = None
    ) -> Flow[tuple[Trajectory, Production[Page]]]:
        asked = Trajectory.parse(trajectory)
        wanted = yield from self._ask_window(*window_ends(window))
        route = (yield from self._known()).histories[asked.family]
        return asked, trajectory_pages(route, asked, wanted, self.retries, floor)

    @_asked
    def served_at(self) -> Flow[int]:
        """Return the service's clock at its last answer (Unix s), or the local one without one.

        Requests `/schemas` if nothing was requested yet.
        """
        if self._profile is None:
            yield from self._known()
        return self._clock()

    @_asked
    def profile(self) -> Flow[Profile]:
        """Return the service's routes and fields. Requests `/schemas` at first use."""
        return (yield from self._known())

    @_asked
    def discover(self) -> Flow[Profile]:
        """Request the schemas again: clock, plan and names may have changed.

        Every load begins with it, so that one of a client hours old reaches the present.
        """
        found: Profile = yield Alone(self._ask_profile())
        return found

    @_asked
    def symbols(self, text: str = "") -> Flow[Listing]:
        """Return the symbols with ``text`` in their name, with their legs. "" lists all."""
        return (yield from list_symbols((yield from self._known()), text, self.retries))

    @_produced
    def pages(
        self,
        trajectory: Trajectory | str,
        window: Window,
        *,
        floor: Callable[[], int] | None = None,
    ) -> Flow[Production[Page]]:
        """Yield the pages of a window, newest first, each with the interval it completes.

        ``window`` is a start and an end as in `history`, or a window's name. ``floor`` gives a
        later start (Unix s) once another caller loads what is older.
        """
        _, flow = yield from self._pages(trajectory, window, floor)
        return flow

    @_produced
    def event_pages(
        self, family: EventFamily | str, window: Window, *, lifecycle: str | None = None
    ) -> Flow[Production[EventPage]]:
        """Yield the pages of a window of an event log. See `toolkit.wire.event_log`.

        ``family`` is spread, splash or funding, ``window`` as in `pages`. ``lifecycle`` requests
        only open or closed documents; a service may ignore it.
        """
        log = EventLog.of(str(family).removeprefix("events/")).family
        wanted = yield from self._ask_window(*window_ends(window))
        route = (yield from self._known()).events[log].filtered(lifecycle)
        return event_pages(route, wanted, self.retries)

    @_asked
    def snapshot(
        self, kind: SnapshotKind | str, findings: list[Finding] | None = None
    ) -> Flow[bytes]:
        """Return the whole answer of a snapshot: symbols, activity, spread or funding, as JSON.

        A value that is not JSON, such as NaN, is null and one of ``findings``.
        """
        return (yield from self._ask_snapshot((yield from self._known()), kind, findings))

    @_asked
    def ask(self, request: Request) -> Flow[Response | Failure]:
        """Send one GET and return the outcome, without retrying, reading or raising."""
        outcome: Response | Failure = yield Send(request)
        return outcome

    @_asked
    def get(self, request: Request) -> Flow[Response]:
        """Send a GET with the waits and retries of a load. Raises `ServiceError`."""
        return (yield from with_retries(request, self.retries))

    @_asked
    def history(
        self, trajectory: Trajectory | str, start: When, end: When | None = None
    ) -> Flow[pl.DataFrame]:
        """Return a trajectory's rows with ``start <= ts < end``, sorted by ts, storing nothing.

        ``start`` and ``end`` are ISO 8601 text in UTC, dates, datetimes or Unix seconds. ``start``
        alone may name a window: ``7d``, ``yesterday``, ``2023-03``. ``end`` defaults to the
        service's clock.

        Columns: trajectory (its key), ts (s UTC), then for a price: price, mark_price, volume
        (quote). For a spread: buy_price, sell_price (quote), spread_pct (percent, positive earns
        when long the buy leg and short the sell leg). Extra (JSON of fields no column takes). An
        empty window gives an empty frame. Gaps are not filled. Raises `ServiceError`, and
        `InputError` for an empty window.
        """
        asked, flow = yield from self._pages(trajectory, (start, end))
        frames: list[pl.DataFrame] = []
        while (page := (yield from _next(flow))) is not None:
            frames.append(page.frame)
        return history_frame(asked, frames)


class Client(_Asks):
    """A machine-rail service, asked by key over HTTP. Safe to share between threads.

    Parameters
    ----------
    base_url
        Where the service is, e.g. ``http://127.0.0.1:8750``.
    api_key
        The key, sent as ``Authorization: Bearer`` and shown nowhere.
    profile
        The user's wire profile, which overrides `/schemas`. None for none.
    retries
        When a GET is retried.
    allow_http
        Whether the key may be sent unencrypted, to an ``http://`` address off this machine.
    limits
        What an answer or a stream may cost. None for the profile's.
    quota_folder
        Where this user's processes share what is left of the key's quota, so that they wait before
        it is spent. None to request until refused.
    sleep
        How to wait.

    Examples
    --------
    >>> from toolkit.service import Config, Simulated, running
    >>> with running(Config(Simulated(7), port=0)) as service:
    ...     with Client(service.base_url, "demo-pro") as client:
    ...         client.profile().source.kind
    'simulated'
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | Secret,
        *,
        sleep: Callable[[float], object] = time.sleep,
        **options: Unpack[ContactOptions],
    ) -> None:
        api_key = Secret(api_key)
        super().__init__(base_url, api_key, **options)
        self._sleep = sleep
        self._discovery = threading.Lock()
        self._deadline = Deadline()
        self._http = Connections(self, self._deadline)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _finish(self, flow: Flow[_Result]) -> _Result:
        outcome = None
        while True:
            try:
                step = flow.send(outcome)
            except StopIteration as stop:
                result: _Result = stop.value
                return result
            outcome = self._carry_out(step)

    def _drive(self, asking: Flow[Production[_Item]]) -> Iterator[_Item]:
        """Run a flow, and yield the items of the flow it returns."""
        flow = self._finish(asking)
        return iter(lambda: self._finish(_next(flow)), None)

    def _carry_out(self, step: Step | Alone) -> Any:
        if isinstance(step, Alone):
            with self._discovery:
                return self._finish(step.flow)
        if isinstance(step, Wait):
            with outside():
                self._sleep(self._warned(step.seconds, step.why))
            return None
        return self._send(step.request)

    def _begin(self, request: Request) -> None:
        """Wait for a place in the shared quota, and count the request."""
        check_open(self._http)
        for wait_s in self._waits():
            with outside():
                self._sleep(wait_s)
        self._count(request)

    def _send(self, request: Request) -> Response | Failure:
        self._begin(request)
        self._deadline.set(self.limits.answer_s)
        try:
            with outside(), self._http.get(request) as response:
                headers = named(response.headers)
                body = Body(headers, self.limits)
                pieces = [body.inflated(piece) for piece in response.iter_stream()]
                body.end()
        except (*FAILURES, ServiceError) as error:
            if self._deadline.passed:
                return self._late(request)
            return self._failed(request, error)
        return self._answered(request, response.status, headers.items(), b"".join(pieces))


class AsyncClient(_Asks):
    """`Client` for asyncio: the same methods, awaited.

    ``sleep`` is awaited too. Pages come from async iterators. A client belongs to one event loop. A
    cancelled call closes only its connection.

    >>> from toolkit.service import Config, Simulated, running
    >>> async def kind(base_url):
    ...     async with AsyncClient(base_url, "demo-pro") as client:
    ...         return (await client.profile()).source.kind
    >>> with running(Config(Simulated(7), port=0)) as service:
    ...     asyncio.run(kind(service.base_url))
    'simulated'
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | Secret,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        **options: Unpack[ContactOptions],
    ) -> None:
        api_key = Secret(api_key)
        super().__init__(base_url, api_key, **options)
        self._sleep = sleep
        self._discovery = asyncio.Lock()
        transport = httpx.AsyncHTTPTransport(verify=tls(), limits=LIMITS, proxy=self.proxy)
        self._http = httpx.AsyncClient(**options_of(self), transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _finish(self, flow: Flow[_Result]) -> _Result:
        outcome = None
        while True:
            try:
                step = flow.send(outcome)
            except StopIteration as stop:
                result: _Result = stop.value
                return result
            outcome = await self._carry_out(step)

    async def _drive(self, asking: Flow[Production[_Item]]) -> AsyncIterator[_Item]:
        flow = await self._finish(asking)
        while (item := await self._finish(_next(flow))) is not None:
            yield item

    async def _carry_out(self, step: Step | Alone) -> Any:
        if isinstance(step, Alone):
            async with self._discovery:
                return await self._finish(step.flow)
        if isinstance(step, Wait):
            await self._sleep(self._warned(step.seconds, step.why))
            return None
        return await self._send(step.request)

    async def _send(self, request: Request) -> Response | Failure:
        check_open(self._http)
        for wait_s in self._waits():
            await self._sleep(wait_s)
        self._count(request)
        try:
            async with (
                asyncio.timeout(self.limits.answer_s),
                self._http.stream(
                    "GET", request.path, params=list(request.query), headers=list(request.headers)
                ) as response,
            ):
                body = Body(response.headers, self.limits)
                pieces = [body.inflated(piece) async for piece in response.aiter_raw()]
                body.end()
        except TimeoutError:
            return self._late(request)
        except (httpx.HTTPError, ServiceError) as error:
            return self._failed(request, error)
        said = response.headers.items()
        return self._answered(request, response.status_code, said, b"".join(pieces))
