"""Examination of a service for `rail doctor`: key, plan, clock, routes, MCP, sockets."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import polars as pl

from toolkit.cards import duration, some
from toolkit.client import Client
from toolkit.client.stream import upgrade
from toolkit.errors import InputError, MissingExtraError, ServiceError
from toolkit.market import EventLog, Plan, Source, Stream, Trajectory, format_ts
from toolkit.wire.doctor.draft import ProfileDraft
from toolkit.wire.exchange import SPENT, Failure, Request, Response, http_date_ts, refusal
from toolkit.wire.profile.profile import Profile
from toolkit.wire.quota import Allowance
from toolkit.wire.secrets import Secret
from toolkit.wire.survey import ShownField, guessed
from toolkit.workspace.routes import (
    NAME_IN_PROFILE,
    Check,
    Routes,
    State,
    refused_check,
    refused_words,
)
from toolkit.workspace.settings import LOCAL_KEY, Settings

_of_service = partial(Check, "service")
_START = (
    "is it running there? `rail serve` starts a local one, `rail demo` shows it with data; "
    "--base-url or RAIL_BASE_URL names another"
)


@dataclass(frozen=True, slots=True)
class Examination:
    """The checks of a service in order, what can be loaded from it, and a draft profile.

    ``readable`` are the histories and event logs that a sync can load, ``unreadable`` others in the
    plan. ``listed``: the listing has legs. ``differs``: the draft is not empty.
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
        """Whether everything in the plan can be loaded."""
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


_CLOCKS_AGREE_S = 30


def examine(
    settings: Settings,
    streams: Sequence[Stream | str] = (),
    *,
    sleep: Callable[[float], object] = time.sleep,
) -> Examination:
    """Check a service, without loading or storing anything. Refusals are results, not errors.

    It makes about 40 requests, up to 100 if something cannot be read, with a load's retries.
    ``streams`` are trajectories and event logs, by default the first listed and every log. Raises
    `InputError` for an invalid address, key, profile or stream.

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
        asked, began = Request.get(client.assumed.schemas_path, {}), time.perf_counter()
        outcome = client.ask(asked)
        elapsed_ms = 1000 * (time.perf_counter() - began)
        if isinstance(outcome, Response) and (_status(outcome) == SPENT or _status(outcome) >= 500):
            with suppress(ServiceError):
                outcome = client.get(asked)
        if isinstance(outcome, Failure):
            says = f"no answer ({outcome.reason})"
            checks = [_of_service("reachable", State.FAILED, says, _START)]
            return Examination(client.base_url, "not asked", checks)
        reached = _of_service("reachable", State.OK, f"answered in {elapsed_ms:,.0f} ms")
        checks = [reached, _key(outcome, settings)]
        if _status(outcome) == SPENT:
            says = f"spent, {refused_words(refusal(outcome))}"
            checks.append(_of_service("quota", State.FAILED, says, "wait until it is renewed"))
        if State.FAILED in {check.state for check in checks}:
            return Examination(client.base_url, "not asked", checks)
        return _examined(client, settings, asked_for, outcome, checks)


def _examined(
    client: Client,
    settings: Settings,
    streams: Sequence[Stream],
    outcome: Response,
    checks: list[Check],
) -> Examination:
    profile, schemas = _schemas(client, outcome)
    clock = _clock(outcome, profile.source)
    if _is_page(outcome):
        try:
            client.symbols()
        except ServiceError:
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


def _status(answer: Response) -> int:
    return answer.told or answer.status


def _key(answer: Response, settings: Settings) -> Check:
    local = settings.api_key == Secret(LOCAL_KEY)
    which = f"the local service's own {LOCAL_KEY}" if local else "yours"
    if _status(answer) == 401:
        advice = (
            "put the key, as issued, into RAIL_API_KEY; a rotated or revoked one is refused too"
        )
        return _of_service("key", State.FAILED, f"not accepted ({which})", advice)
    if (answer.answers or _status(answer) in (402, 403, SPENT)) and not _is_page(answer):
        return _of_service("key", State.OK, f"accepted ({which})")
    return _of_service("key", State.SKIPPED, "this answer does not tell")


def _is_page(answer: Response) -> bool:
    return "html" in answer.headers.get("content-type", "")


def _schemas(client: Client, answer: Response) -> tuple[Profile, Check]:
    check, built_in = partial(_of_service, "/schemas"), "names and units are taken as built in"
    assumed = client.speak(client.assumed)
    if answer.status != 200:
        found = refused_check("service", "/schemas", refusal(answer))
        if moved := answer.headers.get("location", ""):
            advice = "use the address it has moved to"
            found = replace(found, says=f"{found.says}, moved to {moved:.80}", advice=advice)
        return assumed, replace(found, says=f"{found.says}; {built_in}")
    if _is_page(answer):
        advice = "the address wanted is what stands before /api/v1/data, without a sign-in page"
        return assumed, check(State.FAILED, "a web page came, no data", advice)
    try:
        profile = client.learn(answer.body)
    except ServiceError as error:
        client.speak(assumed)
        return assumed, check(State.FAILED, f"{error}; {built_in}")
    lost = [f.where for f in profile.findings if f.kind == "tool_missing"]
    odd = [f"{f.where}: {f.says}" for f in profile.findings if f.kind == "paging_differs"]
    if lost or odd:
        missing = [f"does not describe {some(lost)}"] if lost else []
        return profile, check(State.NOTE, "; ".join([*missing, *odd, built_in]))
    return profile, check(State.OK, "describes every history and event log")


def _plan(allowance: Allowance | None, asked: Iterable[Check]) -> Check:
    counts = Counter(check.state for check in asked if check.group == "routes")
    answer, refused = counts[State.OK] + counts[State.NOTE], counts[State.REFUSED]
    open_to = f"{answer} routes answer"
    open_to += f", {refused} are not in it" if refused else ""
    if allowance is not None:
        told = [allowance.plan, open_to]
        if allowance.quota is not None:
            span = f" in {duration(allowance.window_s)}" if allowance.window_s else ""
            left = "" if allowance.left is None else f", {allowance.left:,} left"
            told.append(f"{allowance.quota:,} requests{span}{left}")
        return _of_service("plan", State.OK, "; ".join(told))
    if not answer:
        return _of_service("plan", State.SKIPPED, "no route answers that could tell it")
    likely = f"{Plan.FREE}" if refused else f"{Plan.BUILDER} or {Plan.PRO}"
    return _of_service("plan", State.OK, f"not told; {likely}, it seems: {open_to}")


def _clock(answer: Response, source: Source | None) -> Check:
    served_at = http_date_ts(answer.headers.get("date"))
    if served_at is None:
        return _of_service("clock", State.NOTE, "not told; this machine's is used")
    apart_s = served_at - int(time.time())
    reads = f"reads {format_ts(served_at)}"
    if abs(apart_s) <= _CLOCKS_AGREE_S:
        return _of_service("clock", State.OK, f"{reads}, as this machine's does")
    way = "ahead of" if apart_s > 0 else "behind"
    live = source is not None and source.kind == "live" and not source.by_ccxt
    advice = "`rail sync` without --end goes up to its clock, not to this machine's"
    advice = "set this machine's clock" if live else advice
    says = f"{reads}, {duration(abs(apart_s))} {way} this machine's"
    return _of_service("clock", State.NOTE, says, advice)


def mcp_check(settings: Settings, profile: Profile, draft: ProfileDraft) -> Check:
    """Check the protocol version and the tools. ``profile`` is that of REST."""
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
        return refused_check("mcp", "/mcp", error)
    names = named.tools
    missing = {role: name for role, name in names.items() if name not in tools}
    says = f"version {version}; {len(names) - len(missing)} of {len(names)} tools found"
    if not missing:
        return Check("mcp", "/mcp", State.OK, says)
    strangers = [tool for tool in tools if tool not in names.values()]
    told = {r: ShownField(profile.tools[r]) for r in missing if profile.tools[r] in strangers}
    others = [field for field in map(ShownField, strangers) if field not in told.values()]
    found = told | guessed(dict.fromkeys(set(missing) - set(told), ""), others)
    for role, name in missing.items():
        draft.lacking("tools", role, f"{role}: no tool {name} is listed.", found.get(role))
    says += f"; not found: {some(list(missing.values()))}"
    return Check("mcp", "/mcp", State.NOTE, says, NAME_IN_PROFILE)


def socket_checks(client: Client, profile: Profile, draft: ProfileDraft) -> Iterator[Check]:
    """Check an upgrade at each socket's path."""
    for place, path in {"market": profile.streams.market, **profile.streams.events}.items():
        name = place if place == "market" else f"{place} events"
        check, outcome = partial(Check, "sockets", name), upgrade(client, path)
        if isinstance(outcome, Failure):
            yield check(State.FAILED, f"no answer ({outcome.reason})")
        elif outcome.status == 101:
            yield check(State.OK, f"opens at {path}")
        elif outcome.status == 200:
            yield check(State.FAILED, f"{path} answers 200: it is not a socket")
        elif outcome.status == 404:
            setting = place if place == "market" else f"events.{place}"
            draft.note("streams", f"{path} answers 404.", f'{setting} = "/?"')
            advice = "if it is elsewhere, say where in a profile"
            yield refused_check("sockets", name, refusal(outcome), advice)
        else:
            yield refused_check("sockets", name, refusal(outcome))
