"""The lines of a profile that the service's own words and answers prove.

How a trajectory is asked for is read from what the service misses in a question. Where the rows
are, what their time is, and which fields are prices, spreads and differentials follows from the
rows of both legs and of their spread: see `toolkit.wire.proofs`. Nothing is put into the draft as a
line in force that several readings fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

from toolkit.client import Client
from toolkit.errors import ServiceError
from toolkit.intervals import Interval
from toolkit.market import UNIT_FACTORS, EventFamily, Family, Market, Trajectory
from toolkit.wire.declared import is_reversed
from toolkit.wire.draft import ProfileDraft
from toolkit.wire.event_routes import PAGING
from toolkit.wire.exchange import HEADER, Answer, Request
from toolkit.wire.history_route import HistoryRoute
from toolkit.wire.places import leaves
from toolkit.wire.profile import Profile
from toolkit.wire.proofs import numbers_of, prove_differential, prove_spread, time_field
from toolkit.wire.questions import names_all, question_named, stated_question
from toolkit.wire.survey import (
    ShownField,
    decoded,
    described_fields,
    guessed,
    rows_of,
    unit_in_name,
)

_OPENAPI = "/openapi.json"
_QUESTIONS = 8
"""A question is put anew so often at most, each time with what the service missed in it."""
_ROWS = 200
_DOCUMENTS = 50
_DAY_S = 86_400
_MONTH_S = 30 * _DAY_S
_RATES = ("buy_rate", "sell_rate")
_HOURS = ("buy_interval_hours", "sell_interval_hours")
_UNITS = {"h": "hours", "hour": "hours"}
_REFUSED = (400, 404, 422)


class _Read(NamedTuple):
    """Rows of a trajectory: their leaves by place, and their numbers by time."""

    route: HistoryRoute
    rows: Sequence[Mapping[str, Any]]
    numbers: pl.DataFrame


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
        self._spread_ask: Mapping[str, str] | None = None  # which leg is which in it is proved

    def profile(self) -> Profile:
        """Return the profile with all that the draft has in force so far."""
        return self._draft.applied(self._base)

    def derive(self, spreads: Sequence[Trajectory], funding: Sequence[Trajectory]) -> None:
        """Prove what can be proved of prices, spreads and funding, by the first that have rows."""
        for pair in spreads:
            legs = [Trajectory(Family.PRICE, pair.symbol, (leg,)) for leg in pair.legs]
            spread, buy, sell = map(self._read, (pair, *legs))
            if spread and buy and sell:
                self._prove_spread(spread, buy, sell)
                break
        if found := next(filter(None, map(self._read, funding)), None):
            self._prove_funding(found)

    def _read(self, trajectory: Trajectory) -> _Read | None:
        """Ask for a page of a trajectory and prove how that is done. None where it is unclear."""
        family, section = trajectory.family, f"history.{trajectory.family}"
        route = self.profile().histories[family]
        try:
            answer = self._page(route, trajectory)
        except ServiceError as error:
            refused = error.status in _REFUSED and not route.ask
            asked = self._question(route, trajectory) if refused else None
            if asked is None:
                return None
            answer = asked
        items, place = rows_of(answer.body, route.items)
        rows = [*map(leaves, items)]
        if (found := time_field(rows, self._now)) is None:
            return None
        self._draft.prove(section, "items", place, route.items)
        self._draft.field(section, "ts", *found)
        numbers = numbers_of(rows, *found)
        known = self.profile().histories[family]
        self._prove_order(known, trajectory, answer, numbers["ts"].to_list())
        proved = self.profile().histories[family]
        if proved.oldest_first and not route.oldest_first:
            return self._read(trajectory)
        return _Read(proved, rows, numbers)

    def _page(self, route: HistoryRoute, trajectory: Trajectory, limit: int = _ROWS) -> Answer:
        return self._client.get(route.request(trajectory, self._now, limit=limit))

    def _get(self, path: str, query: Mapping[str, object]) -> Answer:
        return self._client.get(Request.get(path, query))

    def _question(self, route: HistoryRoute, trajectory: Trajectory) -> Answer | None:
        """Ask with what a document states, else with each parameter that the service misses."""
        ask: dict[str, str] | None = {"end_time": "{end_time}", "limit": "{limit}"}
        markets = [route.spelling.markets.get(market, market) for market in Market]
        legs = len(trajectory.legs)
        for said in self._documents:
            ask = stated_question(said, route.path, ask or {}, legs, markets) or ask
        for _ in range(_QUESTIONS):
            if ask is None:
                return None
            try:
                answer = self._page(replace(route, ask=ask), trajectory)
            except ServiceError as error:
                ask = question_named(error.detail, ask, legs, markets)
            else:
                if not names_all(ask, legs):
                    return None
                self._draft.prove(f"history.{route.family}", "ask", ask)
                return answer
        return None

    @cached_property
    def _documents(self) -> list[object]:
        """What describes the service as a whole: its schemas, and a document of OpenAPI."""
        bodies = [self._schemas]
        with suppress(ServiceError):
            bodies.append(self._get(_OPENAPI, {}).body)
        return [said for body in bodies if (said := decoded(body)) is not None]

    def _prove_order(
        self, route: HistoryRoute, trajectory: Trajectory, answer: Answer, times: Sequence[int]
    ) -> None:
        """Prove where a page names what follows, and whether the oldest rows come first."""
        section = f"history.{route.family}"
        rises = len(times) > 1 and times[0] < times[-1]
        if rises and not route.oldest_first:  # all there is may fit on one page, without a next
            times = times[: len(times) // 2]
            with suppress(ServiceError):
                answer = self._page(route, trajectory, limit=len(times))
        for place, value in _beside_rows(answer, route.items).items():
            name = re.sub(r"[^a-z]+", "_", place.rpartition(".")[2].lower())
            name = name.removeprefix("header_").removeprefix("x_")
            clock = _clock_of(value, times[-1]) if name.startswith("next_") and rises else None
            if name == "next_end_time":
                self._draft.prove(section, "next", place, route.next)
            elif clock:
                ask = {n: each for n, each in route.ask.items() if "{end_time}" not in each}
                ask[name.removeprefix("next_")] = "{start_time}"
                self._draft.prove(section, "ask", ask)
                self._draft.prove(section, "next", place, route.next)
                self._draft.prove(section, "order", "oldest_first")
                self._draft.prove(section, "times", clock, route.times)

    def derive_log(self, family: EventFamily) -> None:
        """Prove where a log has its documents, their time, and the cursor of the next page."""
        section = f"events.{family}"
        route = replace(self.profile().events[family], limit=_DOCUMENTS)
        window = Interval(self._now - _DAY_S, self._now)
        with suppress(ServiceError):
            answer = self._get(route.path, route.query(window, None))
            rows, items = rows_of(answer.body, route.items)
            if found := time_field([*map(leaves, rows)], self._now, ties=True):
                self._draft.prove(section, "items", items, route.items)
                self._draft.prove(section, "paths.ts_ms", [found[0]])
                self._draft.prove(section, "units.ts_ms", found[1], "ms")
                self._draft.note(section, "Not proved: the places of its other columns (paths).")
            for place, cursor in _beside_rows(answer, items).items():
                named = "cursor" in place.lower() and isinstance(cursor, str)
                if not named or place == route.next:
                    continue
                sent = {n: f"{{{n}}}" for n in PAGING[:3]} | {place: "{cursor}"}
                for ask in [{}, sent] if place.startswith(HEADER) else [{}]:
                    query = replace(route, ask=ask).query(window, f"{cursor}")
                    others, _ = rows_of(self._get(route.path, query).body, items)
                    if others and not any(other in rows for other in others):
                        self._draft.prove(section, "next", place)
                        self._draft.prove(section, "ask", ask, {})
                        return

    def _prove_spread(self, spread: _Read, buy: _Read, sell: _Read) -> None:
        """Prove the price, the legs' prices and the spread by one another."""
        rule, places = buy.route.rule("price"), buy.numbers.columns[1:]
        places = [rule.wire] if rule and rule.wire in places else places
        found = prove_spread(spread.numbers, buy.numbers, sell.numbers, places)
        if found is None:
            return
        self._spread_ask = spread.route.ask
        self._prove_fields(buy, {"price": (found.price, "quote")})
        legs = zip(("buy_price", "sell_price"), found.legs, strict=False)
        fields: dict[str, tuple[Any, ...]] = {column: (leg, "quote") for column, leg in legs}
        if found.figure:
            fields["spread_pct"] = found.figure
            place, unit, _ = found.figure
            facts = described_fields(self._schemas, spread.route).get(place, {})
            self._words.setdefault(_text(facts, "unit"), unit)
        self._prove_fields(spread, fields)

    def _prove_fields(self, read: _Read, fields: Mapping[str, tuple[Any, ...]]) -> None:
        """Put the place, unit and sign of columns in force, and whether their numbers are text."""
        section = f"history.{read.route.family}"
        for column, said in fields.items():
            self._draft.field(section, column, *said)
        if any(isinstance(row.get(of[0]), str) for row in read.rows for of in fields.values()):
            self._draft.prove(section, "numbers", "text")

    def _prove_funding(self, funding: _Read) -> None:
        """Prove the differential by the rates, or take it with the sign that schemas declare."""
        section, route, places = "history.funding", funding.route, funding.numbers.columns[1:]
        if route.ask != self._spread_ask:
            self._draft.note(section, "Not proved: which leg of the question is bought.")
            return
        facts = described_fields(self._schemas, route)
        said = {p: unit for p in places if (unit := self._unit(p, facts.get(p, {})))}
        rates = _rates(
            places, said, {place: _text(facts.get(place, {}), "title") for place in places}
        )
        fields: dict[str, tuple[Any, ...]] = {}
        if proved := prove_differential(funding.numbers, rates, said):
            fields["differential_pct_8h"], unit = proved
            if unit.endswith("_per_interval"):
                fields |= {c: (p, unit if c in _RATES else "hours") for c, p in rates.items()}
        elif len(places) == 1 and "_per_" in said.get(places[0], ""):
            turned = _declared_sign(route, facts.get(places[0], {}))
            if turned is not None:
                fields["differential_pct_8h"] = places[0], said[places[0]], turned
        if not fields:
            self._draft.note(section, "Not proved: the units of its rates, or its sign.")
        self._prove_fields(funding, fields)

    def _unit(self, place: str, facts: Mapping[str, Any]) -> str:
        """Return the unit that the service states of a field, in schemas or in its name."""
        said = _text(facts, "unit").replace("/", " per ").split()
        unit = "_".join(self._words.get(word, word) for word in said)
        unit = re.sub(r"(?<=\d)_(?=h$)", "", unit)
        unit = unit if unit in UNIT_FACTORS else unit_in_name(place) or ""
        if unit in ("percent", "fraction", "bps"):
            return f"{unit}_per_interval" if "rate" in _text(facts, "title") else ""
        return unit


def _text(facts: Mapping[str, Any], name: str) -> str:
    return said if isinstance(said := facts.get(name), str) else ""


def _rates(
    places: Sequence[str], said: Mapping[str, str], titles: Mapping[str, str]
) -> dict[str, str]:
    """Return the places that may have the rates, and the hours of their intervals."""
    shown = [ShownField(p, "number", said.get(p), title=titles[p]) for p in places]
    hours = [field for field in shown if field.unit == "hours"]
    found = guessed(dict.fromkeys(_HOURS, "hours"), hours or shown)
    rest = [field for field in shown if field not in found.values()]
    found |= guessed(dict.fromkeys(_RATES, ""), rest)
    return {column: field.name for column, field in found.items()}


def _declared_sign(route: HistoryRoute, facts: Mapping[str, Any]) -> bool | None:
    """Read a declared sign, the parameters of the question being the words for the legs."""
    sides = {
        name: side
        for name, template in route.ask.items()
        for side, other in (("buy", "sell"), ("sell", "buy"))
        if f"{{{side}." in template and f"{{{other}." not in template
    }
    ours = {n: re.sub(r"\w+", lambda w: sides.get(w[0], w[0]), _text(facts, n)) for n in facts}
    return is_reversed(ours, "differential_pct_8h")


def _beside_rows(answer: Answer, items: str) -> dict[str, object]:
    """Return what an answer has beside its rows, by place, and its headers."""
    page = decoded(answer.body)
    beside = leaves(page) if isinstance(page, dict) else {}
    beside = {place: each for place, each in beside.items() if not place.startswith(f"{items}[")}
    return {**beside, **{f"{HEADER}{name}": value for name, value in answer.headers.items()}}


def _clock_of(value: object, newest: int) -> str | None:
    """Return the unit in which a value is a time of the month after a page's newest row (s)."""
    for unit in ("s", "ms", "us", "ns", "iso"):
        if newest < numbers_of([{"next": value}], "next", unit)["ts"][0] < newest + _MONTH_S:
            return unit
    return None
