"""Declarations of ``/schemas`` beyond names and units: signs, and the key of the rows.

A sign is declared in sentences (``sign``, ``positive_means``). They are read by what they say of
the two legs, or of longs and shorts. Sentences that say nothing of these, or both ways, are not
understood. Nothing is inferred from the data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from toolkit.errors import InputError
from toolkit.wire.findings import Finding

if TYPE_CHECKING:
    from toolkit.wire.profile.history_route import FieldRule, HistoryRoute

SIGNED = frozenset(("spread_pct", "differential_pct_8h", "buy_rate", "sell_rate", "rate"))
"""The columns whose sign has a meaning."""

_SIGN = ("sign", "positive_means")
_RATES = frozenset(("buy_rate", "sell_rate", "rate"))
_OTHER_WAY = re.compile(r"\b(?:not|never|negative|inverse|opposite)\b")
_LEG = r"(buy|sell)(?:[-_ ]?(?:leg|side|price|rate|venue|exchange))*"
_HELD = re.compile(rf"\b(long|short)\b(?: (?:on|in|of|the|its)){{0,3}} {_LEG}")
_LOSES = re.compile(r"\b(?:pays|loses|costs)\b")
_ABOVE = re.compile(
    rf"\b{_LEG}(?:'s)?(?: \w+){{0,6}}? (above|over|dearer|higher|greater|exceeds|larger|"
    rf"below|under|cheaper|lower|less|smaller)(?: \w+){{0,6}}? {_LEG}"
)
_FORMULA = re.compile(rf"\b{_LEG} ?(?:[/-]|minus|over) ?{_LEG}")
_BELOW = frozenset(("below", "under", "cheaper", "lower", "less", "smaller"))
_PAYMENT = re.compile(
    r"\b(long|short)s?\b(?: (?:position|positions|side|leg)){0,2} (pay|receive|earn|get)s?\b"
)


def is_reversed(described: Mapping[str, Any], column: str) -> bool | None:
    """Read which way a field counts: False as ours, True reversed, None where it is unclear.

    Ours is: positive where the sell leg is dearer or pays more, so that long the buy leg and short
    the sell leg earns it. A rate is positive where longs pay shorts.

    >>> is_reversed({"sign": "100 * (sell_price / buy_price - 1)"}, "spread_pct")
    False
    >>> is_reversed({"positive_means": "long the sell leg, short the buy leg"}, "spread_pct")
    True
    >>> is_reversed({"sign": "Positive where shorts pay longs."}, "buy_rate")
    True
    >>> is_reversed({"sign": "the usual one"}, "spread_pct") is None
    True
    """
    sentences = [described.get(name) for name in _SIGN]
    votes = set()
    for sentence in sentences:
        if isinstance(sentence, str) and sentence.strip():
            text = " ".join(sentence.lower().split())
            votes |= _of_rates(text) if column in _RATES else _of_legs(text)
            if _OTHER_WAY.search(text):
                votes |= {True, False}  # a sentence turned round is not read
    return votes.pop() if len(votes) == 1 else None


def _of_legs(text: str) -> set[bool]:
    """Return what a text means for the two legs: True where reversed, both where it is unclear."""
    loses = _LOSES.search(text) is not None
    votes = {((held == "long") != (leg == "buy")) != loses for held, leg in _HELD.findall(text)}
    for first, word, second in _ABOVE.findall(text):
        if first != second:
            votes.add((first == "buy") != (word in _BELOW))
    votes |= {first == "buy" for first, second in _FORMULA.findall(text) if first != second}
    return votes


def _of_rates(text: str) -> set[bool]:
    """Return what a text means for who pays: True where reversed, both where it is unclear."""
    return {(who == "long") != (what == "pay") for who, what in _PAYMENT.findall(text)}


def declared_key(
    route: HistoryRoute, record: Mapping[str, Any], findings: list[Finding]
) -> list[str]:
    """Read what identifies a row of a trajectory. Anything but ``ts`` alone is a finding.

    The names that the trajectory is asked by are the same in all its rows, and left out. So are
    names of no field of the record. An empty key promises nothing: rows of one time may differ in
    their values alone.

    >>> from toolkit.market import Family
    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> record = {"key": ["symbol", "ts", "seq"], "fields": {"ts": {}, "seq": {}, "price": {}}}
    >>> declared_key(BUILT_IN.histories[Family.PRICE], record, [])
    ['ts', 'seq']
    """
    key, fields = record.get("key"), record.get("fields")
    if not isinstance(key, list) or not all(isinstance(name, str) for name in key):
        return list(route.key)
    ts = next(rule.wire for rule in route.fields if rule.column == "ts")
    beside = [name for name in key if name not in (ts, *route.trajectory_parameters)]
    carried = [name for name in beside if isinstance(fields, dict) and name in fields]
    where = f"{route.tool}.key"
    if absent := ", ".join(name for name in beside if name not in carried):
        says = f"{absent:.80}: no field of the record, so not used to tell rows apart"
        findings.append(Finding("key_unusable", where, says))
    if key and not carried:
        return ["ts"]
    says = f"rows of one time are told apart by {', '.join(carried) or 'all of their values'}"
    findings.append(Finding("ties_allowed", where, f"{says:.200}"))
    return ["ts", *carried] if key else []


def declared_fields(
    route: HistoryRoute, record: Mapping[str, Any], findings: list[Finding]
) -> dict[str, dict[str, Any]]:
    """Return what is declared of a route's fields, by column: their units and signs.

    A unit that cannot be converted is None, so that the field's values stay in ``extra``.
    """
    said = record.get("fields")
    found: dict[str, dict[str, Any]] = {}
    if not isinstance(said, dict):
        return found
    for rule in route.sent:
        where = f"{route.tool}.{rule.wire}"
        described = said.get(rule.wire)
        if not isinstance(described, dict):
            findings.append(Finding("field_missing", where, "not described"))
            continue
        unit = described.get("unit")
        changed = replace(rule, unit=unit) if isinstance(unit, str) else rule
        try:
            factor = changed.factor
        except InputError as error:
            findings.append(Finding("unit_unusable", where, f"{error}; kept in extra instead"))
            found[rule.column] = {"unit": None}
            continue
        if factor != 1.0:
            findings.append(Finding("unit_converted", where, f"{unit} instead of {rule.wanted}"))
        sign = _declared_sign(rule, where, described, findings)
        found[rule.column] = {"unit": changed.unit, **sign}
    known = {rule.wire for rule in route.fields}
    findings.extend(
        Finding("field_unknown", f"{route.tool}.{name}", "kept in extra")
        for name in said
        if name not in known
    )
    return found


def _declared_sign(
    rule: FieldRule, where: str, described: Mapping[str, Any], findings: list[Finding]
) -> dict[str, bool]:
    """Return a declared sign. A reversed one is turned at load, an unclear one taken as ours."""
    said = "; ".join(str(described[name]) for name in _SIGN if described.get(name))
    if rule.column not in SIGNED or not said:
        return {}
    turned = is_reversed(described, rule.column)
    if turned is None:
        says = f"taken as docs/concepts.md has it, for {said!r:.120} is not understood; "
        says += f"fields.{rule.column} = {{ reversed = ... }} in the profile states it"
        findings.append(Finding("sign_unclear", where, says))
    elif turned:
        findings.append(Finding("sign_reversed", where, f"turned at load: {said!r:.120}"))
    return {"reversed": bool(turned)}
