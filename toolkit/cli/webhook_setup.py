"""`rail webhook setup`: set the service's webhook up, by a dashboard session."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from toolkit.cli.options import AllowHttp, BaseUrl
from toolkit.cli.show import console, write_new
from toolkit.client.webhook_session import WebhookSession
from toolkit.commands import DEFAULT_BASE_URL
from toolkit.errors import InputError
from toolkit.market import EventFamily
from toolkit.workspace.settings import allows_http


def setup_command(
    url: Annotated[
        str | None,
        typer.Argument(metavar="[URL]", help="Your https endpoint. Without: show what is set."),
    ] = None,
    family: Annotated[
        list[EventFamily] | None,
        typer.Option("--family", help="Deliver this family; repeated. Default: all three."),
    ] = None,
    code_env: Annotated[
        str | None,
        typer.Option("--code-env", metavar="NAME", help="The variable with a one-time code."),
    ] = None,
    cookie_env: Annotated[
        str | None,
        typer.Option(
            "--cookie-env", metavar="NAME", help="The variable with a dashboard session's cookie."
        ),
    ] = None,
    session: Annotated[
        Path, typer.Option("--session", help="The file that keeps the session of a code.")
    ] = Path("rail-webhook.session"),
    secret: Annotated[
        Path, typer.Option("--secret", help="The new file that the secret is written to.")
    ] = Path("rail-webhook.secret"),
    remove: Annotated[bool, typer.Option("--remove", help="Remove the endpoint.")] = False,
    test: Annotated[bool, typer.Option("--test", help="Have a test delivered.")] = False,
    base_url: BaseUrl = None,
    allow_http: AllowHttp = False,
) -> None:
    """Set the address that the service delivers events to, show it, test it or remove it.

    The service takes a dashboard session for this, and no API key. A local service prints a
    one-time code for each owner: the session it begins is kept in --session. Of another service
    take the Cookie header that your browser sends to its dashboard. Codes, cookies and secrets are
    never on the command line and never printed. The secret comes once, and only you can read its
    file.

    Before: read -rs RAIL_CODE && export RAIL_CODE

    Example: rail webhook setup https://hooks.example/rail --code-env RAIL_CODE

    After: export RAIL_WEBHOOK_SECRET="$(cat rail-webhook.secret)"
    """
    if url is not None and remove:
        raise InputError("--remove", url, "without an address")
    if family and url is None:
        raise InputError("--family", ", ".join(family), "beside the address to set")
    if code_env and cookie_env:
        raise InputError("--cookie-env", cookie_env, "none beside --code-env")
    code = _held("--code-env", code_env)
    cookie = _held("--cookie-env", cookie_env) or ("" if code else _kept(session))
    at = base_url or os.environ.get("RAIL_BASE_URL") or DEFAULT_BASE_URL
    with WebhookSession(at, cookie=cookie, allow_http=allow_http or allows_http()) as asked:
        if code:
            asked.sign_in(code)
            session.unlink(missing_ok=True)
            write_new("--session", session, f"{asked.cookie}\n")
        if url is not None:
            _set(asked, url, family or list(EventFamily), secret)
        if remove:
            asked.remove()
        console.print(_shown(asked.endpoint()))
        if test:
            result = asked.test()
            words = "was taken" if result.get("delivered") else "was not taken"
            why = [
                f"status {result['status']}" if result.get("status") else "",
                result.get("reason"),
            ]
            console.print(f"a test {words}: {', '.join(str(each) for each in why if each)}")


def _set(session: WebhookSession, url: str, families: list[EventFamily], secret: Path) -> None:
    """Set the endpoint. Where a secret will come, there is a place for it before it is asked."""
    if session.endpoint().get("url") is None and secret.exists():
        raise InputError("--secret", str(secret), "a file that is not there yet")
    said = session.set(url, families)
    if isinstance(said.get("secret"), str):
        write_new("--secret", secret, f"{said['secret']}\n")
        console.print(f"the secret is in {secret}, for `rail webhook --secret-env`")
    else:
        console.print("the secret stays the one that came first")


def _shown(endpoint: dict[str, Any]) -> str:
    """Return an endpoint in a line."""
    if not endpoint.get("url"):
        return "no webhook is set"
    families = ", ".join(map(str, endpoint.get("families") or ())) or "no family"
    state = "on" if endpoint.get("enabled") else "off, for the receiver answered 410"
    hint = f"; secret: {endpoint['secret_hint']}" if endpoint.get("secret_hint") else ""
    return f"webhook: {endpoint['url']}; deliveries of {families}: {state}{hint}"


def _held(option: str, name: str | None) -> str:
    """Return what a variable holds. One that holds nothing is refused."""
    if name is None:
        return ""
    value = os.environ.get(name, "").strip()
    if not value or not value.isascii() or not value.isprintable():
        raise InputError(option, name, "a variable that is set, to printable ASCII")
    return value


def _kept(session: Path) -> str:
    """Return the cookie that a session file keeps."""
    if not session.exists():
        options = "--code-env or --cookie-env"
        raise InputError("--session", str(session), f"a file that is there, or one of {options}")
    return session.read_text(encoding="utf-8").strip()
