"""The data routes, each asked once: do they answer, and do their records say what is expected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from toolkit.cards import counted, duration, some
from toolkit.client import Client
from toolkit.errors import InputError, ServiceError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Family, Market, Trajectory
from toolkit.wire.draft import ProfileDraft
from toolkit.wire.exchange import ANSWERED, Answer, Failure, Request, refusal
from toolkit.wire.finding_words import advised
from toolkit.wire.listing import Listing, guessed_listing, price_trajectories, spread_trajectories
from toolkit.wire.pages import Page
from toolkit.wire.places import leaves
from toolkit.wire.profile import HistoryRoute, Profile
from toolkit.wire.rows import read_history_page
from toolkit.wire.snapshots import snapshot_items
from toolkit.wire.survey import described_fields, rows_of, shown_fields, survey_fields
from toolkit.workspace.doctor.derivation import Derivation
from toolkit.workspace.doctor.findings import Check, State, refused_words, state_of

_ROWS = 50
_TRIES = 3
_PAGES = 2
_DAY_S = 86_400
_OF_RECORDS = ("field_missing", "field_unknown")
"""Findings of a page that the check of its record says."""
_SCHEMAS = {family: f"svc.{family}.v1" for family in EventFamily}


class Routes:
    """Asks the routes of a service. What differs from the expected goes into the draft.

    ``readable`` are the histories and event logs that a load can read, ``unreadable`` those that it
    cannot though the plan has them. ``listed`` is whether the listing has legs that can be read.
    """

    def __init__(self, client: Client, profile: Profile, schemas: bytes, now: int) -> None:
        self.readable: list[str] = []
        self.unreadable: list[str] = []
        self.listed = True
        self.draft = ProfileDraft()
        self._client = client
        self._profile = profile
        self._schemas = schemas
        self._now = now
        self._fields: dict[Family, Check] = {}
        self._paging: Check | None = None

    def checks(self) -> Iterator[Check]:
        """Yield a check per route, then one per history's fields, then one of the paging."""
        listing = None
        try:
            listing = self._client.symbols()
            yield _listed(listing)
            self.listed = any(listing.legs.values())
            listing = listing if self.listed else self._guessed_listing()
        except ServiceError as error:
            yield self._failed("symbols/search", error)
            listing = self._guessed_listing()
        for family, route in self._profile.histories.items():
            asked = self._history(route, listing)
            record = self._fields.get(family)
            yield self._counted(asked, failed=record is not None and record.state is State.FAILED)
        for event_family in self._profile.events:
            yield self._counted(self._events(event_family))
        for kind in ("activity", "spread", "funding"):
            yield self._snapshot(kind)
        if self.unreadable or not self.listed:
            yield self._derived(listing)
        yield from self._fields.values()
        if self._paging:
            yield self._paging

    def _derived(self, listing: Listing | None) -> Check:
        """Prove lines of the draft, and walk each history by them as a load does."""
        name = "draft of a profile"
        if listing is None:
            return Check("fields", name, State.SKIPPED, "no symbol is listed that could be asked")
        self._client.speak(self._profile)
        derivation = Derivation(self._client, self.draft, self._schemas, self._now, self._profile)
        logs = [family for family in EventFamily if f"history/{family}-events" in self.unreadable]
        try:
            derivation.derive(listing)
            for log in logs:
                derivation.derive_log(log)
            profile = self._client.speak(derivation.profile())
        except InputError as error:  # a name of the service that no profile can have
            return Check("fields", name, State.FAILED, str(error))
        walked = [self._history(route, listing) for route in profile.histories.values()]
        loaded, not_yet = [], []
        for found in [*walked, *map(self._events, logs)]:
            if found.state in (State.OK, State.NOTE):
                loaded.append(found.name)
            else:
                not_yet.append(f"{found.name} ({found.says})")
        says = f"by it a load reads {some(loaded)}" if loaded else "by it no history is read"
        says += f"; not yet: {some(not_yet)}" if not_yet else ""
        return Check("fields", name, State.NOTE, says, "--profile-out FILE writes it")

    def _counted(self, check: Check, *, failed: bool = False) -> Check:
        """Note whether a load can read what was asked. What the plan lacks is no part of it."""
        if failed or check.state is State.FAILED:
            self.unreadable.append(check.name)
        elif check.state in (State.OK, State.NOTE):
            self.readable.append(check.name)
        return check

    def _guessed_listing(self) -> Listing | None:
        """Go on with a listing that a shape of the draft reads, if one does. A load cannot."""
        self.listed = False
        profile = self._client.profile()
        answer = self._client.ask(Request.get(profile.symbols_path, {}))
        found = guessed_listing(profile, answer) if isinstance(answer, Answer) else None
        if found is None:
            return None
        self.draft.listing(*found)
        self._client.speak(self.draft.applied(profile))
        try:
            return self._client.symbols()
        except ServiceError:
            return None

    def _failed(self, name: str, error: ServiceError) -> Check:
        advice = "" if error.status in (402, 403) else _advice(error)
        return Check("routes", name, state_of(error), refused_words(error), advice)

    def _history(self, route: HistoryRoute, listing: Listing | None) -> Check:
        name = f"history/{route.family}"
        candidates = [] if listing is None else _candidates(listing, route.family)
        if not candidates:
            return Check("routes", name, State.SKIPPED, "no symbol is listed that it could be of")
        small = replace(route, limit=min(_ROWS, route.limit))
        page: Page | None = None
        for trajectory in candidates[:_TRIES]:
            answer = self._ask(small, trajectory, self._now)
            if isinstance(answer, ServiceError):
                failed = self._failed(name, answer)
                if answer.status == 400:
                    continue  # of this trajectory perhaps: its legs may not go together
                return failed
            self._survey(route.named(trajectory), answer)
            try:  # what a load does
                page, *_ = islice(self._client.pages(trajectory, (0, self._now)), _PAGES)
                if self._paging is None and not page.frame.is_empty() and not route.oldest_first:
                    self._paging = self._paged(small, trajectory, answer)
            except ServiceError as error:
                return Check(
                    "routes", name, State.FAILED, refused_words(error), "see its record below"
                )
            if not page.frame.is_empty():
                break
        if page is None:
            return failed
        if page.frame.is_empty():
            return Check("routes", name, State.OK, f"answers; no rows of {trajectory.key}")
        return self._read(name, trajectory, page)

    def _read(self, name: str, trajectory: Trajectory, page: Page) -> Check:
        """Say what a page has, how far apart its rows are, and what a load would find odd in it."""
        times = page.frame["ts"].sort()
        apart = times.diff().drop_nulls().mode().min()
        spaced = f", mostly {duration(apart)} apart" if isinstance(apart, int) else ""
        behind = duration(max(0, self._now - times[-1]))
        says = f"{times.len()} rows of {trajectory.key}{spaced}, the newest {behind} old"
        odd = [advised(f, self._profile) for f in page.findings if f.kind not in _OF_RECORDS]
        says = "; ".join([says, *(words for words, _ in odd)])
        writes = dict.fromkeys(write for _, write in odd if write)
        advice = f"in the profile: {'; '.join(writes)}" if writes else ""
        return Check("routes", name, State.NOTE if odd else State.OK, says, advice)

    def _ask(
        self, route: HistoryRoute, trajectory: Trajectory, end_time: int
    ) -> Answer | ServiceError:
        outcome = self._client.ask(route.request(trajectory, end_time))
        if isinstance(outcome, Failure):
            return ServiceError(f"no answer ({outcome.reason})", url=outcome.url)
        return outcome if outcome.status in ANSWERED else refusal(outcome)

    def _survey(self, route: HistoryRoute, answer: Answer) -> None:
        """Lay the record's fields beside those expected. Once for each route."""
        if route.family in self._fields:
            return
        described = described_fields(self._schemas, route)
        body = route.flat(answer).body
        rows = [leaves(row) for row in rows_of(body, route.items)]
        found = survey_fields(route, shown_fields(described, rows))
        if not found.matched and not found.unknown:
            return  # neither described nor any rows
        self.draft.fields(route.family.value, found)
        total = len(found.matched) + len(found.missing)
        says = f"{len(found.matched)} of {total} fields found"
        converted = [f"{r.wire} in {r.unit}" for r in route.fields if abs(r.factor) != 1.0]
        converted += [f"the sign of {r.wire}" for r in route.fields if r.reversed]
        if converted:
            says += f"; converted: {', '.join(converted)}"
        if found.missing:
            says += f"; not found: {', '.join(found.missing)}"
        if found.unknown:
            says += f"; unknown, kept in extra: {some([f.name for f in found.unknown])}"
        state = State.FAILED if "ts" in found.missing else State.NOTE if "; " in says else State.OK
        advice = "say in a profile what they are called" if found.missing else ""
        name = f"{route.family} record"
        self._fields[route.family] = Check("fields", name, state, says, advice)

    def _paged(self, route: HistoryRoute, trajectory: Trajectory, first: Answer) -> Check | None:
        """Check what end_time and the paging value mean. The loader handles every answer."""
        page = read_history_page(route, trajectory, first)
        edge = page.oldest
        if edge is None or edge == page.newest:
            return None
        answer = self._ask(route, trajectory, page.newest or 0)
        if isinstance(answer, ServiceError):
            return None
        again = read_history_page(route, trajectory, answer)
        inclusive = again.newest == page.newest
        parts = [f"end_time is {'inclusive' if inclusive else 'exclusive'}"]
        if page.next_end_time is not None:
            off = page.next_end_time - edge
            place = "the oldest row's time" if off == 0 else f"the oldest row's time {off:+d} s"
            parts.append(f"{route.next} is {place}")
        elif not page.ends:
            parts.append(f"no {route.next} in a page")
        agreed = not inclusive and page.next_end_time in (None, edge)
        state, tail = (State.OK, "as expected") if agreed else (State.NOTE, "the loader copes")
        return Check("fields", "paging", state, f"{', '.join(parts)}: {tail}")

    def _events(self, family: EventFamily) -> Check:
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
        known = ids == [_SCHEMAS[family]] and not page.findings
        if page.findings:
            says += "; " + "; ".join(f"{f.kind}: {f.says}" for f in page.findings[:3])
        elif not known:
            says += "; kept whole, its columns may lack something"
        return Check("routes", name, State.OK if known else State.NOTE, says)

    def _snapshot(self, kind: str) -> Check:
        path = self._profile.snapshots[kind]
        name = "/".join(path.split("/")[4:]) or path
        try:
            body = self._client.snapshot(kind)
        except ServiceError as error:
            return self._failed(name, error)
        says = f"answers ({len(body):,} bytes)"
        if odd := snapshot_items(kind, body).words:
            advice = f"say in a profile where it has what: [snapshots.{kind}]"
            return Check(
                "routes", name, State.NOTE, f"{says}, {odd}; it is kept as it came", advice
            )
        return Check("routes", name, State.OK, says)


def _listed(listing: Listing) -> Check:
    legs = sum(map(len, listing.legs.values()))
    says = f"{len(listing.legs)} symbols, {legs} legs"
    if listing.truncated:
        says += ", and more than it lists at once"
    if listing.findings:
        first = listing.findings[0]
        says += (
            f"; {counted(len(listing.findings), 'finding')}, e.g. {first.kind}: {first.says:.80}"
        )
    return Check("routes", "symbols/search", State.NOTE if listing.findings else State.OK, says)


def _candidates(listing: Listing, family: Family) -> list[Trajectory]:
    if family is Family.PRICE:
        return price_trajectories(listing)[:_TRIES]
    pairs: Iterator[Trajectory] = iter(spread_trajectories(listing))
    if family is Family.FUNDING:
        pairs = (
            Trajectory(Family.FUNDING, pair.symbol, pair.legs)
            for pair in pairs
            if Market.FUTURES in {leg.market for leg in pair.legs}
        )
    return list(islice(pairs, _TRIES))


def _advice(error: ServiceError) -> str:
    words: dict[Any, str] = {
        404: "if it is elsewhere, say where in a profile (path)",
        429: "wait until the quota is renewed, then ask again",
        500: "the service's own fault; ask its operator, or try later",
    }
    return words.get(500 if (error.status or 0) >= 500 else error.status, "")
