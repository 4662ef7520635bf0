"""Three kinds further from the document: each loads whole by its file, or is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.other_services.data import NOW, Data, sample
from tests.other_services.further import FURTHER, Numbered
from tests.other_services.kinds import brought, profile_of, users
from tests.other_services.server import API_KEY, Answer, Answering, Question, serving
from toolkit.client import Client
from toolkit.errors import RailError, ServiceError
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.market import Stream
from toolkit.store import Store

DATA = sample()
WINDOW = Interval(NOW - 12 * 86_400, NOW)
PRICE, _, SPREAD, _, FUNDING, _ = DATA.rows
LOGS = [f"events/{family}" for family in DATA.events]
Shape = Callable[[Any], object]


class Changed:
    """A service whose pages of spreads, numbered from 1 on, are changed before they go out."""

    def __init__(self, service: Answering, change: Callable[[int, Answer], object]) -> None:
        self._service, self._change, self._pages = service, change, 0
        self.clock = service.clock

    def answer(self, question: Question) -> Answer:
        found = self._service.answer(question)
        if not question.path.endswith("history/spread"):
            return found
        self._pages += 1
        changed = self._change(self._pages, found)
        return changed if isinstance(changed, Answer) else Answer(changed)


def text_of(kind: str) -> str:
    return profile_of(kind).read_text()


def came(service: Answering, text: str, key: str = SPREAD) -> pl.DataFrame:
    return brought(service, users(text), key, WINDOW)


def assert_same(held: pl.DataFrame, sent: pl.DataFrame, *by: str) -> None:
    """Hold all rows and values to be the same, to the last bit."""
    pair = [frame.select(sent.columns).sort(by or "ts") for frame in (held, sent)]
    assert_frame_equal(*pair, check_dtypes=False, check_exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FURTHER)
def test_every_row_and_document_is_held_as_it_was_served(kind: str, tmp_path: Path) -> None:
    profile, store = users(text_of(kind)), Store(tmp_path / "rail.duckdb")
    with (
        serving(FURTHER[kind](DATA)) as base_url,
        Client(base_url, API_KEY, profile=profile) as client,
    ):
        sync(client, store, [Stream.parse(key) for key in (*DATA.rows, *LOGS)], WINDOW)
    for key, sent in DATA.rows.items():
        assert_same(store.series(key, WINDOW), sent)
    for family, sent in DATA.events.items():
        held = store.events(family, WINDOW)
        assert_same(held, sent.drop("document"), "ts_ms", "event_id", "lifecycle")


@pytest.mark.parametrize("kind", FURTHER)
def test_a_leg_without_a_price_is_null_and_all_else_comes(kind: str) -> None:
    never = pl.when(pl.int_range(pl.len()) % 4 != 0).then("buy_price").alias("buy_price")
    sent = DATA.rows[SPREAD].with_columns(never)
    service = FURTHER[kind](replace(DATA, rows={SPREAD: sent}))
    assert_same(came(service, text_of(kind)), sent)


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("kind", FURTHER)
def test_an_error_in_the_middle_is_an_error(kind: str, status: int) -> None:
    told = Answer({"error": "the archive is being sorted", "code": 17}, status)
    service = Changed(FURTHER[kind](DATA), lambda page, answer: told if page == 3 else answer)
    with pytest.raises(ServiceError, match=r"history/spread .*(200|500)"):
        came(service, text_of(kind))


@pytest.mark.parametrize("kind", FURTHER)
def test_rows_that_come_again_on_a_later_page_are_there_once(kind: str) -> None:
    before: list[Any] = []

    def again(page: int, answer: Answer) -> Answer:
        del page
        body: Any = answer.body
        rows = body["data"] if isinstance(body, dict) else body
        rows += [*before, rows[-1]] if len(rows) > 1 else []
        before[:] = rows[-5:] if isinstance(body, dict) else []  # columns turn from page to page
        return answer

    service = Changed(FURTHER[kind](DATA), again)
    assert_same(came(service, text_of(kind)), DATA.rows[SPREAD])


@pytest.mark.parametrize("kind", FURTHER)
def test_a_market_word_that_the_file_lacks_brings_nothing(kind: str) -> None:
    text = text_of(kind).replace('futures = "perp", ', "")
    with pytest.raises(RailError, match="futures"):
        came(FURTHER[kind](DATA), text)


@pytest.mark.parametrize("quiet_s", [3_600, 0])
def test_questions_with_a_start_bring_what_is_older_than_a_gap(quiet_s: int) -> None:
    """The gap is of days, and longer than one question reaches. It may be at the end."""
    old, new = NOW - 6 * 86_400, NOW - quiet_s
    times = [*range(old, old + 9_000, 60), *range(new, NOW - 60, 60)]
    rows = pl.DataFrame({"ts": times, "price": [at / 7 for at in times]})
    given = rows.with_columns(mark_price=None, volume=None)
    text = text_of("numbered").replace('till = "{end', 'from = "{start_time}", till = "{end')
    service = Numbered(Data({PRICE: given}, clock=DATA.clock))
    assert_same(came(service, text, PRICE), rows)


def apart(body: Any) -> object:
    """Legs stand apart from their prices, which name them by number."""
    rows = [
        {"at": row["at"], "leg": leg, "price": row[name]}
        for row in body["data"]
        for leg, name in enumerate(("buy_price", "sell_price"))
    ]
    return {"legs": ["AURORA~cash", "CORONA~perp"], "data": rows}


def of_another(body: Any) -> object:
    """A filter is ignored, and the rows name another pair."""
    return {"data": [{**row, "pair": "ETH_USDT"} for row in body["data"]]}


REFUSED: dict[str, tuple[Shape, str]] = {
    "rows as CSV": (lambda _: b"at,buy,sell\n2026-11-10,1,2\n", "not with the JSON of a page"),
    "packed rows": (lambda _: b"\x81\xa4data\x90", "not with the JSON of a page"),
    "legs apart from their prices": (apart, "buy_price is null.*sends no field of that name"),
    "rows of another pair": (of_another, "another trajectory: pair is 'ETH_USDT'"),
    "a question by POST": (
        lambda _: Answer({"error": "ask with POST"}, 405),
        "unexpected status 405.*ask with POST",
    ),
}


@pytest.mark.parametrize("shape", REFUSED)
def test_what_no_file_can_say_is_refused_by_name(shape: str) -> None:
    change, words = REFUSED[shape]
    service = Changed(Numbered(DATA), lambda _, answer: change(answer.body))
    with pytest.raises(ServiceError, match=words):
        came(service, text_of("numbered"))


@pytest.mark.parametrize(
    ("kind", "right", "wrong", "words"),
    [
        ("tabled", 'rows = "table"', "", "a row without a usable time"),
        ("numbered", 'till = "{end_time}", ', "", "the service ignores end_time"),  # page 1 again
        ("numbered", '"iso" } }', '"iso" }, price.unit = "quote_e8" }', r"price.unit: 'quote_e8'"),
    ],
)
def test_what_a_file_says_wrong_is_refused(kind, right, wrong, words) -> None:
    with pytest.raises(RailError, match=words):
        came(FURTHER[kind](DATA), text_of(kind).replace(right, wrong, 1), PRICE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "change", "code"), [*((kind, None, 0) for kind in FURTHER), ("numbered", apart, 3)]
)
def test_doctor_ends_as_the_sync_that_follows(kind, change, code, rail) -> None:
    service = Changed(FURTHER[kind](DATA), lambda _, page: change(page.body) if change else page)
    with serving(service) as base_url:
        known = {"api_key": API_KEY, "base_url": base_url, "profile": str(profile_of(kind))}
        doctor = rail("doctor", **known)
        done = rail("sync", PRICE, SPREAD, FUNDING, *LOGS, "--start", "1d", **known)
    assert "Traceback" not in doctor.stderr + done.stderr
    assert doctor.returncode == done.returncode == code, doctor.stdout + done.stderr
