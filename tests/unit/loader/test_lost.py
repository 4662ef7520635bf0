"""What a service says its source lost: kept with its reason, asked for again, found or not."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.listening import Handler, listening
from tests.unit.service import revealed
from tests.unit.service.revealed import Revealed
from tests.unit.store.conftest import faults_of
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.loader import Since, sync
from toolkit.loader.follow.sweep import Sweeper
from toolkit.loader.sync.progress import LoadResult
from toolkit.loader.sync.sync import Piece
from toolkit.market import Family, Leg, Stream, Trajectory
from toolkit.service import Clock, Config, running
from toolkit.service.market.source import LostRows
from toolkit.store import Batch, LoadOrigin, Store, StoreWriter
from toolkit.wire.profile.user_profile import UserProfile
from toolkit.workspace import Workspace

PRICE = Trajectory.parse("A_B:X.spot")
FUNDING = Trajectory.parse("A_B:X.futures:Y.futures", Family.FUNDING)
NOW = int(time.time()) // 3_600 * 3_600
START = NOW - 2 * 86_400
WINDOW = Interval(START, START + 6 * 3_600)
WHY = "no answer for 90 s: timed out"
LEGS = (("X", "spot"), ("X", "futures"), ("Y", "futures"))
LISTED = {"symbol": "A_B", "venues": [{"exchange": x, "market": kind} for x, kind in LEGS]}


def lost(first: int, last: int, why: str = WHY) -> dict[str, object]:
    """A stretch in minutes after the start."""
    return {"start": START + 60 * first, "end": START + 60 * last, "why": why}


class Archive:
    """A service whose archive has rows, and says which stretches it lost."""

    def __init__(self) -> None:
        self.rows: dict[int, dict[str, object]] = {}
        self.find(*range(360))
        self.lost: list[object] = []
        self.said: dict[str, object] = {}
        self.asked: list[int] = []
        self.name = "lost"

    def find(self, *minutes: int) -> None:
        for minute in minutes:
            ts = START + 60 * minute
            self.rows[ts] = {"ts": ts, "price": 1.5, "mark_price": None, "volume": None}

    def lose(self, first: int, last: int) -> None:
        """Take the rows of these minutes away."""
        for minute in range(first, last):
            del self.rows[START + 60 * minute]

    def page(self, before: int, limit: int) -> dict[str, object]:
        self.asked.append(before)
        found = [ts for ts in sorted(self.rows, reverse=True) if ts < before]
        older = found[limit - 1] if len(found) > limit else None
        cut = [
            {**each, "start": max(each["start"], older or 0), "end": min(each["end"], before)}
            if isinstance(each, dict) and "start" in each
            else each
            for each in self.lost
        ]
        told = [e for e in cut if not isinstance(e, dict) or e.get("start", 0) < e.get("end", 1)]
        rows = [self.rows[ts] for ts in found[:limit]]
        top, _, below = self.name.partition(".")
        said = {top: {below: told} if below else told}
        return {"items": rows, "next_end_time": older} | (said if told else {})

    def handler(self) -> type[Handler]:
        archive = self

        class Answering(Handler):
            def do_GET(self) -> None:
                asked = urlsplit(self.path)
                query = {name: each[0] for name, each in parse_qs(asked.query).items()}
                body: dict[str, object] = {"source": {"kind": "live", "id": "x"}}
                if "symbols" in asked.path:
                    listed = [LISTED, *({**LISTED, "symbol": each} for each in archive.said)]
                    body = {"items": listed}
                if "/history/" in asked.path:
                    body = archive.page(int(query["end_time"]), int(query["limit"]))
                    if query["symbol"] in archive.said:
                        body["lost"] = archive.said[query["symbol"]]
                self.reply(200, json.dumps(body).encode(), {"Date": self.date_time_string()})

        return Answering


@pytest.fixture
def archive() -> Archive:
    return Archive()


def loaded(archive: Archive, store: Store, *of: Stream, profile: str = "") -> LoadResult:
    mine = UserProfile.parsed(Path("mine.toml"), profile) if profile else None
    with listening(archive.handler()) as url, Client(url, "key", profile=mine) as client:
        archive.asked.clear()
        return sync(client, store, of or [PRICE], WINDOW)


def findings(done: LoadResult) -> set[str]:
    """The kinds of what pages had odd: the schemas of this service say nothing."""
    return {finding.kind for finding, _ in done.findings} - {"tool_missing"}


def states(store: Store, of: Stream = PRICE) -> list[tuple[int, int, str]]:
    """The stretches of the window, in minutes after its start."""
    rows = store.coverage(of, WINDOW).rows()
    return [((start - START) // 60, (end - START) // 60, state) for start, end, state in rows]


def losses(store: Store) -> list[tuple[int, int, str]]:
    found = store.gaps().filter(status="lost").sort("start_ts")
    rows = found.select("start_ts", "end_ts", "cause").iter_rows()
    return [((start - START) // 60, (end - START) // 60, why) for start, end, why in rows]


def test_what_the_source_lost_is_lost_with_its_reason_and_no_quiet_time(
    archive: Archive, store: Store
) -> None:
    archive.lose(60, 90)
    archive.lose(120, 121)
    archive.lost = [lost(60, 90)]
    done = loaded(archive, store)
    assert not findings(done)
    assert states(store) == [
        (0, 60, "held"),
        (60, 90, "lost at the source"),
        (90, 120, "held"),
        (120, 121, "empty"),
        (121, 360, "held"),
    ]
    assert losses(store) == [(60, 90, WHY)]
    assert faults_of(store) == []


def test_a_load_asks_once_for_what_is_lost_and_takes_what_was_found_since(
    archive: Archive, store: Store
) -> None:
    archive.lose(60, 90)
    archive.lost = [lost(60, 90)]
    loaded(archive, store)
    again = loaded(archive, store)
    assert archive.asked, "it is asked for again"
    assert set(archive.asked) <= {START + 60 * 90, START + 60 * 59 + 1, START + 60 * 60}
    assert again.rows.new == 0
    assert losses(store) == [(60, 90, WHY)]
    archive.find(*range(60, 80))  # the exchange answers again, and has all but ten minutes of it
    archive.lost = [lost(80, 85)]
    assert loaded(archive, store).rows.new == 20
    assert losses(store) == [(80, 85, WHY)]
    assert states(store)[:3] == [(0, 80, "held"), (80, 85, "lost at the source"), (85, 90, "empty")]
    archive.lost = []
    loaded(archive, store)
    loaded(archive, store)
    assert archive.asked == [], "what is no longer called lost is as any other answer"
    assert losses(store) == []
    assert store.catalogue()["revisions"].sum() == 0
    assert faults_of(store) == []


def test_a_follow_does_not_ask_in_each_sweep_for_what_is_lost(
    archive: Archive, store: Store
) -> None:
    archive.lose(60, 90)
    archive.lost = [lost(60, 90)]
    loaded(archive, store)
    writer = StoreWriter(store)
    load_id = writer.start_load(LoadOrigin("http://127.0.0.1:1", NOW, None, "0.1.0"))

    def take(piece: Piece) -> bool:
        batch = Batch()
        piece.put(batch)
        writer.commit(load_id, batch)
        return True

    with listening(archive.handler()) as url, Client(url, "key") as client:
        writer.bind(client.profile().source)
        sweeper = Sweeper(client, writer, Since(WINDOW.start), take, workers=1)
        archive.asked.clear()
        for _ in range(3):
            sweeper.sweep([PRICE])
        assert archive.asked, "the time after the window"
        assert all(before > WINDOW.end for before in archive.asked)
    assert losses(store) == [(60, 90, WHY)]


def test_what_is_older_than_the_first_row_is_lost_in_every_slice(
    archive: Archive, store: Store
) -> None:
    """The loader leaves what is older to others, which the first row spares their questions."""
    archive.lose(0, 300)
    archive.lost = [lost(0, 300, "beyond what the exchange gives")]
    loaded(archive, store, profile="history.price.limit = 5")
    assert losses(store) == [(0, 300, "beyond what the exchange gives")]
    assert states(store) == [(0, 300, "lost at the source"), (300, 360, "held")]


def test_rows_of_one_leg_are_kept_where_the_other_is_lost(archive: Archive, store: Store) -> None:
    names = ("buy_interval_hours", "sell_interval_hours", "sell_rate", "differential_pct_8h")
    rates = dict(zip(names, (1.0, 1.0, 0.0002, None), strict=True))
    archive.rows = {
        ts: rates | {"ts": ts, "buy_rate": None if hour in (2, 3) else 0.0001}
        for hour, ts in enumerate(range(*WINDOW, 3_600))
    }
    archive.lost = [lost(120, 240, "not published in 130 s")]
    loaded(archive, store, FUNDING)
    assert store.series(FUNDING, WINDOW).height == 6
    assert states(store, FUNDING)[:3] == [
        (0, 120, "held"),
        (120, 240, "lost at the source"),
        (240, 360, "held"),
    ]
    assert losses(store) == [(120, 240, "not published in 130 s")]


DAY = Interval(revealed.START, revealed.START + 86_400)


def test_a_market_that_lost_rows_is_loaded_with_them_and_its_events_are_marked(
    store: Store,
) -> None:
    leg, part = Leg.parse("ALPHA.spot"), Interval(DAY.start + 36_000, DAY.start + 72_000)
    source = Revealed(
        known_until=DAY.end, lost_rows={(("BTC_USDT", leg), "bars"): [LostRows(*part, WHY)]}
    )
    clock, key = Clock(fixed_at=DAY.end), "BTC_USDT:ALPHA.spot"
    spread = "BTC_USDT:ALPHA.spot:BETA.futures"
    with (
        running(Config(source, port=0, clock=clock)) as local,
        Workspace(Client(local.base_url, "demo-pro"), store) as rail,
    ):
        rail.sync([key, spread, "ETH_USDT:ALPHA.spot", "events/spread"], *DAY)
        for of in (key, spread):
            states = rail.store.coverage(of, DAY)
            lost = states.filter(state="lost at the source").select("start_ts", "end_ts").rows()
            assert lost == [tuple(part)]
        assert rail.store.gaps()["stream"].to_list() == [key, spread]
        lives = rail.events("spread", *DAY).lifecycles()
        marked = lives.drop_nulls("near_lost")
        assert 0 < marked.height < lives.height
        assert set(marked["symbol"]) == {"BTC_USDT"}
        assert marked["legs"].str.contains("ALPHA.spot").all()
        assert (marked["since"] <= part.end + 3_600).all()
        assert faults_of(rail.store) == []
        source.find(LostRows(*part, WHY))
        done = rail.sync(key, *DAY)
        assert done.rows.new > 500
        assert rail.store.gaps()["stream"].to_list() == [spread]


def test_what_lies_before_an_archive_is_no_quiet_time_in_rows_and_in_events(store: Store) -> None:
    source = Revealed(known_until=DAY.end, begins=DAY.start)
    config = Config(source, port=0, clock=Clock(fixed_at=DAY.end))
    window = Interval(DAY.start - 86_400, DAY.start + 3_600)
    with (
        running(config) as local,
        Workspace(Client(local.base_url, "demo-pro"), store) as rail,
    ):
        logs = ["BTC_USDT:ALPHA.spot", "events/spread"]
        rail.sync(logs, *window)
        for of in logs:
            states = rail.store.coverage(of, window).rows()
            assert states[0] == (window.start, DAY.start, "lost at the source")
            assert {state for *_, state in states[1:]} <= {"held", "empty", "missing"}
        lives = rail.events("spread", *window).lifecycles()
        assert lives.height > 0
        assert set(lives["near_lost"]) <= {None, "before the service's archive begins"}
        whys = rail.store.gaps().filter(status="lost")["cause"].unique().to_list()
        assert whys == ["before the service's archive begins"]
        assert faults_of(rail.store) == []


UNREADABLE = {
    "A_A": "soon",
    "B_B": [{"start": "2026-01-01", "end": START}],
    "C_C": [{"start": START * 1000, "end": START * 1000 + 60}],
    "D_D": [{"start": -1, "end": 60}],
    "E_E": [7],
    "F_F": {"start": START, "end": START + 60},
    "G_G": 3,
}


def test_what_cannot_be_read_is_a_finding_and_never_lost(archive: Archive, store: Store) -> None:
    archive.said = UNREADABLE
    streams = [Trajectory.parse(f"{symbol}:X.spot") for symbol in UNREADABLE]
    done = loaded(archive, store, *streams)
    found = [finding.says for finding, _ in done.findings if finding.kind == "lost_unreadable"]
    assert findings(done) == {"lost_unreadable"}
    assert len(found) == len(UNREADABLE), "each says what it is"
    assert losses(store) == []
    for stream in streams:
        assert states(store, stream) == [(0, 360, "held")], UNREADABLE[str(stream.symbol)]


def test_two_reasons_for_one_time_are_one_stretch_each_second_once(
    archive: Archive, store: Store
) -> None:
    archive.lose(60, 120)
    archive.lost = [lost(60, 100, "a"), lost(80, 120, "b"), lost(100, 100, "none")]
    loaded(archive, store)
    assert losses(store) == [(60, 100, "a"), (100, 120, "b")]
    archive.lost = [lost(60, 120, "c")]
    loaded(archive, store)
    assert losses(store) == [(60, 120, "c")]
    assert faults_of(store) == []


@pytest.mark.parametrize(
    ("line", "name", "known"),
    [
        ('history.price.lost = "meta.gone"', "meta.gone", True),
        ('history.price.lost = "gone"', "gone", True),
        ('history.price.lost = ""', "lost", False),
    ],
)
def test_the_place_of_what_is_lost_is_the_users(
    archive: Archive, store: Store, line: str, name: str, known: bool
) -> None:
    archive.lose(60, 90)
    archive.lost, archive.name = [lost(60, 90)], name
    done = loaded(archive, store, profile=line)
    assert losses(store) == ([(60, 90, WHY)] if known else [])
    assert not findings(done)
