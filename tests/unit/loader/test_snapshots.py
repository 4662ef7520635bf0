"""Snapshots against a running service: the whole answer, as it stood."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from toolkit.client import Client
from toolkit.errors import InputError, PlanRefusedError
from toolkit.loader import take_snapshots
from toolkit.service import Clock, Config, miniature, running
from toolkit.store import Store
from toolkit.wire.profile import SNAPSHOTS

CONFIG = Config(miniature.source(), port=0, clock=Clock(fixed_at=miniature.END))


@pytest.mark.parametrize("kind", list(SNAPSHOTS))
def test_an_answer_is_kept_byte_for_byte_with_the_services_time(tmp_path: Path, kind: str) -> None:
    store = Store(tmp_path / "rail.duckdb")
    with running(CONFIG) as service, Client(service.base_url, "demo-pro") as client:
        lengths = take_snapshots(client, store, [kind])
        query = {"limit": client.profile().symbols_limit} if kind == "symbols" else {}
        headers = {"apikey": "demo-pro"}
        sent = httpx.get(
            service.base_url + SNAPSHOTS[kind], headers=headers, params=query, timeout=30
        )

    (kept,) = store.snapshots(kind).to_dicts()
    assert kept["document"].encode() == sent.content
    assert lengths == {kind: len(sent.content)}
    assert kept["served_at"] == miniature.END
    assert json.loads(kept["document"])["type"]


def test_a_later_snapshot_stands_before_the_earlier_one(tmp_path: Path) -> None:
    store = Store(tmp_path / "rail.duckdb")
    for now in (miniature.END - 3600, miniature.END):
        config = Config(miniature.source(), port=0, clock=Clock(fixed_at=now))
        with running(config) as service, Client(service.base_url, "demo-pro") as client:
            take_snapshots(client, store, ["spread", "spread"])

    assert store.snapshots("spread")["served_at"].to_list() == [
        miniature.END,
        miniature.END - 3600,
    ]


def test_a_refused_snapshot_keeps_those_before_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "rail.duckdb")
    with (
        running(CONFIG) as service,
        Client(service.base_url, "demo-free") as client,
        pytest.raises(PlanRefusedError, match="plan"),
    ):
        take_snapshots(client, store, ["symbols", "spread"])

    assert store.snapshots("symbols").height == 1
    assert store.snapshots("spread").height == 0


def test_a_kind_that_is_none_is_refused(tmp_path: Path) -> None:
    with (
        running(CONFIG) as service,
        Client(service.base_url, "demo-pro") as client,
        pytest.raises(InputError, match="symbols, activity, spread, funding"),
    ):
        take_snapshots(client, Store(tmp_path / "rail.duckdb"), ["dashboards"])
