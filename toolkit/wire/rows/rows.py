"""A page's bytes to a frame: strictly typed, nothing dropped, nothing guessed.

Rows are decoded against the exact field list. A page with a deviating row (a field too many, too
few, or of another type) is read again field by field: values that fit no column are kept, byte for
byte, in ``extra``. If that is too large it is a finding, and its number of bytes is in its place:
the row stays, since paging follows its times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec
import polars as pl

from toolkit.errors import WireError
from toolkit.foreign import plain
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory, format_ts
from toolkit.tables import SERIES
from toolkit.wire.agreement import disagreements
from toolkit.wire.exchange import NO_CONTENT, UNREADABLE, Response, decoded, saying
from toolkit.wire.findings import Finding, LostStretch, read_lost
from toolkit.wire.profile.history_route import FieldRule, HistoryRoute
from toolkit.wire.profile.spelling import filled, iso_ms
from toolkit.wire.rows.body import check_number, too_large
from toolkit.wire.rows.conversion import Time, kind_of, number_of, scaled
from toolkit.wire.rows.mending import check_text, doubled_in_page, read_mended

_SECONDS = range(253_402_300_800)  # to the end of year 9999: milliseconds since 1978 lie beyond
_ROWS = {
    "list": "objects",
    "columns": "columns of one length",
    "keyed": "the values of an object",
    "lines": "an object on each line",
    "table": "lists below one of their names, as long as it is",
}
_PRICES = ("price", "mark_price", "buy_price", "sell_price")
_OTHER = {"buy": "sell_", "sell": "buy_"}
_NOWHERE = (b"null", b'""', b"false")
TOO_LARGE = pl.col("extra").str.starts_with("{").fill_null(value=True).not_()
"""Picks the rows of a page's frame that are too large to keep."""


@dataclass(frozen=True, slots=True)
class RawPage:
    """One answer of a history route: its rows as a frame, and the paging value.

    ``frame`` has `column_schema`'s columns, in the order of the wire. ``ends`` if the service
    states (by a null paging value) that nothing older exists. ``oldest`` and ``newest`` are ts,
    None without rows. ``lost`` is what the source reports as lost, of any time.
    """

    frame: pl.DataFrame
    next_end_time: int | None
    ends: bool
    findings: tuple[Finding, ...]
    lost: tuple[LostStretch, ...] = ()
    oldest: int | None = None
    newest: int | None = None

    @property
    def missing(self) -> list[Interval]:
        """The seconds of rows that are too large to keep."""
        return [Interval(ts, ts + 1) for ts in too_large_to_keep(self.frame)["ts"]]

    @property
    def size(self) -> int:
        """The number of rows, including those without a time, which are not in the frame."""
        timeless = sum(found.kind == "row_without_time" for found in self.findings)
        return self.frame.height + timeless

    @property
    def rises(self) -> bool:
        """Whether the first row of the wire is older than the last."""
        return self.frame.height > 0 and self.frame["ts"][0] < self.frame["ts"][-1]


def too_large_to_keep(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of a page that are too large to keep."""
    none = frame["extra"].null_count() == frame.height  # as usual: a filter costs more
    return frame.clear() if none else frame.filter(TOO_LARGE)


def kept(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of a page that are not too large to keep."""
    return frame if too_large_to_keep(frame).is_empty() else frame.remove(TOO_LARGE)


@lru_cache
def column_schema(family: Family) -> pl.Schema:
    """Return the columns of a page's frame: ts, the family's values and extra.

    >>> list(column_schema(Family.SPREAD))
    ['ts', 'buy_price', 'sell_price', 'spread_pct', 'extra']
    """
    table = SERIES[family]
    names = ["ts", *(column.name for column in table.values)]
    return pl.Schema({name: table.schema[name] for name in names})


def read_history_page(route: HistoryRoute, trajectory: Trajectory, answer: Response) -> RawPage:
    """Read one answer of a history route. Status 204 is an empty page with nothing older.

    Raises `WireError` for a body that is not JSON, has no array of rows, names another trajectory,
    has no row with a time, or more rows than ``page_items`` of the route's limits.

    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> body = (b'{"items":[{"ts":60,"buy_price":100.0,"sell_price":101.0,"spread_pct":1.0}],'
    ...         b'"next_end_time":60}')
    >>> key = Trajectory.parse("BTC_USD:COINBASE.spot:KRAKEN.spot")
    >>> page = read_history_page(BUILT_IN.histories[Family.SPREAD], key, Response(200, {}, body))
    >>> page.next_end_time, page.frame.row(0)
    (60, (60, 100.0, 101.0, 1.0, None))
    """
    if answer.status == NO_CONTENT:
        return RawPage(column_schema(route.family).to_frame(), None, True, ())
    says, route = answer.message, route.named(trajectory)
    findings: list[Finding] = []
    answer, envelope, as_sent = read_mended(
        lambda body: _envelope(route, replace(answer, body=body)), answer.body, route.path, findings
    )
    _check_trajectory(route, trajectory, [envelope], answer)
    items = _items(route, envelope, answer, findings)
    check_number(items, answer, route.path, route.limits.page_items)
    try:
        frame, fields = _exact(route, items)
    except UNREADABLE:
        frame, fields = _field_by_field(route, trajectory, items, answer, findings)
    if as_sent:
        findings += doubled_in_page(answer.body, envelope, items, fields, route.path)
    frame = scaled(route, frame, findings)
    findings += disagreements(route, frame)
    findings += _not_positive(route, frame)
    findings += _too_large(route, trajectory, frame)
    times = frame["ts"].to_numpy()
    ends_at = (int(times.min()), int(times.max())) if times.size else ()
    if not all(ts in _SECONDS for ts in ends_at):
        raise _unreadable(route, answer, "with times that are not Unix seconds, nor declared so")
    if says and frame.is_empty():
        findings.append(Finding("empty_page_says", route.path, says))
    pointer = _next(route, envelope, answer, findings, empty=frame.is_empty())
    ends = bytes(envelope.get(route.next, b"")) == b"null"
    said = envelope.get(route.lost, msgspec.Raw(b"[]"))
    lost = (*read_lost(said, f"{route.path}.{route.lost}", findings),)
    return RawPage(frame, pointer, ends, tuple(findings), lost, *ends_at)


def broken_key(
    route: HistoryRoute, frame: pl.DataFrame
) -> tuple[frozenset[int], tuple[Finding, ...]]:
    """Return the times of different rows of one page although ts is the key, and a finding.

    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> page = pl.DataFrame({"ts": [120, 60, 60, 60], "price": [2.0, 1.0, 1.5, 1.5]})
    >>> broken_key(BUILT_IN.histories[Family.PRICE], page)[0]
    frozenset({60})
    """
    if route.key != ("ts",) or route.row_leg or frame["ts"].n_unique() == frame.height:
        return frozenset(), ()
    rows = frame.unique()
    tied = rows.filter(pl.col("ts").is_duplicated())
    if tied.is_empty():
        return frozenset(), ()
    says = (
        f"{tied.height} of {rows.height} rows share their time with another, though ts is the key; "
        f"each is kept as a row; key = [...] in the profile says what tells them apart"
    )
    found = Finding("key_broken", route.path, says)
    return frozenset(tied["ts"].to_list()), (found,)


def _unreadable(route: HistoryRoute, answer: Response, why: str) -> WireError:
    return WireError(
        f"{answer.url or route.path} answered {answer.status}, but {why}",
        status=answer.status,
        url=answer.url,
    )


def _not_positive(route: HistoryRoute, frame: pl.DataFrame) -> Iterator[Finding]:
    for column in (name for name in _PRICES if name in frame.columns):
        lowest: Any = frame[column].min()  # as usual above 0: to count them costs more
        if lowest is not None and lowest <= 0:
            number = int((frame[column] <= 0).sum())
            rule = route.rule(column)
            says = f"in {number} of {frame.height} rows, the lowest {lowest:.6g}"
            where = f"{route.path}.{rule.wire if rule else column}"
            yield Finding("price_not_positive", where, says)


def _too_large(
    route: HistoryRoute, trajectory: Trajectory, frame: pl.DataFrame
) -> Iterator[Finding]:
    rows = too_large_to_keep(frame)
    for ts, size in zip(rows["ts"], rows["extra"], strict=True):
        what = f"{trajectory.key} at {format_ts(ts)} has unknown fields of"
        says = too_large(what, int(size), route.limits.document_bytes)
        yield Finding("row_too_large", route.path, says)


def _envelope(route: HistoryRoute, sent: Response) -> tuple[Response, dict[str, msgspec.Raw], bool]:
    """Return a page, its values by name, and whether it is as sent."""
    answer = route.flat(sent)
    try:
        check_text(answer.body)  # what is kept as it came is not looked into again
        parts = msgspec.json.decode(answer.body, type=dict[str, msgspec.Raw])
    except UNREADABLE as error:
        kind = answer.headers.get("content-type", "no content type")
        why = f"not with the JSON of a page ({kind:.80}, {len(answer.body)} bytes: {error})"
        raise _unreadable(route, answer, why) from None
    return answer, parts, answer is sent


def _check_trajectory(
    route: HistoryRoute,
    trajectory: Trajectory,
    objects: Sequence[dict[str, msgspec.Raw]],
    answer: Response,
) -> None:
    """Refuse rows of another trajectory: a leg was ignored, defaulted or flipped."""
    for name, wanted in route.trajectory_query(trajectory).items():
        for raw in {bytes(o[name]) for o in objects if name in o and name not in route.row_leg}:
            said = _text(msgspec.Raw(raw))
            if said is not None and _bare(said) != _bare(str(wanted)):
                why = f"for another trajectory: {name} is {said!r:.80}, asked was {wanted!r}"
                raise _unreadable(route, answer, why)


def _text(raw: msgspec.Raw | None) -> str | None:
    return None if raw is None else decoded(raw, str)


def _bare(name: str) -> str:
    """Strip case and punctuation: ``btc-usdt`` equals ``BTC_USDT``."""
    return "".join(filter(str.isalnum, name)).casefold()


def _items(
    route: HistoryRoute, envelope: dict[str, msgspec.Raw], answer: Response, findings: list[Finding]
) -> msgspec.Raw:
    if route.items in envelope:
        return envelope[route.items]
    arrays = [n for n, raw in envelope.items() if bytes(raw)[:1] == b"[" and n != route.lost]
    if len(arrays) == 1 and (route.next in envelope or bytes(envelope[arrays[0]])[1:-1].strip()):
        says = f"{arrays[0]!r:.80} instead of {route.items!r}"
        findings.append(Finding("items_renamed", route.path, says))
        return envelope[arrays[0]]
    fields = ", ".join(f"{name!r:.30}" for name in list(envelope)[:8]) or "no fields"
    why = f"without rows under {route.items!r}; it has {fields}{saying(answer)}"
    raise _unreadable(route, answer, why)


def _next(
    route: HistoryRoute,
    envelope: dict[str, msgspec.Raw],
    answer: Response,
    findings: list[Finding],
    *,
    empty: bool,
) -> int | None:
    """Read the paging value, in seconds whatever the unit of ts is."""
    raw = envelope.get(route.next)
    if raw is None:
        findings.append(Finding("next_missing", route.path, f"no {route.next} in the page"))
        return None
    said = bytes(raw)
    if said in _NOWHERE:
        return None
    try:
        as_text = route.times == "iso" or any(rule.text for rule in route.fields)
        number = msgspec.json.decode(said, type=Time | float | str if as_text else Time | float)
        if isinstance(number, str):
            number = int(number) if number.isdecimal() else iso_ms(number) // 1000
        value = int(number) if number == int(number) else -1
    except UNREADABLE:
        value = -1  # no time, and so unreadable
    if value in _SECONDS:
        return value
    if value >= _SECONDS.stop and value // 1000 in _SECONDS:
        findings.append(Finding("next_in_ms", route.path, f"{route.next} is in milliseconds"))
        return value // 1000
    says = f"{route.next} is {said.decode()!r:.80}"
    if empty:
        raise _unreadable(route, answer, f"without rows, and what follows is unclear: {says}")
    findings.append(Finding("next_unreadable", route.path, says))
    return None


class _RowReader:
    """A reader of rows. It expects fields null in one page to stay null, or reads again."""

    def __init__(self, fields: tuple[FieldRule, ...]) -> None:
        self._fields = fields
        self._null = frozenset[str]()

    def columns(self, items: msgspec.Raw) -> tuple[dict[str, list[Any]], int]:
        """Return the columns that are not all null, and the number of rows."""
        null = self._null
        try:
            rows = _decoder(self._fields, null).decode(items)
        except UNREADABLE:
            null = frozenset()
            rows = _decoder(self._fields, null).decode(items)
        named = _named(self._fields)
        columns = {
            rule.column: list(map(attrgetter(named[rule.wire]), rows))
            for rule in self._fields
            if rule.column not in null
        }
        if rows:
            self._null = null | {n for n, each in columns.items() if each.count(None) == len(rows)}
        return columns, len(rows)


_reader_of = lru_cache(maxsize=64)(_RowReader)


@lru_cache(maxsize=64)
def _decoder(
    fields: tuple[FieldRule, ...], null: frozenset[str]
) -> msgspec.json.Decoder[list[Any]]:
    named = _named(fields)
    first = [rule for rule in fields if named[rule.wire] == rule.column]
    record = msgspec.defstruct(
        "Record",
        [(rule.column, None if rule.column in null else kind_of(rule)) for rule in first],
        rename={rule.column: rule.wire for rule in first},
        forbid_unknown_fields=True,
        gc=False,
    )
    return msgspec.json.Decoder(list[record])  # type: ignore[valid-type]  # made above


def _named(fields: Iterable[FieldRule]) -> dict[str, str]:
    """Return each place's first column: two may share one."""
    return {rule.wire: rule.column for rule in reversed(list(fields))}


def _exact(route: HistoryRoute, items: msgspec.Raw) -> tuple[pl.DataFrame, int]:
    """Decode a page with exactly the declared fields and types; count fields.

    Raises `msgspec.ValidationError` for any other page, and for rows of one leg each.
    """
    if route.row_leg:
        raise msgspec.ValidationError("rows of one leg each")
    columns, height = _reader_of(route.sent).columns(items)
    for rule in route.sent:
        if rule.column in columns and (rule.text or rule.unit == "iso"):
            columns[rule.column] = [number_of(rule, value) for value in columns[rule.column]]
    return _frame(route, columns, height), height * len({rule.wire for rule in route.sent})


def _frame(route: HistoryRoute, columns: dict[str, list[Any]], height: int) -> pl.DataFrame:
    filled = [
        pl.Series(name, columns[name], kind)
        if name in columns
        else pl.Series(name, [None], kind).new_from_index(0, height)
        for name, kind in column_schema(route.family).items()
    ]
    return pl.DataFrame(filled)


def _field_by_field(
    route: HistoryRoute,
    trajectory: Trajectory,
    items: msgspec.Raw,
    answer: Response,
    findings: list[Finding],
) -> tuple[pl.DataFrame, int]:
    """Decode a page of deviating rows, and count all fields."""
    try:
        rows = msgspec.json.decode(items, type=list[dict[str, msgspec.Raw]])
    except UNREADABLE as error:
        why = f"with rows that are not {_ROWS[route.rows]} ({error})"
        raise _unreadable(route, answer, why) from None
    _check_trajectory(route, trajectory, rows, answer)
    fields = sum(map(len, rows))
    rows = _with_time(route, rows, findings)
    sides = _sides(route, trajectory, rows, answer)
    columns: dict[str, list[Any]] = {name: [] for name in column_schema(route.family)}
    drift: Counter[tuple[str, str]] = Counter()
    known = {rule.wire for rule in route.sent}
    for row, side in zip(rows, sides, strict=True):
        left = {name: raw for name, raw in row.items() if name not in route.row_leg}
        for rule in route.fields:
            of_other = side and rule.column.startswith(_OTHER[side])
            columns[rule.column].append(None if of_other else _value(rule, row, left, drift))
        if columns["ts"][-1] is None:
            raise _unreadable(
                route, answer, f"with a row without a usable time{_as_text(route, row)}"
            )
        size = sum(len(name) + memoryview(raw).nbytes for name, raw in left.items())
        fits = size <= route.limits.document_bytes
        columns["extra"].append(_extra(left, side) if fits else str(size))
        drift.update(("field_unknown", name) for name in left if name not in known)
    findings.extend(
        Finding(kind, f"{route.path}.{name}", f"in {count} of {len(rows)} rows")
        for (kind, name), count in sorted(drift.items())
    )
    filled = {name: values for name, values in columns.items() if values}
    return _frame(route, filled, len(rows)), fields


def _sides(
    route: HistoryRoute,
    trajectory: Trajectory,
    rows: list[dict[str, msgspec.Raw]],
    answer: Response,
) -> list[str]:
    """Return each row's side, "" if it has both. Refuse rows of another leg."""
    words, places = route.spelling.values(trajectory), route.row_leg.items()
    said = [[_text(row.get(place)) or "" for place, _ in places] for row in rows]
    sides = {
        side: [_bare(filled(text.replace("{", f"{{{side}."), words)) for _, text in places]
        for side in (_OTHER if places else [""])
    }
    found = [next((s for s, of in sides.items() if of == list(map(_bare, e))), None) for e in said]
    if None in found:
        why = f"with a row of no leg of {trajectory.key}: {', '.join(route.row_leg)} is "
        raise _unreadable(route, answer, why + f"{', '.join(said[found.index(None)])!r:.80}")
    return [side or "" for side in found]


def _with_time(
    route: HistoryRoute, rows: list[dict[str, msgspec.Raw]], findings: list[Finding]
) -> list[dict[str, msgspec.Raw]]:
    """Return the rows with a time, all if none has one. The others are findings."""
    wire = next(rule.wire for rule in route.fields if rule.column == "ts")
    timed, others = list[dict[str, msgspec.Raw]](), list[dict[str, msgspec.Raw]]()
    for row in rows:
        (others if bytes(row.get(wire, b"")) == b"null" else timed).append(row)
    if not timed:
        return rows
    says = (plain(_extra(row) or "") for row in others)
    findings.extend(Finding("row_without_time", f"{route.path}.{wire}", each) for each in says)
    return timed


def _as_text(route: HistoryRoute, row: dict[str, msgspec.Raw]) -> str:
    said = next((_text(row.get(rule.wire)) for rule in route.fields if rule.column == "ts"), None)
    if said is None or not said.isdecimal():
        return ""
    line = f'numbers = "text" in [history.{route.family}]'
    return f": it is text, {said!r:.40}; the profile can read it: {line}"


def _value(
    rule: FieldRule,
    row: dict[str, msgspec.Raw],
    left: dict[str, msgspec.Raw],
    drift: Counter[tuple[str, str]],
) -> int | float | None:
    """Take a field out of the row. A value of another type stays for ``extra``."""
    raw = row.get(rule.wire)
    if rule.constant is not None:
        return rule.constant
    if raw is None:
        drift["field_missing", rule.wire] += 1
        return None
    try:
        value = number_of(rule, msgspec.json.decode(raw, type=kind_of(rule)))
    except UNREADABLE:
        drift["type_changed", rule.wire] += 1
        return None
    left.pop(rule.wire, None)
    return value


def _extra(left: dict[str, msgspec.Raw], side: str = "") -> str | None:
    if not left:
        return None
    parts = (
        f"{msgspec.json.encode(name).decode()}:{bytes(raw).decode()}" for name, raw in left.items()
    )
    extra = "{" + ",".join(parts) + "}"
    return f'{{"{side}":{extra}}}' if side else extra
