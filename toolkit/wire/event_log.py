"""The cursor pager of an event log, and the reading of documents, which are stored byte for byte.

A document without a usable time is stored in a finding. One too large to keep is a finding, and its
second stays missing. Pages without a special case are read column by column, three times as fast.

A window is frozen while it is paged, and the cursor is followed exactly, in either order of time.
An empty page, or status 204, ends it. Sources: docs/interface.md, docs/design.md.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import msgspec
import polars as pl

from toolkit.errors import InputError, PagingError, WireError
from toolkit.foreign import LONGEST, escaped, is_name, plain
from toolkit.intervals import Interval, difference, union
from toolkit.market import Market, format_ts
from toolkit.tables import BROUGHT, EVENT
from toolkit.wire.exchange import (
    NO_CONTENT,
    UNREADABLE,
    Outcome,
    Request,
    Response,
    RetryPolicy,
    Step,
    unreadable,
    with_retries,
)
from toolkit.wire.findings import Finding, LostStretch, read_lost
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.profile.event_routes import EventRoute
from toolkit.wire.profile.places import value_at
from toolkit.wire.rows.body import check_number, too_large
from toolkit.wire.rows.conversion import name_of
from toolkit.wire.rows.mending import doubled_fields, doubled_in_page, read_mended

TIMES = {
    "ts": range(-62_135_596_800, 253_402_300_800),
    "ts_ms": range(-62_135_596_800_000, 253_402_300_800_000),
}
"""The years 1 to 9999."""
NUMBERS = dict.fromkeys(TIMES, int) | dict.fromkeys(
    ("magnitude_pct", "peak_pct", "differential_pct_8h"), float
)
"""The columns that are not text."""
NAMES = ("symbol", "buy_exchange", "buy_market", "sell_exchange", "sell_market")
"""Columns whose text must be printable and bounded (`toolkit.foreign.is_name`)."""
MARKETS = frozenset(market.value for market in Market)
LARGEST = sys.float_info.max

_Tree = dict[str, "_Tree"]


def columns_at_once(route: EventRoute, items: Sequence[msgspec.Raw]) -> dict[str, list[Any]] | None:
    """Return the columns of documents, each read as by `read_document`.

    None if any of them has a finding, no time, no id, or a value to convert.

    >>> from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS
    >>> body = msgspec.Raw(b'{"event_id":"e1","ts":60,"pct":11.4,"exchange":"KRAKEN"}')
    >>> read = columns_at_once(BUILT_IN_EVENTS["splash"], [body])
    >>> read["event_id"], read["ts_ms"], read["magnitude_pct"], read["buy_exchange"]
    (['e1'], [60000], [11.4], ['KRAKEN'])
    """
    places = tuple(route.paths.items())
    reader = _reader(places) if route.is_ours and items else None
    if (
        reader is None
        or max(memoryview(item).nbytes for item in items) > route.limits.document_bytes
    ):
        return None
    try:
        texts = [bytes(item).decode() for item in items]
        found = iter(zip(*map(reader[1], map(reader[0].decode, items)), strict=True))
        columns = {name: _checked(name, _first(found, paths)) for name, paths in places}
    except (*UNREADABLE, AttributeError, OverflowError, ValueError):
        return None
    if any(None in columns[name] for name in TIMES):
        times = [*zip(columns["ts"], columns["ts_ms"], strict=True)]
        columns["ts"] = [ms // 1000 if ts is None and ms is not None else ts for ts, ms in times]
        columns["ts_ms"] = [ts * 1000 if ms is None and ts is not None else ms for ts, ms in times]
    if None in columns["ts"] or None in columns["event_id"]:
        return None
    return {"family": [route.family.value] * len(items), "document": texts, **columns}


def _first(found: Iterator[tuple[Any, ...]], paths: Iterable[str]) -> list[Any]:
    """Return each document's first value at the places."""
    values, *others = [_at_place(found, path) for path in paths]
    for other in others:
        if None not in values:
            break
        if values.count(None) == len(values):
            values = other
        else:
            values = tuple(b if a is None else a for a, b in zip(values, other, strict=True))
    return list(values)


def _at_place(found: Iterator[tuple[Any, ...]], path: str) -> tuple[Any, ...]:
    """Return the values at a place, first of a field with that whole name."""
    whole = next(found)
    if "." not in path:
        return whole
    nested = next(found)
    if whole.count(msgspec.UNSET) == len(whole):
        return nested
    return tuple(b if a is msgspec.UNSET else a for a, b in zip(whole, nested, strict=True))


def _checked(name: str, values: list[Any]) -> list[Any]:
    """Return a column's values. Raises `ValueError` for one that does not fit."""
    kind = NUMBERS.get(name, str)
    kinds = set(map(type, values)) - {type(None)}
    if kind is str and int in kinds:
        values = [str(value) if type(value) is int else value for value in values]
        kinds = set(map(type, values)) - {type(None)}
    if not kinds <= ({int, float} if kind is float else {kind}):
        raise ValueError(name)
    if int in kinds and kind is float:
        return [None if value is None else float(value) for value in values]
    distinct = set(values) - {None}
    held = TIMES.get(name) or (MARKETS if name.endswith("_market") else None)
    if not all(
        map(held.__contains__ if held else is_name, distinct if held or name in NAMES else ())
    ):
        raise ValueError(name)
    return values


@functools.lru_cache(maxsize=64)
def _reader(
    places: tuple[tuple[str, tuple[str, ...]], ...],
) -> tuple[msgspec.json.Decoder[Any], attrgetter[tuple[Any, ...]]] | None:
    """Return a decoder of documents, and a getter of the values at the places.

    Each place is first a field at the top, then a path. None for a place in a list, or one that is
    both a value and an object.
    """
    found = [path for _, paths in places for path in paths]
    steps = [way for path in found for way in ([path], path.split("."))[: 1 + ("." in path)]]
    tree: _Tree = {}
    for way in steps:
        level = tree
        for step in way:
            level = level.setdefault(step, {})
    if any("[" in step or _at(tree, way) for way in steps for step in way):
        return None
    taken = attrgetter(*(_name(tree, way) for way in steps))
    return msgspec.json.Decoder(_record(tree)), taken


def _at(tree: _Tree, way: Iterable[str]) -> _Tree:
    return functools.reduce(lambda level, step: level[step], way, tree)


def _name(tree: _Tree, way: Sequence[str]) -> str:
    """Return the attribute of a place, with numbered fields per level."""
    return ".".join(f"f{list(_at(tree, way[:n])).index(step)}" for n, step in enumerate(way))


def _record(tree: _Tree) -> type[msgspec.Struct]:
    fields: list[tuple[str, Any, Any]] = []
    for n, (name, below) in enumerate(tree.items()):
        kind = _record(below) if below else Any
        absent = msgspec.UNSET if "." in name else None  # a null there is not a nested value
        default = msgspec.field(default_factory=kind) if below else absent
        fields.append((f"f{n}", kind, default))
    renamed = {f"f{n}": name for n, name in enumerate(tree)}
    return msgspec.defstruct("Part", fields, rename=renamed, gc=False)


class CursorTrail:
    """The cursors of one window, and the progress in time of its pages.

    A page makes progress if a document in the window is older or newer than all before it.

    >>> trail = CursorTrail("/events", Interval(0, 60))
    >>> trail.follow("a", [59_000]), trail.follow("b", [58_000])
    (None, None)
    >>> trail.follow("a", [57_000])
    Traceback (most recent call last):
    toolkit.errors.PagingError: /events gave one cursor twice in ...: its pages go in circles
    """

    def __init__(self, path: str, window: Interval, limits: Limits = LIMITS) -> None:
        self._path, self._window, self._limits = path, window, limits
        self._seen: set[bytes] = set()
        self._oldest_ms, self._newest_ms = float("inf"), float("-inf")
        self._without = 0

    def follow(self, cursor: str, times_ms: list[int]) -> None:
        """Take the next cursor and the times (ms) of its page.

        Raises `WireError` for a cursor that is too long, `PagingError` for a repeated one and after
        too many pages without progress.
        """
        size = len(cursor.encode())
        if size > (most := self._limits.cursor_bytes):
            raise WireError(
                f"{self._path} gave a cursor of {size:,} bytes in {self._window}; "
                f"at most {most:,} are followed; cursor_bytes of the limits allows more",
                url=self._path,
            )
        seen = hashlib.blake2b(cursor.encode(), digest_size=16).digest()
        if seen in self._seen:
            raise PagingError(
                f"{self._path} gave one cursor twice in {self._window}: its pages go in circles"
            )
        self._seen.add(seen)
        self._without = 0 if self._moved(times_ms) else self._without + 1
        if self._without >= self._limits.unmoved_pages:
            raise PagingError(
                f"{self._path} gave {self._without:,} pages in a row without a step in time in "
                f"{self._window}, each with another cursor: its pages do not end; "
                "unmoved_pages of the limits allows more"
            )

    def _moved(self, times_ms: list[int]) -> bool:
        if not times_ms:
            return False
        oldest = max(min(times_ms), 1000 * self._window.start)
        newest = min(max(times_ms), 1000 * self._window.end)
        moved = oldest < self._oldest_ms or newest > self._newest_ms
        self._oldest_ms = min(self._oldest_ms, oldest)
        self._newest_ms = max(self._newest_ms, newest)
        return moved


_COLUMNS = pl.Schema(
    {name: kind for name, kind in EVENT.schema.items() if name not in ("revision", *BROUGHT)}
)


@dataclass(frozen=True, slots=True)
class EventPage:
    """One page of a window's documents, and whether it is the last.

    ``frame`` has the columns of `toolkit.tables.EVENT` in documents, in the wire's order, without
    documents outside the window or without a time, which are findings. ``missing`` are the seconds
    of documents too large to keep, or the whole window if one shows no time. ``lost`` is what the
    source reports as lost.
    """

    frame: pl.DataFrame
    last: bool
    findings: tuple[Finding, ...]
    missing: tuple[Interval, ...] = ()
    lost: tuple[LostStretch, ...] = ()


class _PageParts(msgspec.Struct):
    items: list[msgspec.Raw]
    more: bool
    cursor: str | None
    named: bool
    """Whether the page has the field of the cursor, or says whether there is more."""
    lost: tuple[LostStretch, ...] = ()


def event_pages(
    route: EventRoute, window: Interval, policy: RetryPolicy
) -> Generator[Step | EventPage, Outcome, None]:
    """Yield steps to carry out and, between them, the pages of one frozen window.

    Raises `InputError` for a window longer than the log's longest, what `with_retries` raises, and
    `WireError` for a body that is not a page, a page without any time or too long a cursor. Raises
    `PagingError` for a repeated cursor, pages without progress in time, and a page with neither
    cursor nor flag for more, unless the window has nothing else.
    """
    if window.length_s > route.window_s:
        raise InputError("window", str(window), f"at most {route.window_s} s at a time")
    trail = CursorTrail(route.path, window, route.limits)
    cursor: str | None = None
    while True:
        request = Request.get(route.path, route.query(window, cursor))
        answer = yield from with_retries(request, policy)
        findings: list[Finding] = []
        envelope = _envelope(route, answer, findings)
        if answer.message and not envelope.items:
            findings.append(Finding("empty_page_says", route.path, answer.message))
        cursor = envelope.cursor if envelope.more and envelope.items else None
        if envelope.more and not envelope.items:
            findings.append(Finding("more_without_more", route.path, "has_more with an empty page"))
        elif envelope.more and cursor is None:
            raise PagingError(
                f"{route.path} says that {window} has more, but gives no cursor to ask for it"
            )
        read, missing = read_documents(route, envelope.items, window, findings)
        frame = _inside(route, read, window, findings)
        if number := 0 if envelope.named else len(envelope.items):
            yield from _check_whole(route, window, frame, missing, policy, number=number)
            findings.append(Finding("paging_unnamed", route.path, _unnamed(route)))
        absent = tuple(union(missing))
        yield EventPage(frame, cursor is None, tuple(findings), absent, envelope.lost)
        if cursor is None:
            return
        times_ms = [1000 * each.start for each in missing]
        trail.follow(cursor, read["ts_ms"].to_list() + times_ms)


def _check_whole(
    route: EventRoute,
    window: Interval,
    frame: pl.DataFrame,
    absent: list[Interval],
    policy: RetryPolicy,
    *,
    number: int,
) -> Generator[Step, Outcome, None]:
    """Raise `PagingError` if a page that names no end of its window may not be all of it.

    After a page that is not full, a request for what is older than its documents, or newer if they
    rise in time, must bring nothing else.
    """
    missing = f"{route.path} sent {number} documents of {window}, and {_unnamed(route)}"
    advice = "the profile can name the fields (more, next)"
    if number >= route.limit:
        raise PagingError(f"{missing}: as many as were asked for; {advice}")
    if frame.is_empty():
        return
    first, last = frame["ts"][0], frame["ts"][-1]
    rest = Interval(last, window.end) if first < last else Interval(window.start, last + 1)
    answer = yield from with_retries(Request.get(route.path, route.query(rest, None)), policy)
    again, gone = read_documents(route, _envelope(route, answer, []).items, rest, [])
    others = _inside(route, again, rest, [])
    key = ["event_id", "event_type", "ts_ms"]
    found = others.join(frame, on=key, how="anti", nulls_equal=True).height
    found += len(difference(gone, absent))
    if found:
        raise PagingError(f"{missing}: {found} others came for {rest}; {advice}")


def _unnamed(route: EventRoute) -> str:
    return f"its page names neither {route.more!r} nor {route.next!r}"


def _envelope(route: EventRoute, answer: Response, findings: list[Finding]) -> _PageParts:
    if answer.status == NO_CONTENT:
        return _PageParts([], more=False, cursor=None, named=True)

    def read(body: bytes) -> _PageParts:
        return _page_parts(route, replace(answer, body=body), findings)

    return read_mended(read, answer.body, route.path, findings)


def _page_parts(route: EventRoute, sent: Response, findings: list[Finding]) -> _PageParts:
    answer = route.flat(sent)
    try:
        page = msgspec.json.decode(answer.body, type=dict[str, msgspec.Raw])
        check_number(page[route.items], answer, route.path, route.limits.page_items)
        items = msgspec.json.decode(page[route.items], type=list[msgspec.Raw])
        cursor = msgspec.json.decode(page.get(route.next, b"null"), type=str | int | None)
        more = msgspec.json.decode(page.get(route.more, b"null"), type=bool | None)
    except (*UNREADABLE, KeyError) as error:
        raise unreadable(answer, route.path, f"an event page ({error})") from None
    named = route.next in page or more is not None
    found = route.cursor_in(str(cursor or "")) or None
    doubled = doubled_in_page(sent.body, page, None, 0, route.path) if answer is sent else []
    small = (body for body in map(bytes, items) if len(body) <= route.limits.document_bytes)
    findings += doubled or doubled_fields(small, route.path)
    said = page.get(route.lost, msgspec.Raw(b"[]"))
    lost = (*read_lost(said, f"{route.path}.{route.lost}", findings),)
    return _PageParts(items, bool(cursor) if more is None else more, found, named, lost)


def read_documents(
    route: EventRoute, items: list[msgspec.Raw], window: Interval, findings: list[Finding]
) -> tuple[pl.DataFrame, list[Interval]]:
    """Read the storable documents of a page that have a time. The others are findings.

    Returns them, and the seconds of those too large to keep.
    """
    if columns := columns_at_once(route, items):
        absent = [None] * len(items)
        frame = pl.DataFrame({name: columns.get(name, absent) for name in _COLUMNS}, _COLUMNS)
        return frame, []
    read, missing, error = list[dict[str, Any]](), list[Interval](), None
    for body in map(bytes, items):
        if len(body) > route.limits.document_bytes:
            findings.append(document_too_large(route, body))
            second = _second(route, body)
            missing.append(window if second is None else Interval(second, second + 1))
            continue
        try:
            read.append(read_document(route, body, findings))
        except WireError as each:
            error = each
            findings.append(Finding("document_unreadable", route.path, str(each)))
    if error and not read:
        raise error
    rows = [row for row in read if row["ts"] is not None]
    if read and not rows:
        raise WireError(
            f"{route.path} sent a page of documents without a time; where they keep theirs is said "
            "in the profile"
        )
    findings.extend(timeless(route, row) for row in read if row["ts"] is None)
    return document_frame(rows), missing


def document_too_large(route: EventRoute, body: bytes) -> Finding:
    """Return the finding of a document that is too large to keep.

    >>> from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS
    >>> document_too_large(BUILT_IN_EVENTS["splash"], b'{"event_id":"e1","ts":60}').says
    'event e1 at 1970-01-01 00:01 UTC has 25 bytes, and at most 16,384 are kept; ...'
    """
    event, second = name_of(_part(route, "event_id", body)), _second(route, body)
    at = "" if second is None else f" at {format_ts(second)}"
    named = f"event {plain(event, 80)}{at}" if isinstance(event, str) else f"a document{at}"
    says = too_large(f"{named} has", len(body), route.limits.document_bytes)
    return Finding("document_too_large", route.path, says)


def _second(route: EventRoute, body: bytes) -> int | None:
    ts, ts_ms = (_held(route, name, _part(route, name, body), []) for name in TIMES)
    second: int | None = ts if ts is not None or ts_ms is None else ts_ms // 1000
    return second


def _part(route: EventRoute, column: str, body: bytes) -> Any:
    """Read a column's value without making objects of the rest."""
    for path in route.paths[column]:
        part = body
        with contextlib.suppress(*UNREADABLE):
            for name in path.split("."):
                part = bytes(_field(name).decode(part).value)
            if len(part) <= LONGEST and (found := msgspec.json.decode(part)) is not None:
                return found
    return None


@functools.lru_cache(maxsize=64)
def _field(name: str) -> msgspec.json.Decoder[Any]:
    fields = [("value", msgspec.Raw, msgspec.Raw(b"null"))]
    return msgspec.json.Decoder(msgspec.defstruct("Field", fields, rename={"value": name}))


def _inside(
    route: EventRoute, frame: pl.DataFrame, window: Interval, findings: list[Finding]
) -> pl.DataFrame:
    ts = pl.col("ts")
    kept = frame.filter((ts >= window.start) & (ts < window.end))
    if kept.height < frame.height:
        says = f"{frame.height - kept.height} documents outside {window}"
        findings.append(Finding("outside_window", route.path, says))
    if not frame["ts_ms"].is_sorted(descending=True):
        findings.append(Finding("not_newest_first", route.path, "a page is out of order"))
    return kept


def document_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Make a frame with `toolkit.tables.EVENT`'s columns of rows of `read_document`.

    >>> document_frame([{"family": "splash", "event_id": "e1", "ts_ms": 60000}])["ts_ms"][0]
    60000
    """
    return pl.DataFrame([list(map(row.get, _COLUMNS)) for row in rows], _COLUMNS, orient="row")


def read_document(route: EventRoute, body: bytes, findings: list[Finding]) -> dict[str, Any]:
    """Read the columns of a document. A value that its column cannot hold is a finding.

    ``ts`` (s) and ``ts_ms`` are read from one another if one is missing or outside the years 1 to
    9999, else both are None. A value that is not JSON, such as NaN, is null in the document too.
    Raises `WireError` unless it is a JSON object of at most ``document_bytes``.

    >>> from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS
    >>> body = b'{"schema":"svc.splash.v1","event_type":"splash.pump","ts":60,"pct":11.4}'
    >>> row = read_document(BUILT_IN_EVENTS["splash"], body, [])
    >>> row["event_type"], row["ts_ms"], row["magnitude_pct"], row["event_id"][:7]
    ('splash.pump', 60000, 11.4, 'sha256:')
    """
    if len(body) > (most := route.limits.document_bytes):
        raise WireError(too_large(f"{route.path} sent a document of", len(body), most))
    try:
        document, text = read_mended(
            lambda sent: (_document(sent), sent.decode()), body, route.path, findings
        )
    except UNREADABLE as error:
        raise WireError(
            f"{route.path} sent a document that is not a JSON object ({error})"
        ) from None
    row: dict[str, Any] = {"family": route.family.value, "document": text}
    for column, paths in route.paths.items():
        row[column] = _held(route, column, _found(document, paths), findings)
    if row["ts"] is None and row["ts_ms"] is not None:
        row["ts"] = row["ts_ms"] // 1000
    elif row["ts_ms"] is None and row["ts"] is not None:
        row["ts_ms"] = row["ts"] * 1000
    if row["event_id"] is None:
        row["event_id"] = "sha256:" + _fingerprint(document, route.volatile)
    return row


def lasting_content(route: EventRoute, body: bytes) -> str:
    """Hash a document without its volatile fields: equal in each of its deliveries.

    >>> from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS
    >>> route = BUILT_IN_EVENTS["splash"]
    >>> lasting_content(route, b'{"pct":2}') == lasting_content(route, b'{ "pct":2, "trace":"x"}')
    True
    """
    return _fingerprint(_document(body), route.volatile)


def timeless(route: EventRoute, row: Mapping[str, Any]) -> Finding:
    """Return the finding that keeps a document without a usable time.

    >>> from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS
    >>> route = BUILT_IN_EVENTS["splash"]
    >>> timeless(route, read_document(route, b'{"pct":2}', [])).says
    '{"pct":2}'
    """
    return Finding("without_time", route.path, row["document"])


def _document(body: bytes) -> dict[str, Any]:
    """Decode a document's fields. What Python cannot hold (1e999) stays bytes."""
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except UNREADABLE:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    found: dict[str, Any] = {}
    for name, raw in fields.items():
        try:
            found[name] = msgspec.json.decode(raw)
        except UNREADABLE:
            found[name] = bytes(raw)
    return found


def _found(document: Mapping[str, Any], paths: tuple[str, ...]) -> Any:
    for path in paths:
        at = value_at(document, path) if "." in path or "[" in path else document.get(path)
        if at is not None:
            return at
    return None


def _held(route: EventRoute, column: str, value: Any, findings: list[Finding]) -> Any:
    """Return a value of the column's type. Whole numbers are text in columns of names and ids.

    Control characters are escaped.
    """
    kind = NUMBERS.get(column, str)
    sent = name_of(value) if kind is str else value
    value = route.ours(column, sent)
    if sent is None:
        return None
    named = column.endswith("_market") and isinstance(value, str) and is_name(value)
    if value is None or (named and value not in MARKETS):
        findings.append(Finding("leg_unreadable", f"{route.path}.{column}", plain(str(sent), 80)))
        return None
    number = type(value) in (int, float)
    if not (isinstance(value, str) if kind is str else number and (kind is float or not value % 1)):
        findings.append(Finding("type_changed", f"{route.path}.{column}", type(value).__name__))
        return None
    if column in NAMES and not is_name(value):
        findings.append(Finding("not_a_name", f"{route.path}.{column}", plain(value, 80)))
        return None
    if int(value) not in TIMES[column] if kind is int else number and abs(value) > LARGEST:
        findings.append(Finding("out_of_range", f"{route.path}.{column}", "a number too large"))
        return None
    return escaped(value) if kind is str else kind(value)


def _fingerprint(document: dict[str, Any], volatile: tuple[str, ...]) -> str:
    """Hash the lasting content, for a missing id."""
    lasting = {name: value for name, value in document.items() if name not in volatile}
    return hashlib.sha256(msgspec.json.encode(lasting, order="sorted")).hexdigest()
