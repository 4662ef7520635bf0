"""The whole examination: the service, the key, the routes, their fields, MCP and sockets."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import islice

import polars as pl

from toolkit.cards import counted, duration, some
from toolkit.client import Client
from toolkit.client.contact import history_frame
from toolkit.client.stream import upgrade
from toolkit.errors import (
    InputError,
    MissingExtraError,
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
    Plan,
    Source,
    Stream,
    Symbol,
    Trajectory,
    format_ts,
)
from toolkit.wire.agreement import GIVEN
from toolkit.wire.allowance import Allowance
from toolkit.wire.draft import ProfileDraft
from toolkit.wire.exchange import (
    SPENT,
    Answer,
    Failure,
    Request,
    RetryPolicy,
    http_date_ts,
    refusal,
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
from toolkit.wire.proofs import Verdict, beside_prices, judged
from toolkit.wire.secrets import Secret
from toolkit.wire.survey import (
    ShownField,
    described_fields,
    guessed,
    rows_of,
    shown_fields,
    survey_fields,
)
from toolkit.workspace.derivation import Derivation
from toolkit.workspace.settings import LOCAL_KEY, Settings


class State(StrEnum):
    """How a check went. ``NOTE``: otherwise than agreed, and coped with."""

    OK = "ok"
    NOTE = "note"
    REFUSED = "not in plan"
    FAILED = "failed"
    SKIPPED = "not asked"


@dataclass(frozen=True, slots=True)
class Check:
    """One question put to a service, how it went, and what to do where it did not go well."""

    group: str
    name: str
    state: State
    says: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Examination:
    """All checks of a service, in order. What can be loaded of it. A draft profile, if any.

    ``readable`` are the histories and event logs that a sync would load, ``unreadable`` those that
    it would not, though the plan has them. ``listed`` is whether the listing has legs, ``differs``
    whether the draft has anything in it.
    """

    base_url: str
    source: str
    checks: Sequence[Check]
    readable: Sequence[str] = ()
    unreadable: Sequence[str] = ()
    listed: bool = True
    draft: str = ""
    differs: bool = False

    @property
    def usable(self) -> bool:
        """Whether all that the plan has can be loaded.

        >>> Examination("http://h", "none", [], ["history/price"], ["history/spread"]).usable
        False
        """
        return bool(self.readable) and not self.unreadable

    @property
    def df(self) -> pl.DataFrame:
        """The checks, one row each in order: group, check, state, says and advice.

        >>> checks = [Check("service", "reachable", State.OK, "answered in 3 ms")]
        >>> Examination("http://h", "none", checks).df.row(0)
        ('service', 'reachable', 'ok', 'answered in 3 ms', '')
        """
        rows = [(each.group, each.name, each.state, each.says, each.advice) for each in self.checks]
        names = ("group", "check", "state", "says", "advice")
        return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


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


def state_of(error: ServiceError) -> State:
    """Return the state of a check that ended in an error: not in the plan, or failed."""
    return State.REFUSED if isinstance(error, PlanRefusedError) else State.FAILED


_ROWS = 50
_JUDGED_ROWS = 200
_TRIES = 3
_PAGES = 2
_DAY_S = 86_400
_OF_RECORDS = ("field_missing", "field_unknown")
"""Findings of a page that the check of its record says."""
_READ = (State.OK, State.NOTE)
_TYPED = "rail doctor KEY ... asks for keys that you type"
_ADVICE = {
    404: "if it is elsewhere, say where in a profile (path)",
    429: "wait until the quota is renewed, then ask again",
}


class Routes:
    """Requests to the routes of a service. What differs from the expected goes into the draft.

    ``streams`` are what to request, by default what is listed. ``readable`` are the histories and
    event logs that a load can read, ``unreadable`` those in the plan that it cannot. ``listed``:
    the listing has readable legs.
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
        """Note whether a load can read what was requested, unless the plan lacks it."""
        unasked = check.state is State.SKIPPED and not self.listed
        if unasked or State.FAILED in (check.state, record and record.state):
            self.unreadable.append(check.name)
        elif check.state in _READ:
            self.readable.append(check.name)
        return check

    def _failed(self, name: str, error: ServiceError) -> Check:
        if isinstance(error, QuotaError):  # waiting did not help, and it waits no second time
            self._client.retries = RetryPolicy(attempts=1)
        advice = _ADVICE.get(error.status or 0, "")
        if (error.status or 0) >= 500:
            advice = "the service's own fault; ask its operator, or try later"
        return Check("routes", name, state_of(error), refused_words(error), advice)

    def _symbols(self) -> Check:
        """Read the listing. One without legs stops nothing."""
        name = "symbols/search"
        try:
            listing = self._client.symbols()
            legs, findings = sum(map(len, listing.legs.values())), listing.findings
            says = f"{len(listing.legs)} symbols, {legs} legs"
            says += ", and more than it lists at once" if listing.truncated else ""
            if findings:
                first = f"e.g. {findings[0].kind}: {findings[0].says:.80}"
                says += f"; {counted(len(findings), 'finding')}, {first}"
            self.listed = legs > 0
            state = State.FAILED if not legs else State.NOTE if findings else State.OK
            check = Check("routes", name, state, says)
        except ServiceError as error:
            check = self._failed(name, error)
        if not self.listed:
            listing = self._guessed_listing()
            check = replace(check, advice=f"{check.advice}; {_TYPED}".lstrip("; "))
        typed: dict[Symbol, tuple[Leg, ...]] = {}
        for each in self._trajectories:
            typed[each.symbol] = tuple(dict.fromkeys((*typed.get(each.symbol, ()), *each.legs)))
        self._listing = replace(listing, legs=typed or listing.legs)
        return check

    def _guessed_listing(self) -> Listing:
        """Put a shape that reads the listing into the draft, if there is one, and read it so."""
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
        """Prove lines of the draft, and walk each history by them as a load does."""
        name = "draft of a profile"
        derivation = Derivation(self._client, self.draft, self._schemas, self._now, self._profile)
        logs = [family for family in EventFamily if f"history/{family}-events" in self.unreadable]
        try:
            derivation.derive(*map(self._candidates, GIVEN))
            for log in logs:
                derivation.derive_log(log)
            self._client.speak(derivation.profile())
        except InputError as error:  # a name of the service that no profile can have
            return Check("fields", name, State.FAILED, str(error))
        histories = [family for family in self._profile.histories if self._candidates(family)]
        walked = [*map(self._history, histories), *map(self._log, logs)]
        loaded = [found.name for found in walked if found.state in _READ]
        not_yet = [f"{found.name} ({found.says})" for found in walked if found.state not in _READ]
        says = f"by it a load reads {some(loaded)}" if loaded else "by it no history is read"
        says += f"; not yet: {some(not_yet)}" if not_yet else ""
        return Check("fields", name, State.NOTE, says, "--profile-out FILE writes it")

    def _history(self, family: Family) -> Check:
        """Request a history as a load does, by the client's profile."""
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
            try:  # what a load does
                page, *_ = islice(self._client.pages(trajectory, (0, self._now)), _PAGES)
            except ServiceError as error:
                advice = "see its record below"
                return Check("routes", name, State.FAILED, refused_words(error), advice)
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

    def _survey(self, route: HistoryRoute, answer: Answer) -> None:
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
        advice = "say in a profile what they are called" if found.missing else ""
        name = f"{route.family} record"
        self._fields[route.family] = Check("fields", name, state, says, advice)

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
        """Compute the figure of a history from the legs, and judge what was read."""
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
    """Yield funding with both rates in force: a leg's is that of its last settlement."""
    yield rows.with_columns(pl.col("^(buy|sell)_(rate|interval_hours)$").forward_fill())


_CLOCKS_AGREE_S = 30


def examine(
    settings: Settings,
    streams: Sequence[Stream | str] = (),
    *,
    sleep: Callable[[float], object] = time.sleep,
) -> Examination:
    """Check a service. Nothing is loaded or stored, and no refusal is raised.

    About 40 requests, and 30 to 60 more where something cannot be read. It waits and asks again as
    a load does, by ``sleep``, which a test may count instead. ``streams`` are the trajectories and
    event logs to ask for, by default the first that are listed, and every log. Raises `InputError`
    where the address, the key, the profile or one of ``streams`` is none.

    >>> from toolkit.workspace import simulated_service
    >>> with simulated_service() as base_url:
    ...     found = examine(Settings.read({}, base_url=base_url))
    >>> found.source, found.usable, found.differs
    ('SIMULATED market, seed-7-2701ceaf8055', True, False)
    """
    asked_for = [Stream.parse(each) for each in streams]
    for stream in asked_for:
        if not isinstance(stream, Trajectory | EventLog):
            raise InputError("streams", stream.key, "trajectories and event logs")
    with Client(
        settings.base_url,
        settings.api_key,
        profile=settings.profile,
        allow_http=settings.allow_http,
        sleep=sleep,
    ) as client:
        asked = Request.get(client.assumed.schemas_path, {})
        began = time.perf_counter()
        outcome = client.ask(asked)
        elapsed_ms = 1000 * (time.perf_counter() - began)
        if isinstance(outcome, Answer) and (_status(outcome) == SPENT or _status(outcome) >= 500):
            with suppress(ServiceError):
                outcome = client.get(asked)
        if isinstance(outcome, Failure):
            return _unreachable(client.base_url, outcome)
        checks = [
            Check("service", "reachable", State.OK, f"answered in {elapsed_ms:,.0f} ms"),
            _key(outcome, settings),
        ]
        if _status(outcome) == SPENT:
            says, advice = refused_words(refusal(outcome)), "wait until it is renewed"
            checks.append(Check("service", "quota", State.FAILED, f"spent, {says}", advice))
        if State.FAILED in {check.state for check in checks}:
            return Examination(client.base_url, "not asked", checks)
        return _examined(client, settings, asked_for, outcome, checks)


def _examined(
    client: Client,
    settings: Settings,
    streams: Sequence[Stream],
    outcome: Answer,
    checks: list[Check],
) -> Examination:
    profile, schemas = _schemas(client, outcome)
    clock = _clock(outcome, profile.source)
    if _is_page(outcome) and not _lists_symbols(client):
        return Examination(client.base_url, "not told", [*checks, clock, schemas])
    now = http_date_ts(outcome.headers.get("date")) or int(time.time())
    routes = Routes(client, profile, outcome.body if outcome.answers else b"", now, streams)
    asked = list(routes.checks())
    checks += [_plan(client.allowance, asked), clock, schemas, *asked]
    checks.append(mcp_check(settings, profile, routes.draft))
    checks += socket_checks(client, profile, routes.draft)
    return Examination(
        client.base_url,
        (profile.source or Source("unknown", client.base_url)).label,
        checks,
        readable=routes.readable,
        unreadable=routes.unreadable,
        listed=routes.listed,
        draft=routes.draft.text(client.base_url),
        differs=bool(routes.draft),
    )


def _status(answer: Answer) -> int:
    return answer.told or answer.status


def _unreachable(base_url: str, failure: Failure) -> Examination:
    advice = (
        "is it running there? `rail serve` starts a local one, `rail demo` shows it with data; "
        "--base-url or RAIL_BASE_URL names another"
    )
    check = Check("service", "reachable", State.FAILED, f"no answer ({failure.reason})", advice)
    return Examination(base_url, "not asked", [check])


def _key(answer: Answer, settings: Settings) -> Check:
    local = settings.api_key == Secret(LOCAL_KEY)
    which = f"the local service's own {LOCAL_KEY}" if local else "yours"
    if _status(answer) == 401:
        advice = (
            "put the key, as issued, into RAIL_API_KEY; a rotated or revoked one is refused too"
        )
        return Check("service", "key", State.FAILED, f"not accepted ({which})", advice)
    if (answer.answers or _status(answer) in (402, 403, SPENT)) and not _is_page(answer):
        return Check("service", "key", State.OK, f"accepted ({which})")
    return Check("service", "key", State.SKIPPED, "this answer does not tell")


def _is_page(answer: Answer) -> bool:
    return "html" in answer.headers.get("content-type", "")


def _lists_symbols(client: Client) -> bool:
    try:
        client.symbols()
    except ServiceError:
        return False
    return True


def _schemas(client: Client, answer: Answer) -> tuple[Profile, Check]:
    name = "/schemas"
    assumed = client.speak(client.assumed)
    built_in = "names and units are taken as built in"
    if answer.status != 200:
        error = refusal(answer)
        moved = answer.headers.get("location", "")
        at = f", moved to {moved:.80}" if moved else ""
        says = f"{refused_words(error)}{at}; {built_in}"
        advice = "use the address it has moved to" if moved else ""
        return assumed, Check("service", name, state_of(error), says, advice)
    if _is_page(answer):
        advice = "the address wanted is what stands before /api/v1/data, without a sign-in page"
        return assumed, Check("service", name, State.FAILED, "a web page came, no data", advice)
    try:
        profile = client.learn(answer.body)
    except ServiceError as error:
        client.speak(assumed)
        return assumed, Check("service", name, State.FAILED, f"{error}; {built_in}")
    lost = [f.where for f in profile.findings if f.kind == "tool_missing"]
    odd = [f"{f.where}: {f.says}" for f in profile.findings if f.kind == "paging_differs"]
    if lost or odd:
        says = "; ".join([*([f"does not describe {some(lost)}"] if lost else []), *odd])
        return profile, Check("service", name, State.NOTE, f"{says}; {built_in}")
    return profile, Check("service", name, State.OK, "describes every history and event log")


def _plan(allowance: Allowance | None, asked: Sequence[Check]) -> Check:
    refused = [check.name for check in asked if check.state is State.REFUSED]
    answers = [c for c in asked if c.group == "routes" and c.state in (State.OK, State.NOTE)]
    open_to = f"{len(answers)} routes answer"
    if refused:
        open_to += f", {len(refused)} are not in it"
    if allowance is not None:
        told = [allowance.plan, open_to]
        if allowance.quota is not None:
            span = f" in {duration(allowance.window_s)}" if allowance.window_s else ""
            left = "" if allowance.left is None else f", {allowance.left:,} left"
            told.append(f"{allowance.quota:,} requests{span}{left}")
        return Check("service", "plan", State.OK, "; ".join(told))
    if not answers:
        return Check("service", "plan", State.SKIPPED, "no route answers that could tell it")
    likely = f"{Plan.FREE}, it seems" if refused else f"{Plan.BUILDER} or {Plan.PRO}, it seems"
    return Check("service", "plan", State.OK, f"not told; {likely}: {open_to}")


def _clock(answer: Answer, source: Source | None) -> Check:
    served_at = http_date_ts(answer.headers.get("date"))
    if served_at is None:
        return Check("service", "clock", State.NOTE, "not told; this machine's is used")
    apart_s = served_at - int(time.time())
    reads = f"reads {format_ts(served_at)}"
    if abs(apart_s) <= _CLOCKS_AGREE_S:
        return Check("service", "clock", State.OK, f"{reads}, as this machine's does")
    way = "ahead of" if apart_s > 0 else "behind"
    says = f"{reads}, {duration(abs(apart_s))} {way} this machine's"
    live = source is not None and source.kind == "live" and not source.by_ccxt
    advice = (
        "set this machine's clock"
        if live
        else "`rail sync` without --end goes up to its clock, not to this machine's"
    )
    return Check("service", "clock", State.NOTE, says, advice)


def mcp_check(settings: Settings, profile: Profile, draft: ProfileDraft) -> Check:
    """Check the protocol version, and which tools are listed: ``profile`` is that of REST."""
    try:
        from toolkit.client.mcp import McpClient  # noqa: PLC0415 - the SDK takes most of a second
    except MissingExtraError as error:
        return Check("mcp", "/mcp", State.SKIPPED, str(error))
    try:
        client = McpClient(
            settings.base_url,
            settings.api_key,
            profile=settings.profile,
            allow_http=settings.allow_http,
        )
        version, tools, named = client.listing()
    except ServiceError as error:
        return Check("mcp", "/mcp", state_of(error), refused_words(error))
    names = named.tools
    missing = {role: name for role, name in names.items() if name not in tools}
    strangers = [tool for tool in tools if tool not in names.values()]
    says = f"version {version}; {len(names) - len(missing)} of {len(names)} tools found"
    if not missing:
        return Check("mcp", "/mcp", State.OK, says)
    told = {r: ShownField(profile.tools[r]) for r in missing if profile.tools[r] in strangers}
    others = [field for field in map(ShownField, strangers) if field not in told.values()]
    found = told | guessed(dict.fromkeys(set(missing) - set(told), ""), others)
    for role, name in missing.items():
        said = f"{role}: no tool {name} is listed."
        draft.lacking("tools", role, said, found.get(role))
    return Check(
        "mcp",
        "/mcp",
        State.NOTE,
        f"{says}; not found: {some(list(missing.values()))}",
        "say in a profile what they are called",
    )


def socket_checks(client: Client, profile: Profile, draft: ProfileDraft) -> Iterator[Check]:
    """Check an upgrade at each socket's path."""
    events = dict(profile.streams.events)
    for place, path in {"market": profile.streams.market, **events}.items():
        name = f"{place} events" if place in events else place
        outcome = upgrade(client, path)
        if isinstance(outcome, Failure):
            yield Check("sockets", name, State.FAILED, f"no answer ({outcome.reason})")
        elif outcome.status == 101:
            yield Check("sockets", name, State.OK, f"opens at {path}")
        else:
            yield _refused(place, name, path, outcome, draft)


def _refused(place: str, name: str, path: str, answer: Answer, draft: ProfileDraft) -> Check:
    error = refusal(answer)
    advice = ""
    if answer.status == 404:
        advice = "if it is elsewhere, say where in a profile"
        setting = "market" if place == "market" else f"events.{place}"
        draft.note("streams", f"{path} answers 404.", f'{setting} = "/?"')
    if answer.status == 200:
        return Check(
            "sockets", name, State.FAILED, f"{path} answers 200: it is not a socket", advice
        )
    return Check("sockets", name, state_of(error), refused_words(error), advice)
