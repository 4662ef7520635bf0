"""Sharing of a key's quota between processes: when the next request may go.

Without sockets and files. `toolkit.client.contact` keeps the state where all processes see it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from toolkit.wire.allowance import Allowance
from toolkit.wire.exchange import UNREADABLE

_LONGEST_S = 86_400


@dataclass(frozen=True, slots=True)
class QuotaLeft:
    """What is known of a key's quota by all who use it. Times are Unix seconds of this machine.

    ``left`` of ``quota`` requests may go before ``ends``, when a window of ``window_s`` is over.
    Nothing may go before ``wait_until``. Nothing is known at first, and then everything may go.
    ``unanswered`` requests went then and had no answer yet.
    """

    left: int = 0
    quota: int = 0
    window_s: int = 0
    ends: float = 0.0
    wait_until: float = 0.0
    unanswered: int = 0

    def ask(self, now: float) -> tuple[QuotaLeft, float]:
        """Return the state after one more request, and 0, or the seconds to wait before it may go.

        >>> pace = QuotaLeft(left=1, quota=5, window_s=60, ends=100.0)
        >>> pace, wait_s = pace.ask(90.0)
        >>> wait_s, pace.ask(90.0)[1], pace.ask(100.0)[0].left
        (0.0, 10.0, 4)
        """
        if now < self.wait_until:
            return self, self.wait_until - now
        if not self.quota:
            return replace(self, unanswered=self.unanswered + 1), 0.0
        if now >= self.ends:  # when the service begins the next window its answer shows
            return replace(self, left=self.quota - 1, ends=now + 2 * self.window_s), 0.0
        if self.left < 1:
            return self, self.ends - now
        return replace(self, left=self.left - 1), 0.0

    def learn(self, told: Allowance | None, wait_s: float | None, now: float) -> QuotaLeft:
        """Return the state after an answer: its quota, and what it asks to wait where it refuses.

        What others have under way is not in the service's number yet. So the lesser one counts,
        and the first number loses what went before anything was known.

        >>> told = Allowance("free", quota=60, window_s=60, left=58, reset_s=30)
        >>> QuotaLeft().learn(told, None, 0.0).left
        58
        >>> QuotaLeft(unanswered=3).learn(told, None, 0.0).left
        56
        >>> QuotaLeft(50, 60, 60, 30.0).learn(told, None, 0.0).left
        50
        """
        others = max(0, self.unanswered - 1)
        found = replace(self, unanswered=others)
        if told is not None and told.quota and told.window_s:
            left = told.quota if told.left is None else told.left
            reset_s = told.window_s if told.reset_s is None else told.reset_s
            same = now < self.ends and self.quota == told.quota
            found = QuotaLeft(
                min(left, self.left) if same else max(0, left - others),
                told.quota,
                told.window_s,
                min(now + reset_s, self.ends) if same else now + reset_s,
                self.wait_until,
            )
        if wait_s is None:
            return found
        return replace(found, wait_until=max(found.wait_until, now + wait_s))

    def believed(self, now: float) -> QuotaLeft:
        """Return the state, or nothing where it names times that no quota has.

        >>> QuotaLeft(wait_until=1e12).believed(0.0) == QuotaLeft()
        True
        """
        latest = now + min(2 * self.window_s, _LONGEST_S)
        return self if self.ends <= latest and self.wait_until <= now + _LONGEST_S else QuotaLeft()

    @classmethod
    def read(cls, data: bytes) -> QuotaLeft:
        """Read what `written` wrote. Anything else is as if nothing was known.

        >>> QuotaLeft.read(QuotaLeft(left=3, quota=5).written).left
        3
        >>> QuotaLeft.read(b"...") == QuotaLeft()
        True
        """
        try:
            return msgspec.json.decode(data, type=cls)
        except UNREADABLE:
            return cls()

    @property
    def written(self) -> bytes:
        """The state as JSON, without the key."""
        return msgspec.json.encode(self)
