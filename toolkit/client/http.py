"""The HTTP client: carries out the steps of `toolkit.wire` over one kept-alive connection pool.

The one module that imports httpx, so that the choice of library stays cheap to change.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeVar

import httpx
import polars as pl

from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Trajectory
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
    base_address,
    http_date_ts,
    whole_document,
    with_retries,
)
from toolkit.wire.listing import Listing, list_symbols
from toolkit.wire.paging import Page, trajectory_pages
from toolkit.wire.profile import BUILT_IN, Profile, with_schemas
from toolkit.wire.rows import column_schema
from toolkit.wire.user_profile import UserProfile

__all__ = ["Client"]

_Result = TypeVar("_Result")
_Item = TypeVar("_Item")


class Client:
    """A machine-rail service, asked by key over HTTP. Safe to share between threads.

    Parameters
    ----------
    base_url
        Where the service is, e.g. ``http://127.0.0.1:8750``.
    api_key
        The subscription key; sent as ``Authorization: Bearer``, shown nowhere.
    timeout_s
        Seconds to wait for a connection, and for each part of an answer.
    profile
        The user's own words for the wire, over what `/schemas` says; None where none are needed.
    retries
        When a GET is tried again; see `toolkit.wire.exchange.RetryPolicy`.
    sleep
        How waiting is done; a test may count instead.

    Examples
    --------
    >>> from toolkit.service import Config, miniature, running
    >>> with running(Config(miniature.source(), port=0)) as service:
    ...     with Client(service.base_url, "demo-pro") as client:
    ...         client.profile.source.kind
    'simulated'
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        profile: UserProfile | None = None,
        timeout_s: float = 30.0,
        retries: RetryPolicy | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.base_url = base_address(base_url)
        self.retries = retries or RetryPolicy()
        key = _checked_key(api_key)
        self._key_pattern = _written(key)
        self._sleep = sleep
        self._profile: Profile | None = None
        self._users = profile
        self._discovery = threading.Lock()
        self._served_at: int | None = None
        try:
            self._http = httpx.Client(
                base_url=self.base_url,
                headers={"Authorization": f"Bearer {key}", "Accept": "application/json"},
                timeout=httpx.Timeout(timeout_s, connect=min(timeout_s, 10.0)),
                limits=httpx.Limits(max_keepalive_connections=32, keepalive_expiry=30.0),
            )
        except httpx.InvalidURL as error:
            raise InputError("base_url", base_url, "the address of a host") from error

    def __repr__(self) -> str:
        return f"Client({self.base_url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    @property
    def served_at(self) -> int:
        """The service's clock (Unix seconds) at its last answer, the local one if it has none.

        Asks `/schemas` where nothing was asked yet.
        """
        if self._profile is None:
            self.profile  # noqa: B018 - its answer carries the clock
        return self._served_at if self._served_at is not None else int(time.time())

    @property
    def profile(self) -> Profile:
        """How this service speaks; asks `/schemas` once, at first use."""
        with self._discovery:
            if self._profile is None:
                self._profile = self._ask_profile()
            return self._profile

    def discover(self) -> Profile:
        """How this service speaks, asked anew: its clock, the plan and the schemas may have moved.

        Every load begins with it, so that a client kept open for hours asks up to the present.
        """
        with self._discovery:
            self._profile = self._ask_profile()
            return self._profile

    def _ask_profile(self) -> Profile:
        """A first contact gives up sooner than a load under way: the address may be wrong."""
        assumed = self._users.applied(BUILT_IN) if self._users else BUILT_IN
        request = Request.get(assumed.schemas_path, {})
        patience = replace(self.retries, attempts=min(3, self.retries.attempts))
        found = with_schemas(assumed, self._finish(with_retries(request, patience)).body)
        return self._users.applied(found) if self._users else found

    def symbols(self, text: str = "") -> Listing:
        """Symbols whose name has ``text`` in it, each with its legs; "" lists all."""
        return self._finish(list_symbols(self.profile, text, self.retries))

    def pages(self, trajectory: Trajectory, window: Interval) -> Iterator[Page]:
        """The pages of a window, newest first, each with the stretch it answers for."""
        route = self.profile.histories[trajectory.family]
        return self._drive(trajectory_pages(route, trajectory, window, self.retries))

    def event_pages(self, family: EventFamily, window: Interval) -> Iterator[EventPage]:
        """The pages of one window of an event log, newest first; see `toolkit.wire.events`."""
        return self._drive(event_pages(self.profile.events[family], window, self.retries))

    def snapshot(self, kind: str) -> bytes:
        """The whole answer of a snapshot route, by its kind: symbols, activity, spread or funding.

        Raises `InputError` for another kind, `WireError` where the answer is not JSON.
        """
        paths = self.profile.snapshots
        if kind not in paths:
            raise InputError("snapshot", kind, ", ".join(paths))
        limit = {"limit": self.profile.symbols_limit} if kind == "symbols" else {}
        answer = self._finish(with_retries(Request.get(paths[kind], limit), self.retries))
        return whole_document(answer)

    def history(self, trajectory: Trajectory, start: int, end: int) -> pl.DataFrame:
        """A trajectory's rows with ``start <= ts < end``, sorted by ts; nothing is stored.

        Columns: trajectory (its key), ts (s UTC), then for a price: price, mark_price, volume
        (quote); for a spread: buy_price, sell_price (quote), spread_pct (percent, positive earns
        when long the buy leg and short the sell leg); extra (JSON of fields no column takes).
        A window without rows gives a frame without rows. Gaps stay gaps: nothing is filled.
        Raises `ServiceError`, and `InputError` for an empty window.
        """
        window = Interval.checked(start, end)
        frames = [page.frame for page in self.pages(trajectory, window)]
        rows = pl.concat([column_schema(trajectory.family).to_frame(), *frames])
        key = pl.lit(trajectory.key).alias("trajectory")
        return rows.select(key, pl.all()).sort("ts", maintain_order=True)

    def _finish(self, flow: Generator[Step, Outcome, _Result]) -> _Result:
        """Carry a flow out and give its result."""
        outcome: Outcome = None
        while True:
            try:
                step = flow.send(outcome)
            except StopIteration as stop:
                result: _Result = stop.value
                return result
            outcome = self._carry_out(step)

    def _drive(self, flow: Generator[Step | _Item, Outcome, None]) -> Iterator[_Item]:
        """Carry a flow out and yield what it produces."""
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
            self._sleep(step.seconds)
            return None
        return self._send(step.request)

    def _send(self, request: Request) -> Answer | Failure:
        url = self.base_url + request.path
        try:
            response = self._http.get(request.path, params=list(request.query))
        except httpx.HTTPError as error:
            said = " ".join(str(error).split())
            return Failure(self._without_key(f"{type(error).__name__}: {said}").rstrip(": "), url)
        headers = {k.lower(): self._without_key(v) for k, v in response.headers.items()}
        self._served_at = http_date_ts(headers.get("date")) or self._served_at
        body = response.content
        if response.status_code != 200:
            body = self._without_key(body.decode(errors="replace")).encode()
        return Answer(response.status_code, headers, body, url)

    def _without_key(self, text: str) -> str:
        return self._key_pattern.sub("***", text)


def _written(key: str) -> re.Pattern[str]:
    """What finds a key in a text, written plainly or with any of JSON's escapes."""
    return re.compile("".join(rf"(?:\\u(?i:{ord(c):04x})|\\?{re.escape(c)})" for c in key))


def _checked_key(text: str) -> str:
    """The key without blanks; one that no header can carry is refused without being shown."""
    key = text.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise InputError("api_key", "***", "the key as issued: printable ASCII without blanks")
    return key
