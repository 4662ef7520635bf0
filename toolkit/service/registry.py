"""The one table of routes: REST, ``/schemas`` and whatever else offers them derive from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from toolkit.market import Plan
from toolkit.service.answers import price_history, search_symbols, spread_history
from toolkit.service.calls import Call, Service
from toolkit.service.payloads import (
    PRICE_RECORD,
    SPREAD_RECORD,
    SYMBOL_RECORD,
    NoQuery,
    PriceQuery,
    Record,
    SearchQuery,
    SpreadQuery,
)
from toolkit.service.policy import Limit, Owner, Terms
from toolkit.service.problems import Problem, bad_request

__all__ = ["TOOLS", "VERSION", "Tool", "answer"]

VERSION = "2026-11-01"
"""Of the documents this service sends."""

Q = TypeVar("Q", bound=msgspec.Struct)

_BACKWARDS = {
    "kind": "end_time",
    "order": "desc",
    "end_time": "exclusive",
    "next": "next_end_time",
}
_SEARCH = Limit(100, 1_000)


@dataclass(frozen=True, slots=True)
class Tool(Generic[Q]):
    """A route: what it is called, what it takes, who may ask, and the function that answers.

    ``limit`` gives the page sizes under a plan's terms, None for a route without pages.

    Examples
    --------
    >>> [tool.route for tool in TOOLS][-1]
    '/api/v1/data/history/spread'
    """

    name: str
    path: str
    summary: str
    minimum_plan: Plan
    query: type[Q]
    answer: Callable[[Call[Q]], bytes]
    limit: Callable[[Terms], Limit] | None = None
    record: Record | None = None
    pagination: dict[str, str] | None = None

    @property
    def route(self) -> str:
        """The path below the service's address."""
        return f"/api/v1/data/{self.path}"

    def input_schema(self, terms: Terms) -> dict[str, Any]:
        """JSON Schema of the query; ``limit`` with default and maximum under these terms.

        Examples
        --------
        >>> from toolkit.service.policy import TERMS
        >>> TOOLS[-1].input_schema(TERMS[Plan.FREE])["properties"]["limit"]["maximum"]
        1000
        """
        return _input_schema(self.query, self.limit(terms) if self.limit else None)

    def describe(self, owner: Owner, retention_s: int | None) -> dict[str, object]:
        """The tool's entry in ``/schemas``, as one owner is served.

        Examples
        --------
        >>> from toolkit.service.policy import DEMO_OWNERS
        >>> TOOLS[-1].describe(DEMO_OWNERS[0], None)["record"]["key"]
        ('ts',)
        """
        return {
            "route": self.route,
            "minimum_plan": self.minimum_plan,
            "retention_s": retention_s if self.pagination else None,
            "delay_s": 0,
            "input_schema": self.input_schema(owner.terms),
            "record": self.record.document if self.record else None,
            "pagination": self.pagination,
        }

    def read(self, given: Sequence[tuple[str, str]], owner: Owner) -> tuple[Q, int]:
        """The query out of text parameters, and its limit; a 400 names each one that is wrong.

        Parameters that the route does not know are ignored; one it knows may come once.

        Examples
        --------
        >>> from toolkit.service.policy import DEMO_OWNERS
        >>> TOOLS[1].read([("q", "btc"), ("unknown", "1")], DEMO_OWNERS[0])
        (SearchQuery(limit=UNSET, q='btc'), 100)
        """
        values: dict[str, Any] = {}
        errors: list[tuple[str, str]] = []
        for field in _fields(self.query):
            sent = [value for name, value in given if name == field.name]
            if len(sent) > 1:
                errors.append((field.name, f"sent {len(sent)} times; send it once"))
            elif sent:
                try:
                    values[field.name] = msgspec.convert(sent[0], field.type, strict=False)
                except msgspec.ValidationError:
                    errors.append((field.name, self._refusal(field.name, sent[0], owner)))
            elif field.required:
                errors.append((field.name, "is missing"))
        page = Limit(0, 0) if self.limit is None else self.limit(owner.terms)
        limit: int = values.get("limit", page.default)
        if limit > page.maximum:
            errors.append(("limit", self._refusal("limit", str(limit), owner)))
        if errors:
            raise bad_request(errors)
        return self.query(**values), limit

    def _refusal(self, parameter: str, value: str, owner: Owner) -> str:
        allowed = self.input_schema(owner.terms)["properties"][parameter]
        rule = allowed["description"]
        if parameter == "limit":
            rule += f", at most {allowed['maximum']} on the {owner.plan} plan"
        return f"{value[:80]!r} is not allowed; allowed: {rule}"


@cache
def _fields(query: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(query)  # kept, because it evaluates every annotation anew


@cache
def _input_schema(query: type[msgspec.Struct], page: Limit | None) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([query])
    schema: dict[str, Any] = components[query.__name__]
    if page is not None:
        schema["properties"]["limit"] |= {"default": page.default, "maximum": page.maximum}
    return schema


def answer(
    service: Service, tool: Tool[Q], owner: Owner, given: Sequence[tuple[str, str]]
) -> bytes:
    """The body of one call, after the plan's and the parameters' checks (403, 400).

    Examples
    --------
    >>> from toolkit.service import miniature
    >>> from toolkit.service.clock import Clock
    >>> from toolkit.service.policy import DEMO_OWNERS, Policy
    >>> service = Service(miniature.source(), Clock(), Policy(DEMO_OWNERS))
    >>> answer(service, TOOLS[1], DEMO_OWNERS[0], [("q", "nothing")])
    b'{"type":"symbols_page","items":[],"truncated":false}'
    """
    if owner.plan.rank < tool.minimum_plan.rank:
        raise Problem(
            403,
            "tier_required",
            f"{tool.name} begins at the {tool.minimum_plan} plan; this key's is {owner.plan}.",
            headers={"WWW-Authenticate": 'Bearer realm="machine-rail", error="insufficient_scope"'},
            extra={"plan": owner.plan, "minimum_plan": tool.minimum_plan},
        )
    query, limit = tool.read(given, owner)
    return tool.answer(Call(service, owner, query, limit, service.clock.now()))


def _schemas(call: Call[NoQuery]) -> bytes:
    """What this table says, to the caller's plan."""
    source, policy = call.service.source, call.service.policy
    return msgspec.json.encode(
        {
            "type": "schemas",
            "version": VERSION,
            "source": {"kind": source.kind, "id": source.id},
            "tools": {tool.name: tool.describe(call.owner, policy.retention_s) for tool in TOOLS},
        }
    )


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="data.get_schemas",
        path="schemas",
        summary="Units, signs, keys and pagination of every tool.",
        minimum_plan=Plan.FREE,
        query=NoQuery,
        answer=_schemas,
    ),
    Tool(
        name="data.search_symbols",
        path="symbols/search",
        summary="Symbols and the venues that list them.",
        minimum_plan=Plan.FREE,
        query=SearchQuery,
        answer=search_symbols,
        limit=lambda _: _SEARCH,
        record=SYMBOL_RECORD,
    ),
    Tool(
        name="data.get_price_history",
        path="history/price",
        summary="Price history of one symbol on one leg.",
        minimum_plan=Plan.FREE,
        query=PriceQuery,
        answer=price_history,
        limit=lambda terms: terms.page,
        record=PRICE_RECORD,
        pagination=_BACKWARDS,
    ),
    Tool(
        name="data.get_spread_history",
        path="history/spread",
        summary="Spread history of one symbol between two legs.",
        minimum_plan=Plan.FREE,
        query=SpreadQuery,
        answer=spread_history,
        limit=lambda terms: terms.page,
        record=SPREAD_RECORD,
        pagination=_BACKWARDS,
    ),
)
"""Every tool, in the order that ``/schemas`` lists them."""
