"""Series kept from snapshots on the pages: with their coverage by polls, and marked."""

from __future__ import annotations

import json

import pytest

from toolkit.market import SnapshotLog
from toolkit.store import Edge, Snapshot, Store

from .conftest import SERVED_AT, loading
from .shown import cells_of, rows_of, values_of

PAIR = "snapshot-spread/BTC_USD:X.spot:Y.futures"
LEG = "snapshot-funding/BTC_USD:X.futures"
POLLS = [SERVED_AT + 60 * i for i in (0, 1, 2, 3, 5, 6, 7, 8, 9, 10)]  # one was not answered


@pytest.fixture
def polled(held: Store) -> Store:
    """Ten answers, of which the last two show no pair, beside what was loaded."""
    legs = {"symbol": "BTC_USD", "buy_exchange": "X", "buy_market": "spot", "sell_exchange": "Y"}
    leg = {"symbol": "BTC_USD", "exchange": "X", "market": "futures", "interval_hours": 8}
    with loading(held) as batch:
        for i, at in enumerate(POLLS):
            size = {"spread_pct": 0.5 + 0.1 * (i % 2), "opened_at": None}
            shown = [legs | {"sell_market": "futures"} | size] if i < 8 else []
            rate = leg | {"rate": 1e-4, "next_funding_time": None}
            for kind, items in (("spread", shown), ("funding", [rate])):
                answer = json.dumps({"items": items}).encode()
                batch.add_snapshot(Snapshot(SnapshotLog.named(kind), at, answer, 60), Edge(at))
    return held


def test_the_page_of_spreads_has_them_by_themselves_with_coverage_by_polls(page, polled):
    shown = page(polled.path, "spreads", rows="snapshots", columns="n,coverage")
    (row,) = values_of(shown, "spreads")
    assert (row["buy → sell"], row["n"]) == ("X.spot → Y.futures", 8)
    assert row["coverage"] == pytest.approx(8 / 9)

    shown.get_by_key("rows").set_value("history").run()
    (row,) = values_of(shown, "spreads")
    assert row["buy → sell"] == "COINBASE.spot → KRAKEN.spot"
    assert "rows" not in shown.query_params


@pytest.mark.parametrize(("key", "n"), [(PAIR, 8), (LEG, 10)])
def test_the_page_of_a_trajectory_shows_one(page, polled, key, n):
    shown = page(polled.path, trajectory=key)
    assert not shown.warning
    metrics = {metric.label: metric.value for metric in shown.metric}
    assert metrics["observations"] == str(n)
    assert metrics["coverage"] == f"{100 * n / (n + 1):.2f} %"


def test_data_health_lists_them_with_what_was_polled(page, polled):
    lines = cells_of(page(polled.path, "health"), "streams")
    for key in (PAIR, LEG):
        assert float(lines[key]["held (%)"]) == pytest.approx(100 - 100 * 60 / 601, abs=0.005)
        assert any("unrecoverable 9.98 %" in cell for cell in lines[key].values())
        assert (lines[key]["longest gap"], lines[key]["gap state"]) == ("1 min", "unrecoverable")


def test_the_page_of_funding_lists_legs_without_a_pair_and_opens_one(page, polled):
    shown = page(polled.path, "funding")
    table = rows_of(shown, "kept")
    assert (table["symbol"], table["leg"], table["rows"]) == (["BTC_USD"], ["X.futures"], ["10"])
    shown.session_state["kept_opened"] = LEG
    shown.run()
    assert shown.selectbox(key="trajectory").value == LEG
