"""Data routes of a service, each asked as a load asks it, and figures computed from both legs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import islice

import polars as pl

from toolkit.cards import counted, duration, some
from toolkit.client import Client
from toolkit.client.contact import history_frame
from toolkit.errors import (
    InputError,
    PlanRefusedError,
    QuotaError,
    ServiceError,
    UnreachableError,
)
from toolkit.intervals import Interval
from toolkit.market import (
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
from toolkit.wire.doctor.draft import ProfileDraft
from toolkit.wire.doctor.proofs import Verdict, beside_prices, judged
from toolkit.wire.exchange import (
    Request,
    Response,
    RetryPolicy,
)
from toolkit.wire.finding_words import advised
from toolkit.wire.findings import Finding
from toolkit.wire.history_page import Page
from toolkit.wire.listing import Listing, guessed_listing, price_trajectories, spread_trajectories
from toolkit.wire.profile.history_route import HistoryRoute
from toolkit.wire.profile.places import leaves
from toolkit.wire.profile.profile import Profile
from toolkit.wire.profile.shapes import BUILT_IN_LISTING
from toolkit.wire.profile.spelling import AS_OURS
from toolkit.wire.rows.snapshot_rows import snapshot_items
from toolkit.wire.survey import (
    described_fields,
    rows_of,
    shown_fields,
    survey_fields,
)
from toolkit.workspace.derivation import Derivation


class State(StrEnum):
    """The result of a check. ``NOTE``: other than agreed, but it can be read."""

    OK = "ok"
    NOTE = "note"
    REFUSED = "not in plan"
    FAILED = "failed"
    SKIPPED = "not asked"


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a service: its result in words, and what to do about it."""

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
    """Return a check that ended in a refusal: not in the plan, or failed."""
    state = State.REFUSED if isinstance(error, PlanRefusedError) else State.FAILED
    return Check(group, name, state, refused_words(error), advice)


_ROWS = 50
_JUDGED_ROWS = 200
_TRIES = 3
_PAGES = 2
_DAY_S = 86_400
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

    ``streams`` are asked for, by default those listed. The rest is as in `Examination`.
    """

    def __init__(
        self, client: Client, profile: Profile, schemas: bytes, now: int, streams: Sequence[Stream]
    ) -> None:
        self.readable: list[str] = []
        self.unreadable: list[str] = []
        self.listed = False
        self.draft = ProfileDraft()
        self._client, self._profile, self._schemas = client, profile, schemas
        self._now, self._streams = now, streams
        self._listing = Listing({}, truncated=False)
        self._fields: dict[Family, Check] = {}
        self._held: dict[Family, tuple[Trajectory, pl.DataFrame]] = {}

    def checks(self) -> Iterator[Check]:
        """Yield a check per route, the draft, then the record of each history and its figure."""
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
        """Note whether a load can read a history or log, if the plan has it."""
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
        """Read the listing by a guessed shape, which goes into the draft. Empty without one."""
        nothing = Listing({}, truncated=False)
        try:
            answer = self._client.get(Request.get(self._profile.symbols_path, {}))
            if (found := guessed_listing(self._profile, answer)) is None:
                return nothing
            shape, spelling = found
            self.draft.prove("listing", asdict(shape), asdict(BUILT_IN_LISTING))
            self.draft.prove("spelling", asdict(spelling), asdict(AS_OURS))
            self._client.speak(self.draft.applied(self._profile))
            return self._client.symbols()
        except ServiceError:
            return nothing
        finally:
            self._client.speak(self._profile)

    @property
    def _trajectories(self) -> list[Trajectory]:
        return [each for each in self._streams if isinstance(each, Trajectory)]

    def _candidates(self, family: Family) -> list[Trajectory]:
        pairs = spread_trajectories(self._listing)
        found = [each for each in self._trajectories if each.family is family]
        found += price_trajectories(self._listing) if family is Family.PRICE else []
        found += pairs if family is Family.SPREAD else []
        for futures in (2, 1) if family is Family.FUNDING else ():
            found += [
                Trajectory(family, pair.symbol, pair.legs)
                for pair in pairs
                if sum(leg.market is Market.FUTURES for leg in pair.legs) == futures
            ]
        return list(dict.fromkeys(found))[:_TRIES]

    def _derived(self) -> Check:
        """Prove lines of the draft, and read each history by them as a load does."""
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
        """Ask for a history as a load does, by the client's current profile."""
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
        """Compare a history's figure with the one computed from its legs."""
        route = self._profile.histories[family]
        trajectory, frame = self._held[family]
        figures = self._spreads if family is Family.SPREAD else _in_force
        try:
            rows = frame.sort("ts").tail(_JUDGED_ROWS)
            verdicts = [judged(route, figure) for figure in figures(trajectory, rows)]
        except ServiceError as error:
            verdicts = [Verdict(None, f"its legs cannot be read ({refused_words(error)})")]
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
        """Yield the spread as sent, then that of the row's own legs, beside the prices."""
        window = rows["ts"][0], rows["ts"][-1] + 1
        legs = [Trajectory(Family.PRICE, trajectory.symbol, (leg,)) for leg in trajectory.legs]
        pages = {leg: islice(self._client.pages(leg, window), _PAGES) for leg in legs}
        buys, sells = (history_frame(leg, (p.frame for p in of)) for leg, of in pages.items())
        beside = beside_prices(rows, buys, sells, "price")
        yield beside
        own = 100 * (pl.col("sell_price") / pl.col("buy_price") - 1)
        yield beside.with_columns(spread_pct=own)


def _in_force(_: Trajectory, rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield funding with both legs' rates in force, those of their last settlements."""
    yield rows.with_columns(pl.col("^(buy|sell)_(rate|interval_hours)$").forward_fill())
