"""A page's bytes to a frame: strictly typed, nothing dropped, nothing guessed.

Every row is decoded against the exact field list. A page with one row that deviates (a field
nobody declared, a missing one, another type) is read again field by field: what fits no column is
kept, byte for byte, in ``extra``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
import polars as pl

from toolkit.errors import WireError
from toolkit.market import Family
from toolkit.tables import SERIES
from toolkit.wire.exchange import Answer
from toolkit.wire.profile import FieldRule, Finding, HistoryRoute

__all__ = ["RawPage", "column_schema", "read_history_page"]


@dataclass(frozen=True, slots=True)
class RawPage:
    """One answer of a history route: its rows as a frame, and the paging value it gave.

    ``frame`` has `column_schema`'s columns, in the order of the wire.
    """

    frame: pl.DataFrame
    next_end_time: int | None
    findings: tuple[Finding, ...]

    @property
    def oldest(self) -> int | None:
        """The smallest ts of the page, None where it has no rows."""
        return self.frame["ts"].min() if self.frame.height else None  # type: ignore[return-value]

    @property
    def newest(self) -> int | None:
        """The largest ts of the page, None where it has no rows."""
        return self.frame["ts"].max() if self.frame.height else None  # type: ignore[return-value]


def column_schema(family: Family) -> pl.Schema:
    """The columns of a page's frame: ts, the family's values and extra.

    Examples
    --------
    >>> list(column_schema(Family.SPREAD))
    ['ts', 'buy_price', 'sell_price', 'spread_pct', 'extra']
    """
    table = SERIES[family]
    names = ["ts", *(column.name for column in table.values)]
    return pl.Schema({name: table.schema[name] for name in names})


def read_history_page(route: HistoryRoute, answer: Answer) -> RawPage:
    """Read one answer of a history route.

    Raises `WireError` where the body is not JSON, has no array of rows, or a row has no time.

    Examples
    --------
    >>> from toolkit.wire.profile import BUILT_IN
    >>> body = (b'{"items":[{"ts":60,"buy_price":100.0,"sell_price":101.0,"spread_pct":1.0}],'
    ...         b'"next_end_time":60}')
    >>> page = read_history_page(BUILT_IN.histories[Family.SPREAD], Answer(200, {}, body))
    >>> page.next_end_time, page.frame.row(0)
    (60, (60, 100.0, 101.0, 1.0, None))
    """
    envelope = _envelope(route, answer)
    findings: list[Finding] = []
    items = _items(route, envelope, answer, findings)
    try:
        frame = _exact(route, items)
    except msgspec.DecodeError:
        frame = _field_by_field(route, items, answer, findings)
    next_end_time = _next(route, envelope, findings)
    return RawPage(_scaled(route, frame), next_end_time, tuple(findings))


def _envelope(route: HistoryRoute, answer: Answer) -> dict[str, msgspec.Raw]:
    try:
        return msgspec.json.decode(answer.body, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        kind = answer.headers.get("content-type", "no content type")
        raise WireError(
            f"{answer.url or route.path} answered 200 with a body that is not the JSON of a page "
            f"({kind}, {len(answer.body)} bytes: {error})",
            status=answer.status,
            url=answer.url,
        ) from None


def _items(
    route: HistoryRoute,
    envelope: dict[str, msgspec.Raw],
    answer: Answer,
    findings: list[Finding],
) -> msgspec.Raw:
    if route.items in envelope:
        return envelope[route.items]
    arrays = [name for name, raw in envelope.items() if bytes(raw).lstrip()[:1] == b"["]
    if len(arrays) != 1:
        raise WireError(
            f"{answer.url or route.path} answered without rows under {route.items!r}; "
            f"it has {', '.join(envelope) or 'no fields'}",
            status=answer.status,
            url=answer.url,
        )
    findings.append(Finding("items_renamed", route.path, f"{arrays[0]} instead of {route.items}"))
    return envelope[arrays[0]]


def _next(
    route: HistoryRoute, envelope: dict[str, msgspec.Raw], findings: list[Finding]
) -> int | None:
    raw = envelope.get(route.next)
    if raw is None:
        findings.append(Finding("next_missing", route.path, f"no {route.next} in the page"))
        return None
    value = msgspec.json.decode(raw)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        factor = next(rule.factor for rule in route.fields if rule.column == "ts")
        return None if value is None else int(value * factor)
    findings.append(Finding("next_unreadable", route.path, f"{route.next} is {value!r}"))
    return None


@lru_cache(maxsize=64)
def _decoder(fields: tuple[FieldRule, ...]) -> msgspec.json.Decoder[list[Any]]:
    columns = [(rule.column, int if rule.column == "ts" else float | None) for rule in fields]
    record = msgspec.defstruct(
        "Record",
        columns,
        rename={rule.column: rule.wire for rule in fields},
        forbid_unknown_fields=True,
        gc=False,
    )
    return msgspec.json.Decoder(list[record])  # type: ignore[valid-type]


def _exact(route: HistoryRoute, items: msgspec.Raw) -> pl.DataFrame:
    """The frame of a page whose every row has exactly the declared fields and types."""
    rows = _decoder(route.fields).decode(items)
    columns = {rule.column: [getattr(row, rule.column) for row in rows] for rule in route.fields}
    return _frame(route, columns, len(rows))


def _frame(route: HistoryRoute, columns: dict[str, list[Any]], height: int) -> pl.DataFrame:
    schema = column_schema(route.family)
    absent = [None] * height
    return pl.DataFrame({name: columns.get(name, absent) for name in schema}, schema=schema)


def _field_by_field(
    route: HistoryRoute, items: msgspec.Raw, answer: Answer, findings: list[Finding]
) -> pl.DataFrame:
    """The frame of a page with rows that deviate; what fits no column goes to ``extra``."""
    try:
        rows = msgspec.json.decode(items, type=list[dict[str, msgspec.Raw]])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WireError(
            f"{answer.url or route.path} answered with rows that are not JSON objects ({error})",
            status=answer.status,
            url=answer.url,
        ) from None
    columns: dict[str, list[Any]] = {name: [] for name in column_schema(route.family)}
    drift: Counter[tuple[str, str]] = Counter()
    for row in rows:
        left = dict(row)
        for rule in route.fields:
            columns[rule.column].append(_value(rule, left, drift))
        if columns["ts"][-1] is None:
            raise WireError(f"{answer.url or route.path} answered with a row without a usable time")
        columns["extra"].append(_extra(left))
        drift.update(("field_unknown", name) for name in left)
    findings.extend(
        Finding(kind, f"{route.path}.{name}", f"in {count} of {len(rows)} rows")
        for (kind, name), count in sorted(drift.items())
    )
    filled = {name: values for name, values in columns.items() if values}
    return _frame(route, filled, len(rows))


def _value(
    rule: FieldRule, left: dict[str, msgspec.Raw], drift: Counter[tuple[str, str]]
) -> int | float | None:
    """Take a field out of the row; a value of another type stays behind for ``extra``."""
    raw = left.get(rule.wire)
    if raw is None:
        drift["field_missing", rule.wire] += 1
        return None
    kind: Any = int if rule.column == "ts" else float | None
    try:
        value: int | float | None = msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError:
        drift["type_changed", rule.wire] += 1
        return None
    del left[rule.wire]
    return value


def _extra(left: dict[str, msgspec.Raw]) -> str | None:
    if not left:
        return None
    parts = (
        f"{msgspec.json.encode(name).decode()}:{bytes(raw).decode()}" for name, raw in left.items()
    )
    return "{" + ",".join(parts) + "}"


def _scaled(route: HistoryRoute, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame in the columns' units; a time in milliseconds is the second it lies in."""
    changed = [rule for rule in route.fields if rule.factor != 1.0]
    return frame.with_columns(
        (pl.col(rule.column) // round(1 / rule.factor))
        if rule.column == "ts"
        else (pl.col(rule.column) * rule.factor)
        for rule in changed
    )
