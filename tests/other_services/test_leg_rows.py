"""A service whose funding of a pair has one row for each leg: whole by a file, or an error."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.other_services import kinds
from tests.other_services.server import API_KEY, Answer, Question, serving
from toolkit.client import Client
from toolkit.errors import InputError, PagingError, WireError
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.loader.follow.reader import Message, Messages
from toolkit.market import Trajectory
from toolkit.service.market.source import Clock
from toolkit.store import Store
from toolkit.store.writing.remap import remap
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.profile.user_profile import UserProfile

END = 1_795_046_400
HOUR = 3_600
KEY = "funding/BTC_USDT:KRAKEN.futures:BYBIT.futures"
BUY, SELL = "KRAKEN.futures", "BYBIT.futures"
NAMES = ["ts", "buy_rate", "sell_rate", "buy_interval_hours", "sell_interval_hours"]
Row = Mapping[str, Any]


def legs(buy_hours: int, sell_hours: int, of: int = 12) -> list[Row]:
    """Rows of both legs, newest first, that settle at times of their own."""
    rows = [
        {"ts": END - n * hours * HOUR, "leg": leg, "rate": (n + hours) / 2**17, "h": hours}
        for leg, hours in ((BUY, buy_hours), (SELL, sell_hours))
        for n in range(1, of + 1)
    ]
    return sorted(rows, key=lambda row: (-row["ts"], hash(row["rate"])))


def truth(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """What both legs have in each second, put together by hand."""
    found: dict[int, list[Any]] = {row["ts"]: [row["ts"], None, None, None, None] for row in rows}
    for row in rows:
        at = 1 if row["leg"] == BUY else 2
        found[row["ts"]][at], found[row["ts"]][at + 2] = row["rate"], row["h"]
    return [tuple(found[ts]) for ts in sorted(found)]


def newest(rows: Sequence[Row], size: int) -> Sequence[Row]:
    return rows[:size]


def of_each_leg(rows: Sequence[Row], size: int) -> Sequence[Row]:
    of = [[row for row in rows if row["leg"] == leg][:size] for leg in (BUY, SELL)]
    return sorted(itertools.chain(*of), key=lambda row: -row["ts"])


def one_alone(rows: Sequence[Row], size: int) -> Sequence[Row]:
    del size
    return rows[:1]


@dataclass
class ByLeg:
    """The newest rows before ``end_time``, a row for each leg."""

    rows: Sequence[Row]
    page: Callable[[Sequence[Row], int], Sequence[Row]] = newest
    inclusive: bool = False
    clock: Clock = field(default_factory=lambda: Clock(fixed_at=END))

    def answer(self, question: Question) -> Answer:
        if question.path.endswith("/symbols/search"):
            venues = [{"exchange": name, "market": "futures"} for name in ("KRAKEN", "BYBIT")]
            return Answer({"items": [{"symbol": "BTC_USDT", "venues": venues}], "truncated": False})
        if not question.path.endswith("/history/funding"):
            return Answer({"message": "no such route"}, 404)
        end, size = (int(question.parameters[name]) for name in ("end_time", "limit"))
        rows = [row for row in self.rows if row["ts"] < end + self.inclusive]
        found = self.page(rows, size)
        further = found[-1]["ts"] if len(found) < len(rows) else None
        return Answer({"items": found, "next_end_time": further})


FILE = """
[history.funding]
limit = LIMIT
row_leg = { leg = "{exchange}.{market}" }
fields.buy_rate = { wire = "rate" }
fields.sell_rate = { wire = "rate" }
fields.buy_interval_hours = { wire = "h" }
fields.sell_interval_hours = { wire = "h" }
"""


def users(limit: int = 500, text: str = FILE) -> UserProfile:
    return kinds.users(text.replace("LIMIT", str(limit)))


def loaded(service: ByLeg, profile: UserProfile) -> pl.DataFrame:
    """The rows that a client brings, by time. No page hands on a second that it may have cut."""
    with serving(service) as base_url, Client(base_url, API_KEY, profile=profile) as client:
        pages = list(client.pages(Trajectory.parse(KEY), (END - 100 * HOUR, END)))
    assert all((page.frame["ts"] >= page.answered.start).all() for page in pages)
    assert {found.kind for page in pages for found in page.findings} <= {"field_unknown"}
    return pl.concat([page.frame for page in pages]).sort("ts")


@pytest.mark.parametrize("limit", [2, 3, 5])
@pytest.mark.parametrize(
    ("hours", "inclusive"), [((8, 8), False), ((4, 8), False), ((8, 1), False), ((4, 8), True)]
)
def test_rows_of_one_leg_each_are_one_row_a_second_whatever_a_page_holds(
    hours: tuple[int, int], limit: int, inclusive: bool
) -> None:
    rows = legs(*hours)
    frame = loaded(ByLeg(rows, inclusive=inclusive), users(limit))
    assert frame.select(NAMES).rows() == truth(rows)
    assert frame["extra"].null_count() == frame.height


@pytest.mark.parametrize(
    ("page", "told"),
    [(of_each_leg, "counts the rows of a page for each leg"), (one_alone, "alone fills a page")],
)
def test_pages_that_can_hide_a_row_of_one_leg_are_an_error(page, told) -> None:
    with pytest.raises(PagingError, match=told):
        loaded(ByLeg(legs(4, 8), page), users(5))


def test_a_rate_that_is_null_stays_null_beside_the_other_legs() -> None:
    rows = [row | {"rate": None} if n % 5 == 2 else row for n, row in enumerate(legs(8, 8))]
    frame = loaded(ByLeg(rows), users(3))
    assert frame.select(NAMES).rows() == truth(rows)


def test_what_no_column_takes_is_kept_by_the_side_that_sent_it() -> None:
    rows = [row | {"mark": n} for n, row in enumerate(legs(8, 8, of=1))]
    frame = loaded(ByLeg(rows), users())
    number = {row["leg"]: row["mark"] for row in rows}
    said = f'{{"buy":{{"mark":{number[BUY]}}},"sell":{{"mark":{number[SELL]}}}}}'
    assert frame["extra"].to_list() == [said]


def test_a_constant_interval_is_of_the_leg_that_has_a_rate() -> None:
    line, names = "fields.{}_interval_hours = {}", ("buy", "sell")
    text = FILE
    for side, hours in zip(names, ("4", "8"), strict=True):
        text = text.replace(line.format(side, '{ wire = "h" }'), line.format(side, hours))
    rows = legs(4, 8)
    frame = loaded(ByLeg(rows), users(5, text))
    assert frame.select(NAMES).rows() == truth(rows)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"leg": "COINBASE.futures"}, "no leg of funding/BTC_USDT.*leg is 'COINBASE.futures'"),
        ({"leg": None}, "no leg of funding/BTC_USDT"),
        ({"leg": BUY, "rate": 0.5}, "a leg has rows that differ in one second"),
    ],
)
def test_a_row_of_no_leg_of_the_pair_or_a_second_one_of_a_leg_is_an_error(row, told):
    rows = legs(8, 8)
    with pytest.raises(WireError, match=told):
        loaded(ByLeg([*rows[:4], rows[3] | row, *rows[4:]]), users())


@pytest.mark.slow
def test_a_store_has_whole_seconds_and_a_remap_reads_them_again(tmp_path: Path) -> None:
    rows, store = legs(4, 8), Store(tmp_path / "held.duckdb")
    unit = 'wire = "rate", unit = "percent_per_interval"'
    wrong = users(2, FILE.replace('wire = "rate"', unit))
    with serving(ByLeg(rows)) as base_url, Client(base_url, API_KEY, profile=wrong) as client:
        for start in (END - 30 * HOUR, END - 100 * HOUR):  # loads of their own, the newest first
            sync(client, store, [Trajectory.parse(KEY)], Interval(start, END), workers=1)
    window = Interval(END - 100 * HOUR, END)
    before = store.series(KEY, window, ties=True)
    done = remap(store, users(2))
    after = store.series(KEY, window, ties=True)
    assert after.select(NAMES).rows() == truth(rows)
    assert after.drop("buy_rate", "sell_rate").equals(before.drop("buy_rate", "sell_rate"))
    assert (done.rows, done.changed_rows) == (before.height, before.height)


def test_a_row_of_one_leg_from_a_socket_is_a_finding_for_the_archive_has_both() -> None:
    profile = users().applied(BUILT_IN)
    messages = Messages(profile)
    body = b'{"ts":60,"leg":"KRAKEN.futures","rate":0.5,"h":8}'
    messages.add(Message(Trajectory.parse(KEY), body, 60_000))
    batch, _, findings = messages.batch_of_all()
    assert not batch.rows
    assert [found.kind for found in findings] == ["record_unreadable"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (FILE.replace(".{market}", ""), "places with {exchange} and {market}"),
        (FILE.replace("{exchange}", "{venue}"), "a template of {exchange}, {market}"),
        (FILE.replace('fields.sell_rate = { wire = "rate" }', ""), "the field, unit and sign of"),
        (
            FILE + 'order = "oldest_first"\nask = { since = "{start_time}" }\n',
            "newest_first, where a row is of one leg",
        ),
        (FILE.replace("funding", "price"), "row_leg"),
    ],
)
def test_what_rows_of_one_leg_cannot_be_is_refused_by_name(text, told) -> None:
    with pytest.raises(InputError) as refused:
        users(text=text)
    assert told in str(refused.value)
