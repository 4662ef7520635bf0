"""Who may ask for how much: owners, their keys and plans, page sizes, retention.

A plan's terms are one row of `TERMS`: quotas, history depth and delays by plan belong there too.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from toolkit.errors import InputError
from toolkit.market import Plan

__all__ = ["DEMO_OWNERS", "TERMS", "Limit", "Owner", "Policy", "Terms"]


@dataclass(frozen=True, slots=True)
class Limit:
    """How many rows a page has when the caller names no number, and how many at most.

    Examples
    --------
    >>> TERMS[Plan.FREE].page
    Limit(default=500, maximum=1000)
    """

    default: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Terms:
    """What a plan includes (contract.md, "Tiers of the local service").

    Examples
    --------
    >>> TERMS[Plan.PRO].page.maximum
    10000
    """

    page: Limit


TERMS: Mapping[Plan, Terms] = MappingProxyType(
    {
        Plan.FREE: Terms(page=Limit(500, 1_000)),
        Plan.BUILDER: Terms(page=Limit(500, 5_000)),
        Plan.PRO: Terms(page=Limit(500, 10_000)),
    }
)
"""The terms of each plan."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Someone with a plan and any number of keys; the keys stay out of the repr.

    Examples
    --------
    >>> Owner("ann", Plan.PRO, ("s3cret",))
    Owner(name='ann', plan=<Plan.PRO: 'pro'>)
    """

    name: str
    plan: Plan
    keys: tuple[str, ...] = field(repr=False)

    def __post_init__(self) -> None:
        if any(not key or key != key.strip() for key in self.keys):
            raise InputError("keys", self.name, "keys that are not empty and have no outer blanks")

    @property
    def terms(self) -> Terms:
        """The terms of the owner's plan.

        Examples
        --------
        >>> DEMO_OWNERS[1].terms.page.maximum
        5000
        """
        return TERMS[self.plan]


DEMO_OWNERS: tuple[Owner, ...] = tuple(
    Owner(f"demo-{plan}", plan, (f"demo-{plan}",)) for plan in Plan
)
"""One owner for each plan, whose key is its name: demo-free, demo-builder, demo-pro."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The owners, and how far back the service answers (``retention_s``; None: everything).

    A key that two owners hold is an `InputError` that names the owners, not the key.

    Examples
    --------
    >>> Policy(DEMO_OWNERS).retention_s is None
    True
    >>> Policy((Owner("ann", Plan.PRO, ("k",)), Owner("bob", Plan.FREE, ("k",))))
    Traceback (most recent call last):
    toolkit.errors.InputError: keys: 'ann, bob' is not allowed; allowed: keys of one owner each
    """

    owners: tuple[Owner, ...]
    retention_s: int | None = None

    def __post_init__(self) -> None:
        holders: dict[str, str] = {}
        for owner in self.owners:
            for key in owner.keys:
                if holders.setdefault(key, owner.name) != owner.name:
                    names = f"{holders[key]}, {owner.name}"
                    raise InputError("keys", names, "keys of one owner each")
        if self.retention_s is not None and self.retention_s <= 0:
            raise InputError("retention_s", self.retention_s, "seconds above 0, or None")

    def owner_of(self, key: str) -> Owner | None:
        """The owner of a key, None where nobody holds it.

        Every key is compared, each in constant time, so that the time taken tells nothing.

        Examples
        --------
        >>> Policy(DEMO_OWNERS).owner_of("demo-pro").plan.value
        'pro'
        >>> Policy(DEMO_OWNERS).owner_of("guess") is None
        True
        """
        offered = key.encode()
        found = None
        for owner in self.owners:
            for held in owner.keys:
                if hmac.compare_digest(offered, held.encode()):
                    found = owner
        return found
