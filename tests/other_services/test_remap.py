"""A corrected profile and `rail store remap`: a store as if it had been loaded right at first."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.other_services.data import NOW, sample
from tests.other_services.kinds import KINDS, profile_of, users
from tests.other_services.opposite import Opposite
from tests.other_services.server import API_KEY, Answer, Question, serving
from tests.other_services.service import Held, OtherService
from toolkit.client import Client
from toolkit.errors import StoreError, WireError
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.market import Family, Stream, Trajectory
from toolkit.store import Store
from toolkit.store.file.maintenance import verify
from toolkit.store.writing.pages import pages_path
from toolkit.store.writing.remap import remap
from toolkit.tables import EVENT, SERIES

DATA = sample()
KEYS = [*DATA.rows, *(f"events/{family}" for family in DATA.events)]
WINDOW = Interval(NOW - 12 * 86_400, NOW)
WORDS = 'words = { open = "OPEN", closed = "CLOSED" }'
LEGS = 'buy_price = { wire = "buy" }\nfields.sell_price = { wire = "sell" }'
LEGS_SWAPPED = 'buy_price = { wire = "sell" }\nfields.sell_price = { wire = "buy" }'
WRONG = {
    "a sign": ("opposite", ", reversed = true", ""),
    "a unit": (
        "nested",
        'spread_pct = { wire = "edge.bps", unit = "bps"',
        'spread_pct = { wire = "edge.bps"',
    ),
    "a unit of a rate": ("rows", '"bps_per_interval"', '"percent_per_interval"'),
    "a field": ("opposite", 'fields.mark_price = { wire = "mark" }', ""),
    "the legs": ("oldest", LEGS, LEGS_SWAPPED),
    "a field of events": ("opposite", '["magnitude_pct"]', '["peak_pct"]'),
    "words of events": ("nested", WORDS, ""),
    "the id of events": ("nested", '["meta.id"]', '["meta.state"]'),
}
"""What may be wrong in a profile: of which kind, what is right in it, and what stands there."""

Load = Callable[..., Store]
pytestmark = pytest.mark.slow


def profile(kind: str) -> str:
    return profile_of(kind).read_text()


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Load a service of a kind into a store, under a profile given as text."""
    running: dict[str | OtherService, str] = {}
    with ExitStack() as services:

        def loaded(
            kind: str | OtherService, text: str, name: str, start: int = WINDOW.start, **how: object
        ) -> Store:
            store = Store(tmp_path / f"{name}.duckdb")
            if kind not in running:
                service = KINDS[kind](DATA) if isinstance(kind, str) else kind
                running[kind] = services.enter_context(serving(service))
            with Client(running[kind], API_KEY, profile=users(text)) as client:
                streams = [Stream.parse(key) for key in KEYS]
                sync(client, store, streams, Interval(start, NOW), workers=1, **how)
            return store

        yield loaded


def held(store: Store) -> dict[str, object]:
    """Every row of every table of rows, and of the ledger, without the times of the commits."""
    found: dict[str, object] = {}
    with duckdb.connect(str(store.path), read_only=True) as connection:
        for table in (*SERIES.values(), EVENT):
            query = f"SELECT * EXCLUDE (committed_at) FROM {table.name} ORDER BY ALL"
            found[table.name] = connection.execute(query).fetchall()
        for name in ("stream", "coverage"):
            found[name] = connection.execute(f"FROM {name} ORDER BY ALL").fetchall()
        query = "SELECT * EXCLUDE (asked_at) FROM edge ORDER BY ALL"
        found["edge"] = connection.execute(query).fetchall()
        found["load"] = connection.execute("SELECT profile_hash FROM load").fetchall()
        keys = "SELECT * FROM meta WHERE name LIKE '%_key' ORDER BY ALL"
        found["key"] = connection.execute(keys).fetchall()
    return found


@pytest.mark.parametrize("mistake", WRONG)
def test_a_store_is_as_if_it_had_been_loaded_under_the_corrected_profile(load, mistake):
    kind, right, wrong = WRONG[mistake]
    good = profile(kind)
    assert right in good
    wanted = held(load(kind, good, "good"))
    store = load(kind, good.replace(right, wrong), "bad")
    assert held(store) != wanted
    done = remap(store, users(good))
    assert held(store) == wanted
    assert done.changed_rows + done.changed_documents > 0
    assert verify(store) == []
    assert remap(store, users(good)).changed_rows == 0
    assert held(store) == wanted


def test_several_loads_keep_their_rows_and_a_later_one_brings_nothing_new(load, tmp_path) -> None:
    good = profile("rows")
    bad = good.replace('"bps_per_interval"', '"percent_per_interval"')
    for name, text in (("good", good), ("bad", bad)):
        load("rows", text, name, WINDOW.end - 5 * 86_400)
        load("rows", text, name)
        load("rows", text, name, again=True)
    stores = [Store(tmp_path / f"{name}.duckdb") for name in ("good", "bad")]
    remap(stores[1], users(good))
    wanted, found = map(held, stores)
    assert found == wanted


class Declaring(Opposite):
    """Of the kind `opposite`, with a unit of spreads in /schemas that becomes another."""

    in_bps = False

    def schemas(self) -> object:
        """Return the unit in force, as the interface document has it."""
        fields = {
            "time": {"unit": "s"},
            "premium_pct": {"unit": "bps" if self.in_bps else "percent"},
        }
        spread = {"route": "/api/v1/data/history/spread", "record": {"fields": fields}}
        return {"source": {"kind": "live", "id": "x"}, "tools": {"data.get_spread_history": spread}}

    def history(self, trajectory: Trajectory, held: Held, question: Question) -> Answer:
        """Return a page with spreads in the unit in force."""
        page: dict[str, Any] = super().history(trajectory, held, question).body
        if self.in_bps and trajectory.family is Family.SPREAD:
            points = [p | {"premium_pct": p["premium_pct"] * 100} for p in page["points"]]
            page |= {"points": points}
        return Answer(page)


def test_pages_are_read_anew_under_the_schemas_that_each_came_with(load, tmp_path) -> None:
    good = profile("opposite")
    service = Declaring(DATA)
    for name, text in (("good", good), ("bad", good.replace(", reversed = true", ""))):
        for service.in_bps, start in ((False, NOW - 3 * 3_600), (True, WINDOW.start)):
            load(service, text, name, start)
    stores = [Store(tmp_path / f"{name}.duckdb") for name in ("good", "bad")]
    assert stores[1].loads()["schema_hash"].n_unique() == 2
    remap(stores[1], users(good))
    wanted, found = map(held, stores)
    assert found == wanted
    key = next(key for key in KEYS if Stream.parse(key).kind == "spread")
    sent = DATA.rows[key].sort("ts")["spread_pct"].to_list()
    assert stores[1].series(key, WINDOW)["spread_pct"].to_list() == pytest.approx(sent, 1e-12)


def test_without_its_pages_a_store_is_refused_by_name_and_left_as_it_was(load, tmp_path) -> None:
    good = profile("opposite")
    store = load("opposite", good, "rail", pages_days=0)
    assert not pages_path(store.path).exists()
    before = held(store)
    with pytest.raises(
        StoreError, match=r"1000PEPE_USDT:DRACO.futures \[.*rows\).* and 3 more; noth"
    ):
        remap(store, users(good))
    assert held(store) == before
    assert {path.suffix for path in tmp_path.iterdir()} == {".duckdb"}


def test_asked_again_a_store_without_pages_can_be_read_anew(load: Load) -> None:
    good = profile("opposite")
    bad = good.replace(", reversed = true", "")
    wanted = held(load("opposite", good, "good"))
    store = load("opposite", bad, "bad", pages_days=0)
    load("opposite", good, "bad", again=True)
    assert not store.catalogue().filter(revisions=0).is_empty()
    remap(store, users(good))
    assert [row[:-1] for row in held(store)["price"]] == [row[:-1] for row in wanted["price"]]
    assert store.catalogue()["revisions"].sum() == 0
    assert verify(store) == []


def test_a_profile_that_reads_other_times_or_no_values_is_refused(load) -> None:
    good = profile("rows")
    store = load("rows", good, "rail")
    before = held(store)
    with pytest.raises(StoreError, match="no page is kept that has these rows under this profile"):
        remap(store, users(good.replace('unit = "ms"', 'unit = "us"')))
    with pytest.raises(WireError):
        remap(store, users(good.replace('numbers = "text"', "")))
    assert held(store) == before


def test_pages_that_no_commit_used_bring_no_rows(load: Load) -> None:
    """A killed process left them: their number is above that of the last commit."""
    good = profile("opposite")
    store = load("opposite", good, "rail")
    before = held(store)
    with closing(sqlite3.connect(pages_path(store.path))) as pages, pages:
        pages.execute(
            "INSERT INTO record SELECT 99, load_id, load_started_at, committed_at + 7, "
            "schema_hash, bytes, pages FROM record WHERE record_id = 1"
        )
        pages.execute("UPDATE record SET pages = x'00' WHERE record_id = 99")
    remap(store, users(good))
    assert held(store) == before
    load("opposite", good, "rail", again=True)
    with closing(sqlite3.connect(pages_path(store.path))) as pages:
        assert pages.execute("SELECT count(*) FROM record WHERE record_id = 99").fetchall() == [
            (0,)
        ]


def test_the_command_says_what_was_read_anew(load, tmp_path, rail) -> None:
    good = profile("opposite")
    store = load("opposite", good.replace(", reversed = true", ""), "rail")
    (tmp_path / "profile.toml").write_text(good)
    done = rail("store", "remap", "--store", store.path, profile=str(tmp_path / "profile.toml"))
    assert done.returncode == 0
    assert "1,854 rows read anew from 12 pages" in " ".join(done.stdout.split())
