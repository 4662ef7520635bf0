"""A page of a trajectory, and the check that its first rows have what statistics need.

A value of another type stays in ``extra``. If all values of a needed column do, the first page is
an error that names the profile line. Nulls that the service sends are believed: a leg may be
missing, or not settle then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import polars as pl

from toolkit.errors import WireError
from toolkit.intervals import Interval
from toolkit.market import Family, format_ts
from toolkit.tables import SERIES
from toolkit.wire.exchange import UNREADABLE, Response
from toolkit.wire.findings import Finding, LostStretch
from toolkit.wire.profile.history_route import HistoryRoute
from toolkit.wire.profile.places import with_rows
from toolkit.wire.rows.conversion import plain_number
from toolkit.wire.rows.rows import TOO_LARGE, too_large_to_keep
from toolkit.wire.survey import rows_of, shown_fields, survey_fields


def with_kept_rows(
    answer: Response, place: str, frame: pl.DataFrame, window: Interval
) -> tuple[Response, ...]:
    """Return an answer with only the stored rows of a window, () if it has none.

    ``place`` is that of its rows; ``frame`` has all of them in the order of the wire. An answer may
    exceed its window, and a row may be too large to keep.

    >>> answer = Response(200, {}, b'{"items":[{"ts":60},{"ts":0}]}')
    >>> frame = pl.DataFrame({"ts": [60, 0], "extra": None}, {"ts": pl.Int64, "extra": pl.String})
    >>> with_kept_rows(answer, "items", frame, Interval(60, 120))[0].body
    b'{"items":[{"ts":60}]}'
    """
    times = frame["ts"].to_numpy()
    wanted = (times >= window.start) & (times < window.end)
    if not too_large_to_keep(frame).is_empty():
        wanted &= ~frame.select(TOO_LARGE).to_series().to_numpy()
    if wanted.all():
        return (answer,) if wanted.size else ()
    if not wanted.any():
        return ()
    return (replace(answer, body=with_rows(answer.body, place, wanted.tolist())),)


@dataclass(frozen=True, slots=True)
class Page:
    """New rows of a window, and the part of it that is now complete.

    ``frame`` has rows inside the window that no earlier page brought, each once, newest first as
    sent. ``answered`` continues downwards from the last page's and may be empty: this and earlier
    pages have all its rows, except those in ``missing`` seconds, too large to keep. ``tied`` has
    the times of several rows although the key is the time. ``is_oldest``: the service has shown
    that no row is older. ``answers`` are the rows' answers, cut to stored rows inside ``window``.
    ``lost`` are all stretches that the source called lost so far, also outside of ``answered``.
    """

    frame: pl.DataFrame
    answered: Interval
    findings: tuple[Finding, ...]
    tied: frozenset[int] = frozenset()
    missing: tuple[Interval, ...] = ()
    is_oldest: bool = False
    answers: tuple[Response, ...] = ()
    window: Interval | None = None
    lost: tuple[LostStretch, ...] = ()


def put_together(frame: pl.DataFrame, by: Sequence[str] = ("ts",)) -> pl.DataFrame:
    """Return one row per second, newest first, null for a leg without a row.

    ``extra`` is an object by side. Raises `WireError` if a leg has two different rows in a second.

    >>> rows = {"ts": [60, 60, 0], "buy_rate": [1.0, None, 3.0], "sell_rate": [None, 2.0, None],
    ...         "extra": [None, '{"sell":{"a":1}}', None]}
    >>> put_together(pl.DataFrame(rows)).rows()
    [(60, 1.0, 2.0, '{"sell":{"a":1}}'), (0, 3.0, None, None)]
    """
    names = [name for name in frame.columns if name not in (*by, "extra")]
    extra = pl.col("extra").drop_nulls().unique()
    twice = extra.len() - extra.str.head(5).n_unique() + 1
    several = [pl.col(name).drop_nulls().n_unique() for name in names]
    rows = frame.group_by(by).agg(
        *(pl.col(name).drop_nulls().first() for name in names),
        extra.str.strip_prefix("{").str.strip_suffix("}").sort().str.join(","),
        several=pl.max_horizontal(twice, *several),
    )
    if odd := rows.filter(pl.col("several") > 1)["ts"].to_list():
        raise WireError(f"a leg has rows that differ in one second, {format_ts(max(odd))}")
    extra = pl.when(pl.col("extra") != "").then("{" + pl.col("extra") + "}")
    return rows.with_columns(extra.alias("extra")).select(frame.columns).sort("ts", descending=True)


class WholeSeconds:
    """Rows of one leg each, joined. A second that a page may have cut waits for the next one."""

    def __init__(self) -> None:
        self._rows: list[pl.DataFrame] = []
        self._answers: tuple[Response, ...] = ()

    def take(
        self, page: Page, answer: Response, frame: pl.DataFrame, place: str, part: Interval
    ) -> tuple[Page, tuple[Response, ...]]:
        """Return a page with the rows of whole seconds, and their answers."""
        start = min(page.answered.start, part.end)
        rows = pl.concat([*self._rows, page.frame])
        below, ready = pl.col("ts") < page.answered.start, Interval(start, part.end)
        self._rows = [rows.filter(below)]
        answers = self._answers + with_kept_rows(answer, place, frame, ready)
        self._answers = with_kept_rows(answer, place, frame, Interval(part.start, start))
        return replace(page, frame=put_together(rows.remove(below))), answers


NEEDED: Mapping[Family, tuple[tuple[str, ...], ...]] = {
    Family.PRICE: (("price",),),
    Family.SPREAD: (("buy_price", "sell_price"), ("spread_pct",)),
    Family.FUNDING: (("buy_rate", "sell_rate"), ("differential_pct_8h",)),
}
"""Per family the sets of columns of which statistics need one, the set they prefer first."""

_NULLS_BELIEVED = 10
"""A page of so many rows, or more, that are null in all columns needed is refused."""

_NULL = "the service sends null"
_MISSING = "the service sends no field of that name"
_NO_LINE = "no line of the profile can read that"


def check_needed(route: HistoryRoute, frame: pl.DataFrame, answer: Response) -> None:
    """Raise `WireError` for a page of rows on which what statistics need cannot be read.

    ``frame`` was read from ``answer``. It is refused if a column of the preferred set is unreadable
    in every row, if no set has all its fields, or if 10 or more rows are null in all of these
    columns.

    >>> from toolkit.wire.profile.profile import BUILT_IN
    >>> answer = Response(200, {}, b'{"items":[{"ts":60,"price":"97.6"}]}', "http://h/p")
    >>> check_needed(BUILT_IN.histories[Family.PRICE], pl.DataFrame({"price": [None]}), answer)
    Traceback (most recent call last):
    toolkit.errors.WireError: http://h/p: price is null in 1 of 1 rows: the service sends text '...
    """
    sets = NEEDED[route.family]
    null = {c for columns in sets for c in columns if frame[c].null_count() == frame.height}
    if not null or (route.row_leg and not {*sets[0]} <= null):  # a page may be of one leg alone
        return
    rows, _ = rows_of(route.flat(answer).body, route.items)
    if not rows:
        return  # a number too large for Python, say: nothing shows why the columns are null
    why = {column: _why(route, column, rows) for column in sorted(null)}
    for column in sets[0]:
        if why.get(column, _NULL) not in (_NULL, _MISSING):
            raise _refused(route, column, why[column], frame.height, answer)
    usable = [columns for columns in sets if all(why.get(c, _NULL) == _NULL for c in columns)]
    if not usable:
        column = next(c for c in sets[0] if why.get(c, _NULL) != _NULL)
        reason = f"{why[column]}; {_renamed(route, column, rows)}"
        raise _refused(route, column, reason, frame.height, answer)
    if frame.height >= _NULLS_BELIEVED and all(c in null for columns in usable for c in columns):
        column = usable[0][0]
        reason = f"{_NULL}; {_renamed(route, column, rows)}"
        raise _refused(route, column, reason, frame.height, answer)


def _why(route: HistoryRoute, column: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Explain why a column is null in every row, and which profile line reads it."""
    rule = route.rule(column)
    wire = rule.wire if rule else column
    if all(wire not in row for row in rows):
        return _MISSING
    example = next((row[wire] for row in rows if row.get(wire) is not None), None)
    if example is None:
        return _NULL
    if isinstance(example, str):
        form = _form_of(example, rule.unit if rule else "")
        readable = _readable(route, f'numbers = "{form}"') if form else _NO_LINE
        return f"the service sends text {example!r:.40}; {readable}"
    if rule is None:
        line = f'fields.{column} = {{ unit = "{_unit(route, column)}" }}'
        seen = f"the service sends {example!r:.40} in a unit that is not known"
        return f"{seen}; {_readable(route, line, 'if that is its unit')}"
    sends = f"the service sends {msgspec.json.encode(example).decode():.40}"
    if rule.hours and isinstance(example, int | float):
        line = _readable(route, f"fields.{rule.hours} = 8", "with the hours that its rates are of")
        return f"{sends} in {rule.unit}, and no {rule.hours}; {line}"
    return f"{sends}; {_NO_LINE}"


def _renamed(route: HistoryRoute, column: str, rows: Sequence[Mapping[str, Any]]) -> str:
    found = survey_fields(route, shown_fields({}, rows))
    rule, unit = route.rule(column), _unit(route, column)
    wire = msgspec.json.encode("?").decode()
    if guess := found.guesses.get(column):
        wire = msgspec.json.encode(guess.name).decode()
        line = f'fields.{column} = {{ wire = {wire}, unit = "{unit}" }}'
        return _readable(route, line, f"a guess: {guess}")
    unknown = ", ".join(map(str, found.unknown[:8])) or "nothing else"
    line = f'fields.{column} = {{ wire = {wire}, unit = "{rule.unit if rule else unit}" }}'
    return f"it sends {unknown}; {_readable(route, line, 'with its name for the ?')}"


def _readable(route: HistoryRoute, line: str, hint: str = "") -> str:
    where = f"{line} in [history.{route.family}]"
    return f"the profile can read it: {where}{hint and f' ({hint})'}"


def _unit(route: HistoryRoute, column: str) -> str:
    return next(c.unit for c in SERIES[route.family].columns if c.name == column)


def _form_of(text: str, unit: str) -> str:
    for form, read in (("text", str), ("printed", lambda number: plain_number(number, unit))):
        try:
            msgspec.json.decode(read(text), type=float)
        except UNREADABLE:
            continue
        return form
    return ""


def _refused(
    route: HistoryRoute, column: str, why: str, height: int, answer: Response
) -> WireError:
    message = f"{answer.url or route.path}: {column} is null in {height} of {height} rows: {why}"
    return WireError(message, status=answer.status, url=answer.url)
