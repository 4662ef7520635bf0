"""Switches of the REST routes: other paging, other names and units, accidents of answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolkit.errors import InputError


@dataclass(frozen=True, slots=True)
class Accident:
    """A fault of answers: an error status, or a body that arrives late, wrong or incomplete.

    ``kind`` is a status (429 and 503 with ``Retry-After``: ``retry_after_s`` seconds, the same as
    an HTTP ``date``, or ``none``), or one of: ``reset`` (the connection is cut inside the body),
    ``truncated`` (half of the JSON, as if it were all), ``html`` (a web page with status 200),
    ``slow`` (the body in four parts, ``slow_s`` apart). It happens at each ``every``-th request of
    the ``routes`` (paths below ``/api/v1/data/``, by default all), at most ``times`` times if
    that is given.

    >>> Accident("429", every=0)
    Traceback (most recent call last):
    toolkit.errors.InputError: every: 0 is not allowed; allowed: a whole number of 1 or more
    """

    kind: Literal[
        "400",
        "401",
        "402",
        "403",
        "404",
        "429",
        "500",
        "502",
        "503",
        "reset",
        "truncated",
        "html",
        "slow",
    ]
    every: int = 1
    times: int | None = None
    routes: tuple[str, ...] = ()
    retry_after: Literal["seconds", "date", "none"] = "seconds"
    retry_after_s: int = 1
    slow_s: float = 0.05

    def __post_init__(self) -> None:
        for name in ("every", "times", "retry_after_s"):
            _check_at_least_one(name, getattr(self, name))
        if self.slow_s < 0:
            raise InputError("slow_s", self.slow_s, "seconds, 0 or more")


@dataclass(frozen=True, slots=True)
class RestSwitches:
    """How REST, MCP and the history actions of sockets differ from the interface.

    Trajectories: ``end_time`` sets whether the row at that time belongs to the page.
    ``next_end_time`` is relative to the page's oldest row, and ``at_end`` is its value on the last
    page (``repeat``: there is always a next page, and past the end it is the last page again). With
    ``empty_pages_s`` no page crosses a multiple of it (s), so a page in a gap is empty and has a
    next page. With ``tie_s`` times are rounded down to a multiple of it (s), so several rows share
    a second, and the declared key is empty. With ``tie_field`` each row has the seconds that were
    cut off under that name, and the key is ``ts`` and it. ``page_cap`` limits the pages of all
    logs.

    ``pages`` is which rows a page has. ``rising``: the rows of the interface, oldest first.
    ``oldest``: the oldest rows before ``end_time``. ``ignored``: the oldest rows of all, whatever
    ``end_time`` is. ``forwards``: the rows from ``end_time`` on. All but the default are oldest
    first. Event logs are then oldest first too, from page to page.

    ``cursor_names`` is which of its two paging fields an event page has: the cursor, whether there
    is ``more``, or ``neither``. With ``no_content`` an empty page is status 204 without a body.
    ``symbols_cap`` limits the symbols of a listing, which then has no ``truncated``. With
    ``numbers`` ``text`` the decimal numbers of history records are text.

    History records and event documents: fields are renamed (old = new), left out, or added (name =
    value). Units are changed and values of ``reversed_fields`` have the other sign, also in
    ``/schemas``. With ``undeclared`` it keeps the units, signs and keys of the interface. Tools are
    renamed (for MCP when the service starts), and so are the schema ids of documents.

    >>> RestSwitches(page_cap=0)
    Traceback (most recent call last):
    toolkit.errors.InputError: page_cap: 0 is not allowed; allowed: a whole number of 1 or more
    """

    end_time: Literal["exclusive", "inclusive"] = "exclusive"
    next_end_time: Literal["oldest", "oldest-1", "oldest+1"] = "oldest"
    at_end: Literal["null", "missing", "echo", "repeat"] = "null"
    empty_pages_s: int | None = None
    page_cap: int | None = None
    tie_s: int = 1
    pages: Literal["backwards", "rising", "oldest", "ignored", "forwards"] = "backwards"
    cursor_names: Literal["both", "cursor", "more", "neither"] = "both"
    no_content: bool = False
    symbols_cap: int | None = None
    numbers: Literal["json", "text"] = "json"
    tie_field: str | None = None
    renamed_fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    missing_fields: tuple[str, ...] = ()
    extra_fields: Mapping[str, Any] = field(default_factory=dict, hash=False)
    units: Mapping[str, str] = field(default_factory=dict, hash=False)
    reversed_fields: tuple[str, ...] = ()
    undeclared: bool = False
    renamed_tools: Mapping[str, str] = field(default_factory=dict, hash=False)
    schema_ids: Mapping[str, str] = field(default_factory=dict, hash=False)
    accidents: tuple[Accident, ...] = ()

    def __post_init__(self) -> None:
        for name in ("empty_pages_s", "page_cap", "tie_s", "symbols_cap"):
            _check_at_least_one(name, getattr(self, name))


def _check_at_least_one(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise InputError(name, value, "a whole number of 1 or more")
