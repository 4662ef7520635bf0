"""Delivery of alerts to one channel, by a thread of its own: it never holds up the capture."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from toolkit.alert_tables import AlertOutcome
from toolkit.alerts.channels import Channel, Sent
from toolkit.alerts.message import Alert
from toolkit.errors import StoreError, StoreLockedError
from toolkit.store import StoreWriter
from toolkit.store.alerts import claim, settle


class AlertSender:
    """Sends what is recorded as waiting, one after the other.

    Each delivery is claimed in the store first, and its outcome recorded after. So it is made at
    most once, whatever ends the process and however many follow: what was claimed and has no
    outcome is not sent again. A channel with ``waits_s`` is tried again with the same id.
    """

    def __init__(
        self, channel: Channel, writer: StoreWriter, note: Callable[[str], object]
    ) -> None:
        self.name = channel.name
        self._channel = channel
        self._writer = writer
        self._note = note
        self._waiting: queue.SimpleQueue[Alert | None] = queue.SimpleQueue()
        self._ending, self._abandoned = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"rail-{self.name}", daemon=True)
        self._thread.start()

    def put(self, alert: Alert) -> None:
        """Send an alert when those before it are sent."""
        self._waiting.put(alert)

    def end(self, within_s: float) -> None:
        """Send what waits, for so long at most (s). The rest is left to the next follow."""
        self._waiting.put(None)
        self._thread.join(within_s / 2)
        self._ending.set()
        self._abandoned.set()
        self._thread.join(within_s / 2)

    def _run(self) -> None:
        while (alert := self._waiting.get()) is not None and not self._abandoned.is_set():
            try:
                self._deliver(alert)
            except StoreError as error:
                self._note(f"an alert by {self.name} is left as it is: {error}")

    def _deliver(self, alert: Alert) -> None:
        if not self._patiently(lambda: claim(self._writer, alert.alert_id, self.name)):
            return
        sent, attempts = self._attempt(alert), 1
        for wait_s in self._channel.waits_s:
            if sent.taken or not sent.again or self._ending.wait(wait_s):
                break
            sent, attempts = self._attempt(alert), attempts + 1
        outcome = AlertOutcome.DELIVERED if sent.taken else AlertOutcome.FAILED
        if not sent.taken:
            self._note(f"alert {alert.rule} was not delivered by {self.name}: {sent.reason}")
        self._patiently(
            lambda: settle(
                self._writer,
                alert.alert_id,
                self.name,
                outcome,
                attempts=attempts,
                reason=sent.reason,
            )
        )

    def _attempt(self, alert: Alert) -> Sent:
        try:
            return self._channel.send(alert)
        except Exception as error:  # noqa: BLE001 - a fault of a channel is a failed delivery
            return Sent(taken=False, reason=type(error).__name__)

    def _patiently(self, use: Callable[[], bool | None]) -> bool | None:
        """Use the store, however long another process holds it."""
        while True:
            try:
                return use()
            except StoreLockedError:
                if self._abandoned.is_set():
                    return None
