"""`rail webhook`: receive signed deliveries into the store, and tell the service where to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from toolkit.cli.options import asks
from toolkit.cli.show import console, errors, warn_of_public, write_new
from toolkit.client.webhook_session import WebhookSession
from toolkit.commands import DEFAULT_BASE_URL
from toolkit.errors import InputError, needs_extra
from toolkit.loader.sync.sync import bound_source
from toolkit.market import EventFamily
from toolkit.store import Store, StoreWriter
from toolkit.wire.profile.profile import BUILT_IN, Profile
from toolkit.wire.signatures import HmacSignature, StandardWebhooks, Verifier
from toolkit.workspace import Settings, store_path, user_profile
from toolkit.workspace.settings import allows_http, given_key


@asks(
    url=typer.Argument(
        metavar="[URL]", help="Your https endpoint. Without it: show the current one."
    ),
    family="Deliver this family. May be repeated. Default: all three.",
    code_env="--code-env NAME: The environment variable with a one-time code.",
    cookie_env="--cookie-env NAME: The environment variable with a dashboard session's cookie.",
    session="The file that keeps the session of a code.",
    secret="The new file that the secret is written to.",  # noqa: S106 - a help
    remove="Remove the endpoint.",
    test="Ask the service for a test delivery.",
)
def setup_command(
    url: str | None = None,
    family: list[EventFamily] | None = None,
    code_env: str | None = None,
    cookie_env: str | None = None,
    session: Path = Path("rail-webhook.session"),
    secret: Path = Path("rail-webhook.secret"),
    remove: bool = False,
    test: bool = False,
    base_url: str | None = None,
    allow_http: bool = False,
) -> None:
    """Set the address that the service delivers events to, show it, test it or remove it.

    This takes a dashboard session, not an API key. A local service prints a one-time code per
    owner, whose session is kept in --session. For another service, take the Cookie header that your
    browser sends to its dashboard. Codes, cookies and secrets are never on the command line and
    never printed. The secret comes once, in a file that only you can read.

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
            status = f"status {result['status']}" if result.get("status") else ""
            why = ", ".join(str(each) for each in (status, result.get("reason")) if each)
            console.print(f"a test {words}: {why}")


def _set(session: WebhookSession, url: str, families: list[EventFamily], secret: Path) -> None:
    if session.endpoint().get("url") is None and secret.exists():
        raise InputError("--secret", str(secret), "a file that is not there yet")
    answer = session.set(url, families)
    if isinstance(answer.get("secret"), str):
        write_new("--secret", secret, f"{answer['secret']}\n")
        console.print(f"the secret is in {secret}, for `rail webhook --secret-env`")
    else:
        console.print("the secret stays the one that came first")


def _shown(endpoint: dict[str, Any]) -> str:
    if not endpoint.get("url"):
        return "no webhook is set"
    families = ", ".join(map(str, endpoint.get("families") or ())) or "no family"
    state = "on" if endpoint.get("enabled") else "off, for the receiver answered 410"
    hint = f"; secret: {endpoint['secret_hint']}" if endpoint.get("secret_hint") else ""
    return f"webhook: {endpoint['url']}; deliveries of {families}: {state}{hint}"


def _held(option: str, name: str | None) -> str:
    value = "" if name is None else os.environ.get(name, "").strip()
    if name is not None and not (value and value.isascii() and value.isprintable()):
        raise InputError(option, name, "a variable that is set, to printable ASCII")
    return value


def _kept(session: Path) -> str:
    if not session.exists():
        options = "--code-env or --cookie-env"
        raise InputError("--session", str(session), f"a file that is there, or one of {options}")
    return session.read_text(encoding="utf-8").strip()


if TYPE_CHECKING:
    from toolkit.loader.webhook.webhooks import Receipts

_GITHUB_FORM = ("{body}", "sha256={signature}", "hex")


app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
app.command("setup")(setup_command)


@app.callback()
@asks(
    secret_env="--secret-env NAME: The environment variable with a secret. May be repeated.",  # noqa: S106 - a help
    header="The header of an HMAC signature. Default: Standard Webhooks instead.",
    signed="With --header: the text that is signed.",
    written="With --header: how signature and time are written in it.",
    encoding="With --header: hex or base64.",
    base_url="Ask this service once for its source, and make the store for that.",
)
def webhook_command(
    context: typer.Context,
    secret_env: list[str] | None = None,
    header: str | None = None,
    signed: str = _GITHUB_FORM[0],
    written: str = _GITHUB_FORM[1],
    encoding: str = _GITHUB_FORM[2],
    store: Path | None = None,
    base_url: str | None = None,
    allow_http: bool = False,
    port: int = 8800,
    host: str = "127.0.0.1",
) -> None:
    """Receive webhook deliveries into the store until Ctrl-C. Each event is stored once.

    A delivery does not name its source and is stored as data of the store's source. So the store
    must exist, or --base-url must name the service. Only deliveries with a valid signature are
    stored, and each is answered after it is stored. Secrets are read only from the environment. Put
    an https proxy in front.

    Signatures follow Standard Webhooks, or with --header HMAC-SHA256, by default in GitHub's
    format. For Stripe's add --signed "{timestamp}.{body}" and
    --written "t={timestamp},v1={signature}".

    `rail webhook setup` tells the service where to deliver.

    Before: export RAIL_WEBHOOK_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw

    Example: rail webhook --secret-env RAIL_WEBHOOK_SECRET --port 8800
    """
    if context.invoked_subcommand is not None:
        return
    if not secret_env:
        context.fail("Missing option '--secret-env'.")
    with needs_extra("service"):
        from toolkit.loader.webhook.webhooks import receive, webhook_app  # noqa: PLC0415 - see above

    secrets = [_secret(name) for name in secret_env]
    verifier: Verifier = StandardWebhooks(secrets)
    if header is None and (signed, written, encoding) != _GITHUB_FORM:
        raise InputError("--header", None, "its name beside --signed, --written and --encoding")
    if header is not None:
        verifier = HmacSignature(
            secrets, header=header, signed=signed, written=written, encoding=encoding
        )
    kept, profile = _bound_store(store, base_url, allow_http)
    app = webhook_app(
        kept,
        verifier=verifier,
        limits=profile.limits,
        routes=profile.events,
        profile_hash=profile.users_hash,
        withheld=[*secrets, *([key.reveal()] if (key := given_key()) else [])],
    )
    source = kept.source

    def announce(address: str) -> None:
        console.print(f"{source.label}: receiving into {kept.path}")
        scheme = f"HMAC in {header}" if header else "Standard Webhooks"
        console.print(f"listening at {address}; scheme: {scheme}; secrets: {len(secrets)}")

    warn_of_public(host, "deliveries can be read on the way")
    before = str(app.receipts)

    def tell(receipts: Receipts) -> None:
        nonlocal before
        if str(receipts) != before:
            before = str(receipts)
            errors.print(before)

    console.print(
        f"stopped: {receive(app, host=host, port=port, ready=announce, on_progress=tell)}"
    )


def _secret(name: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise InputError("--secret-env", name, "a variable that is set, to a secret")
    return value


def _bound_store(
    path: Path | None, base_url: str | None, allow_http: bool
) -> tuple[Store, Profile]:
    kept = Store(store_path(path))
    if base_url is None:
        users = user_profile()
        return kept, BUILT_IN if users is None else users.applied(BUILT_IN).within(users.limits)
    with Settings.read(base_url=base_url, allow_http=allow_http).client() as client:
        profile = client.discover()
        bound_source(client, StoreWriter(kept))
    return kept, profile
