"""The plan and quota of a key, from the headers of the service's answers.

``RateLimit-Policy: "builder";q=600;w=60`` names the plan, its requests and their window.
``RateLimit: "builder";r=594;t=42`` has what is left. Source: docs/interface.md.
draft-ietf-httpapi-ratelimit-headers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_ITEM = re.compile(r'\s*(?:"(?P<quoted>[^"\\]{1,64})"|(?P<token>[A-Za-z*][\w.*/-]{0,63}))')
_WHOLE = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class Allowance:
    """A plan's quota of requests per window (s), and what was left of it at the last answer.

    ``reset_s`` is how long after that answer the next window begins.
    """

    plan: str
    quota: int | None = None
    window_s: int | None = None
    left: int | None = None
    reset_s: int | None = field(default=None, compare=False)


def read_allowance(headers: Mapping[str, str]) -> Allowance | None:
    """Read the headers (names in lower case), None where they name no policy.

    Of several policies the first one counts. A number that cannot be read is None: a header in
    another form costs no answer.

    >>> policy, rest = '"builder";q=600;w=60', '"builder";r=9;t=1'
    >>> read_allowance({"ratelimit-policy": policy, "ratelimit": rest})
    Allowance(plan='builder', quota=600, window_s=60, left=9, reset_s=1)
    >>> read_allowance({"ratelimit": "soon"}) is None
    True
    """
    policies = _items(headers.get("ratelimit-policy", ""))
    if not policies:
        return None
    plan, limits = next(iter(policies.items()))
    left = _items(headers.get("ratelimit", "")).get(plan, {})
    return Allowance(plan, limits.get("q"), limits.get("w"), left.get("r"), left.get("t"))


def _items(header: str) -> dict[str, dict[str, int]]:
    """Parse a list of named items with whole-number parameters, leaving out the rest."""
    found: dict[str, dict[str, int]] = {}
    for item in header.split(","):
        name = _ITEM.match(item)
        if name is None:
            continue
        pairs = (pair.partition("=") for pair in item[name.end() :].split(";"))
        numbers = {k.strip(): int(v) for k, _, v in pairs if _WHOLE.fullmatch(v.strip())}
        found.setdefault(name["quoted"] or name["token"], numbers)
    return found
