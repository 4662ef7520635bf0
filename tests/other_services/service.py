"""What all kinds have in common: the key, the routes, the rows and the event logs.

The event logs are those that the interface document states in full, so every kind begins with them.
Of all else it states the path alone, and each kind answers in its own way.
"""

from __future__ import annotations

import base64
import binascii
import json
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter
from typing import Any

from tests.other_services.data import BAR_S, Data
from tests.other_services.server import API_KEY, Answer, Question
from tests.other_services.writing import seconds
from toolkit.errors import InputError
from toolkit.market import Family, Leg, Market, Trajectory
from toolkit.service.market.source import Clock

Row = Mapping[str, Any]

ROOT = "/api/v1/data/"
DAY_S = 86_400
WINDOW_S = 7 * DAY_S
EVENT_LIMIT, EVENT_LIMIT_AT_MOST = 200, 500
FAMILIES = ("spread", "splash", "funding")


class Refused(Exception):  # noqa: N818 - an answer, no error of ours
    """A question that is refused, with its status and the service's own words."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A trajectory's records in the order of their times, and the times (s)."""

    ts: Sequence[int]
    records: Sequence[Any]

    def before(self, end: float, limit: int) -> range:
        """Return the places of the newest rows with ``ts < end``, whole seconds of them.

        Rows of one second are never on two pages, so a page may have more than ``limit`` rows.
        """
        last = bisect_left(self.ts, end)
        first = max(last - limit, 0)
        return range(bisect_left(self.ts, self.ts[first]) if first < last else last, last)

    def since(self, start: float, end: float, limit: int) -> range:
        """Return the places of the oldest whole seconds of rows with ``start <= ts < end``."""
        first, stop = bisect_left(self.ts, start), bisect_left(self.ts, end)
        last = min(first + limit, stop)
        if first >= last:
            return range(first, first)
        return range(first, min(bisect_right(self.ts, self.ts[last - 1]), stop))


class OtherService(ABC):
    """A service over given data. A kind says how it is asked, and how its answers look."""

    limit = 100
    """Rows of a page where the question has no ``limit``, and the most that are given."""
    limit_at_most = 1_000
    newest_first = True
    """Of the event logs."""

    symbol, leg, legs = "pair", "leg", ("buy", "sell")
    """The parameters that name a trajectory."""
    named = True
    """Whether the refusal of a question names the parameter that is missing."""
    between = ":"
    """What is between the exchange and the market of a leg."""
    markets: Mapping[str, str] = {market.value: market.value for market in Market}
    """The kind's word for each market."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._held: dict[Trajectory, Held] = {}
        self._rows: dict[Trajectory, Sequence[Row]] = {}
        self._frames = {Trajectory.parse(key): frame for key, frame in data.rows.items()}

    @property
    def clock(self) -> Clock:
        """Return the clock of the data."""
        return self._data.clock

    def answer(self, question: Question) -> Answer:
        """Return the answer to a question, in the kind's own shape also where it is refused."""
        try:
            found = self._found(question)
        except Refused as refusal:
            return Answer(self.fault(refusal.status, refusal.text), refusal.status)
        return found if isinstance(found, Answer) else Answer(found)

    def _found(self, question: Question) -> object:
        if question.headers.get("authorization") != f"Bearer {API_KEY}":
            raise Refused(401, "this key is not valid")
        route = self.routes.get(question.path)
        found = None if route is None else route(question)
        if found is None:
            raise Refused(404, f"there is nothing at {question.path}")
        return found

    @cached_property
    def routes(self) -> Mapping[str, Callable[[Question], object]]:
        """Return what answers at each path, with None for nothing."""
        logs = {f"history/{family}-events": partial(self.events, family) for family in FAMILIES}
        histories = {f"history/{family}": partial(self._history, family) for family in Family}
        routes: dict[str, Callable[[Question], object]] = {
            **logs,
            **histories,
            "schemas": lambda _: self.schemas(),
            "symbols/search": lambda question: self.symbols(self._found_symbols(question)),
            "event-activity": lambda _: self.activity(self._event_counts()),
            "dashboards/spread": lambda _: self.open_spreads(),
            "dashboards/funding-overview": lambda _: self.rates(),
        }
        below = {f"{ROOT}{path}": route for path, route in routes.items()}
        return {**below, "/openapi.json": lambda _: self.openapi()}

    def openapi(self) -> object:
        """Return a document of OpenAPI, None where the kind has none."""
        return None

    def _history(self, family: Family, question: Question) -> Answer:
        promised = family is Family.PRICE and "symbol" in question.parameters
        asked = promised_price if promised else partial(self.asked, family)
        trajectory = asked(question.parameters)
        listed = self.listing.get(str(trajectory.symbol), ())
        for leg in trajectory.legs:
            if leg not in listed:
                raise Refused(404, f"{trajectory.symbol} is not traded at {leg}")
        return self.history(trajectory, self.held(trajectory), question)

    @abstractmethod
    def fault(self, status: int, text: str) -> object:
        """Return the body of a refusal."""

    def schemas(self) -> object:
        """Return units, signs and keys in the kind's own words, None where it has no such path."""
        return None

    def asked(self, family: Family, parameters: Mapping[str, str]) -> Trajectory:
        """Return the trajectory that a question names, or refuse it."""
        names = (self.leg,) if family is Family.PRICE else self.legs
        example = f"KRAKEN{self.between}{self.markets['spot']}"
        legs = [self.required(parameters, name, example) for name in names]
        symbol = self.required(parameters, self.symbol, "BTC_USDT")
        return trajectory_of(family, symbol, map(self.read_leg, legs))

    def required(self, parameters: Mapping[str, str], name: str, such_as: str) -> str:
        """Return a parameter, or refuse the question, by its name and an example if `named`."""
        if name in parameters:
            return parameters[name]
        missing = f"the parameter {name} is missing, such as {such_as}"
        raise Refused(400, missing if self.named else "no such trajectory")

    def leg_text(self, leg: Leg) -> str:
        """Write a leg as the kind does."""
        return f"{leg.exchange}{self.between}{self.markets[leg.market.value]}"

    def read_leg(self, text: str) -> str:
        """Read a leg as the kind writes it."""
        exchange, _, word = text.partition(self.between)
        markets = {word: market for market, word in self.markets.items()}
        if word not in markets:
            raise Refused(400, f"{text!r} is not a leg")
        return f"{exchange}.{markets[word]}"

    def size(self, parameters: Mapping[str, str], name: str = "limit") -> int:
        """Return the rows of a page: as many as are asked for, at most those that are given."""
        return min(max(whole(parameters, name, self.limit), 1), self.limit_at_most)

    @abstractmethod
    def record(self, family: Family, row: Row) -> object:
        """Return a row as it goes over the wire."""

    @abstractmethod
    def history(self, trajectory: Trajectory, held: Held, question: Question) -> Answer:
        """Return a page of a trajectory."""

    @abstractmethod
    def symbols(self, found: Mapping[str, Sequence[Leg]]) -> object:
        """Return the legs of the symbols that were found."""

    def activity(self, counts: Mapping[str, int]) -> object:
        """Return how many events of each family there were in a day."""
        del counts
        return None

    def open_spreads(self) -> object:
        """Return the newest row of each spread."""
        return None

    def rates(self) -> object:
        """Return the rate in force of each leg."""
        return None

    @cached_property
    def listing(self) -> Mapping[str, Sequence[Leg]]:
        """Return the legs of each symbol, both in order."""
        found: dict[str, set[Leg]] = {}
        for trajectory in self._frames:
            found.setdefault(str(trajectory.symbol), set()).update(trajectory.legs)
        return {symbol: sorted(found[symbol]) for symbol in sorted(found)}

    def _found_symbols(self, question: Question) -> Mapping[str, Sequence[Leg]]:
        """Return the listing of the symbols that contain ``q``, at most ``limit`` of them."""
        wanted = question.parameters.get("q", "").upper()
        limit = whole(question.parameters, "limit", len(self.listing))
        found = [symbol for symbol in self.listing if wanted in symbol][:limit]
        return {symbol: self.listing[symbol] for symbol in found}

    def held(self, trajectory: Trajectory) -> Held:
        """Return what can be seen now of a trajectory, nothing where none of it is held."""
        if trajectory not in self._held:
            rows = self.rows(trajectory)
            records = [self.record(trajectory.family, row) for row in rows]
            self._held[trajectory] = Held([row["ts"] for row in rows], records)
        held = self._held[trajectory]
        delay_s = 0 if trajectory.family is Family.FUNDING else BAR_S
        seen = bisect_right(held.ts, self.clock.now() - delay_s)
        return Held(held.ts[:seen], held.records[:seen])

    def rows(self, trajectory: Trajectory) -> Sequence[Row]:
        """Return the rows that the service has of a trajectory, oldest first."""
        if trajectory not in self._rows:
            frame = self._frames.get(trajectory)
            rows = [] if frame is None else frame.sort("ts", maintain_order=True).to_dicts()
            self._rows[trajectory] = self.own_rows(trajectory, rows)
        return self._rows[trajectory]

    def own_rows(self, trajectory: Trajectory, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the rows that a kind makes of those of the data: the same, or others."""
        del trajectory
        return rows

    def newest_spreads(self) -> Iterator[tuple[Trajectory, Row]]:
        """Yield each spread with its newest row that can be seen."""
        for trajectory in self._frames:
            if trajectory.family is Family.SPREAD and (ts := self.held(trajectory).ts):
                yield trajectory, self.rows(trajectory)[len(ts) - 1]

    def newest_rates(self) -> Iterator[tuple[str, Leg, Row]]:
        """Yield symbol, leg, and ts, rate and hours of the newest settlement of each leg."""
        found: dict[tuple[str, Leg], Row] = {}
        for trajectory in self._frames:
            if trajectory.family is Family.FUNDING:
                seen = self.rows(trajectory)[: len(self.held(trajectory).ts)]
                for row in seen:
                    for leg, side in zip(trajectory.legs, ("buy", "sell"), strict=True):
                        if (rate := row[f"{side}_rate"]) is not None:
                            hours = row[f"{side}_interval_hours"]
                            key = (str(trajectory.symbol), leg)
                            found[key] = {"ts": row["ts"], "rate": rate, "hours": hours}
        for (symbol, leg), newest in sorted(found.items(), key=lambda item: item[0]):
            yield symbol, leg, newest

    def _event_counts(self) -> Mapping[str, int]:
        now = self.clock.now()
        return {family: len(self._window(family, now - DAY_S, now)) for family in FAMILIES}

    # Event logs

    def document(self, event: Row) -> bytes:
        """Return an event's document: the bytes of the data, where a kind has none of its own."""
        found: str = event["document"]
        return found.encode()

    def events(self, family: str, question: Question) -> Answer:
        """Return a page of an event log as the interface document has it (2.1 and 4.1)."""
        documents, further = self.event_documents(family, question)
        head = {
            "type": f"{family}_events_page",
            "has_more": further is not None,
            "next_cursor": further,
        }
        items = b",".join(documents)
        return Answer(json.dumps(head).encode()[:-1] + b', "items": [' + items + b"]}")

    def event_documents(self, family: str, question: Question) -> tuple[list[bytes], str | None]:
        """Return the documents of a page, in their order, and the cursor of the next one if any.

        The cursor holds the window and the place in it. So no document is lost or doubled where
        several share a moment.
        """
        parameters = question.parameters
        start, end = whole(parameters, "start_time"), whole(parameters, "end_time")
        if not start < end <= start + WINDOW_S:
            raise Refused(400, "a window is start_time < end_time, at most seven days")
        limit = min(whole(parameters, "limit", EVENT_LIMIT), EVENT_LIMIT_AT_MOST)
        window = f"{family} {start} {end}"
        cursor = self.event_cursor(question)
        first = 0 if cursor is None else read_cursor(cursor, window)
        found = self._window(family, start, end)
        last = first + limit
        further = write_cursor(window, last) if last < len(found) else None
        return found[first:last], further

    def event_cursor(self, question: Question) -> str | None:
        """Return the cursor that a question about a log carries, None on the first page."""
        return question.parameters.get("cursor")

    def _window(self, family: str, start: int, end: int) -> list[bytes]:
        """Return the documents of the events with ``start <= ts < end`` that can be seen."""
        log = self._logs.get(family, [])
        times = (start * 1_000, min(end, self.clock.now()) * 1_000)
        first, last = (bisect_left(log, ts_ms, key=itemgetter(0)) for ts_ms in times)
        found = [document for _, document in log[first:last]]
        return found[::-1] if self.newest_first else found

    @cached_property
    def _logs(self) -> Mapping[str, list[tuple[int, bytes]]]:
        """Return each log, oldest first: time (ms) and document of each event."""
        return {
            family: [
                (event["ts_ms"], self.document(event))
                for event in frame.sort("ts_ms", maintain_order=True).iter_rows(named=True)
            ]
            for family, frame in self._data.events.items()
        }


def whole(parameters: Mapping[str, str], name: str, default: int | None = None) -> int:
    """Return a parameter that is a whole number of 0 or more, or refuse the question."""
    text = parameters.get(name)
    if text is None and default is not None:
        return default
    if text is None or not text.isascii() or not text.isdigit():
        raise Refused(400, f"{name} has to be a whole number")
    return int(text)


def trajectory_of(family: Family, symbol: str | None, legs: Iterable[str]) -> Trajectory:
    """Return the trajectory of a symbol and of legs written ``EXCHANGE.market``, or refuse it."""
    prefix = "funding/" if family is Family.FUNDING else ""
    try:
        found = Trajectory.parse(prefix + ":".join([symbol or "", *legs]))
    except InputError as error:
        raise Refused(400, "no such trajectory") from error
    if found.family is not family:
        raise Refused(400, "a price has one leg, a spread and funding have two")
    return found


def moment(parameters: Mapping[str, str], name: str, default: float) -> float:
    """Return a parameter that is an ISO 8601 time with a zone as Unix seconds, or refuse it."""
    try:
        return seconds(parameters[name]) if name in parameters else default
    except ValueError as error:
        raise Refused(400, f"{name} has to be an ISO 8601 time with a zone") from error


def promised_price(parameters: Mapping[str, str]) -> Trajectory:
    """Return the price that is named by symbol, exchange and market, as the document says."""
    exchange, market = parameters.get("exchange", ""), parameters.get("market", "")
    if market not in list(Market):
        raise Refused(400, f"market has to be one of {', '.join(Market)}")
    return trajectory_of(Family.PRICE, parameters.get("symbol"), [f"{exchange}.{market}"])


def write_cursor(window: str, place: int) -> str:
    """Return an opaque base64url cursor for a place in a window."""
    return base64.urlsafe_b64encode(f"{window} {place}".encode()).decode().rstrip("=")


def read_cursor(cursor: str, window: str) -> int:
    """Return the place that a cursor has in a window, or refuse one of another window."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        of, _, place = text.decode().rpartition(" ")
    except (binascii.Error, UnicodeDecodeError):
        of, place = "", ""
    if of != window or not place.isdigit():
        raise Refused(400, "this cursor is of another window")
    return int(place)
