"""Counts of requests by kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass

from toolkit.cards import counted
from toolkit.wire.profile.profile import Profile
from toolkit.wire.profile.templates import reading


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests sent, each try counted: of histories, event logs, snapshots, symbols, schemas.

    A search for symbols and a snapshot of them are asked at one address, and both are ``symbols``.
    ``other`` are those to an address of no kind.

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
        """Count the requests to some paths by what a profile has there.

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
