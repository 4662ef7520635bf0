"""Several pairs at once: their rows are those of each alone, over one window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from toolkit.client import Client
from toolkit.errors import EmptyWindowError, InputError, UnknownTrajectoryError
from toolkit.market import Pair
from toolkit.statistics import spread
from toolkit.statistics.fees import FeeModel
from toolkit.store import Store
from toolkit.workspace import Workspace

DAY = ("2026-11-01", "2026-11-02")
HOURS = ("2026-11-01T06:00", "2026-11-01T12:00")
NEXT = ("2026-11-02", "2026-11-02T06:00")
A, B, ETH, LATE = (
    "BTC_USDT:AURORA.spot",
    "BTC_USDT:BOREAS.spot",
    "ETH_USDT:AURORA.spot",
    "BTC_USDT:CORONA.futures",
)
KEYS = [f"pair/{A}/{B}", f"pair/{B}/{A}"]


@pytest.fixture(scope="module")
def held(service: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    path = tmp_path_factory.mktemp("paired") / "rail.duckdb"
    with Workspace(Client(service, "demo-pro"), Store(path)) as rail:
        rail.sync([KEYS[0], ETH], *DAY, progress=False)
        rail.sync(LATE, *NEXT, progress=False)
        yield rail


@pytest.mark.parametrize("options", [{}, {"max_stale_s": 300, "multiplier": 2.0}])
def test_the_rows_of_several_pairs_are_those_of_each_alone(
    held: Workspace, options: dict[str, Any]
) -> None:
    found = held.pairs(KEYS, *HOURS, **options)
    alone = [held.pair(*key.split("/")[1:], *HOURS, **options) for key in KEYS]
    assert found.equals(pl.concat([pair.rows for pair in alone]))
    measured = spread.summary(found, *HOURS)
    assert measured.equals(
        pl.concat(spread.summary(pair.rows, *HOURS) for pair in alone).sort("trajectory")
    )


def test_without_a_window_it_is_what_the_legs_have_in_common(held: Workspace) -> None:
    alone = held.pair(A, B)
    (found,) = held.pairs([Pair.of(A, B)]).partition_by("trajectory")
    rows = alone.rows.filter(pl.col("ts").is_between(*alone.window, closed="left"))
    assert found["ts"].to_list() == rows["ts"].to_list()
    with pytest.raises(EmptyWindowError, match="have no time in common"):
        held.pairs(f"pair/{A}/{LATE}")


def test_a_pair_without_a_row_of_a_leg_is_left_out(held: Workspace) -> None:
    found = held.pairs([KEYS[0], f"pair/{A}/{LATE}"], *DAY)
    assert found["trajectory"].unique().to_list() == [KEYS[0]]
    with pytest.raises(EmptyWindowError, match=f"holds nothing in .* of pair/{A}/{LATE}"):
        held.pairs(f"pair/{A}/{LATE}", *DAY)


def test_an_fx_leg_is_of_those_pairs_whose_keys_lack_one(held: Workspace) -> None:
    crossed = f"pair/{A}/BTC_ETH:OWN.spot"
    with pytest.raises(UnknownTrajectoryError, match=r"BTC_ETH:OWN\.spot"):
        held.pairs([KEYS[0], crossed], fx=ETH)
    with pytest.raises(InputError, match=r"^fx: .*legs of one quote"):
        held.pairs(KEYS, fx=ETH)


@pytest.mark.slow
def test_a_screen_of_pairs_is_that_of_their_rows_over_what_their_legs_share(
    held: Workspace,
) -> None:
    costs = {"fees": FeeModel.example(["AURORA", "BOREAS"])}
    for options in ({}, costs):
        expected = spread.screen(held.pairs(KEYS, *HOURS), *HOURS, **options)
        assert held.screen(*HOURS, pairs=KEYS, **options).equals(expected)
    assert expected.height == 2
    ranked = held.screen(*HOURS, pairs=KEYS, where="spread_mean_log_bps > 0", sort="trajectory")
    means = expected.filter(pl.col("spread_mean_log_bps") > 0)
    assert ranked["trajectory"].to_list() == means["trajectory"].to_list()
    whole, legs = held.screen(pairs=KEYS), held.pair(A, B).window
    assert whole.select("window_start", "window_end").row(0) == tuple(legs)
    alone = held.screen(*HOURS, pairs=[*KEYS, f"pair/{A}/{LATE}"], types="spot/spot")
    assert set(alone["trajectory"]) == set(KEYS)


def test_pairs_of_prices_are_screened_as_spreads_alone(held: Workspace) -> None:
    with pytest.raises(InputError, match=r"^pairs: .* with the family spread alone"):
        held.screen(pairs=KEYS, family="funding")
    with pytest.raises(InputError, match=r"^pair: "):
        held.screen(pairs="BTC_USDT:AURORA.spot:BOREAS.spot")
    with pytest.raises(UnknownTrajectoryError, match="BTC_USDT:OWN"):
        held.screen(pairs=f"pair/{A}/BTC_USDT:OWN.spot")


@pytest.mark.parametrize(
    ("keys", "parameter"),
    [
        ([], "pairs"),
        (7, "pairs"),
        (f"{A}:BOREAS.spot", "pair"),
        ([f"pair/{A}/{A}"], "legs"),
        ([f"pair/{A}/{ETH}"], "multiplier"),
        ([f"pair/{A}/BTC_USD:BOREAS.spot"], "fx"),
    ],
)
def test_what_makes_no_pair_is_refused_before_the_store_is_read(keys: Any, parameter: str) -> None:
    with (
        Workspace(lambda _closing: pytest.fail("asked"), Store("nowhere.duckdb")) as rail,
        pytest.raises(InputError, match=f"^{parameter}: "),
    ):
        rail.pairs(keys)
