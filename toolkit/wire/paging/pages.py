"""A page of a trajectory, as the pagers hand it on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from toolkit.errors import WireError
from toolkit.intervals import Interval
from toolkit.market import format_ts
from toolkit.wire.exchange import Answer
from toolkit.wire.findings import Finding
from toolkit.wire.paging.lost import LostStretch
from toolkit.wire.profile.places import with_rows
from toolkit.wire.rows.rows import TOO_LARGE, too_large_to_keep


def with_kept_rows(
    answer: Answer, place: str, frame: pl.DataFrame, window: Interval
) -> tuple[Answer, ...]:
    """Return an answer with the rows of a window alone that are kept, () where it has none.

    ``place`` is that of its rows, ``frame`` has all of them, in the order of the wire. A question
    for a minute may be answered by a page of days, and one row may be too large to keep.

    >>> answer = Answer(200, {}, b'{"items":[{"ts":60},{"ts":0}]}')
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
    """New rows of a window, and the stretch of it that is now answered for in full.

    ``frame`` holds rows inside the window that no earlier page brought, each once, newest first as
    sent. ``answered`` reaches down from the last page's and may be empty. Its rows are all in this
    and earlier pages, but for those in its ``missing`` seconds that are too large to keep. ``tied``
    has the times at which the service sent several rows, although its key is the time.
    ``is_oldest``: the service has shown that no row is older. ``answers`` are those that the rows
    were read from, with their rows inside ``window`` that are kept. ``lost`` is what the source
    said so far that it lost, also outside of ``answered``.
    """

    frame: pl.DataFrame
    answered: Interval
    findings: tuple[Finding, ...]
    tied: frozenset[int] = frozenset()
    missing: tuple[Interval, ...] = ()
    is_oldest: bool = False
    answers: tuple[Answer, ...] = ()
    window: Interval | None = None
    lost: tuple[LostStretch, ...] = ()


def put_together(frame: pl.DataFrame, by: Sequence[str] = ("ts",)) -> pl.DataFrame:
    """Return one row for each second, the newest first. What a leg without a row has is null.

    ``extra`` has what no column takes by the side that sent it. Raises `WireError` where a leg has
    two rows in one second that differ.

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
    """Puts rows of one leg each together. A second that a page may have cut waits for the next."""

    def __init__(self) -> None:
        self._rows: list[pl.DataFrame] = []
        self._answers: tuple[Answer, ...] = ()

    def take(
        self, page: Page, answer: Answer, frame: pl.DataFrame, place: str, part: Interval
    ) -> tuple[Page, tuple[Answer, ...]]:
        """Return a page with the rows that it answers for alone, and what they are from."""
        start = min(page.answered.start, part.end)
        rows = pl.concat([*self._rows, page.frame])
        below, ready = pl.col("ts") < page.answered.start, Interval(start, part.end)
        self._rows = [rows.filter(below)]
        answers = self._answers + with_kept_rows(answer, place, frame, ready)
        self._answers = with_kept_rows(answer, place, frame, Interval(part.start, start))
        return replace(page, frame=put_together(rows.remove(below))), answers
