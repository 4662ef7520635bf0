from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.market import Leg
from toolkit.service import Clock, Config, Replay, running

HOUR_S = 3_600
NOW = 1_700_000_000 // 86_400 * 86_400  # midnight
ALPHA, BETA = Leg.parse("ALPHA.futures"), Leg.parse("BETA.futures")
PAIR = {
    "symbol": "BTC_USDT",
    "buy_exchange": "ALPHA",
    "buy_market": "futures",
    "sell_exchange": "BETA",
    "sell_market": "futures",
}


def rates(
    exchange: str,
    settled: dict[int, float],
    *,
    hours: float = 8.0,
    symbol: str = "BTC_USDT",
    dataset: str = "one",
) -> pl.DataFrame:
    """Settlements of one leg, by hours before NOW."""
    return pl.DataFrame(
        {"ts": [NOW - HOUR_S * before for before in settled], "rate": list(settled.values())},
        schema={"ts": pl.Int64, "rate": pl.Float64},
    ).select(
        "ts",
        symbol=pl.lit(symbol),
        exchange=pl.lit(exchange),
        rate="rate",
        interval_hours=pl.lit(hours),
        dataset=pl.lit(dataset),
    )


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., Path]:
    """Writes a directory of funding.parquet and, where given, prices.parquet."""

    def write(*frames: pl.DataFrame, prices: pl.DataFrame | None = None) -> Path:
        pl.concat(frames).write_parquet(tmp_path / "funding.parquet")
        if prices is not None:
            prices.write_parquet(tmp_path / "prices.parquet")
        return tmp_path

    return write


@pytest.fixture
def ask(recorded: Callable[..., Path]) -> Callable[..., Any]:
    """What a service says of recorded settlements."""

    def asked(
        *frames: pl.DataFrame,
        prices: pl.DataFrame | None = None,
        now: int = NOW,
        key: str = "demo-pro",
        path: str = "history/funding",
        **query: object,
    ) -> Any:
        replay = Replay.read(recorded(*frames, prices=prices))
        clock = Clock(fixed_at=now)
        with running(Config(replay, port=0, clock=clock)) as service:
            return httpx.get(
                f"{service.base_url}/api/v1/data/{path}",
                params=PAIR | query,  # type: ignore[arg-type] # plain values
                headers={"apikey": key},
            )

    return asked


TWO = (
    rates("ALPHA", {24: 1e-4, 16: 2e-4, 8: 3e-4}),
    rates("BETA", {20: 5e-4, 16: 6e-4, 12: 7e-4}, hours=4.0),
)


def test_each_settlement_of_either_leg_has_a_row_newest_first_with_the_differential_then(ask):
    document = ask(*TWO).json()
    assert {name: document[name] for name in PAIR} == PAIR
    assert (document["type"], document["next_end_time"]) == ("funding_history_page", None)
    assert [
        ((NOW - item["ts"]) // HOUR_S, item["buy_rate"], item["sell_rate"])
        for item in document["items"]
    ] == [(8, 3e-4, None), (12, None, 7e-4), (16, 2e-4, 6e-4), (20, None, 5e-4), (24, 1e-4, None)]
    found = {(NOW - item["ts"]) // HOUR_S: item for item in document["items"]}
    assert found[24]["differential_pct_8h"] is None
    assert found[20]["differential_pct_8h"] == pytest.approx(100 * (10e-4 - 1e-4))
    assert found[16]["differential_pct_8h"] == pytest.approx(100 * (12e-4 - 2e-4))
    assert found[8]["differential_pct_8h"] == pytest.approx(100 * (14e-4 - 3e-4))
    hours = [(row["buy_interval_hours"], row["sell_interval_hours"]) for row in found.values()]
    assert hours == [(8, 4), (8, 4), (8, 4), (8, 4), (8, None)]


def test_a_settlement_is_seen_at_its_moment_and_never_before(ask: Callable[..., Any]) -> None:
    for now, newest in ((NOW - 8 * HOUR_S - 1, 12), (NOW - 8 * HOUR_S, 8)):
        items = ask(*TWO, now=now, end_time=NOW).json()["items"]
        assert (NOW - items[0]["ts"]) // HOUR_S == newest


def test_two_legs_that_settle_nothing_are_a_400(make_bars: Any, ask: Callable[..., Any]) -> None:
    spots = pl.concat([make_bars("ALPHA", {NOW - 60: 1.0}), make_bars("GAMMA", {NOW - 60: 1.0})])
    legs = {"buy_market": "spot", "sell_exchange": "GAMMA", "sell_market": "spot"}
    answer = ask(*TWO, prices=spots, **legs)
    assert answer.status_code == 400
    assert [error["parameter"] for error in answer.json()["errors"]] == ["sell_market"]


def test_a_leg_whose_funding_alone_is_known_is_listed_without_prices(ask) -> None:
    (symbol,) = ask(*TWO, path="symbols/search", limit=9, q="").json()["items"]
    assert [(v["exchange"], v["funding_interval_hours"]) for v in symbol["venues"]] == [
        ("ALPHA", 8),
        ("BETA", None),  # its last rate is 12 h old, three of its intervals
    ]
    price = ask(*TWO, path="history/price", exchange="ALPHA", market="futures")
    assert (price.json()["items"], price.json()["next_end_time"]) == ([], None)
    spread = ask(*TWO, path="history/spread")
    assert (spread.json()["items"], spread.json()["next_end_time"]) == ([], None)


def test_prices_and_funding_of_a_directory_are_one_source(make_bars, recorded) -> None:
    path = recorded(*TWO, prices=make_bars("ALPHA", {0: 1.5}, market="futures"))
    both = Replay.read(path)
    prices, funding = (Replay.read(path / f"{name}.parquet") for name in ("prices", "funding"))
    assert both.listing == {"BTC_USDT": (ALPHA, BETA)} == funding.listing
    assert len({both.id, prices.id, funding.id}) == 3
    assert both.bars("BTC_USDT", ALPHA).price.tolist() == [1.5]
    settled = both.funding("BTC_USDT", BETA)
    assert settled is not None
    assert settled.rate.tolist() == [5e-4, 6e-4, 7e-4]
    assert both.funding("BTC_USDT", ALPHA) is not None
    assert prices.funding("BTC_USDT", ALPHA) is None


def test_a_dataset_chooses_among_both_files(make_bars: Any, recorded: Callable[..., Path]) -> None:
    path = recorded(
        rates("ALPHA", {8: 1e-4}),
        rates("BETA", {8: 1e-4}, dataset="two"),
        prices=make_bars("GAMMA", {0: 1.5}),
    )
    one, two = (Replay.read(path, datasets=[name]) for name in ("one", "two"))
    assert [str(leg) for leg in one.listing["BTC_USDT"]] == ["ALPHA.futures", "GAMMA.spot"]
    assert [str(leg) for leg in two.listing["BTC_USDT"]] == ["BETA.futures"]
    with pytest.raises(InputError, match=r"'three' is not allowed; allowed: one, two$"):
        Replay.read(path, datasets=["three"])


def test_two_datasets_of_one_legs_funding_are_refused_by_name(recorded) -> None:
    path = recorded(rates("ALPHA", {8: 1e-4}), rates("ALPHA", {16: 1e-4}, dataset="two"))
    with pytest.raises(InputError, match="BTC_USDT:ALPHA of funding in one and two") as refusal:
        Replay.read(path)
    assert "choose with --dataset" in str(refusal.value)


def test_a_settlement_that_comes_twice_is_refused(recorded: Callable[..., Path]) -> None:
    path = recorded(rates("ALPHA", {8: 1e-4}), rates("ALPHA", {8: 2e-4}))
    with pytest.raises(InputError, match=r"BTC_USDT:ALPHA of funding at ts \d+ twice"):
        Replay.read(path)


@pytest.mark.parametrize(
    ("rate", "hours"),
    [(rate, 8.0) for rate in (None, float("nan"), float("inf"))]
    + [(1e-4, hours) for hours in (0.0, 0.5, -8.0, 25.0, float("nan"))],
)
def test_a_rate_or_an_interval_that_is_none_is_refused(recorded, rate, hours) -> None:
    path = recorded(rates("ALPHA", {8: rate}, hours=hours))
    with pytest.raises(InputError, match="a finite rate and an interval of 1 to 24 whole hours"):
        Replay.read(path)


def test_every_real_settlement_of_a_data_set_is_held_unchanged(real_data: Path) -> None:
    replay = Replay.read(real_data / "funding.parquet", datasets=["supervik"])
    frame = pl.read_parquet(real_data / "funding.parquet").filter(pl.col("dataset") == "supervik")
    legs = [(symbol, leg) for symbol, legs in replay.listing.items() for leg in legs]
    assert len(legs) == 14
    assert {leg.market.value for _, leg in legs} == {"futures"}
    for symbol, leg in legs:
        rows = frame.filter(
            (pl.col("symbol") == symbol) & (pl.col("exchange") == leg.exchange)
        ).sort("ts")
        settled = replay.funding(symbol, leg)
        assert settled is not None
        assert settled.ts.tolist() == rows["ts"].to_list()
        assert settled.rate.tolist() == rows["rate"].to_list()


def test_real_funding_of_colliding_data_sets_is_named(real_data: Path) -> None:
    with pytest.raises(InputError, match="of funding in aha_hh and supervik"):
        Replay.read(real_data / "funding.parquet")


def test_simulated_funding_is_the_simulators_settlements(market, simulated) -> None:
    query = PAIR | {"buy_exchange": "AURORA", "sell_exchange": "DRACO", "limit": "500"}
    items = simulated.get("history/funding", params=query).json()["items"]
    newest, oldest = items[0]["ts"], items[-1]["ts"]
    for name, exchange in (("buy_rate", "AURORA"), ("sell_rate", "DRACO")):
        leg = Leg.parse(f"{exchange}.futures")
        settled = market.settlements("BTC_USDT", leg, oldest, newest + 1)
        shown = {item["ts"]: item[name] for item in items if item[name] is not None}
        assert shown == dict(zip(settled.ts.tolist(), settled.rate.tolist(), strict=True))
    assert len(items) == 30 * 6  # the plan's 30 days; three settlements a day of either leg
    assert not np.isnan([item["differential_pct_8h"] for item in items]).any()
