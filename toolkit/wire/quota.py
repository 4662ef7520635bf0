"""A key's plan and quota, requests by kind, and the sharing of the quota between processes.

``RateLimit-Policy: "builder";q=600;w=60`` names the plan, its requests and their window,
``RateLimit: "builder";r=594;t=42`` what is left. `toolkit.client.contact` shares the state.
Sources: docs/interface.md, draft-ietf-httpapi-ratelimit-headers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace

import msgspec

from toolkit.cards import counted
from toolkit.wire.exchange import decoded
from toolkit.wire.profile.profile import Profile
from toolkit.wire.profile.spelling import reading

_ITEM = re.compile(r'\s*(?:"(?P<quoted>[^"\\]{1,64})"|(?P<token>[A-Za-z*][\w.*/-]{0,63}))')
_WHOLE = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class Allowance:
    """A plan's quota of requests per window (s), and what was left at the last answer.

    ``reset_s``: seconds from then to the next window.
    """

    plan: str
    quota: int | None = None
    window_s: int | None = None
    left: int | None = None
    reset_s: int | None = field(default=None, compare=False)


def read_allowance(headers: Mapping[str, str]) -> Allowance | None:
    """Read the headers (names in lower case), None if they name no policy.

    The first of several policies counts. An unreadable number is None.

    >>> policy, rest = '"builder";q=600;w=60', '"builder";r=9;t=1'
    >>> read_allowance({"ratelimit-policy": policy, "ratelimit": rest})
    Allowance(plan='builder', quota=600, window_s=60, left=9, reset_s=1)
    """
    policies = _items(headers.get("ratelimit-policy", ""))
    if not policies:
        return None
    plan, limits = next(iter(policies.items()))
    left = _items(headers.get("ratelimit", "")).get(plan, {})
    return Allowance(plan, limits.get("q"), limits.get("w"), left.get("r"), left.get("t"))


def _items(header: str) -> dict[str, dict[str, int]]:
    """Parse named items with whole-number parameters, without the rest."""
    found: dict[str, dict[str, int]] = {}
    for item in header.split(","):
        name = _ITEM.match(item)
        if name is None:
            continue
        pairs = (pair.partition("=") for pair in item[name.end() :].split(";"))
        numbers = {k.strip(): int(v) for k, _, v in pairs if _WHOLE.fullmatch(v.strip())}
        found.setdefault(name["quoted"] or name["token"], numbers)
    return found


_LONGEST_S = 86_400


@dataclass(frozen=True, slots=True)
class QuotaLeft:
    """The state of a key's quota that all processes share. Times are Unix seconds of this machine.

    ``left`` of ``quota`` requests may go before ``ends``, the end of a window of ``window_s``, none
    before ``wait_until``. While nothing is known all may go: ``unanswered`` did and await answers.
    """

    left: int = 0
    quota: int = 0
    window_s: int = 0
    ends: float = 0.0
    wait_until: float = 0.0
    unanswered: int = 0

    def ask(self, now: float) -> tuple[QuotaLeft, float]:
        """Return the state after one more request, and 0, or the seconds until it may go.

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
        """Return the state after an answer: its quota, and the wait that a refusal asks for.

        The service does not count requests under way, so the lesser number counts, and the first
        one loses the requests that went before anything was known.

        >>> told = Allowance("free", quota=60, window_s=60, left=58, reset_s=30)
        >>> QuotaLeft().learn(told, None, 0.0).left
        58
        >>> QuotaLeft(unanswered=3).learn(told, None, 0.0).left
        56
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
        """Return the state, or an empty one if its times are impossible for a quota.

        >>> QuotaLeft(wait_until=1e12).believed(0.0) == QuotaLeft()
        True
        """
        latest = now + min(2 * self.window_s, _LONGEST_S)
        return self if self.ends <= latest and self.wait_until <= now + _LONGEST_S else QuotaLeft()

    @classmethod
    def read(cls, data: bytes) -> QuotaLeft:
        """Read `written`. Anything else is an empty state.

        >>> QuotaLeft.read(QuotaLeft(left=3, quota=5).written).left
        3
        """
        return decoded(data, cls) or cls()

    @property
    def written(self) -> bytes:
        """The state as JSON, without the key."""
        return msgspec.json.encode(self)


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests sent, each try counted: of histories, event logs, snapshots, symbols, schemas.

    A symbol search and a symbol snapshot share an address: both are ``symbols``. ``other`` has the
    rest.

    >>> made = Requests(history=40, events=2, schemas=1)
    >>> print(made)
    43 requests: 40 history, 2 events, 1 schemas
    >>> made.total, print(Requests())
    no request
    (43, None)
    """

    history: int = 0
    events: int = 0
    snapshot: int = 0
    symbols: int = 0
    schemas: int = 0
    other: int = 0

    @classmethod
    def of(cls, profile: Profile, paths: Mapping[str, int]) -> Requests:
        """Count requests by path as the profile's kinds.

        >>> from toolkit.wire.profile.profile import BUILT_IN
        >>> Requests.of(BUILT_IN, {BUILT_IN.schemas_path: 2, "/mcp": 1})
        Requests(history=0, events=0, snapshot=0, symbols=0, schemas=2, other=1)
        """
        kinds = dict.fromkeys(profile.snapshots.values(), "snapshot")
        kinds |= {route.path: "history" for route in profile.histories.values()}
        kinds |= {route.path: "events" for route in profile.events.values()}
        kinds |= {profile.symbols_path: "symbols", profile.schemas_path: "schemas"}
        found: dict[str, int] = {}
        named = {reading(path): kind for path, kind in kinds.items() if "{" in path}
        for path, count in paths.items():
            told = (kind for form, kind in named.items() if form and form.fullmatch(path))
            kind = kinds.get(path) or next(told, "other")
            found[kind] = found.get(kind, 0) + count
        return cls(**found)

    @property
    def total(self) -> int:
        """All of them."""
        return sum(astuple(self))

    def __sub__(self, before: Requests) -> Requests:
        return Requests(*(a - b for a, b in zip(astuple(self), astuple(before), strict=True)))

    def __str__(self) -> str:
        if not self.total:
            return "no request"
        kinds = zip(self.__slots__, astuple(self), strict=True)
        parts = ", ".join(f"{count:,} {kind}" for kind, count in kinds if count)
        return f"{counted(self.total, 'request')}: {parts}"
