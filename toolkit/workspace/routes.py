"""Data routes of a service, asked as a load does, and figures from both legs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import polars as pl

from toolkit.cards import counted, duration, some
from toolkit.client import Client
from toolkit.client.contact import history_frame
from toolkit.errors import InputError, PlanRefusedError, QuotaError, ServiceError, UnreachableError
from toolkit.intervals import Interval
from toolkit.market import (
    UNIT_FACTORS,
    EventFamily,
    EventLog,
    Family,
    Leg,
    Market,
    Stream,
    Symbol,
    Trajectory,
)
from toolkit.wire.agreement import GIVEN
from toolkit.wire.doctor import proofs
from toolkit.wire.doctor.draft import ProfileDraft
from toolkit.wire.doctor.proofs import names_all, question_named, stated_question
from toolkit.wire.exchange import HEADER, Request, Response, RetryPolicy, decoded
from toolkit.wire.finding_words import advised
from toolkit.wire.findings import Finding
from toolkit.wire.history_page import Page
from toolkit.wire.listing import Listing, guessed_listing, price_trajectories, spread_trajectories
from toolkit.wire.profile.event_routes import PAGING
from toolkit.wire.profile.history_route import HistoryRoute
from toolkit.wire.profile.places import leaves
from toolkit.wire.profile.profile import Profile, is_reversed
from toolkit.wire.profile.shapes import BUILT_IN_LISTING
from toolkit.wire.profile.spelling import AS_OURS
from toolkit.wire.rows.snapshot_rows import snapshot_items
from toolkit.wire.survey import (
    ShownField,
    described_fields,
    guessed,
    rows_of,
    shown_fields,
    survey_fields,
    unit_in_name,
)

_QUESTIONS = 8  # attempts at a request, each with what the service missed in the one before
_PAGE_ROWS, _DOCUMENTS, _MONTH_S = 200, 50, 30 * 86_400
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
        """Prove what the first trajectories with rows show of each family."""
        for pair in spreads:
            legs = [Trajectory(Family.PRICE, pair.symbol, (leg,)) for leg in pair.legs]
            spread, buy, sell = map(self._read, (pair, *legs))
            if spread and buy and sell:
                self._prove_spread(spread, buy, sell)
                break
        if found := next(filter(None, map(self._read, funding)), None):
            self._prove_funding(found)

    def _read(self, trajectory: Trajectory) -> _Read | None:
        """Ask for a page of a trajectory and prove how, None if unclear."""
        family, section = trajectory.family, f"history.{trajectory.family}"
        route = self.profile().histories[family]
        if (answer := self._answer(route, trajectory)) is None:
            return None
        items, place = rows_of(answer.body, route.items)
        rows = [*map(leaves, items)]
        if (found := proofs.time_field(rows, self._now)) is None:
            return None
        time = dict(zip(("wire", "unit"), found, strict=True))
        self._draft.prove(section, {"items": place, "fields.ts": time}, {"items": route.items})
        numbers = proofs.numbers_of(rows, *found)
        self._prove_order(trajectory, answer, numbers["ts"].to_list())
        proved = self.profile().histories[family]
        if proved.oldest_first and not route.oldest_first:
            return self._read(trajectory)
        return _Read(proved, rows, numbers)

    def _answer(self, route: HistoryRoute, trajectory: Trajectory) -> Response | None:
        """Ask by the profile, else by a document or a refusal."""
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

    def _page(
        self, route: HistoryRoute, trajectory: Trajectory, limit: int = _PAGE_ROWS
    ) -> Response:
        return self._client.get(route.request(trajectory, self._now, limit=limit))

    @cached_property
    def _documents(self) -> list[object]:
        bodies = [self._schemas]
        with suppress(ServiceError):
            bodies.append(self._client.get(Request.get("/openapi.json", {})).body)
        return [said for body in bodies if (said := decoded(body)) is not None]

    def _prove_order(self, trajectory: Trajectory, answer: Response, times: Sequence[int]) -> None:
        """Prove where the next page is named, and whether the oldest rows come first."""
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
        """Prove where a log has documents, times and the next page's cursor."""
        section = f"events.{family}"
        route = replace(self.profile().events[family], limit=_DOCUMENTS)
        window = Interval(self._now - _DAY_S, self._now)
        with suppress(ServiceError):
            answer = self._client.get(Request.get(route.path, route.query(window, None)))
            rows, items = rows_of(answer.body, route.items)
            if found := proofs.time_field([*map(leaves, rows)], self._now, ties=True):
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
        fields = proofs.prove_spread(spread.numbers, buy.numbers, sell.numbers, places)
        if not fields:
            return
        self._spread_ask = spread.route.ask
        self._prove_fields(buy, {"price": fields.pop("price")})
        if figure := fields.get("spread_pct"):
            facts = described_fields(self._schemas, spread.route).get(figure["wire"], {})
            self._words.setdefault(facts.get("unit", ""), figure["unit"])
        self._prove_fields(spread, fields)

    def _prove_fields(self, read: _Read, fields: proofs.Fields) -> None:
        places = [said["wire"] for said in fields.values()]
        text = any(isinstance(row.get(place), str) for row in read.rows for place in places)
        lines: dict[str, object] = {f"fields.{column}": said for column, said in fields.items()}
        lines |= {"numbers": "text"} if text else {}
        self._draft.prove(f"history.{read.route.family}", lines)

    def _prove_funding(self, funding: _Read) -> None:
        """Prove the differential by the rates, or take its declared sign."""
        section, route, places = "history.funding", funding.route, funding.numbers.columns[1:]
        if route.ask != self._spread_ask:
            self._draft.note(section, "Not proved: which leg of the question is bought.")
            return
        described = described_fields(self._schemas, route)
        facts = {place: described.get(place, {}) for place in places}
        said = {place: unit for place in places if (unit := self._unit(place, facts[place]))}
        fields = proofs.prove_differential(funding.numbers, _rates(said, facts), said)
        if not fields and len(places) == 1 and "_per_" in said.get(places[0], ""):
            turned = _declared_sign(route, facts[places[0]])
            way = {"reversed": True} if turned else {}
            one = {"wire": places[0], "unit": said[places[0]]} | way
            fields = proofs.Fields() if turned is None else {_FIGURE: one}
        if not fields:
            self._draft.note(section, "Not proved: the units of its rates, or its sign.")
        self._prove_fields(funding, fields)

    def _unit(self, place: str, facts: Mapping[str, str]) -> str:
        """Return a field's unit by schemas or its name, "" for none."""
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
    found = guessed(dict.fromkeys(proofs.HOURS, "hours"), hours or shown)
    found |= guessed(dict.fromkeys(proofs.RATES, ""), [f for f in shown if f not in found.values()])
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
    """Return the unit that puts a value in the month after a page's newest row (s)."""
    for unit in ("s", "ms", "us", "ns", "iso"):
        if newest < proofs.numbers_of([{"next": value}], "next", unit)["ts"][0] < newest + _MONTH_S:
            return unit
    return None


class State(StrEnum):
    """The result of a check. ``NOTE``: not as agreed, but readable."""

    OK = "ok"
    NOTE = "note"
    REFUSED = "not in plan"
    FAILED = "failed"
    SKIPPED = "not asked"


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a service: its result in words, and advice."""

    group: str
    name: str
    state: State
    says: str
    advice: str = ""


def refused_words(error: ServiceError) -> str:
    """Shorten a refusal to its status and the service's reason.

    >>> refused_words(ServiceError("long", status=403, detail="begins at the builder plan"))
    '403: begins at the builder plan'
    """
    if error.status is None or error.status == 200:
        told = str(error)
        if isinstance(error, UnreachableError) and (reason := re.search(r"\((.*)\)", told)):
            return f"no answer ({reason[1]})"
        return told.removeprefix(error.url).lstrip(",: ").strip()
    return f"{error.status}: {error.detail}" if error.detail else f"{error.status}"


def refused_check(group: str, name: str, error: ServiceError, advice: str = "") -> Check:
    """Return a refused check: not in the plan, or failed."""
    state = State.REFUSED if isinstance(error, PlanRefusedError) else State.FAILED
    return Check(group, name, state, refused_words(error), advice)


_ROWS, _JUDGED_ROWS, _TRIES, _PAGES, _DAY_S = 50, 200, 3, 2, 86_400
_OF_RECORDS = ("field_missing", "field_unknown")  # the check of the record names them
_READ = (State.OK, State.NOTE)
_TYPED = "rail doctor KEY ... asks for keys that you type"
_ADVICE = {
    404: "if it is elsewhere, say where in a profile (path)",
    429: "wait until the quota is renewed, then ask again",
}
_THEIR_FAULT = "the service's own fault; ask its operator, or try later"
NAME_IN_PROFILE = "say in a profile what they are called"


class Routes:
    """Asks the data routes, and puts what differs into the draft.

    The default ``streams`` are those listed. The rest is as in `Examination`.
    """

    def __init__(
        self, client: Client, profile: Profile, schemas: bytes, now: int, streams: Sequence[Stream]
    ) -> None:
        self.readable, self.unreadable = list[str](), list[str]()
        self.listed, self.draft = False, ProfileDraft()
        self._client, self._profile, self._schemas = client, profile, schemas
        self._now, self._streams = now, streams
        self._trajectories = [each for each in streams if isinstance(each, Trajectory)]
        self._listing = Listing({}, truncated=False)
        self._fields: dict[Family, Check] = {}
        self._held: dict[Family, tuple[Trajectory, pl.DataFrame]] = {}

    def checks(self) -> Iterator[Check]:
        """Yield a check per route, the draft, then each history's record and figure."""
        yield self._symbols()
        kinds = [each.kind for each in self._streams] or list(Family)
        for family in [family for family in Family if family in kinds]:
            yield self._counted(self._history(family), self._fields.get(family))
        for log in EventFamily:
            if not self._streams or EventLog(log) in self._streams:
                yield self._counted(self._log(log))
        for kind in ("activity", "spread", "funding"):
            yield self._snapshot(kind)
        verdicts = [self._verdict(family) for family in GIVEN if family in self._held]
        if self.unreadable or not self.listed:
            yield self._derived()
        yield from self._fields.values()
        yield from verdicts

    def _counted(self, check: Check, record: Check | None = None) -> Check:
        """Note whether a load can read a history or log in the plan."""
        unasked = check.state is State.SKIPPED and not self.listed
        if unasked or State.FAILED in (check.state, record and record.state):
            self.unreadable.append(check.name)
        elif check.state in _READ:
            self.readable.append(check.name)
        return check

    def _failed(self, name: str, error: ServiceError) -> Check:
        if isinstance(error, QuotaError):  # waiting did not help, so do not wait again
            self._client.retries = RetryPolicy(attempts=1)
        status = error.status or 0
        advice = _ADVICE.get(status, _THEIR_FAULT if status >= 500 else "")
        return refused_check("routes", name, error, advice)

    def _symbols(self) -> Check:
        """Read the listing. Without one the other checks still run."""
        name = "symbols/search"
        try:
            listing = self._client.symbols()
        except ServiceError as error:
            check = self._failed(name, error)
        else:
            legs, findings = sum(map(len, listing.legs.values())), listing.findings
            says = f"{len(listing.legs)} symbols, {legs} legs"
            says += ", and more than it lists at once" if listing.truncated else ""
            if findings:
                first = f"e.g. {findings[0].kind}: {findings[0].says:.80}"
                says += f"; {counted(len(findings), 'finding')}, {first}"
            self.listed = legs > 0
            state = State.FAILED if not legs else State.NOTE if findings else State.OK
            check = Check("routes", name, state, says)
        if not self.listed:
            listing = self._guessed_listing()
            check = replace(check, advice=f"{check.advice}; {_TYPED}".lstrip("; "))
        typed: dict[Symbol, tuple[Leg, ...]] = {}
        for each in self._trajectories:
            typed[each.symbol] = tuple(dict.fromkeys((*typed.get(each.symbol, ()), *each.legs)))
        self._listing = replace(listing, legs=typed or listing.legs)
        return check

    def _guessed_listing(self) -> Listing:
        """Read the listing by a guessed shape, for the draft. Empty without one."""
        nothing = Listing({}, truncated=False)
        try:
            answer = self._client.get(Request.get(self._profile.symbols_path, {}))
            if (found := guessed_listing(self._profile, answer)) is None:
                return nothing
            self.draft.prove("listing", asdict(found[0]), asdict(BUILT_IN_LISTING))
            self.draft.prove("spelling", asdict(found[1]), asdict(AS_OURS))
            self._client.speak(self.draft.applied(self._profile))
            return self._client.symbols()
        except ServiceError:
            return nothing
        finally:
            self._client.speak(self._profile)

    def _candidates(self, family: Family) -> list[Trajectory]:
        pairs = spread_trajectories(self._listing)
        found = [each for each in self._trajectories if each.family is family]
        prices = price_trajectories(self._listing)
        found += {Family.PRICE: prices, Family.SPREAD: pairs}.get(family, ())
        for futures in (2, 1) if family is Family.FUNDING else ():
            found += [
                Trajectory(family, pair.symbol, pair.legs)
                for pair in pairs
                if sum(leg.market is Market.FUTURES for leg in pair.legs) == futures
            ]
        return list(dict.fromkeys(found))[:_TRIES]

    def _derived(self) -> Check:
        """Prove draft lines, and read each history by them."""
        name = "draft of a profile"
        derivation = Derivation(self._client, self.draft, self._schemas, self._now, self._profile)
        logs = [family for family in EventFamily if f"history/{family}-events" in self.unreadable]
        try:
            derivation.derive(*map(self._candidates, GIVEN))
            for log in logs:
                derivation.derive_log(log)
            self._client.speak(derivation.profile())
        except InputError as error:  # a name that no profile can have
            return Check("fields", name, State.FAILED, str(error))
        histories = [family for family in self._profile.histories if self._candidates(family)]
        walked = [*map(self._history, histories), *map(self._log, logs)]
        loaded = [found.name for found in walked if found.state in _READ]
        not_yet = [f"{found.name} ({found.says})" for found in walked if found.state not in _READ]
        says = f"by it a load reads {some(loaded)}" if loaded else "by it no history is read"
        says += f"; not yet: {some(not_yet)}" if not_yet else ""
        return Check("fields", name, State.NOTE, says, "--profile-out FILE writes it")

    def _history(self, family: Family) -> Check:
        """Ask for a history as a load does, by the current profile."""
        name, route = f"history/{family}", self._client.profile().histories[family]
        small = replace(route, limit=min(_ROWS, route.limit))
        found = Check("routes", name, State.SKIPPED, "no key is known that it could be asked for")
        for trajectory in self._candidates(family):
            try:
                answer = self._client.get(small.request(trajectory, self._now))
            except ServiceError as error:
                found = self._failed(name, error)
                if error.status == 400:
                    continue  # of this trajectory perhaps: its legs may not go together
                return found
            self._survey(route.named(trajectory), answer)
            try:
                page, *_ = islice(self._client.pages(trajectory, (0, self._now)), _PAGES)
            except ServiceError as error:
                words = refused_words(error)
                return Check("routes", name, State.FAILED, words, "see its record below")
            found = Check("routes", name, State.OK, f"answers; no rows of {trajectory.key}")
            if not page.frame.is_empty():
                self._held.setdefault(family, (trajectory, page.frame))
                return self._read(name, trajectory, page)
        return found

    def _read(self, name: str, trajectory: Trajectory, page: Page) -> Check:
        times = page.frame["ts"].sort()
        apart = times.diff().drop_nulls().mode().min()
        spaced = f", mostly {duration(apart)} apart" if isinstance(apart, int) else ""
        behind = duration(max(0, self._now - times[-1]))
        says = f"{times.len()} rows of {trajectory.key}{spaced}, the newest {behind} old"
        odd = [advised(f, self._profile) for f in page.findings if f.kind not in _OF_RECORDS]
        writes = dict.fromkeys(write for _, write in odd if write)
        advice = f"in the profile: {'; '.join(writes)}" if writes else ""
        says = "; ".join([says, *(words for words, _ in odd)])
        return Check("routes", name, State.NOTE if odd else State.OK, says, advice)

    def _survey(self, route: HistoryRoute, answer: Response) -> None:
        if route.family in self._fields:
            return
        described = described_fields(self._schemas, route)
        rows, _ = rows_of(route.flat(answer).body, route.items)
        found = survey_fields(route, shown_fields(described, [*map(leaves, rows)]))
        if not found.matched and not found.unknown:
            return  # neither described nor any rows
        self.draft.fields(route.family.value, found)
        total = len(found.matched) + len(found.missing)
        converted = [f"{r.wire} in {r.unit}" for r in route.fields if abs(r.factor) != 1.0]
        converted += [f"the sign of {r.wire}" for r in route.fields if r.reversed]
        unknown = [field.name for field in found.unknown]
        parts = {
            "converted": ", ".join(converted),
            "not found": ", ".join(found.missing),
            "unknown, kept in extra": unknown and some(unknown),
        }
        odd = [f"{what}: {which}" for what, which in parts.items() if which]
        says = "; ".join([f"{len(found.matched)} of {total} fields found", *odd])
        state = State.FAILED if "ts" in found.missing else State.NOTE if odd else State.OK
        advice = NAME_IN_PROFILE if found.missing else ""
        self._fields[route.family] = Check("fields", f"{route.family} record", state, says, advice)

    def _log(self, family: EventFamily) -> Check:
        name = f"history/{family}-events"
        window = Interval(self._now - _DAY_S, self._now)
        try:
            page, *_ = islice(self._client.event_pages(family, window), _PAGES)
        except ServiceError as error:
            return self._failed(name, error)
        if page.frame.is_empty():
            return Check("routes", name, State.OK, "answers; no events in the last day")
        ids = sorted(set(page.frame["schema_id"].drop_nulls().to_list()))
        count = f"{page.frame.height}{'' if page.last else ' and more'}"
        says = f"{count} documents of the last day, {', '.join(ids) or 'no schema id'}"
        known = ids == [f"svc.{family}.v1"] and not page.findings
        if page.findings:
            says += "; " + "; ".join(f"{f.kind}: {f.says}" for f in page.findings[:3])
        elif not known:
            says += "; kept whole, its columns may lack something"
        return Check("routes", name, State.OK if known else State.NOTE, says)

    def _snapshot(self, kind: str) -> Check:
        path = self._profile.snapshots[kind]
        name = "/".join(path.split("/")[4:]) or path
        findings: list[Finding] = []
        try:
            body = self._client.snapshot(kind, findings)
        except ServiceError as error:
            return self._failed(name, error)
        says, advice = f"answers ({len(body):,} bytes)", ""
        if odd := snapshot_items(kind, body).words:
            says += f", {odd}; it is kept as it came"
            advice = f"say in a profile where it has what: [snapshots.{kind}]"
        says += "".join(f"; {f.kind}: {f.says}" for f in findings[:3])
        state = State.NOTE if odd or findings else State.OK
        return Check("routes", name, state, says, advice)

    def _verdict(self, family: Family) -> Check:
        """Compare a history's figure with that of its legs."""
        route = self._profile.histories[family]
        trajectory, frame = self._held[family]
        figures = self._spreads if family is Family.SPREAD else _in_force
        try:
            rows = frame.sort("ts").tail(_JUDGED_ROWS)
            verdicts = [proofs.judged(route, figure) for figure in figures(trajectory, rows)]
        except ServiceError as error:
            verdicts = [proofs.Verdict(None, f"its legs cannot be read ({refused_words(error)})")]
        wrong = [verdict for verdict in verdicts if verdict.right is False]
        found = [*wrong, *(each for each in verdicts if each.right), *verdicts][0]
        state = State.FAILED if wrong else State.OK if found.right else State.NOTE
        if found.line:
            self.draft.note(f"history.{family}", f"{found.says}.", found.line)
        line = f"in the profile: [history.{family}] {found.line}"
        none = "no line of the profile reads that; a pair of both prices (pair/...) is right"
        advice = line if found.line else none if wrong else ""
        return Check("figures", GIVEN[family], state, f"{trajectory.key}: {found.says}", advice)

    def _spreads(self, trajectory: Trajectory, rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Yield the spread as sent, then by the row's legs, beside the prices."""
        window = rows["ts"][0], rows["ts"][-1] + 1
        legs = [Trajectory(Family.PRICE, trajectory.symbol, (leg,)) for leg in trajectory.legs]
        pages = {leg: islice(self._client.pages(leg, window), _PAGES) for leg in legs}
        buys, sells = (history_frame(leg, (p.frame for p in of)) for leg, of in pages.items())
        beside = proofs.beside_prices(rows, buys, sells, "price")
        yield beside
        own = 100 * (pl.col("sell_price") / pl.col("buy_price") - 1)
        yield beside.with_columns(spread_pct=own)


def _in_force(_: Trajectory, rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield funding with both legs' last settled rates."""
    yield rows.with_columns(pl.col("^(buy|sell)_(rate|interval_hours)$").forward_fill())
