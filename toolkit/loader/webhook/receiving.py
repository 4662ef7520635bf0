"""Run the webhook receiver by itself, until a signal ends it."""

from __future__ import annotations

from collections.abc import Callable

from toolkit.loader.webhook.webhooks import Receipts, WebhookApp
from toolkit.serving import ServerSettings, run

_GRACE_S = 15  # for deliveries under way; a sender waits no longer
_NOTIFY_EVERY_S = 10


def receive(
    app: WebhookApp,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ready: Callable[[str], object],
    on_progress: Callable[[Receipts], object] | None = None,
) -> Receipts:
    """Receive until SIGINT or SIGTERM. What is under way then is stored and answered first.

    ``ready`` is called once with the address, when it accepts. ``on_progress`` with the counts so
    far every 10 seconds. Returns the counts. A port that is taken and a host
    that is not this machine's are an `InputError`.

    >>> import os, signal, tempfile
    >>> from toolkit.loader.webhook.webhooks import webhook_app
    >>> from toolkit.market import Source
    >>> from toolkit.store import Store, StoreWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(f"{folder}/rail.duckdb")
    ...     StoreWriter(store).bind(Source("replay", "example"))
    ...     app = webhook_app(store, secrets=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
    ...     print(receive(app, ready=lambda address: os.kill(os.getpid(), signal.SIGTERM)))
    0 stored (0 new events), 0 repeated, 0 refused
    """

    async def report() -> None:
        if on_progress is not None:
            on_progress(app.receipts)

    settings = ServerSettings(app, grace_s=_GRACE_S, notify=report, notify_every_s=_NOTIFY_EVERY_S)
    run(settings, host, port, ready=lambda base_url: ready(f"{base_url}/"))
    return app.receipts
