"""`rail webhook`: receive signed deliveries into the store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.options import AllowHttp, Host, Port, StorePath
from toolkit.cli.show import console, errors, warn_of_public
from toolkit.cli.webhook_setup import setup_command
from toolkit.errors import InputError, needs_extra
from toolkit.loader.sync import bound_source
from toolkit.store import Store, StoreWriter
from toolkit.wire.profile import BUILT_IN, Profile
from toolkit.wire.signatures import HmacSignature, StandardWebhooks, Verifier
from toolkit.workspace import Settings, store_path, user_profile
from toolkit.workspace.settings import given_key

if TYPE_CHECKING:
    from toolkit.loader.webhooks import Receipts

_GITHUB_FORM = ("{body}", "sha256={signature}", "hex")


app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
app.command("setup")(setup_command)


@app.callback()
def webhook_command(
    context: typer.Context,
    secret_env: Annotated[
        list[str] | None,
        typer.Option(
            "--secret-env",
            metavar="NAME",
            help="The environment variable that holds a secret; repeated while one takes over "
            "from another.",
        ),
    ] = None,
    header: Annotated[
        str | None,
        typer.Option(
            "--header", help="The HMAC signature's header. Default: Standard Webhooks instead."
        ),
    ] = None,
    signed: Annotated[
        str, typer.Option("--signed", help="With --header: what is signed.")
    ] = _GITHUB_FORM[0],
    written: Annotated[
        str,
        typer.Option("--written", help="With --header: how signature and time are written in it."),
    ] = _GITHUB_FORM[1],
    encoding: Annotated[
        str, typer.Option("--encoding", help="With --header: hex or base64.")
    ] = _GITHUB_FORM[2],
    store: StorePath = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url", help="Ask this service once for its source, and make the store for it."
        ),
    ] = None,
    allow_http: AllowHttp = False,
    port: Port = 8800,
    host: Host = "127.0.0.1",
) -> None:
    """Receive webhook deliveries into the store until Ctrl-C. Each event is stored once.

    A delivery does not name its source: it is stored as data of the store's source. So the store
    must exist, or --base-url must name the service. Only deliveries with a valid signature are
    stored, and each is answered after it is stored. Secrets are read from the environment alone.
    Put an https proxy in front.

    Deliveries are signed by Standard Webhooks. With --header they have an HMAC-SHA256 instead, by
    default in GitHub's form. For Stripe's add --signed "{timestamp}.{body}" and
    --written "t={timestamp},v1={signature}".

    `rail webhook setup` has the service deliver to an address.

    Before: export RAIL_WEBHOOK_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw

    Example: rail webhook --secret-env RAIL_WEBHOOK_SECRET --port 8800
    """
    if context.invoked_subcommand is not None:
        return
    if not secret_env:
        context.fail("Missing option '--secret-env'.")
    # Loaded when it runs: it brings a web server along.
    with needs_extra("service"):
        from toolkit.loader.receiving import receive  # noqa: PLC0415 - see above
        from toolkit.loader.webhooks import webhook_app  # noqa: PLC0415 - see above

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
        raise InputError(
            "--secret-env", name, "a variable that is set", advice="it is to hold a secret"
        )
    return value


def _bound_store(
    path: Path | None, base_url: str | None, allow_http: bool
) -> tuple[Store, Profile]:
    """Return the store, created if a service is named, and the profile of its documents."""
    kept = Store(store_path(path))
    if base_url is None:
        users = user_profile()
        return kept, BUILT_IN if users is None else users.applied(BUILT_IN).within(users.limits)
    with Settings.read(base_url=base_url, allow_http=allow_http).client() as client:
        profile = client.discover()
        bound_source(client, StoreWriter(kept))
    return kept, profile
