"""What is held of each stream: a row each, with how complete and how old it is."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from toolkit.client import Client
from toolkit.service import Clock, Config, Simulated, running
from toolkit.service.market.simulator import MARKETS
from toolkit.store import Store
from toolkit.workspace import Workspace
from toolkit.workspace.holdings import STATUS

PRICE = "BTC_USDT:AURORA.spot"
WINDOW = ("2026-11-01", "2026-11-02")


def test_the_status_of_a_workspace_is_a_row_for_each_stream_it_asked_for(
    service: str, tmp_path: Path
) -> None:
    with Workspace(Client(service, "demo-pro"), Store(tmp_path / "rail.duckdb")) as rail:
        rail.sync([PRICE, "events/splash", "snapshot/spread"], *WINDOW, progress=False)
        found = rail.status()
    assert dict(found.schema) == STATUS
    assert found["stream"].to_list() == ["events/splash", PRICE, "snapshot/spread"]
    price = found.filter(stream=PRICE).row(0, named=True)
    assert (price["state"], price["answered_share"], price["step_s"]) == ("held", 1.0, 60)
    assert price["rows"] == rail.prices(PRICE, *WINDOW).df.height
    assert price["holes"] == (rail.prices(PRICE, *WINDOW).gaps()["state"] == "empty").sum()
    assert price["behind_s"] > 86_400
    others = found.filter(pl.col("stream") != PRICE)
    assert others["holes"].to_list() == [None, None]


def test_just_after_a_full_load_nothing_is_behind(tmp_path: Path) -> None:
    funding = "funding/BTC_USDT:AURORA.futures:EQUINOX.futures"
    markets = {symbol: MARKETS[symbol] for symbol in ("BTC_USDT", "SOL_USDT")}
    clock = Clock(fixed_at=1_795_132_800 + 5_400)  # an hour and a half after a settlement
    with (
        running(Config(Simulated(7, markets=markets), port=0, clock=clock)) as local,
        Workspace(Client(local.base_url, "demo-pro"), Store(tmp_path / "rail.duckdb")) as rail,
    ):
        rail.sync([PRICE, funding, "events/splash"], "2d", progress=False)
        found = rail.status()
    assert found["rows"].min() > 0
    assert found["behind_s"].max() <= 180
