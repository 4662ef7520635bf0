"""The whole examination: the service, the key, the routes, their fields, MCP and sockets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from toolkit.cards import duration, some
from toolkit.client import Client
from toolkit.client.stream import upgrade
from toolkit.errors import InputError, MissingExtraError, ServiceError
from toolkit.market import EventLog, Plan, Source, Stream, Trajectory, format_ts
from toolkit.wire.doctor.draft import ProfileDraft
from toolkit.wire.exchange import SPENT, Answer, Failure, Request, http_date_ts, refusal
from toolkit.wire.profile.profile import Profile
from toolkit.wire.quota import Allowance
from toolkit.wire.secrets import Secret
from toolkit.wire.survey import ShownField, guessed
from toolkit.workspace.doctor.findings import Check, Examination, State, refused_words, state_of
from toolkit.workspace.doctor.routes import Routes
from toolkit.workspace.settings import LOCAL_KEY, Settings

_CLOCKS_AGREE_S = 30


def examine(
    settings: Settings,
    streams: Sequence[Stream | str] = (),
    *,
    sleep: Callable[[float], object] = time.sleep,
) -> Examination:
    """Check a service. Nothing is loaded or stored, and refusals are checks, not errors.

    About 40 requests, and 30 to 60 more if something cannot be read. It waits and retries as a load
    does, with ``sleep``. ``streams`` are the trajectories and event logs to request, by default the
    first listed ones and every log. Raises `InputError` if the address, the key, the profile or one
    of ``streams`` is not valid.

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
    """Check the protocol version and the listed tools. ``profile`` is that of REST."""
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
