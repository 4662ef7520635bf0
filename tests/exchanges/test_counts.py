"""How often exchanges are asked, counted on the fake, and how far behind them is what is known.

Slow: of two symbols, where a fifth of what is allowed for ten must do.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exchanges.fake import Fake
from tests.exchanges.told import Desk, truth_of
from toolkit.service.market.exchanges import WantedLegs
from toolkit.service.market.exchanges.reading import Exchange

pytestmark = pytest.mark.slow

START = 1_795_651_200 + 8 * 3600
NAMES = ("binance", "bybit", "okx", "kraken", "hyperliquid", "gate")


class Stepped(Exchange):
    """An exchange by a clock that the test steps, as often as it likes."""

    ts: float = START

    def now(self) -> float:
        return self.ts


def test_a_week_and_an_hour_of_six_exchanges_take_so_many_requests_and_lag_so_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [Stepped(name, sleep=lambda _: None) for name in NAMES]
    with Fake(now=lambda: found[0].ts) as fake:
        monkeypatch.setenv("RAIL_EXCHANGES_AT", fake.at)
        for each in found:
            each.ts = START - 295.0
        asked_for = WantedLegs(("BTC_USDT", "SOL_USDT"), {"USDC": "USDT"})
        desk = Desk(tmp_path / "real.duckdb", found, START - 7 * 86_400, asked_for)
        desk.catch_up()
        assert len(fake.requests) <= 2_000 / 5
        assert len(desk.archive.legs) >= 20
        desk.worst_lag_s, asked = 0.0, len(fake.requests)
        for _ in desk.run(START + 905.0):
            pass
        assert desk.worst_lag_s <= 150
        assert (len(fake.requests) - asked) / 20 <= 120 / 5
        reach = {name: end for name, kind, _, end in desk.lost() if kind == "bars"}
        rows = desk.rows()
        for name, wanted in truth_of(desk, fake.truth).items():
            known = [row[:2] for row in wanted if row[0] >= reach.get(name, 0)]
            assert [row[:2] for row in rows[name]] == known, name
        assert {name.split(".")[0] for name in reach} == {
            "BTC_USDT:KRAKEN",
            "SOL_USDT:KRAKEN",
            "BTC_USDT:HYPERLIQUID",
            "SOL_USDT:HYPERLIQUID",
            "BTC_USDT:GATE",
            "SOL_USDT:GATE",
        }
        desk.archive.close()
