"""`rail webhook`: receive signed deliveries into the store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.options import StorePath
from toolkit.cli.show import console, errors
from toolkit.errors import InputError
from toolkit.loader.sync import bound_source
from toolkit.store import Store
from toolkit.wire.profile import BUILT_IN, Profile
from toolkit.wire.signatures import BodyHmac, StandardWebhooks, TimestampedHmac, Verifier
from toolkit.wire.user_profile import UserProfile
from toolkit.workspace import Settings

if TYPE_CHECKING:
    from toolkit.loader.webhooks import Receipts

__all__ = ["webhook_command"]


class _Scheme(StrEnum):
    """How deliveries are signed."""

    STANDARD = "standard"
    TIMESTAMPED = "timestamped"
    BODY = "body"


def webhook_command(
    secret_env: Annotated[
        list[str],
        typer.Option(
            "--secret-env",
            metavar="NAME",
            help="The environment variable that holds a secret; repeated while one takes over "
            "from another.",
        ),
    ],
    scheme: Annotated[
        _Scheme,
        typer.Option(
            "--scheme",
            help="Standard Webhooks; t=…,v1=… over time and body; sha256=… over the body alone.",
        ),
    ] = _Scheme.STANDARD,
    header: Annotated[
        str | None,
        typer.Option("--header", help="The signature's header, of the schemes without standard."),
    ] = None,
    max_bytes: Annotated[
        int, typer.Option("--max-bytes", min=1, help="The largest body that is read.")
    ] = 262_144,
    store: StorePath = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url", help="Ask this service once whose data the store is for, and make it."
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", help="Where to listen; 0 takes a free one.")
    ] = 8800,
    host: Annotated[str, typer.Option("--host", help="The address to listen at.")] = "127.0.0.1",
) -> None:
    """Receive webhook deliveries into the store until Ctrl-C; each event once, however it came.

    A delivery does not say whose it is: it is taken to be from the store's source. So the store
    has to be there, or --base-url names the service. Only genuine deliveries are taken, and
    answered when they are stored. Secrets are read from the environment alone. In front of it
    belongs something that speaks https.

    Example: rail webhook --secret-env RAIL_WEBHOOK_SECRET --port 8800
    """
    # Loaded when it runs: it brings a web server along.
    from toolkit.loader.receiving import receive  # noqa: PLC0415 - see above
    from toolkit.loader.webhooks import webhook_app  # noqa: PLC0415 - see above

    verifier = _verifier(scheme, [_secret(name) for name in secret_env], header)
    kept, profile = _bound_store(store, base_url)
    app = webhook_app(kept, verifier=verifier, max_bytes=max_bytes, routes=profile.events)
    source = kept.source

    def announce(address: str) -> None:
        console.print(f"{source.label}: receiving into {kept.path}")
        console.print(f"listening at {address}; scheme: {scheme}; secrets: {len(secret_env)}")

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


def _verifier(scheme: _Scheme, secrets: Sequence[str], header: str | None) -> Verifier:
    if scheme is _Scheme.STANDARD:
        if header is not None:
            raise InputError("--header", header, "nothing with Standard Webhooks")
        return StandardWebhooks(secrets)
    kind = TimestampedHmac if scheme is _Scheme.TIMESTAMPED else BodyHmac
    return kind(secrets) if header is None else kind(secrets, header=header)


def _bound_store(path: Path | None, base_url: str | None) -> tuple[Store, Profile]:
    """The store, made where a service is named, and where documents keep what."""
    if base_url is None:
        # No service is asked, so that none has to be known and no key is needed.
        unasked = {name: value for name, value in os.environ.items() if name != "RAIL_BASE_URL"}
        settings = Settings.read(unasked, store=path)
        users = UserProfile.read(settings.profile) if settings.profile else None
        return Store(settings.store), BUILT_IN if users is None else users.applied(BUILT_IN)
    settings = Settings.read(base_url=base_url, store=path)
    kept = Store(settings.store)
    with settings.client() as client:
        profile = client.discover()
        bound_source(client, kept)
    return kept, profile
