"""The workspace's verbs: one key or several, of any kind of stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import toolkit as tk
from tests.adversary import adversary_of, adverse
from tests.unit.workspace.conftest import NOW
from toolkit.client import Client
from toolkit.errors import InputError
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Store
from toolkit.workspace import Workspace

HOUR = (NOW - 7_200, NOW - 3_600)
LATER = (NOW - 5_400, NOW - 3_600)
LEGS = "BTC_USDT:AURORA.futures:CORONA.futures"


@pytest.fixture(scope="module")
def rail(simulated: Workspace) -> Workspace:
    return simulated


def test_one_key_is_enough(rail: Workspace) -> None:
    done = rail.sync("BTC_USDT:AURORA.spot", *HOUR)
    assert (done.rows.new, [stream.key for stream in done.asked]) == (60, ["BTC_USDT:AURORA.spot"])


@pytest.mark.slow
def test_streams_of_every_kind_are_one_load(rail: Workspace) -> None:
    keys = ["BTC_USDT:AURORA.spot:CORONA.futures", "events/splash", "snapshot/spread"]
    done = rail.sync(keys, *HOUR)
    assert [stream.key for stream in done.asked] == keys
    assert "1 trajectory, 1 event log, 1 snapshot" in str(done)
    assert rail.store.loads().height == rail.store.loads()["finished_at"].drop_nulls().len()
    assert rail.store.snapshots("spread").height == 1


def test_a_workspaces_own_window_is_read_and_loaded_where_none_is_given(rail: Workspace) -> None:
    bounded = Workspace(rail.client, rail.store, window=HOUR)
    assert bounded.sync("BTC_USDT:AURORA.spot", progress=False).window == HOUR
    assert bounded.prices("BTC_USDT:AURORA.spot").window == HOUR
    assert bounded.prices("BTC_USDT:AURORA.spot", *LATER).window == LATER
    assert bounded.as_of(NOW * 2).prices("BTC_USDT:AURORA.spot").window == HOUR


def test_a_time_that_is_none_is_refused_before_the_service_is_asked(tmp_path: Path) -> None:
    nobody = Client("http://127.0.0.1:9", "demo-pro")
    with Workspace(nobody, Store(tmp_path / "s.duckdb")) as rail:
        for start in ("last week", 1_793_750_400_000, "2026-13"):
            with pytest.raises(InputError, match="start"):
                rail.sync("BTC_USDT:*", start)


def test_the_profile_of_a_service_is_a_file_given_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed = {"rest": {"renamed_fields": {"price": "px"}, "undeclared": True}}
    clock, adversary = Clock(fixed_at=NOW), adversary_of(renamed)
    (profile := tmp_path / "p.toml").write_text('[history.price]\nfields.price = { wire = "px" }\n')
    with running(
        Config(Simulated(7), port=0, clock=clock, application=adverse(adversary))
    ) as service:
        monkeypatch.setenv("RAIL_BASE_URL", service.base_url)
        with tk.open(tmp_path / "s.duckdb", profile=profile) as rail:
            rail.sync("BTC_USDT:AURORA.spot", *HOUR)
            assert rail.prices("BTC_USDT:AURORA.spot").df["price"].null_count() == 0
    monkeypatch.delenv("RAIL_BASE_URL")
    with pytest.raises(InputError, match=r"profile: .* none without the service's address"):
        tk.open(tmp_path / "s.duckdb", profile=profile)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"exchanges": ["binanse"]}, "nearest: binance"),
        ({"exchanges": "okx", "symbols": ["BTC-USDT"]}, "BASE_QUOTE"),
        ({"exchanges": "okx", "base_url": "http://127.0.0.1:9"}, "none beside exchanges"),
        ({"symbols": ["BTC_USDT"]}, "none without exchanges"),
        ({"renames": {"USDC": "USDT"}}, "none without exchanges"),
    ],
)
def test_exchanges_that_cannot_be_read_are_refused_before_anything_is_asked(
    workdir: Path, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        tk.open("s.duckdb", **given)
    assert list(workdir.iterdir()) == []
