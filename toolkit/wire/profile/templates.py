"""Templates of a user's profile: what a request's parameters are made of.

``{symbol}|{exchange}:{market}`` is one. What stands in braces is a placeholder.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping

from toolkit.errors import InputError

_PLACEHOLDER = re.compile(r"\{([a-z_.]+)\}")


def placeholders(template: str) -> list[str]:
    """Return the names in the braces of a template.

    >>> placeholders("{symbol}|{buy.exchange}")
    ['symbol', 'buy.exchange']
    """
    return _PLACEHOLDER.findall(template)


def filled(template: str, values: Mapping[str, object]) -> str:
    """Fill a template's placeholders.

    >>> filled("{symbol}|{exchange}", {"symbol": "A_B", "exchange": "X"})
    'A_B|X'
    """
    return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), template)


def filled_query(ask: Mapping[str, str], values: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters of a request. One of a placeholder without a value is left out.

    >>> filled_query({"before": "{end_time}", "page": "{cursor}"}, {"end_time": 60, "cursor": None})
    {'before': '60'}
    """
    return {
        name: filled(template, values)
        for name, template in ask.items()
        if all(values[place] is not None for place in placeholders(template))
    }


def check_templates(where: str, ask: Mapping[str, str], known: Collection[str]) -> None:
    """Raise `InputError` for a placeholder of no meaning, and for braces that are none.

    >>> check_templates("ask", {"key": "{symbl}"}, ["symbol"])
    Traceback (most recent call last):
    toolkit.errors.InputError: ask: '{symbl}' is not allowed; allowed: a template of {symbol}
    """
    for template in ask.values():
        unknown = [place for place in placeholders(template) if place not in known]
        if unknown or set("{}") & set(_PLACEHOLDER.sub("", template)):
            names = ", ".join(f"{{{name}}}" for name in known)
            raise InputError(where, template, f"a template of {names}")


@functools.lru_cache(maxsize=64)
def reading(template: str) -> re.Pattern[str] | None:
    """Return what reads back a text that a template made. None where two values may run together.

    >>> reading("{exchange}:{market}").fullmatch("KRAKEN:spot").groupdict()
    {'exchange': 'KRAKEN', 'market': 'spot'}
    >>> reading("{base}{quote}") is None
    True
    """
    parts = _PLACEHOLDER.split(template)
    if len(parts) < 3 or not all(parts[2:-1:2]) or len(set(parts[1::2])) < len(parts) // 2:
        return None
    for at, part in enumerate(parts):
        parts[at] = f"(?P<{part.replace('.', '_')}>.+?)" if at % 2 else re.escape(part)
    return re.compile("".join(parts))
