"""Screens of a store: which pairs, over which window, by which costs, and as one pass over them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toolkit.client import Client
from toolkit.errors import EmptyWindowError, InputError
from toolkit.market import Trajectory
from toolkit.statistics import spread
from toolkit.statistics.fees import FeeModel
from toolkit.store import Store
from toolkit.workspace import Workspace
from toolkit.workspace.screening import Screening

WINDOW = ("2026-11-01", "2026-11-02")


@pytest.fixture(scope="module")
def held(service: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    path = tmp_path_factory.mktemp("screened") / "rail.duckdb"
    with Workspace(Client(service, "demo-pro"), Store(path)) as rail:
        rail.sync(["BTC_USDT:*:*", "ETH_USDT:AURORA.spot:*"], *WINDOW, progress=False)
        yield rail


def test_a_screen_is_that_of_all_rows_held(held: Workspace) -> None:
    found = held.screen(*WINDOW)
    keys = held.status().filter(kind="spread")["stream"].to_list()
    rows = held.store.scan(keys).collect()
    assert found.equals(spread.screen(rows, *WINDOW))
    assert found.height == 9
    assert found["spread_last_size_log_bps"].is_sorted(descending=True, nulls_last=True)


def test_without_a_window_it_is_all_that_is_held(held: Workspace) -> None:
    assert (
        held.screen()
        .select("trajectory", "n")
        .equals(held.screen(*WINDOW).select("trajectory", "n"))
    )


@pytest.mark.slow
def test_symbols_and_exchanges_choose_pairs_by_both_legs(held: Workspace) -> None:
    eth = held.screen(symbols="ETH_USDT", where="n > 0")
    assert eth["trajectory"].str.starts_with("ETH_USDT:").all()
    between = held.screen(exchanges=["AURORA", "BOREAS"], sort="trajectory")["trajectory"]
    assert between.to_list() == [
        "BTC_USDT:AURORA.spot:BOREAS.spot",
        "ETH_USDT:AURORA.spot:BOREAS.spot",
    ]
    with pytest.raises(EmptyWindowError, match="exchanges AURORA, types spot/spot"):
        held.screen(exchanges="AURORA", symbols="ETH_USDT", types="spot/spot")


def test_types_and_symbols_left_out_choose_pairs() -> None:
    keys = ["BTC_USDT:X.spot:Y.spot", "ETH_USDT:X.spot:Y.futures", "BTC_USDT:X.spot:Y.futures"]
    held = [Trajectory.parse(key) for key in keys]

    def chosen(**asked: str) -> list[int]:
        return [keys.index(pair.key) for pair in Screening(**asked).among(held)]

    assert chosen(types="spot/futures") == [1, 2]
    assert chosen(types="spot/futures", exclude_symbols="BTC_USDT") == [1]
    assert chosen(symbols="BTC_USDT", exclude_symbols="BTC_USDT") == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "price"}, "family: 'price' is not allowed; allowed: spread, funding"),
        ({"family": "snapshot-funding", "fees": FeeModel.example()}, "fees: .*rates in force"),
        ({"symbols": "BTC_USD"}, "symbols: 'BTC_USD' .* nearest: BTC_USDT"),
        ({"exchanges": ["AURORRA"]}, "exchanges: 'AURORRA' .* nearest: AURORA"),
        ({"types": "spot/dax"}, "types: 'spot/dax' .* nearest: spot/dex"),
        ({"exclude_symbols": "BTC_USD"}, "exclude_symbols: 'BTC_USD' .* nearest: BTC_USDT"),
        ({"sort": "-net_edge_bps"}, "sort: 'net_edge_bps' .* with a fee table"),
    ],
)
def test_what_is_not_held_or_no_column_is_one_clear_line(
    held: Workspace, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        held.screen(**options)  # type: ignore[arg-type]  # what is refused


def test_nothing_held_names_what_loads_some(held: Workspace) -> None:
    with pytest.raises(EmptyWindowError, match="holds no funding yet; `rail sync"):
        held.screen(family="funding")
    with pytest.raises(EmptyWindowError, match="holds no spread in"):
        held.screen("2026-11-03", "2026-11-04")
