"""Each stream of the client against other ways of paging, naming and cutting.

A cell is one stream of one service: all of it arrives, each row once, or one clear error names the
cause. ``RAIL_ADVERSARY=write`` writes the table of docs/adversary.md, else each cell is held to it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.adversary import adverse
from tests.counting import CountingClient
from toolkit.client import Client
from toolkit.errors import RailError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Trajectory
from toolkit.service import Clock, Config, Simulated, running
from toolkit.wire.profile.user_profile import UserProfile

DOCS = Path(__file__).parents[2] / "docs" / "adversary.md"
MODE = os.environ.get("RAIL_ADVERSARY", "spanning")  # read before a test may not
NOW = 1_795_046_400
DEPTH_S = 86_400
LIMITS = {"price": 500, "spread": 500, "funding": 5, "events": 20}
KEYS = {
    "price": "BTC_USDT:AURORA.spot",
    "spread": "BTC_USDT:AURORA.spot:CORONA.futures",
    "funding": "funding/BTC_USDT:AURORA.futures:EQUINOX.futures",
}
WINDOW = Interval(NOW - DEPTH_S - 3_600, NOW)
BEFORE_A_LOG = Interval(NOW - 40 * 86_400, NOW - 33 * 86_400)
LOG_S = {"spread": 43_200, "splash": 43_200, "funding": 5 * 86_400}
"""The last stretch of an event log that has documents enough."""

REQUESTS_ALLOWED = 700
ALL_ROWS = "all rows"
LISTED = 10
HISTORIES = ("price", "spread", "funding")
LOGS = tuple(f"{family} events" for family in EventFamily)
STREAMS = (*HISTORIES, *LOGS, "symbols")

LEAST = {"price": 1_300, "spread": 1_300, "funding": 10, "events": 30, "symbols": LISTED}
"""A stream has more rows than these, so that no variant's page holds all of them."""

Row = tuple[object, ...]


@dataclass(frozen=True)
class Variant:
    """How a service differs, what a user's profile says of it, and what has to come of it."""

    rest: dict[str, object] = field(default_factory=dict)
    refused: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By stream the error, and what its one line names."""
    profile: str = ""


def refusing(streams: tuple[str, ...], error: str, names: str) -> dict[str, tuple[str, str]]:
    return dict.fromkeys(streams, (error, names))


TEXT = 'numbers = "text"'
UNNAMED = refusing(LOGS, "PagingError", "neither 'has_more' nor 'next_cursor'")
OLDEST = refusing(HISTORIES, "PagingError", "oldest rows first")

VARIANTS = {
    "none": Variant(),
    "pages of at most 15": Variant({"page_cap": 15}),
    "the rows of a page rise in time, event logs oldest first": Variant({"pages": "rising"}),
    "the same, at most 15 a page": Variant({"pages": "rising", "page_cap": 15}),
    "the oldest rows before `end_time`": Variant({"pages": "oldest"}, OLDEST),
    "the oldest rows before `end_time`, at most 15": Variant(
        {"pages": "oldest", "page_cap": 15}, OLDEST
    ),
    "the oldest rows, whatever `end_time` is": Variant({"pages": "ignored"}, OLDEST),
    "the rows from `end_time` on": Variant(
        {"pages": "forwards"}, refusing(HISTORIES, "PagingError", "the rows from end_time on")
    ),
    "an empty page is a 204": Variant({"no_content": True, "at_end": "missing"}),
    "event pages name the cursor alone": Variant({"cursor_names": "cursor"}),
    "event pages name `has_more` alone": Variant(
        {"cursor_names": "more"}, refusing(LOGS, "PagingError", "gives no cursor")
    ),
    "event pages name neither": Variant({"cursor_names": "neither"}, UNNAMED),
    "event pages name neither, at most 15 documents": Variant(
        {"cursor_names": "neither", "page_cap": 15}, UNNAMED
    ),
    "event pages name neither, at most 15 documents, oldest first": Variant(
        {"cursor_names": "neither", "page_cap": 15, "pages": "rising"}, UNNAMED
    ),
    "numbers are text": Variant(
        {"numbers": "text"}, refusing(HISTORIES, "WireError", 'numbers = "text"')
    ),
    "numbers are text, and the profile has it": Variant(
        {"numbers": "text"},
        profile="\n".join(f"history.{name}.numbers = 'text'" for name in HISTORIES),
    ),
    f"{LISTED} symbols are listed, without a word of more": Variant({"symbols_cap": LISTED}),
}


class Counting(CountingClient):
    allowed = REQUESTS_ALLOWED


def rows_of(client: Client, stream: str) -> list[Row]:
    """All that comes of a stream."""
    if stream in KEYS:
        return client.history(Trajectory.parse(KEYS[stream]), *WINDOW).rows()
    if stream == "symbols":
        return [(str(symbol), *legs) for symbol, legs in client.symbols().legs.items()]
    family = EventFamily(stream.removesuffix(" events"))
    return [
        row
        for window in (BEFORE_A_LOG, Interval(NOW - LOG_S[family], NOW))
        for page in client.event_pages(family, window)
        for row in page.frame.select("event_id", "ts_ms", "document").rows()
    ]


@pytest.fixture(scope="module")
def service() -> Iterator[httpx.Client]:
    clock = Clock(fixed_at=NOW)
    config = Config(
        Simulated(7),
        port=0,
        clock=clock,
        retention_s=DEPTH_S,
        quota=10**9,
        application=adverse(control=True),
    )
    with running(config) as found, httpx.Client(base_url=found.base_url) as client:
        yield client


Ask = Callable[[str, Variant], tuple[list[Row], int]]


@pytest.fixture
def ask(service: httpx.Client, tmp_path: Path) -> Ask:
    """Let the service be a variant and ask it for a stream. Returns rows and requests."""
    lines = [f"history.{name}.limit = {LIMITS[name]}" for name in HISTORIES]
    lines += [f"events.{family}.limit = {LIMITS['events']}" for family in EventFamily]

    def asked(stream: str, variant: Variant) -> tuple[list[Row], int]:
        answer = service.put("/control/adversary", json={"rest": variant.rest})
        assert answer.status_code == 200, answer.text
        path = tmp_path / "profile.toml"
        path.write_text("\n".join([*lines, variant.profile]))
        profile = UserProfile.read(path)
        with Counting(str(service.base_url), "demo-pro", profile=profile) as client:
            return rows_of(client, stream), client.requests

    return asked


@pytest.fixture(scope="module")
def truth() -> dict[str, list[Row]]:
    """What each stream holds, as the interface itself pages it."""
    return {}


def whole(truth: dict[str, list[Row]], ask: Ask, stream: str) -> list[Row]:
    if stream not in truth:
        truth[stream], _ = ask(stream, VARIANTS["none"])
        assert len(set(truth[stream])) == len(truth[stream])
        assert len(truth[stream]) > LEAST[stream.rpartition(" ")[2]]
    return truth[stream]


BETWEEN = re.compile(r"(?<=<!-- the streams -->\n\n).*?(?=\n\n<!-- end of streams -->)", re.DOTALL)


def printed() -> dict[str, list[str]]:
    found = BETWEEN.search(DOCS.read_text(encoding="utf-8"))
    assert found, "the page has no place for the table"
    lines = [line.strip("|").split("|") for line in found[0].splitlines()]
    return {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines[2:]}


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[tuple[str, str], str]]:
    """What came of each cell, for the table."""
    found: dict[tuple[str, str], str] = {}
    yield found
    if MODE == "write":
        cells = [[name, *(found[name, stream] for stream in STREAMS)] for name in VARIANTS]
        lines = [f"| {' | '.join(line)} |" for line in [["what is different", *STREAMS], *cells]]
        lines.insert(1, "|---" * (len(STREAMS) + 1) + "|")
        text = DOCS.read_text(encoding="utf-8")
        DOCS.write_text(BETWEEN.sub(lambda _: "\n".join(lines), text), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("name", VARIANTS)
def test_all_of_a_stream_arrives_or_one_clear_error_names_the_cause(
    name: str,
    stream: str,
    ask: Ask,
    truth: dict[str, list[Row]],
    outcomes: dict[tuple[str, str], str],
) -> None:
    want = whole(truth, ask, stream)
    variant = VARIANTS[name]
    expected, names = variant.refused.get(stream, (ALL_ROWS, ""))
    outcome, told, rows = ALL_ROWS, "", want
    try:
        rows, _ = ask(stream, variant)
    except RailError as error:
        outcome, told = type(error).__name__, str(error)
    assert sorted(rows) == sorted(want)
    assert names in told
    assert "\n" not in told
    outcomes[name, stream] = outcome
    assert outcome == expected
    if MODE != "write":
        assert outcome == printed()[name][STREAMS.index(stream)], "run `make docs-adversary`"


@pytest.mark.skipif(MODE == "write", reason="the table is being written")
def test_the_table_of_streams_has_every_variant() -> None:
    assert list(printed()) == list(VARIANTS), "run `make docs-adversary`"
