"""A service's own description of its requests: parameters that refusals and documents name.

A refusal such as "the parameter first is missing, such as KRAKEN:spot" names a parameter and shows
a value. A value's template is read from the example alone, or from the name where it is
a usual one of a symbol. Anything else is not followed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from toolkit.wire.profile.places import parts_said_of
from toolkit.wire.profile.templates import placeholders

_NAME = r"([A-Za-z][\w.-]*\w)"
_NAMED = re.compile(
    rf"[\"'`]{_NAME}[\"'`]|\bparameters? {_NAME}|\b{_NAME}:? (?:is |field )?(?:missing|required)\b"
)
_NO_NAME = frozenset(("is", "are", "the", "has", "must", "missing", "required", "parameter"))
_SYMBOL = re.compile(r"(?<![A-Za-z0-9])[A-Z0-9]{2,}_[A-Z0-9]{2,}(?![A-Za-z0-9_])")
_OF_SYMBOL = frozenset(("symbol", "pair", "instrument", "ticker"))
_SIDES = {"buy": "buy.", "first": "buy.", "long": "buy."}
_SIDES |= {"sell": "sell.", "second": "sell.", "short": "sell."}


def question_named(
    message: str, asked: Mapping[str, str], legs: int, markets: Collection[str]
) -> dict[str, str] | None:
    """Return the question with the parameters that a refusal names, None where that is unclear.

    ``asked`` are the templates of the question that was refused, ``legs`` those of its trajectory.

    >>> question_named("sell is missing, such as KRAKEN/spot", {"pair": "{symbol}"}, 2, ["spot"])
    {'pair': '{symbol}', 'sell': '{sell.exchange}/{sell.market}'}
    >>> question_named("no such trajectory", {"pair": "{symbol}"}, 2, ["spot"]) is None
    True
    """
    found, example = dict(asked), _example_template(message, markets)
    for groups in _NAMED.findall(message.replace("Field", "field")):
        name = next(filter(None, groups)).rpartition(".")[2]
        if name.lower() in _NO_NAME:
            continue
        template = _template(name, example, legs)
        if template is None or asked.get(name) == template:
            return None
        found[name] = template
    return found if found != asked else None


def _example_template(message: str, markets: Collection[str]) -> str | None:
    words = "|".join(sorted(map(re.escape, markets), key=len, reverse=True))
    leg = re.compile(rf"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9]*([:./@-])(?:{words})(?![A-Za-z0-9])")
    for chunk in message.split():
        text, count = _SYMBOL.subn("{symbol}", chunk.strip("\"'`.,;()"))
        legs = leg.findall(text)
        if len(legs) > 2 or not (count or legs) or set("{}") & set(chunk):
            continue
        for side, between in zip(_sides(len(legs)), legs, strict=False):
            text = leg.sub(f"{{{side}exchange}}{between}{{{side}market}}", text, count=1)
        if not re.search(r"[A-Za-z0-9]", re.sub(r"\{[a-z.]+\}", "", text)):
            return text
    return None


def _sides(legs: int) -> list[str]:
    return ["buy.", "sell."] if legs == 2 else [""]


def _template(name: str, example: str | None, legs: int) -> str | None:
    words = {*re.findall(r"[a-z]+", name.lower())}
    if example is None:
        return "{symbol}" if _OF_SYMBOL & words else None
    if legs == 1 or "{exchange}" not in example:
        return example if legs == 2 or "buy." not in example else None
    sides = {_SIDES[word] for word in words if word in _SIDES}
    side = sides.pop() if len(sides) == 1 else None
    return side and re.sub(r"\{(exchange|market)\}", rf"{{{side}\1}}", example)


def names_all(ask: Mapping[str, str], legs: int) -> bool:
    """Check that a question names the symbol and every leg of a trajectory.

    >>> names_all({"pair": "{symbol}", "leg": "{exchange}:{market}"}, 1)
    True
    """
    wanted = {"symbol", *(f"{s}{part}" for s in _sides(legs) for part in ("exchange", "market"))}
    return wanted <= {place for template in ask.values() for place in placeholders(template)}


def stated_question(
    said: object, path: str, asked: Mapping[str, str], legs: int, markets: Collection[str]
) -> dict[str, str] | None:
    """Return the question that a document states for a route, None where that is unclear.

    The document is that of OpenAPI, or one with the input schema of a tool beside its ``route``.
    Its required parameters are read by their examples, as those that a refusal names.

    >>> said = {"paths": {"/p": {"get": {"parameters": [
    ...     {"name": "pair", "required": True}, {"name": "leg", "required": True,
    ...     "example": "KRAKEN:spot"}]}}}}
    >>> stated_question(said, "/p", {"limit": "{limit}"}, 1, ["spot"])
    {'limit': '{limit}', 'pair': '{symbol}', 'leg': '{exchange}:{market}'}
    """
    found = dict(asked)
    for name, example in _required(said, path):
        if name not in found:
            such_as = f", such as {example}" if example else ""
            named = question_named(f"parameter {name} is missing{such_as}", found, legs, markets)
            if named is None:
                return None
            found = named
    return found if names_all(found, legs) else None


def _required(said: object, path: str) -> Iterator[tuple[str, str]]:
    for part in parts_said_of(said, (path,)):
        for facts in parts_said_of(part, ("parameters",)):
            for each in facts if isinstance(facts, list) else []:
                if isinstance(each, dict) and each.get("required") and each.get("in") != "header":
                    yield str(each.get("name")), _example(each) or _example(each.get("schema"))
        for schema in parts_said_of(part, ("input_schema",)):
            if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
                for name in schema.get("required") or []:
                    yield str(name), _example(schema["properties"].get(name))


def _example(facts: object) -> str:
    if not isinstance(facts, dict):
        return ""
    many = facts.get("examples")
    found = facts.get("example", many[0] if isinstance(many, list) and many else None)
    return found if isinstance(found, str) else ""
