"""The rules of a store's rail.toml, beside those of its watchlist and its fee table."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.empty_store import empty_store
from tests.unit.store.test_alerts import found
from toolkit.alerts import AlertRule
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory
from toolkit.statistics.fees.fee_table import example_text
from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter
from toolkit.store.writing.alerts import AlertRecord
from toolkit.workspace import Workspace
from toolkit.workspace.alerts import alert_plan, caught, caught_words, find_alerts
from toolkit.workspace.rail_toml import Watchlist, find_watchlist

RULE = '[[alert]]\nname = "wide"\nkind = "spread"\nabove_bps = 50\n'


@pytest.fixture
def store(workdir: Path) -> Store:
    return empty_store(workdir / "rail.duckdb", Source("replay", "example"))


def no_one(_: object) -> None:
    """A service that nobody may ask."""
    raise AssertionError


def write(store: Store, text: str) -> None:
    (store.path.parent / "rail.toml").write_text(text, encoding="utf-8")


def test_rules_alone_leave_the_watchlist_as_it_is_by_default(store: Store) -> None:
    write(store, RULE)
    assert [rule.name for rule in find_alerts(store.path).rules] == ["wide"]
    assert find_watchlist(store.path) == Watchlist.default()
    write(store, f'[follow]\nstreams = ["events/*"]\n{RULE}')
    assert find_watchlist(store.path).streams == ("events/*",)


def test_a_net_rule_needs_the_fee_table_that_the_file_names(store: Store) -> None:
    write(store, f"{RULE}net = true\n")
    with pytest.raises(InputError, match=r"rail.toml alert wide net: True .*fees.toml"):
        find_alerts(store.path)
    (store.path.parent / "fees.toml").write_text(example_text(["AURORA"]), encoding="utf-8")
    write(store, f'fees = "fees.toml"\n{RULE}net = true\n')
    assert find_alerts(store.path).fees is not None


def test_a_rule_that_names_a_channel_needs_it_set_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, f'{RULE}send = ["chat"]\n')
    with pytest.raises(InputError, match=r"wide send: 'chat' .*set RAIL_ALERT_CHAT"):
        alert_plan(store.path)
    monkeypatch.setenv("RAIL_ALERT_CHAT", "json://localhost/")
    assert list(alert_plan(store.path).channels) == ["chat"]


def test_a_rule_that_makes_no_sense_is_refused_before_anything_is_asked(store: Store) -> None:
    write(store, '[[alert]]\nname = "wide"\nkind = "sprad"\n')
    with pytest.raises(InputError, match=r"rail.toml alert wide kind: 'sprad'"):
        Workspace(no_one, store).follow("events/*")


def test_the_history_as_of_a_time_has_what_was_open_then(store: Store) -> None:
    writer = StoreWriter(store)
    load_id = writer.start_load(LoadOrigin("http://127.0.0.1:1", 1, None, "0"))
    with writer.writing(load_id) as connection:
        AlertRecord(connection, load_id).record(
            found(("a", "opened", 1), ("a", "cleared", 2)), {}, ()
        )
        connection.execute("UPDATE alert SET recorded_at = 1000 * change_id")
    rail = Workspace(no_one, store)
    assert rail.alerts()["is_open"].to_list() == [False, False]
    assert rail.as_of(1_500).alerts()["is_open"].to_list() == [True]


SPREAD = Trajectory.parse("A_B:X.spot:Y.spot")


def test_what_a_rule_would_have_caught_is_what_a_follow_finds(store: Store) -> None:
    """Ten minutes of which two stretches are above 50 bps, the second for too short."""
    above = [0, 0, 100, 100, 100, 100, 0, 100, 0, 0]
    rows = pl.DataFrame(
        {
            "ts": [60 * minute for minute in range(10)],
            "buy_price": 100.0,
            "sell_price": [100.0 * (1 + bps / 1e4) for bps in above],
            "spread_pct": None,
            "extra": None,
        },
        schema_overrides={"spread_pct": pl.Float64, "extra": pl.String},
    )
    writer, batch = StoreWriter(store), Batch()
    batch.add(SPREAD, rows, Interval(0, 600), Edge(600, step_s=60))
    writer.commit(writer.start_load(LoadOrigin("http://h", 600, None, "0")), batch)
    rule = {"name": "a", "kind": "spread", "above_bps": 50, "for": "2m"}
    found = caught(store, AlertRule.of(rule), Interval(0, 600))
    assert found is not None
    assert found.select("stream", "ts").rows() == [(SPREAD.key, 240)]
    at_once = caught(store, AlertRule.of(rule | {"for": "1m"}), Interval(240, 600))
    assert at_once is not None
    assert at_once.is_empty()  # it opened before the window
    none = caught(
        store, AlertRule.of({"name": "b", "kind": "loss", "within": "1d"}), Interval(0, 600)
    )
    assert none is None
    elsewhere = AlertRule.of(rule | {"symbols": ["C_D"]})
    assert caught_words(caught(store, elsewhere, Interval(0, 600))) == "no alert"
