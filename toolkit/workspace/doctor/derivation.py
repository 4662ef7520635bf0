"""The lines of a profile that the service's own words and answers prove.

How a trajectory is asked for is read from what the service misses in a question. Where the rows
are, what their time is, and which fields are prices, spreads and differentials follows from the
rows of both legs and of their spread: see `toolkit.wire.proofs`. Nothing is put into the draft as a
line in force that several readings fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from toolkit.client import Client
from toolkit.errors import ServiceError
from toolkit.intervals import Interval
from toolkit.market import UNIT_FACTORS, EventFamily, Family, Market, Trajectory
from toolkit.wire.declared import is_reversed
from toolkit.wire.draft import ProfileDraft
from toolkit.wire.event_routes import PAGING
from toolkit.wire.exchange import ANSWERED, HEADER, UNREADABLE, Answer, Failure, Request, refusal
from toolkit.wire.history_route import HistoryRoute
from toolkit.wire.listing import Listing, funding_trajectories, spread_trajectories
from toolkit.wire.places import leaves
from toolkit.wire.profile import Profile
from toolkit.wire.proofs import (
    Series,
    by_time,
    differential_figure,
    leg_prices,
    spread_figure,
    time_field,
)
from toolkit.wire.questions import names_all, question_named, stated_question
from toolkit.wire.survey import (
    ShownField,
    described_fields,
    guessed,
    rows_of,
    rows_place,
    unit_in_name,
)

_OPENAPI = "/openapi.json"
_QUESTIONS = 8
"""A question is put anew so often at most, each time with what the service missed in it."""
_ROWS = 200
_DOCUMENTS = 50
_DAY_S = 86_400
_MONTH_S = 30 * _DAY_S
_RATES = ("buy_rate", "sell_rate", "buy_interval_hours", "sell_interval_hours")
_UNITS = {"h": "hours", "hour": "hours"}
_REFUSED = (400, 404, 422)


@dataclass(frozen=True, slots=True)
class _Read:
    """Rows of a trajectory: their leaves by place, and their numbers by time."""

    route: HistoryRoute
    rows: Sequence[Mapping[str, Any]]
    numbers: Series

    def text(self, places: Sequence[str]) -> bool:
        """Check for numbers that are sent as text."""
        return any(isinstance(row.get(place), str) for row in self.rows for place in places)


class Derivation:
    """Proves lines of a draft, mostly with 30 to 60 requests."""

    def __init__(
        self, client: Client, draft: ProfileDraft, schemas: bytes, now: int, base: Profile
    ) -> None:
        self._client = client
        self._draft = draft
        self._schemas = schemas
        self._now = now
        self._base = base
        self._words: dict[str, str] = dict(_UNITS)
        self._said: list[object] | None = None
        self._spread_ask: Mapping[str, str] | None = None  # which leg is which in it is proved

    def profile(self) -> Profile:
        """Return the profile with all that the draft has in force so far."""
        return self._draft.applied(self._base)

    def derive(self, listing: Listing) -> None:
        """Prove what can be proved of prices, spreads and funding of what is listed."""
        for pair in spread_trajectories(listing)[:3]:
            spread = self._read(pair)
            legs = [Trajectory(Family.PRICE, pair.symbol, (leg,)) for leg in pair.legs]
            prices = [self._read(leg) for leg in legs]
            if spread and prices[0] and prices[1]:
                self._prove_spread(spread, prices[0], prices[1])
                break
        for pair in funding_trajectories(listing)[:3]:
            if (funding := self._read(pair)) is not None:
                self._prove_funding(funding)
                break

    def _read(self, trajectory: Trajectory) -> _Read | None:
        """Ask for a page of a trajectory and prove how that is done. None where it is unclear."""
        family = trajectory.family
        route = self.profile().histories[family]
        asked = self._ask(route, trajectory)
        refused = isinstance(asked, ServiceError) and asked.status in _REFUSED and not route.ask
        answer = self._question(route, trajectory) if refused else asked
        if not isinstance(answer, Answer):
            return None
        section = f"history.{family}"
        items, place = _rows(answer, route.items)
        rows = [*map(leaves, items)]
        if (found := time_field(rows, self._now)) is None:
            return None
        ts, unit = found
        times = by_time(rows, ts, unit)
        self._draft.prove(section, "items", place, route.items)
        self._draft.field(section, "ts", ts, unit)
        route = replace(self.profile().histories[family], order=route.order)
        self._prove_order(route, trajectory, answer, times)
        if self.profile().histories[family].oldest_first and not route.oldest_first:
            return self._read(trajectory)
        return _Read(self.profile().histories[family], rows, times)

    def _ask(
        self, route: HistoryRoute, trajectory: Trajectory, limit: int = _ROWS
    ) -> Answer | ServiceError:
        return self._answer(route.request(trajectory, self._now, limit=limit))

    def _get(self, path: str, query: Mapping[str, object]) -> Answer | ServiceError:
        return self._answer(Request.get(path, query))

    def _answer(self, request: Request) -> Answer | ServiceError:
        outcome = self._client.ask(request)
        if isinstance(outcome, Failure):
            return ServiceError(f"no answer ({outcome.reason})", url=outcome.url)
        return outcome if outcome.status in ANSWERED else refusal(outcome)

    def _question(self, route: HistoryRoute, trajectory: Trajectory) -> Answer | None:
        """Ask with what a document states, else with each parameter that the service misses."""
        ask: Mapping[str, str] = {"end_time": "{end_time}", "limit": "{limit}"}
        markets = {market: route.spelling.markets.get(market, market) for market in Market}
        legs = len(trajectory.legs)
        for said in self._documents():
            ask = stated_question(said, route.path, ask, legs, markets.values()) or ask
        for _ in range(_QUESTIONS):
            outcome = self._ask(replace(route, ask=ask), trajectory)
            if isinstance(outcome, Answer):
                if names_all(ask, legs):
                    self._draft.prove(f"history.{route.family}", "ask", ask, None)
                    return outcome
                return None
            named = question_named(outcome.detail, ask, legs, markets.values())
            if named is None:
                return None
            ask = named
        return None

    def _documents(self) -> list[object]:
        """Return what describes the service as a whole: its schemas, and a document of OpenAPI."""
        if self._said is None:
            answer = self._get(_OPENAPI, {})
            bodies = [self._schemas, answer.body if isinstance(answer, Answer) else b""]
            self._said = [said for body in bodies if (said := _decoded(body)) is not None]
        return self._said

    def _prove_order(
        self,
        route: HistoryRoute,
        trajectory: Trajectory,
        answer: Answer,
        times: Mapping[int, object],
    ) -> None:
        """Prove where a page names what follows, and whether the oldest rows come first."""
        section = f"history.{route.family}"
        rows = list(times)
        rises = len(rows) > 1 and rows[0] < rows[-1]
        if rises and not route.oldest_first:  # all there is may fit on one page, without a next
            rows = rows[: len(rows) // 2]
            part = self._ask(route, trajectory, limit=len(rows))
            answer = part if isinstance(part, Answer) else answer
        for place, value in _beside_rows(answer, route.items).items():
            name = re.sub(r"[^a-z]+", "_", place.rpartition(".")[2].lower())
            name = name.removeprefix("header_").removeprefix("x_")
            if name == "next_end_time":
                self._draft.prove(section, "next", place, route.next)
            elif name.startswith("next_") and rises and (clock := _clock_of(value, rows[-1])):
                ask = {n: each for n, each in route.ask.items() if "{end_time}" not in each}
                ask[name.removeprefix("next_")] = "{start_time}"
                self._draft.prove(section, "ask", ask, None)
                self._draft.prove(section, "next", place, route.next)
                self._draft.prove(section, "order", "oldest_first", None)
                self._draft.prove(section, "times", clock, route.times)

    def derive_log(self, family: EventFamily) -> None:
        """Prove where a log has its documents, their time, and the cursor of the next page."""
        section = f"events.{family}"
        route = replace(self.profile().events[family], limit=_DOCUMENTS)
        window = Interval(self._now - _DAY_S, self._now)
        answer = self._get(route.path, route.query(window, None))
        rows, items = _rows(answer, route.items)
        if not isinstance(answer, Answer) or not rows:
            return
        if (found := time_field([*map(leaves, rows)], self._now, ties=True)) is not None:
            place, unit = found
            self._draft.prove(section, "items", items, route.items)
            self._draft.prove(section, "paths.ts_ms", [place], None)
            self._draft.prove(section, "units.ts_ms", unit, "ms")
            self._draft.add(section, ["# Not proved: the places of its other columns (paths)."])
        cursors = {
            place: value
            for place, value in _beside_rows(answer, items).items()
            if "cursor" in place.lower() and isinstance(value, str) and place != route.next
        }
        for place, cursor in cursors.items():
            asks: list[dict[str, str]] = [{}]
            if place.startswith(HEADER):
                asks.append({n: f"{{{n}}}" for n in PAGING[:3]} | {place: "{cursor}"})
            for ask in asks:
                query = replace(route, ask=ask).query(window, cursor)
                others, _ = _rows(self._get(route.path, query), items)
                if others and not any(other in rows for other in others):
                    self._draft.prove(section, "next", place, route.next)
                    self._draft.prove(section, "ask", ask, {})
                    return

    def _prove_spread(self, spread: _Read, buy: _Read, sell: _Read) -> None:
        """Prove the price, the legs' prices and the spread by one another."""
        known = buy.route.rule("price")
        places = sorted({place for numbers in buy.numbers.values() for place in numbers})
        places = [known.wire] if known and known.wire in places else places
        legs = leg_prices(spread.numbers, buy.numbers, sell.numbers)
        used = []
        price = None
        if legs is not None:
            price, *sides = legs
            used = [*sides]
            for column, place in zip(("buy_price", "sell_price"), sides, strict=True):
                self._draft.field("history.spread", column, place, "quote")
        figure = spread_figure(
            spread.route,
            {
                ts: {p: v for p, v in row.items() if p not in used}
                for ts, row in spread.numbers.items()
            },
            buy.numbers,
            sell.numbers,
            [price] if price else places,
        )
        if figure is not None:
            price = price or figure.price
            used.append(figure.place)
            self._draft.field(
                "history.spread", "spread_pct", figure.place, figure.unit, figure.reversed
            )
            if word := self._fact(spread.route, figure.place, "unit"):
                self._words.setdefault(word, figure.unit)
        if price is not None:
            self._spread_ask = spread.route.ask
            self._draft.field("history.price", "price", price, "quote")
            if buy.text([price]):
                self._draft.prove("history.price", "numbers", "text", None)
        if spread.text(used):
            self._draft.prove("history.spread", "numbers", "text", None)

    def _prove_funding(self, funding: _Read) -> None:
        """Prove the differential by the rates, or take it with the sign that schemas declare."""
        places = sorted({place for numbers in funding.numbers.values() for place in numbers})
        said = {p: unit for p in places if (unit := self._unit(funding.route, p)) is not None}
        shown = [
            ShownField(p, "number", said.get(p), None, self._fact(funding.route, p, "title"))
            for p in places
        ]
        hours = [field for field in shown if field.unit == "hours"]
        found = guessed(dict.fromkeys(_RATES[2:], "hours"), hours or shown)
        taken = [guess.field for guess in found.values()]
        found |= guessed(dict.fromkeys(_RATES[:2], ""), [f for f in shown if f not in taken])
        rates = {column: guess.field.name for column, guess in found.items()}
        section = "history.funding"
        if funding.route.ask != self._spread_ask:
            self._draft.add(section, ["# Not proved: which leg of the question is bought."])
            return
        figure = differential_figure(funding.route, funding.numbers, rates, said)
        if figure is not None:
            place, unit, turned = figure.place, figure.unit, figure.reversed
            if figure.rate_unit.endswith("_per_interval"):
                for column in _RATES:
                    rate_unit = figure.rate_unit if column in _RATES[:2] else "hours"
                    self._draft.field(section, column, rates[column], rate_unit)
        else:
            alone = [p for p in places if said.get(p, "").partition("_per_")[2]]
            declared = self._declared_sign(funding.route, alone[0]) if len(alone) == 1 else None
            if declared is None or len(places) > 1:
                self._draft.add(section, ["# Not proved: the units of its rates, or its sign."])
                return
            place, unit, turned = alone[0], said[alone[0]], declared
        self._draft.field(section, "differential_pct_8h", place, unit, turned)
        if funding.text([place]):
            self._draft.prove(section, "numbers", "text", None)

    def _fact(self, route: HistoryRoute, place: str, name: str) -> str:
        fact = described_fields(self._schemas, route).get(place, {}).get(name)
        return fact if isinstance(fact, str) else ""

    def _unit(self, route: HistoryRoute, place: str) -> str | None:
        """Return the unit that the service states of a field, in schemas or in its name."""
        said = self._fact(route, place, "unit")
        words = [self._words.get(word, word) for word in said.replace("/", " per ").split()]
        unit = re.sub(r"(?<=\d)_(?=h$)", "", "_".join(words))
        unit = unit if unit in UNIT_FACTORS else unit_in_name(place) or ""
        if unit in ("percent", "fraction", "bps"):
            unit = f"{unit}_per_interval" if "rate" in self._fact(route, place, "title") else ""
        return unit or None

    def _declared_sign(self, route: HistoryRoute, place: str) -> bool | None:
        """Read a declared sign, the parameters of the question being the words for the legs."""
        sides = {
            name: side
            for name, template in route.ask.items()
            for side in ("buy", "sell")
            if f"{{{side}." in template and f"{{{_other(side)}." not in template
        }
        facts = described_fields(self._schemas, route).get(place, {})
        told = {
            name: re.sub(r"\w+", lambda word: sides.get(word[0], word[0]), text)
            for name, text in facts.items()
            if isinstance(text, str)
        }
        return is_reversed(told, "differential_pct_8h")


def _other(side: str) -> str:
    return "sell" if side == "buy" else "buy"


def _rows(answer: Answer | ServiceError, items: str) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of an answer and their place, none where it has none."""
    page = _decoded(answer.body) if isinstance(answer, Answer) else None
    if page is None or not isinstance(answer, Answer):
        return [], items
    place = rows_place(page, items)
    return rows_of(answer.body, place), place


def _decoded(body: bytes) -> object:
    """Return the value of JSON, None where it is none."""
    try:
        return msgspec.json.decode(body)
    except UNREADABLE:
        return None


def _beside_rows(answer: Answer, items: str) -> dict[str, object]:
    """Return what an answer has beside its rows, by place, and its headers."""
    page = _decoded(answer.body)
    beside = leaves(page) if isinstance(page, dict) else {}
    beside = {place: each for place, each in beside.items() if not place.startswith(f"{items}[")}
    return {**beside, **{f"{HEADER}{name}": value for name, value in answer.headers.items()}}


def _clock_of(value: object, newest: int) -> str | None:
    """Return the unit in which a value is a time of the month after a page's newest row (s)."""
    for unit in ("s", "ms", "us", "ns", "iso"):
        [ts] = by_time([{"next": value}], "next", unit)
        if newest < ts < newest + _MONTH_S:
            return unit
    return None
