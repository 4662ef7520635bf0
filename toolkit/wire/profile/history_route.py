"""The histories in the wire profile: routes, parameters, and the fields of a row."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import quote

import polars as pl

from toolkit.errors import InputError
from toolkit.market import UNIT_FACTORS, Family, Trajectory, unit_factor
from toolkit.tables import SERIES
from toolkit.wire.exchange import Request, Response
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.profile.layers import BUILT_IN_DOCUMENT, Document
from toolkit.wire.profile.places import WHOLE, flat_answer, is_nameable
from toolkit.wire.profile.spelling import (
    AS_OURS,
    Spelling,
    check_templates,
    clock_value,
    filled,
    filled_query,
    placeholders,
)

_Value = TypeVar("_Value", float, pl.Expr)
_AN_HOUR = "fraction_per_hour"
_USUAL_STEP_S = {Family.FUNDING: 3_600}
OF_PAGE = ("start_time", "end_time", "limit")
"""The parameters of a page. All others name its trajectory."""


@dataclass(frozen=True, slots=True)
class FieldRule:
    """A field of a wire record: the column it fills, its place, unit and sign.

    ``wire`` is a place in the row: see `toolkit.wire.profile.places`. With ``text`` its numbers may
    be JSON numbers as text, with ``printed`` also such as ``"+1,234.5"``. With ``inverse`` a spread
    is the buy leg's price over the sell leg's. A ``constant`` fills the column without a field.
    """

    column: str
    wire: str
    unit: str
    wanted: str
    text: bool = False
    reversed: bool = False
    inverse: bool = False
    printed: bool = False
    constant: float | None = None

    @property
    def linear(self) -> bool:
        """Whether a value is only multiplied, unlike a ratio or an inverse spread."""
        return self.unit != "ratio" and not self.inverse

    def ours(self, value: _Value) -> _Value:
        """Return a value in the column's unit, with the column's sign.

        >>> round(FieldRule("spread_pct", "s", "bps", "percent", inverse=True).ours(-100.0), 9)
        1.01010101
        """
        if self.linear:
            return value * self.factor + 0.0
        unit = "fraction" if self.unit == "ratio" else self.unit
        value = value - 1.0 if self.unit == "ratio" else value * unit_factor(unit, "fraction")
        value = -value if self.reversed else value
        value = -value / (value + 1.0) if self.inverse else value
        return value * unit_factor("fraction", self.wanted) + 0.0

    def theirs(self, value: _Value) -> _Value:
        """Return the service's value for one of the column: the inverse of `ours`.

        >>> FieldRule("spread_pct", "s", "ratio", "percent", inverse=True).theirs(25.0)
        0.8
        """
        if self.linear:
            return value / self.factor
        value = value * unit_factor(self.wanted, "fraction")
        value = -value / (value + 1.0) if self.inverse else value
        value = -value if self.reversed else value
        return value + 1.0 if self.unit == "ratio" else value / unit_factor(self.unit, "fraction")

    @property
    def factor(self) -> float:
        """The factor from a wire number to the column's unit and sign.

        >>> FieldRule("spread_pct", "spread_bps", "bps", "percent").factor
        0.01
        """
        wanted = _AN_HOUR if self.hours else self.wanted
        unit = "fraction" if (self.unit, wanted) == ("ratio", "percent") else self.unit
        unit = wanted if (unit, wanted) == ("iso", "hours") else unit  # a duration, read as hours
        return unit_factor(unit, wanted) * (-1 if self.reversed else 1)

    @property
    def hours(self) -> str | None:
        """The column that turns a rate of a fixed time into that of its interval, by multiplying.

        >>> FieldRule("buy_rate", "r", "percent_per_hour", "fraction_per_interval").hours
        'buy_interval_hours'
        """
        fixed = UNIT_FACTORS.get(self.unit, ("", 0))[0] == UNIT_FACTORS[_AN_HOUR][0]
        if fixed and self.wanted == "fraction_per_interval":
            return self.column.replace("rate", "interval_hours")
        return None


def field_rules(
    where: str, said: Document, wanted: Mapping[str, str], absent: Collection[str] = ()
) -> tuple[FieldRule, ...]:
    """Return the rules of a section's fields, without those of unknown unit.

    A number as ``wire`` is a constant: see `toolkit.wire.profile.layers.merged`. ``wanted`` has the
    columns' units. Columns of ``absent`` may have the place "", for none.
    """
    rules: list[FieldRule] = []
    numbers = {"text": said["numbers"] != "json", "printed": said["numbers"] == "printed"}
    for column, field_ in said["fields"].items():
        wire, unit = field_["wire"], field_["unit"]
        if not isinstance(wire, str):
            rules.append(FieldRule(column, "", "hours", wanted[column], constant=float(wire)))
            continue
        if not is_nameable(wire) and (wire or column not in absent):
            allowed = "a place without quotes, backslashes and control characters"
            raise InputError(f"{where}.fields.{column}.wire", wire, allowed)
        if unit is None:  # schemas gave it none that can be used, and nor does the user
            continue
        way = {name: field_[name] for name in ("reversed", "inverse") if name in field_}
        rule = FieldRule(column, wire, unit, wanted[column], **numbers, **way)
        try:
            _ = rule.factor
        except InputError as error:
            raise InputError(f"{where}.fields.{column}.unit", unit, error.allowed) from None
        if unit == "ratio" and rule.reversed:
            raise InputError(f"{where}.fields.{column}.reversed", True, "inverse = true of a ratio")
        for other in rules:
            may_share = said.get("row_leg") or _may_share(rule, other)
            if wire and other.wire == wire and not may_share:
                allowed = f"another place than that of {other.column}"
                raise InputError(f"{where}.fields.{column}.wire", wire, allowed)
        rules.append(rule)
    return tuple(rules)


@dataclass(frozen=True, slots=True)
class HistoryRoute:
    """One trajectory route: its address, parameters and fields.

    Names are those of ``built_in.toml``, except the first two and last two. ``retention_s`` is None
    for everything. ``key`` identifies a row of a trajectory: ``ts`` and other fields, empty if only
    all of a row does. ``row_leg`` has the places of a row's leg, for rows of one. ``ask`` has the
    service's parameters as templates, in place of ``parameters``; ``times`` is the unit of
    requested times. A service with the oldest rows first is asked by start.
    """

    family: Family
    tool: str
    path: str
    items: str
    rows: str
    next: str
    lost: str
    limit: int
    order: str
    times: str
    numbers: str
    key: tuple[str, ...]
    retention_s: int | None
    delay_s: int
    settle_s: int
    minimum_plan: str
    ask: Mapping[str, str]
    parameters: Mapping[str, str]
    fields: tuple[FieldRule, ...]
    row_leg: Mapping[str, str] = field(default_factory=dict)
    spelling: Spelling = AS_OURS
    limits: Limits = field(default=LIMITS, repr=False)

    @classmethod
    def of(cls, family: Family, said: Document, spelling: Spelling, limits: Limits) -> HistoryRoute:
        """Make the route of a document. `InputError` names an invalid entry."""
        where = f"history.{family}"
        wanted = {column.name: column.unit for column in SERIES[family].columns}
        parts: dict[str, Any] = {
            **said,
            "items": WHOLE if said["rows"] == "lines" else said["items"],
            "key": tuple(said["key"]),
            "retention_s": None if said["retention_s"] == math.inf else said["retention_s"],
            "fields": field_rules(where, said, wanted),
        }
        tool = BUILT_IN_DOCUMENT["tools"][f"{family}_history"]
        route = cls(family=family, tool=tool, spelling=spelling, limits=limits, **parts)
        check_templates(f"{where}.ask", route.ask, route.placeholders)
        of_path = [place for place in route.placeholders if place not in OF_PAGE]
        check_templates(f"{where}.path", {"": route.path}, of_path)
        for rule in route.fields:
            check_templates(f"{where}.fields.{rule.column}.wire", {"": rule.wire}, of_path)
        if places := [place for place in route.ask.values() if _mixes(place)]:
            allowed = "a template of the page, or one of the trajectory, not of both"
            raise InputError(f"{where}.ask", places[0], allowed)
        if route.oldest_first and not route.has_start:
            allowed = "oldest_first with an ask that has {start_time}"
            raise InputError(f"{where}.order", route.order, allowed)
        return _of_single_legs(where, route) if route.row_leg else route

    @property
    def oldest_first(self) -> bool:
        """Whether a page has the oldest rows from its start on."""
        return self.order == "oldest_first"

    @property
    def has_start(self) -> bool:
        """Whether requests have a start, so that an answer does not show older rows."""
        return any("{start_time}" in template for template in self.ask.values())

    def start_before(self, end_time: int) -> int:
        """Return the start of a request for the rows before ``end_time``.

        >>> from toolkit.wire.profile.profile import BUILT_IN
        >>> BUILT_IN.histories[Family.PRICE].start_before(90_000)
        60000
        """
        return max(0, end_time - _USUAL_STEP_S.get(self.family, 60) * self.limit)

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The allowed placeholders of ``ask``.

        >>> from toolkit.wire.profile.profile import BUILT_IN
        >>> BUILT_IN.histories[Family.PRICE].placeholders
        ('symbol', 'base', 'quote', 'exchange', 'market', 'start_time', 'end_time', 'limit')
        """
        sides = [""] if self.family is Family.PRICE else ["buy.", "sell."]
        legs = (f"{side}{name}" for side in sides for name in ("exchange", "market"))
        return ("symbol", "base", "quote", *legs, *OF_PAGE)

    def query(
        self,
        trajectory: Trajectory,
        end_time: int,
        start_time: int | None = None,
        limit: int | None = None,
    ) -> dict[str, object]:
        """Return the query for a trajectory's rows from ``start_time`` to before ``end_time``.

        >>> from toolkit.wire.profile.profile import BUILT_IN
        >>> BUILT_IN.histories[Family.PRICE].query(Trajectory.parse("BTC_USD:KRAKEN.spot"), 60)
        {'symbol': 'BTC_USD', 'exchange': 'KRAKEN', 'market': 'spot', 'end_time': 60, 'limit': 500}
        """
        if self.family is Family.FUNDING and len(trajectory.legs) == 1:
            allowed = "the funding of two legs: that of one is of rows of your own (`rail import`)"
            raise InputError("trajectory", trajectory.key, allowed)
        start = self.start_before(end_time) if start_time is None else start_time
        page: dict[str, object] = {
            "start_time": clock_value(start, self.times),
            "end_time": clock_value(end_time, self.times),
            "limit": limit or self.limit,
        }
        if self.ask:
            return filled_query(self.ask, self.spelling.values(trajectory) | page)
        named = {name: page[role] for role, name in self.parameters.items() if role in OF_PAGE}
        return self.trajectory_query(trajectory) | named

    def request(
        self,
        trajectory: Trajectory,
        end_time: int,
        start_time: int | None = None,
        limit: int | None = None,
    ) -> Request:
        """Return the request of a query. A parameter that the path has is only there.

        >>> from toolkit.wire.profile.profile import BUILT_IN
        >>> route = replace(BUILT_IN.histories[Family.PRICE], path="/{symbol}/prices")
        >>> route.request(Trajectory.parse("BTC_USD:KRAKEN.spot"), 60, limit=5)
        Request(path='/BTC_USD/prices', query=(('exchange', 'KRAKEN'), ('market', 'spot'), ...))
        """
        query = self.query(trajectory, end_time, start_time, limit)
        if not (places := placeholders(self.path)):
            return Request.get(self.path, query)
        words = self.spelling.values(trajectory).items()
        path = filled(self.path, {place: quote(word, safe="") for place, word in words})
        roles = {place.replace(".", "_") for place in places}
        roles |= {"symbol"} if {"base", "quote"} <= roles else set()
        named = () if self.ask else [self.parameters.get(role, role) for role in roles]
        return Request.get(path, {name: word for name, word in query.items() if name not in named})

    def trajectory_query(self, trajectory: Trajectory) -> dict[str, object]:
        """Return the part of the query that names the trajectory.

        >>> from toolkit.wire.profile.profile import BUILT_IN
        >>> BUILT_IN.histories[Family.PRICE].trajectory_query(
        ...     Trajectory.parse("BTC_USD:KRAKEN.spot"))
        {'symbol': 'BTC_USD', 'exchange': 'KRAKEN', 'market': 'spot'}
        """
        values = self.spelling.values(trajectory)
        if self.ask:
            return {name: filled(self.ask[name], values) for name in self.trajectory_parameters}
        words = [word for place, word in values.items() if place not in ("base", "quote")]
        return dict(zip(self.trajectory_parameters, words, strict=True))

    @property
    def sent(self) -> tuple[FieldRule, ...]:
        """The rules of fields in a row: those without a constant."""
        return tuple(rule for rule in self.fields if rule.constant is None)

    def named(self, trajectory: Trajectory) -> HistoryRoute:
        """Return the route with the trajectory's words in its fields' places.

        >>> from toolkit.wire.profile.profile import BUILT_IN
        >>> wire = {"fields": {"buy_price": {"wire": "px[{buy.exchange}.{buy.market}]"}}}
        >>> found = BUILT_IN.over({"history": {"spread": wire}}).histories[Family.SPREAD]
        >>> pair = Trajectory.parse("BTC_USD:KRAKEN.spot:COINBASE.spot")
        >>> found.named(pair).rule("buy_price").wire
        'px[KRAKEN.spot]'
        """
        if not any("{" in rule.wire for rule in self.fields):
            return self
        words = self.spelling.values(trajectory)
        fields = (replace(rule, wire=filled(rule.wire, words)) for rule in self.fields)
        return replace(self, fields=tuple(fields))

    def flat(self, answer: Response) -> Response:
        """Return an answer with rows and fields at the top: see `places`."""
        wires = (*(rule.wire for rule in self.sent), *self.row_leg)
        return flat_answer(answer, self.items, (self.next, self.lost), wires, self.rows)

    def rule(self, column: str) -> FieldRule | None:
        """Return the rule of a column's field, None without one."""
        return next((rule for rule in self.fields if rule.column == column), None)

    @property
    def row_key(self) -> tuple[str, ...]:
        """The key by column names, and by fields that no column takes.

        >>> from toolkit.wire.profile.profile import BUILT_IN
        >>> replace(BUILT_IN.histories[Family.PRICE], key=("ts", "price", "seq")).row_key
        ('ts', 'price', 'seq')
        """
        columns = {rule.wire: rule.column for rule in self.fields}
        return tuple(columns.get(name, name) for name in self.key)

    @property
    def trajectory_parameters(self) -> list[str]:
        """The parameters that name the trajectory."""
        if self.ask:
            return [n for n, t in self.ask.items() if {*placeholders(t)} - {*OF_PAGE}]
        return [name for role, name in self.parameters.items() if role not in OF_PAGE]


def _of_single_legs(where: str, route: HistoryRoute) -> HistoryRoute:
    """Return a route of rows of one leg each, read alike."""
    check_templates(f"{where}.row_leg", route.row_leg, ("exchange", "market"))
    named = {*placeholders("".join(route.row_leg.values()))}
    if named != {"exchange", "market"} or not all(map(is_nameable, route.row_leg)):
        allowed = "places with {exchange} and {market}, e.g. { leg = '{exchange}.{market}' }"
        raise InputError(f"{where}.row_leg", dict(route.row_leg), allowed)
    if route.oldest_first:
        raise InputError(f"{where}.order", route.order, "newest_first, where a row is of one leg")
    for name in ("rate", "interval_hours"):
        buy, sell = (route.rule(f"{side}_{name}") for side in ("buy", "sell"))
        if len({rule and replace(rule, column="", constant=None) for rule in (buy, sell)}) > 1:
            allowed = f"the field, unit and sign of buy_{name}, where a row is of one leg"
            raise InputError(f"{where}.fields.sell_{name}", sell and sell.wire, allowed)
    fields = tuple(rule for rule in route.fields if rule.column != "differential_pct_8h")
    return replace(route, fields=fields, key=("ts",))


def _may_share(one: FieldRule, other: FieldRule) -> bool:
    """Check for two columns that may share a field: decoded alike, not both prices or rates."""
    names = {rule.column.partition("_")[2] for rule in (one, other)}
    kinds = {(rule.column == "ts", rule.unit == "iso") for rule in (one, other)}
    return len(kinds) == 1 and not (len(names) == 1 and names <= {"price", "rate"})


def _mixes(template: str) -> bool:
    """Check for a template of both the trajectory and the page."""
    names = set(placeholders(template))
    return bool(names & {*OF_PAGE}) and bool(names - {*OF_PAGE})
