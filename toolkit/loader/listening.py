"""One stream of a capture: a thread that hands on what it hears, and tells when it could not hear.

What the stream brings is handed on at once and claims nothing; that all of it came is for the
archive to say (`toolkit.loader.sweep`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from toolkit.client import Client
from toolkit.client.stream import stream
from toolkit.errors import WireError
from toolkit.loader.progress import Asked
from toolkit.market import EventFamily, Trajectory
from toolkit.store import Gap
from toolkit.wire.exchange import refusal
from toolkit.wire.profile import Finding
from toolkit.wire.stream import (
    Joined,
    Loss,
    Lost,
    Received,
    ReconnectPolicy,
    Refused,
    is_fatal,
    read_market_message,
)

__all__ = ["Ear", "Heard", "Said"]

_ON_ITS_WAY_S = 120
"""How old what is on its way may be: a delayed opening, the row of a minute (s)."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A record of a trajectory, or an event document, as it came."""

    of: Asked
    body: bytes


Said = Heard | Gap | Finding | BaseException
"""What an ear hands on; an exception ends the capture."""


class Ear(threading.Thread):
    """Listens to one socket: an event family's, or the market socket for some trajectories.

    ``admit`` is called when a connection stands; ``gap_number`` gives the next gap's number.
    ``connected`` says whether it hears at the moment, ``attempts`` how often it tried to.
    """

    def __init__(
        self,
        client: Client,
        of: EventFamily | Sequence[Trajectory],
        *,
        policy: ReconnectPolicy,
        stop: threading.Event,
        put: Callable[[Said], object],
        admit: Callable[[], object],
        gap_number: Callable[[], int],
    ) -> None:
        super().__init__(name=f"rail-stream-{of if isinstance(of, EventFamily) else 'market'}")
        self.daemon = True
        self.connected = False
        self.attempts = 0
        self._client = client
        self._names = client.profile().streams
        self._of = of
        self._policy = policy
        self._halt = stop
        self._put = put
        self._admit = admit
        self._gap_number = gap_number
        self._clock = _ServiceClock(client)
        self._heard_at = self._clock.now()
        self._gaps: list[Gap] = []
        self._joined_once = False

    def run(self) -> None:
        """Listen until told to stop."""
        said = stream(
            self._client, self._of, policy=self._policy, stop=self._halt, admitted=self._admit
        )
        try:
            for item in said:
                match item:
                    case Joined():
                        self._joined()
                    case Received(body):
                        self._heard_at = self._clock.now()
                        self._hand_on(body)
                    case Lost(why):
                        self._lost(why)
            self._end_gaps(self._clock.now() + 1)  # nobody listens for its end any more
        except BaseException as error:  # noqa: BLE001 - raised again in the capture's own thread
            self._put(error)

    def _joined(self) -> None:
        """End the gap that lies behind; the service's clock was asked when the socket opened."""
        self.connected, self.attempts = True, self.attempts + 1
        self._joined_once = True
        self._end_gaps(self._client.served_at() + 1)
        self._heard_at = self._clock.now()

    def _end_gaps(self, at: int) -> None:
        for gap in self._gaps:
            self._put(replace(gap, end=max(at, gap.start + 1)))
        self._gaps = []

    def _lost(self, why: str) -> None:
        self.attempts += not self.connected
        self.connected = False
        if not self._gaps:
            of: Sequence[Asked] = [self._of] if isinstance(self._of, EventFamily) else self._of
            start = self._heard_at - _ON_ITS_WAY_S
            self._gaps = [Gap(self._gap_number(), each, start, None, why) for each in of]
            if self._joined_once:  # else the gap is told of when it ends, or the capture is refused
                for gap in self._gaps:
                    self._put(gap)

    def _hand_on(self, body: bytes) -> None:
        if isinstance(self._of, EventFamily):
            self._put(Heard(self._of, body))
            return
        names = self._names
        try:
            said = read_market_message(names, body)
        except WireError as error:
            self._put(Finding("message_unreadable", names.market, str(error)))
            return
        if said is None:
            return
        known = said.identity is not None and 0 <= said.identity < len(self._of)
        of = self._of[said.identity or 0] if known else None
        if isinstance(said, Refused):
            refused = refusal(said.answer)
            if is_fatal(Loss("", answer=said.answer)):
                raise refused
            where = of.key if of else names.market
            self._put(Finding("subscription_refused", where, str(refused)))
        elif of is None:
            self._put(Finding("id_unknown", names.market, f"a record for id {said.identity}"))
        else:
            self._put(Heard(of, said.record))


class _ServiceClock:
    """The service's clock between two answers: what it last said, and the time since."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._said = client.served_at()
        self._at = time.monotonic()

    def now(self) -> int:
        """Unix seconds, rather too early than too late."""
        if self._client.served_at() != self._said:
            self._said, self._at = self._client.served_at(), time.monotonic()
        return self._said + int(time.monotonic() - self._at)
