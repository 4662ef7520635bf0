"""Lines of a wire profile proved by a service's own words and answers.

A refusal names the parameters of a request. The rows of both legs and of their spread show where
rows, times, prices, spreads and differentials are: see `toolkit.wire.proofs`. An ambiguous line is
never in force.
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
from toolkit.wire.doctor.draft import ProfileDraft
from toolkit.wire.doctor.proofs import (
    HOURS,
    RATES,
    Fields,
    names_all,
    numbers_of,
    prove_differential,
    prove_spread,
    question_named,
    stated_question,
    time_field,
)
from toolkit.wire.exchange import HEADER, Request, Response
from toolkit.wire.profile.event_routes import PAGING
from toolkit.wire.profile.history_route import HistoryRoute
from toolkit.wire.profile.places import leaves
from toolkit.wire.profile.profile import Profile, is_reversed
from toolkit.wire.survey import (
    ShownField,
    decoded,
    described_fields,
    guessed,
    rows_of,
    unit_in_name,
)

_QUESTIONS = 8  # attempts at a request, each with what the service missed in the one before
_ROWS = 200
_DOCUMENTS = 50
_DAY_S = 86_400
_MONTH_S = 30 * _DAY_S
_REFUSED = (400, 404, 422)
_FIGURE = "differential_pct_8h"


class _Read(NamedTuple):
    route: HistoryRoute
    rows: Sequence[Mapping[str, Any]]
    numbers: pl.DataFrame


class Derivation:
    """Proves lines of a draft, usually with 30 to 60 requests."""

    def __init__(
        self, client: Client, draft: ProfileDraft, schemas: bytes, now: int, base: Profile
    ) -> None:
        self._client, self._draft, self._schemas = client, draft, schemas
        self._now, self._base = now, base
        self._words = {"h": "hours", "hour": "hours"}
        self._spread_ask: Mapping[str, str] | None = None  # which leg is which in it is proved

    def profile(self) -> Profile:
        """Return the profile with the lines proved so far."""
        return self._draft.applied(self._base)

    def derive(self, spreads: Sequence[Trajectory], funding: Sequence[Trajectory]) -> None:
        """Prove what the first trajectories with rows show of prices, spreads and funding."""
        for pair in spreads:
            legs = [Trajectory(Family.PRICE, pair.symbol, (leg,)) for leg in pair.legs]
            spread, buy, sell = map(self._read, (pair, *legs))
            if spread and buy and sell:
                self._prove_spread(spread, buy, sell)
                break
        if found := next(filter(None, map(self._read, funding)), None):
            self._prove_funding(found)

    def _read(self, trajectory: Trajectory) -> _Read | None:
        """Ask for a page of a trajectory and prove how. None where it is unclear."""
        family, section = trajectory.family, f"history.{trajectory.family}"
        route = self.profile().histories[family]
        if (answer := self._answer(route, trajectory)) is None:
            return None
        items, place = rows_of(answer.body, route.items)
        rows = [*map(leaves, items)]
        if (found := time_field(rows, self._now)) is None:
            return None
        time = dict(zip(("wire", "unit"), found, strict=True))
        self._draft.prove(section, {"items": place, "fields.ts": time}, {"items": route.items})
        numbers = numbers_of(rows, *found)
        self._prove_order(trajectory, answer, numbers["ts"].to_list())
        proved = self.profile().histories[family]
        if proved.oldest_first and not route.oldest_first:
            return self._read(trajectory)
        return _Read(proved, rows, numbers)

    def _answer(self, route: HistoryRoute, trajectory: Trajectory) -> Response | None:
        """Ask by the profile, else by what a document states or a refusal names."""
        try:
            return self._page(route, trajectory)
        except ServiceError as error:
            if error.status not in _REFUSED or route.ask:
                return None
        ask: dict[str, str] | None = {"end_time": "{end_time}", "limit": "{limit}"}
        markets = [route.spelling.markets.get(market, market) for market in Market]
        legs = len(trajectory.legs)
        for said in self._documents:
            ask = stated_question(said, route.path, ask or {}, legs, markets) or ask
        for _ in range(_QUESTIONS):
            if ask is None:
                break
            try:
                answer = self._page(replace(route, ask=ask), trajectory)
            except ServiceError as error:
                ask = question_named(error.detail, ask, legs, markets)
            else:
                if not names_all(ask, legs):
                    break
                self._draft.prove(f"history.{route.family}", {"ask": ask})
                return answer
        return None

    def _page(self, route: HistoryRoute, trajectory: Trajectory, limit: int = _ROWS) -> Response:
        return self._client.get(route.request(trajectory, self._now, limit=limit))

    @cached_property
    def _documents(self) -> list[object]:
        bodies = [self._schemas]
        with suppress(ServiceError):
            bodies.append(self._client.get(Request.get("/openapi.json", {})).body)
        return [said for body in bodies if (said := decoded(body)) is not None]

    def _prove_order(self, trajectory: Trajectory, answer: Response, times: Sequence[int]) -> None:
        """Prove where a page names the next one, and whether the oldest rows come first."""
        route, section = self.profile().histories[trajectory.family], f"history.{trajectory.family}"
        rises = len(times) > 1 and times[0] < times[-1]
        if rises and not route.oldest_first:  # one page may hold everything, without a next
            times = times[: len(times) // 2]
            with suppress(ServiceError):
                answer = self._page(route, trajectory, limit=len(times))
        known = {"next": route.next, "times": route.times}
        for place, value in _beside_rows(answer, route.items).items():
            name = re.sub(r"[^a-z]+", "_", place.rpartition(".")[2].lower())
            name = name.removeprefix("header_").removeprefix("x_")
            clock = _clock_of(value, times[-1]) if name.startswith("next_") and rises else None
            lines: dict[str, object] = {"next": place}
            if clock and name != "next_end_time":
                ask = {n: each for n, each in route.ask.items() if "{end_time}" not in each}
                ask[name.removeprefix("next_")] = "{start_time}"
                lines = {"ask": ask, **lines, "order": "oldest_first", "times": clock}
            if clock or name == "next_end_time":
                self._draft.prove(section, lines, known)

    def derive_log(self, family: EventFamily) -> None:
        """Prove where a log has its documents, their time and the next page's cursor."""
        section = f"events.{family}"
        route = replace(self.profile().events[family], limit=_DOCUMENTS)
        window = Interval(self._now - _DAY_S, self._now)
        with suppress(ServiceError):
            answer = self._client.get(Request.get(route.path, route.query(window, None)))
            rows, items = rows_of(answer.body, route.items)
            if found := time_field([*map(leaves, rows)], self._now, ties=True):
                lines = {"items": items, "paths.ts_ms": [found[0]], "units.ts_ms": found[1]}
                self._draft.prove(section, lines, {"items": route.items, "units.ts_ms": "ms"})
                self._draft.note(section, "Not proved: the places of its other columns (paths).")
            for place, cursor in _beside_rows(answer, items).items():
                named = "cursor" in place.lower() and isinstance(cursor, str)
                if not named or place == route.next:
                    continue
                sent = {n: f"{{{n}}}" for n in PAGING[:3]} | {place: "{cursor}"}
                for ask in [{}, sent] if place.startswith(HEADER) else [{}]:
                    query = replace(route, ask=ask).query(window, f"{cursor}")
                    later = self._client.get(Request.get(route.path, query))
                    others, _ = rows_of(later.body, items)
                    if others and not any(other in rows for other in others):
                        self._draft.prove(section, {"next": place, "ask": ask}, {"ask": {}})
                        return

    def _prove_spread(self, spread: _Read, buy: _Read, sell: _Read) -> None:
        rule, places = buy.route.rule("price"), buy.numbers.columns[1:]
        places = [rule.wire] if rule and rule.wire in places else places
        fields = prove_spread(spread.numbers, buy.numbers, sell.numbers, places)
        if not fields:
            return
        self._spread_ask = spread.route.ask
        self._prove_fields(buy, {"price": fields.pop("price")})
        if figure := fields.get("spread_pct"):
            facts = described_fields(self._schemas, spread.route).get(figure["wire"], {})
            self._words.setdefault(facts.get("unit", ""), figure["unit"])
        self._prove_fields(spread, fields)

    def _prove_fields(self, read: _Read, fields: Fields) -> None:
        places = [said["wire"] for said in fields.values()]
        text = any(isinstance(row.get(place), str) for row in read.rows for place in places)
        lines: dict[str, object] = {f"fields.{column}": said for column, said in fields.items()}
        lines |= {"numbers": "text"} if text else {}
        self._draft.prove(f"history.{read.route.family}", lines)

    def _prove_funding(self, funding: _Read) -> None:
        """Prove the differential by the rates, or take the sign that schemas declare."""
        section, route, places = "history.funding", funding.route, funding.numbers.columns[1:]
        if route.ask != self._spread_ask:
            self._draft.note(section, "Not proved: which leg of the question is bought.")
            return
        described = described_fields(self._schemas, route)
        facts = {place: described.get(place, {}) for place in places}
        said = {place: unit for place in places if (unit := self._unit(place, facts[place]))}
        fields = prove_differential(funding.numbers, _rates(said, facts), said)
        if not fields and len(places) == 1 and "_per_" in said.get(places[0], ""):
            turned = _declared_sign(route, facts[places[0]])
            way = {"reversed": True} if turned else {}
            one = {"wire": places[0], "unit": said[places[0]]} | way
            fields = Fields() if turned is None else {_FIGURE: one}
        if not fields:
            self._draft.note(section, "Not proved: the units of its rates, or its sign.")
        self._prove_fields(funding, fields)

    def _unit(self, place: str, facts: Mapping[str, str]) -> str:
        """Return the unit of a field by schemas or its name, "" for none."""
        said = facts.get("unit", "").replace("/", " per ").split()
        unit = "_".join(self._words.get(word, word) for word in said)
        unit = re.sub(r"(?<=\d)_(?=h$)", "", unit)
        unit = unit if unit in UNIT_FACTORS else unit_in_name(place) or ""
        if unit in ("percent", "fraction", "bps"):
            return f"{unit}_per_interval" if "rate" in facts.get("title", "") else ""
        return unit


def _rates(said: Mapping[str, str], facts: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    shown = [ShownField(p, "number", said.get(p), title=facts[p].get("title", "")) for p in facts]
    hours = [field for field in shown if field.unit == "hours"]
    found = guessed(dict.fromkeys(HOURS, "hours"), hours or shown)
    found |= guessed(dict.fromkeys(RATES, ""), [f for f in shown if f not in found.values()])
    return {column: field.name for column, field in found.items()}


def _declared_sign(route: HistoryRoute, facts: Mapping[str, str]) -> bool | None:
    """Read a declared sign. The request's parameters name the legs."""
    sides = {
        name: side
        for name, template in route.ask.items()
        for side, other in (("buy", "sell"), ("sell", "buy"))
        if f"{{{side}." in template and f"{{{other}." not in template
    }
    ours = {n: re.sub(r"\w+", lambda w: sides.get(w[0], w[0]), text) for n, text in facts.items()}
    return is_reversed(ours, _FIGURE)


def _beside_rows(answer: Response, items: str) -> dict[str, object]:
    page = decoded(answer.body)
    beside = leaves(page) if isinstance(page, dict) else {}
    beside = {place: each for place, each in beside.items() if not place.startswith(f"{items}[")}
    return {**beside, **{f"{HEADER}{name}": value for name, value in answer.headers.items()}}


def _clock_of(value: object, newest: int) -> str | None:
    """Return the unit by which a value lies in the month after a page's newest row (s)."""
    for unit in ("s", "ms", "us", "ns", "iso"):
        if newest < numbers_of([{"next": value}], "next", unit)["ts"][0] < newest + _MONTH_S:
            return unit
    return None
