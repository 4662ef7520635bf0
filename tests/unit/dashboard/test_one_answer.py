"""The same question about a spread has one answer on every page."""

from __future__ import annotations

import pytest

from .conftest import PAIR, spread_rows
from .shown import figures, values_of
from .test_spreads_page import bring

OTHER = "ETH_USD:KRAKEN.spot:GEMINI.spot"


def metrics(shown):
    return {metric.label: metric.value for metric in shown.metric}


def test_a_level_counts_with_the_sign_of_the_spread_unless_its_size_is_meant(page, held):
    """Of a pair whose sell leg is never dearer, the two pages say the same of both."""
    rows = spread_rows().rename({"buy_price": "sell_price", "sell_price": "buy_price"})
    bring(held, OTHER, rows)
    for side, words, share in (("above", "≥ 2.5 bps", 0), ("either", "|spread| ≥ 2.5 bps", 40)):
        asked = {"trajectory": OTHER, "threshold": "2.5", "side": side}
        opened = page(held.path, **asked)
        shown = metrics(opened)
        assert float(shown[f"Time {words}"].removesuffix(" %")) == pytest.approx(share, abs=0.5)
        shapes = figures(opened)[0]["layout"]["shapes"]
        drawn = {each["y0"] for each in shapes if each.get("name") == "threshold"}
        assert drawn == ({2.5, -2.5} if share else {2.5})
        table = page(held.path, "spreads", above="2.5", side=side, symbols="ETH_USD")
        (row,) = values_of(table, "spreads")
        assert row[f"{words} (%)"] == pytest.approx(share, abs=0.5)
        daily = shown[f"Episodes a day, {words}"].replace(",", "")
        assert row[f"{words} (n/d)"] == pytest.approx(float(daily), abs=0.01)


def test_with_fees_both_pages_count_what_is_beyond_the_cost(page, held):
    """Where the Trajectory had `no fees chosen`, Spreads had a number of another level."""
    for params in ({}, {"fees": "example"}):
        words = "|spread| > cost" if params else "≥ 20 bps"
        shown = metrics(page(held.path, trajectory=PAIR.key, window="All", **params))
        (row,) = values_of(page(held.path, "spreads", window="All", **params), "spreads")
        assert shown[f"Time {words}"] == "0 %"
        assert row[f"{words} (%)"] == 0
        assert float(shown[f"Episodes a day, {words}"]) == row[f"{words} (n/d)"] == 0
