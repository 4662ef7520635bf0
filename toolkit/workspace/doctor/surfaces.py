"""The surfaces beside REST: MCP, and the four sockets."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.cards import some
from toolkit.client import Client
from toolkit.client.probe import upgrade
from toolkit.errors import MissingExtraError, ServiceError
from toolkit.wire.draft import ProfileDraft
from toolkit.wire.exchange import Answer, Failure, refusal
from toolkit.wire.profile import Profile
from toolkit.wire.survey import Guess, ShownField, guessed
from toolkit.workspace.doctor.findings import Check, State, refused_words, state_of
from toolkit.workspace.settings import Settings


def mcp_check(settings: Settings, profile: Profile, draft: ProfileDraft) -> Check:
    """Check the protocol version that is agreed on, and which tools are listed.

    ``profile`` is that of REST, which may name a route's tool otherwise than MCP.
    """
    try:
        from toolkit.client.mcp import McpClient  # noqa: PLC0415 - the SDK takes most of a second
    except MissingExtraError as error:
        return Check("mcp", "/mcp", State.SKIPPED, str(error))
    try:
        with McpClient(
            settings.base_url,
            settings.api_key,
            profile=settings.profile,
            allow_http=settings.allow_http,
        ) as client:
            version, tools = client.version, client.tools()
            names = client.profile().tools
    except ServiceError as error:
        return Check("mcp", "/mcp", state_of(error), refused_words(error))
    there = {tool.name for tool in tools}
    missing = {role: name for role, name in names.items() if name not in there}
    strangers = [tool.name for tool in tools if tool.name not in names.values()]
    says = f"version {version}; {len(names) - len(missing)} of {len(names)} tools found"
    if not missing:
        return Check("mcp", "/mcp", State.OK, says)
    told = {
        role: Guess(ShownField(profile.tools[role]), "the route that /schemas gives it")
        for role in missing
        if profile.tools[role] in strangers
    }
    named = {guess.field.name for guess in told.values()}
    others = [ShownField(name) for name in strangers if name not in named]
    draft.tools(missing, guessed(dict.fromkeys(set(missing) - set(told), ""), others) | told)
    return Check(
        "mcp",
        "/mcp",
        State.NOTE,
        f"{says}; not found: {some(list(missing.values()))}",
        "say in a profile what they are called",
    )


def socket_checks(client: Client, profile: Profile, draft: ProfileDraft) -> Iterator[Check]:
    """Check an upgrade at each socket's path."""
    events = {family.value: path for family, path in profile.streams.events.items()}
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
        draft.add("streams", [f"# {path} answers 404.", f'# {setting} = "/?"'])
    if answer.status == 200:
        return Check("sockets", name, State.FAILED, f"{path} answers 200: it is no socket", advice)
    return Check("sockets", name, state_of(error), refused_words(error), advice)
