"""The HTTP clients: they carry out the steps of `toolkit.wire` over one kept-alive connection pool.

This module, `toolkit.client.transport` and `toolkit.client.webhook_session` alone import httpx.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from pathlib import Path
from typing import Self, TypeVar, Unpack

import httpx
import polars as pl

from toolkit.client.contact import ClosingContact, Contact, ContactOptions, history_frame
from toolkit.client.transport import (
    FAILURES,
    Connections,
    Deadline,
    async_transport,
    check_open,
    named,
    options_of,
)
from toolkit.ending import outside
from toolkit.errors import ServiceError
from toolkit.market import EventFamily, SnapshotKind, Trajectory, When, Window
from toolkit.wire.body import Body
from toolkit.wire.events import EventPage, event_pages
from toolkit.wire.exchange import (
    Answer,
    Failure,
    Outcome,
    Request,
    RetryPolicy,
    Send,
    Step,
    Wait,
    with_retries,
)
from toolkit.wire.findings import Finding
from toolkit.wire.limits import Limits
from toolkit.wire.listing import Listing, list_symbols
from toolkit.wire.pages import Page
from toolkit.wire.paging import trajectory_pages
from toolkit.wire.profile import Profile
from toolkit.wire.secrets import Secret
from toolkit.wire.user_profile import UserProfile

_Result = TypeVar("_Result")
_Item = TypeVar("_Item")


class Client(ClosingContact):
    """A machine-rail service, asked by key over HTTP. Safe to share between threads.

    Parameters
    ----------
    base_url
        Where the service is, e.g. ``http://127.0.0.1:8750``.
    api_key
        The subscription key. Sent as ``Authorization: Bearer`` and shown nowhere.
    profile
        The user's names for what is on the wire, which override `/schemas`. None for none.
    retries
        When a GET is tried again. See `toolkit.wire.exchange.RetryPolicy`.
    allow_http
        Whether the key may be sent unencrypted, to an ``http://`` address off this machine.
    limits
        What an answer or a stream may cost. None for those of the profile.
    quota_folder
        Where this user's processes share what is left of the key's quota, so that they wait before
        it is spent instead of after: see `toolkit.client.contact`. None to ask until it is refused.
    sleep
        How waiting is done. A test may count instead.

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
        profile: UserProfile | None = None,
        retries: RetryPolicy | None = None,
        allow_http: bool = False,
        limits: Limits | None = None,
        quota_folder: Path | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        api_key = Secret(api_key)
        super().__init__(
            base_url,
            api_key,
            profile=profile,
            retries=retries,
            allow_http=allow_http,
            limits=limits,
            quota_folder=quota_folder,
        )
        self._sleep = sleep
        self._discovery = threading.Lock()
        self._deadline = Deadline()
        self._http = Connections(self, self._deadline)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def served_at(self) -> int:
        """Return the service's clock at its last answer (Unix s), the local one if it has none.

        Asks `/schemas` where nothing was asked yet.
        """
        if self._profile is None:
            self.profile()
        return self._clock()

    def profile(self) -> Profile:
        """Return what this service calls its routes and fields. Asks `/schemas` at first use."""
        with self._discovery:
            return self._profile or self._finish(self._ask_profile())

    def discover(self) -> Profile:
        """Ask for the schemas again: clock, plan and names may have changed since.

        Every load begins with it, so that a client kept open for hours asks up to the present.
        """
        with self._discovery:
            return self._finish(self._ask_profile())

    def symbols(self, text: str = "") -> Listing:
        """Return the symbols with ``text`` in their name, each with its legs. "" lists all."""
        return self._finish(list_symbols(self.profile(), text, self.retries))

    def pages(
        self,
        trajectory: Trajectory | str,
        window: Window,
        *,
        floor: Callable[[], int] | None = None,
    ) -> Iterator[Page]:
        """Yield the pages of a window, newest first, each with the interval it answers for.

        ``window`` is a start and an end as `history` takes them, or the name of a window alone.
        ``floor`` gives a later start (Unix s) once somebody else asks for what is older.
        """
        asked, wanted = self._finish(self._ask_rows(trajectory, window))
        route = self.profile().histories[asked.family]
        return self._drive(trajectory_pages(route, asked, wanted, self.retries, floor))

    def event_pages(
        self, family: EventFamily | str, window: Window, *, lifecycle: str | None = None
    ) -> Iterator[EventPage]:
        """Yield the pages of a window of an event log, newest first. See `toolkit.wire.events`.

        ``family`` is spread, splash or funding, ``window`` as in `pages`. ``lifecycle`` asks for
        documents that are open, or closed, alone. A service may ignore it.
        """
        log, wanted = self._finish(self._ask_documents(family, window))
        route = self.profile().events[log].filtered(lifecycle)
        return self._drive(event_pages(route, wanted, self.retries))

    def snapshot(self, kind: SnapshotKind | str, findings: list[Finding] | None = None) -> bytes:
        """Return the whole answer of a snapshot: symbols, activity, spread or funding, as JSON.

        A value that is not JSON, such as NaN, is null. ``findings`` takes one for each.
        """
        return self._finish(self._ask_snapshot(self.profile(), kind, findings))

    def ask(self, request: Request) -> Answer | Failure:
        """Send one GET and return the outcome. Nothing is tried again, read, or raised."""
        return self._send(request)

    def get(self, request: Request) -> Answer:
        """Send a GET as loads do, waited for and tried again. Raises `ServiceError`."""
        return self._finish(with_retries(request, self.retries))

    def history(
        self, trajectory: Trajectory | str, start: When, end: When | None = None
    ) -> pl.DataFrame:
        """Return a trajectory's rows with ``start <= ts < end``, sorted by ts, storing nothing.

        ``start`` and ``end`` are moments: ISO 8601 text in UTC, dates, datetimes or Unix seconds.
        ``start`` alone may be the name of a window: ``7d``, ``yesterday``, ``2023-03``. ``end``
        defaults to the service's clock.

        Columns: trajectory (its key), ts (s UTC), then for a price: price, mark_price, volume
        (quote). For a spread: buy_price, sell_price (quote), spread_pct (percent, positive earns
        when long the buy leg and short the sell leg). Extra (JSON of fields no column takes).
        A window without rows gives a frame without rows. Gaps stay gaps: nothing is filled.
        Raises `ServiceError`, and `InputError` for an empty window.
        """
        asked, window = self._finish(self._ask_rows(trajectory, (start, end)))
        return history_frame(asked, (page.frame for page in self.pages(asked, window)))

    def _finish(self, flow: Generator[Step, Outcome, _Result]) -> _Result:
        """Run a flow and return its result."""
        outcome: Outcome = None
        while True:
            try:
                step = flow.send(outcome)
            except StopIteration as stop:
                result: _Result = stop.value
                return result
            outcome = self._carry_out(step)

    def _drive(self, flow: Generator[Step | _Item, Outcome, None]) -> Iterator[_Item]:
        """Run a flow and yield what it produces."""
        outcome: Outcome = None
        while True:
            try:
                step = flow.send(outcome)
            except StopIteration:
                return
            outcome = None
            if isinstance(step, Send | Wait):
                outcome = self._carry_out(step)
            else:
                yield step

    def _carry_out(self, step: Step) -> Outcome:
        if isinstance(step, Wait):
            with outside():
                self._sleep(self._warned(step.seconds, step.why))
            return None
        return self._send(step.request)

    def _send(self, request: Request) -> Answer | Failure:
        check_open(self._http)
        for wait_s in self._waits():
            with outside():
                self._sleep(wait_s)
        self._count(request)
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


class AsyncClient(Contact):
    """The same service for asyncio: `Client`'s methods, awaited, over the same flows.

    Its parameters are those of `Client`, and ``sleep`` is awaited. Pages come from async iterators.
    A client belongs to one event loop. A cancelled call closes its connection alone.

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
        self._http = httpx.AsyncClient(**options_of(self), transport=async_transport(self.proxy))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def served_at(self) -> int:
        """Return the service's clock at its last answer (Unix s). See `Client.served_at`."""
        await self.profile()
        return self._clock()

    async def profile(self) -> Profile:
        """Return what this service calls its routes and fields. See `Client.profile`."""
        async with self._discovery:
            if self._profile is None:
                return await self._finish(self._ask_profile())
            return self._profile

    async def discover(self) -> Profile:
        """Ask for the schemas again. See `Client.discover`."""
        async with self._discovery:
            return await self._finish(self._ask_profile())

    async def symbols(self, text: str = "") -> Listing:
        """Return the symbols with ``text`` in their name, each with its legs. "" lists all."""
        return await self._finish(list_symbols(await self.profile(), text, self.retries))

    async def pages(
        self,
        trajectory: Trajectory | str,
        window: Window,
        *,
        floor: Callable[[], int] | None = None,
    ) -> AsyncIterator[Page]:
        """Yield the pages of a window, newest first. See `Client.pages`."""
        asked, wanted = await self._finish(self._ask_rows(trajectory, window))
        route = (await self.profile()).histories[asked.family]
        flow = trajectory_pages(route, asked, wanted, self.retries, floor)
        async for page in self._drive(flow):
            yield page

    async def event_pages(
        self, family: EventFamily | str, window: Window, *, lifecycle: str | None = None
    ) -> AsyncIterator[EventPage]:
        """Yield the pages of a window of an event log. See `Client.event_pages`."""
        log, wanted = await self._finish(self._ask_documents(family, window))
        route = (await self.profile()).events[log].filtered(lifecycle)
        async for page in self._drive(event_pages(route, wanted, self.retries)):
            yield page

    async def snapshot(
        self, kind: SnapshotKind | str, findings: list[Finding] | None = None
    ) -> bytes:
        """Return the whole answer of a snapshot. See `Client.snapshot`."""
        return await self._finish(self._ask_snapshot(await self.profile(), kind, findings))

    async def ask(self, request: Request) -> Answer | Failure:
        """Send one GET and return the outcome. Nothing is tried again, read, or raised."""
        return await self._send(request)

    async def get(self, request: Request) -> Answer:
        """Send a GET as loads do, waited for and tried again. See `Client.get`."""
        return await self._finish(with_retries(request, self.retries))

    async def history(
        self, trajectory: Trajectory | str, start: When, end: When | None = None
    ) -> pl.DataFrame:
        """Return a trajectory's rows with ``start <= ts < end``. See `Client.history`."""
        asked, window = await self._finish(self._ask_rows(trajectory, (start, end)))
        return history_frame(asked, [page.frame async for page in self.pages(asked, window)])

    async def _finish(self, flow: Generator[Step, Outcome, _Result]) -> _Result:
        """Run a flow and return its result."""
        outcome: Outcome = None
        while True:
            try:
                step = flow.send(outcome)
            except StopIteration as stop:
                result: _Result = stop.value
                return result
            outcome = await self._carry_out(step)

    async def _drive(self, flow: Generator[Step | _Item, Outcome, None]) -> AsyncIterator[_Item]:
        """Run a flow and yield what it produces."""
        outcome: Outcome = None
        while True:
            try:
                step = flow.send(outcome)
            except StopIteration:
                return
            outcome = None
            if isinstance(step, Send | Wait):
                outcome = await self._carry_out(step)
            else:
                yield step

    async def _carry_out(self, step: Step) -> Outcome:
        if isinstance(step, Wait):
            await self._sleep(self._warned(step.seconds, step.why))
            return None
        return await self._send(step.request)

    async def _send(self, request: Request) -> Answer | Failure:
        check_open(self._http)
        for wait_s in self._waits():
            await self._sleep(wait_s)
        self._count(request)
        try:
            async with (
                asyncio.timeout(self.limits.answer_s),
                self._http.stream(
                    "GET",
                    request.path,
                    params=list(request.query),
                    headers=list(request.headers),
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
