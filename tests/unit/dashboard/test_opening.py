"""A row that opens what is not held: it is loaded, or one line says why it is not."""

from __future__ import annotations

import pytest

from toolkit.client import Client
from toolkit.dashboard.loads import address_to_ask
from toolkit.dashboard.reading import read_held
from toolkit.store import Store
from toolkit.store.file.engine import version_of
from toolkit.workspace import Workspace, front_page
from toolkit.workspace.snapshot_tables import held_stream

from .shown import rows_of, sync, texts

ABSENT = "BTC_USD:KRAKEN.spot:BITSTAMP.spot"


def test_what_was_loaded_comes_before_what_snapshots_kept():
    pair, turned = "A_B:X.spot:Y.spot", "A_B:Y.spot:X.spot"
    kept = f"snapshot-spread/{pair}"
    assert held_stream(pair, {kept, turned}) == (turned, True)
    assert held_stream(pair, {kept}) == (kept, False)
    assert held_stream("funding/A_B:X.futures:Y.futures", {kept}) is None


def test_a_service_that_is_away_or_a_key_that_is_none_is_one_line_and_the_page_stays(page, full):
    shown = page(full.path, "overview")
    shown.session_state["open_opened"] = ABSENT
    shown.run()
    (error,) = [error.value for error in shown.error]
    assert error.startswith(f"Load 24 h of `{ABSENT}` failed: ")
    assert f"rail sync {ABSENT} --start 24h" in error
    assert "\n" not in error
    assert [title.value for title in shown.header] == ["Overview"]
    assert rows_of(shown, "open")
    shown.run()
    assert shown.error, "it stays until another row is opened"
    shown.session_state["open_opened"] = "--store=x"
    shown.run()
    assert texts(shown.error)[-1] == "`--store=x` is not a valid name of a stream."


def test_a_trajectory_that_is_not_held_comes_with_the_button_that_loads_it(page, held):
    shown = page(held.path, trajectory="ETH_USD:KRAKEN.spot")
    assert "which is not in this store; the page shows" in shown.warning[0].value
    assert shown.button(key="load_absent").label == "Load 24 h of `ETH_USD:KRAKEN.spot`"
    shown.button(key="load_absent").click().run()
    (error,) = texts(shown.error)
    assert sync(held.path, "ETH_USD:KRAKEN.spot", "--start", "24h") in error


@pytest.mark.parametrize(
    ("asked", "own", "asks"),
    [
        ("http://127.0.0.1:9", None, "http://127.0.0.1:9"),
        ("https://rail.example", None, None),
        ("http://127.0.0.1:9", "https://rail.example", None),
        (None, None, None),
    ],
)
def test_a_store_names_no_other_machine_that_gets_the_key(monkeypatch, asked, own, asks):
    monkeypatch.delenv("RAIL_BASE_URL", raising=False)
    if own:
        monkeypatch.setenv("RAIL_BASE_URL", own)
    assert address_to_ask(asked) == asks


def test_a_row_that_is_not_held_is_loaded_and_opened(page, tmp_path, service):
    store = Store(tmp_path / "rail.duckdb")
    with Workspace(Client(service, "demo-pro"), store) as workspace:
        workspace.sync(["snapshot/spread", "snapshot/funding"])
        key = next(t.key for t in front_page(store) if t.kind == "funding")
    shown = page(store.path, "overview")
    shown.session_state["apart_opened"] = key
    shown.run()
    assert not shown.exception
    assert [title.value for title in shown.header] == ["Funding"]
    held = read_held(store.path, version_of(store.path))
    assert held.streams.filter(stream=key)["rows"].item() > 0


def test_the_history_of_a_pair_of_snapshots_is_offered_and_opens(
    page, tmp_path, service, monkeypatch
):
    path = tmp_path / "rail.duckdb"
    monkeypatch.setenv("RAIL_BASE_URL", service)
    monkeypatch.setenv("RAIL_API_KEY", "demo-pro")
    with Workspace(Client(service, "demo-pro"), Store(path)) as workspace:
        workspace.sync(["snapshot/spread"])
    kept = Store(path).catalogue().filter(kind="snapshot-spread")["stream"][0]
    shown = page(path, trajectory=kept)
    assert any("1 value from snapshots, and no history." in each for each in texts(shown.caption))
    shown.button(key="load_history").click().run()
    pair = kept.removeprefix("snapshot-spread/")
    assert shown.query_params["trajectory"] == pair
    assert Store(path).catalogue().filter(stream=pair)["rows"][0] > 5_000
