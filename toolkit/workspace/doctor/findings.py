"""Result of an examination: checks with state, text and advice, and a draft profile."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from toolkit.errors import PlanRefusedError, ServiceError, UnreachableError


class State(StrEnum):
    """How a check went. ``NOTE``: otherwise than agreed, but handled."""

    OK = "ok"
    NOTE = "note"
    REFUSED = "not in plan"
    FAILED = "failed"
    SKIPPED = "not asked"


@dataclass(frozen=True, slots=True)
class Check:
    """One question to a service, how it went, and what to do if it went wrong."""

    group: str
    name: str
    state: State
    says: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Examination:
    """All checks of a service, in order, what can be loaded from it, and a draft profile.

    ``readable`` are the histories and event logs that a sync would load, ``unreadable`` those in
    the plan that it would not. ``listed``: the listing has legs; ``differs``: the draft is not
    empty.
    """

    base_url: str
    source: str
    checks: Sequence[Check]
    readable: Sequence[str] = ()
    unreadable: Sequence[str] = ()
    listed: bool = True
    draft: str = ""
    differs: bool = False

    @property
    def usable(self) -> bool:
        """Whether all that the plan has can be loaded.

        >>> Examination("http://h", "none", [], ["history/price"], ["history/spread"]).usable
        False
        """
        return bool(self.readable) and not self.unreadable

    @property
    def df(self) -> pl.DataFrame:
        """The checks, one row each in order: group, check, state, says and advice.

        >>> checks = [Check("service", "reachable", State.OK, "answered in 3 ms")]
        >>> Examination("http://h", "none", checks).df.row(0)
        ('service', 'reachable', 'ok', 'answered in 3 ms', '')
        """
        rows = [(each.group, each.name, each.state, each.says, each.advice) for each in self.checks]
        names = ("group", "check", "state", "says", "advice")
        return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def refused_words(error: ServiceError) -> str:
    """Shorten a refusal to its status and the service's reason.

    >>> refused_words(ServiceError("long", status=403, detail="begins at the builder plan"))
    '403: begins at the builder plan'
    """
    if error.status is None or error.status == 200:
        told = str(error)
        if isinstance(error, UnreachableError) and (reason := re.search(r"\((.*)\)", told)):
            return f"no answer ({reason[1]})"
        return told.removeprefix(error.url).lstrip(",: ").strip()
    return f"{error.status}: {error.detail}" if error.detail else f"{error.status}"


def state_of(error: ServiceError) -> State:
    """Return the state of a check that ended in an error: not in the plan, or failed."""
    return State.REFUSED if isinstance(error, PlanRefusedError) else State.FAILED
