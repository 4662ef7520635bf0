"""Time and episodes beyond a level, against the statistics of each and a count of plain numbers."""

import random
from itertools import pairwise

import polars as pl
import pytest

from toolkit.statistics.fees import FeeModel
from toolkit.statistics.spread import net_episodes, net_summary
from toolkit.statistics.spread.net_episodes import LEVEL_BPS, Level

KEY = "BTC_USDT:BINANCE.spot:KRAKEN.spot"
START, STEPS = 1_700_000_000, 600
WINDOW = (START, START + 60 * STEPS)
FEES = FeeModel.example(["BINANCE", "KRAKEN"])


@pytest.fixture
def rows():
    drawn = random.Random(3)
    values = [drawn.gauss(0, 40) for _ in range(STEPS)]
    ts = [START + 60 * k for k in range(STEPS)]
    return pl.DataFrame({"trajectory": [KEY] * STEPS, "ts": ts, "spread_bps": values}).with_columns(
        spread_log_bps=1e4 * (pl.col("spread_bps") / 1e4).log1p()
    )


def runs(values, beyond):
    """How many stretches begin within the values."""
    return sum(beyond(b) and not beyond(a) for a, b in pairwise(values))


@pytest.mark.parametrize("absolute", [False, True])
def test_without_fees_it_is_the_number_of_rows_at_or_above_the_level(rows, absolute):
    level = Level(30, absolute)
    row = level.measure(rows, *WINDOW).row(0, named=True)
    values = rows["spread_log_bps"].to_list()

    def beyond(value):
        return (abs(value) if absolute else value) >= 30

    assert row["level_share"] == pytest.approx(sum(map(beyond, values)) / STEPS)
    assert row["level_begun"] == runs(values, beyond)
    assert row["level_per_day"] == pytest.approx(runs(values, beyond) * 1440 / STEPS)
    assert level.sides == ((1, -1) if absolute else (1,))
    drawn = level.stretches(rows, *WINDOW)
    assert drawn is not None
    assert drawn[1]["n"].sum() == sum(map(beyond, values))


@pytest.mark.parametrize("style", ["taker", "transfer"])
def test_with_fees_it_is_what_is_beyond_the_cost(rows, style):
    level = Level(fees=FEES, style=style, notional=1e4)
    row = level.measure(rows, *WINDOW).row(0, named=True)
    asked = {"fees": FEES, "style": style}
    net = net_summary(rows, *WINDOW, **asked).row(0, named=True)
    count = net_episodes(rows, *WINDOW, **asked).row(0, named=True)
    assert (row["level_share"], row["level_begun"]) == (net["net_share"], count["begun"])
    drawn = level.stretches(rows, *WINDOW)
    if net["cost_bps"] is None:
        assert (row["level_share"], row["level_reason"], drawn) == (None, "unknown_fee", None)
        assert (row["level_per_day"], row["per_day_reason"]) == (None, "unknown_fee")
        return
    assert drawn is not None
    assert drawn[0] == net["cost_bps"]
    assert drawn[1].height == count["net_episodes"]
    either = style != "transfer"
    assert level.words == ("|spread| > cost" if either else "spread > cost")
    assert (set(drawn[1]["side"]) == {"positive", "negative"}) is either


def test_a_spread_without_a_row_or_a_known_step_says_why():
    nothing = pl.DataFrame({"trajectory": [KEY], "ts": [START], "spread_log_bps": [None]})
    nothing = nothing.cast({"spread_log_bps": pl.Float64})
    row = Level().measure(nothing, *WINDOW).row(0, named=True)
    assert (row["level_share"], row["level_reason"]) == (None, "empty")
    assert (row["level_per_day"], row["per_day_reason"]) == (None, "empty")
    alone = pl.DataFrame({"trajectory": [KEY], "ts": [START], "spread_log_bps": [50.0]})
    row = Level().measure(alone, *WINDOW).row(0, named=True)
    assert (row["level_reason"], row["per_day_reason"]) == ("too_few", "too_few")


def test_the_level_of_all_faces_is_named():
    assert Level().words == f"≥ {LEVEL_BPS:g} bps"
