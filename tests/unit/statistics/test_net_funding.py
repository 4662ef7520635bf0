"""What funding leaves after one round trip."""

from __future__ import annotations

import inspect
import re

import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.funding import net_summary, summary

from .test_fee_table import JANUARY, PERP, TABLE

KEY = f"funding/{PERP}"
COST = 2 * (3 + 20) + 0.25 + 1.5


@pytest.fixture
def fees() -> FeeModel:
    return FeeModel.parse(TABLE)


def paid(rate: float, days: int = 10, key: str = KEY, start: int = JANUARY) -> pl.DataFrame:
    """A pair whose sell leg pays a rate each 8 h, and whose buy leg pays nothing."""
    times = [start + 28_800 * k for k in range(1, 3 * days + 1)]
    rows = pl.DataFrame({"ts": times}).with_columns(
        trajectory=pl.lit(key),
        buy_rate=pl.lit(0.0),
        sell_rate=pl.lit(rate),
        buy_interval_hours=pl.lit(8.0),
        sell_interval_hours=pl.lit(8.0),
    )
    return summary(rows, start, start + 86_400 * days)


def test_a_carry_and_its_cost_give_what_a_hand_computes(fees):
    row = net_summary(paid(3e-4), fees).row(0, named=True)
    assert row["carry_bps"] == pytest.approx(90)
    assert row["cost_bps"] == COST
    assert row["net_carry_bps"] == pytest.approx(90 - COST)
    assert row["net_carry_at_half_cost_bps"] == pytest.approx(90 - COST / 2)
    assert row["net_carry_at_twice_cost_bps"] == pytest.approx(90 - 2 * COST)
    assert row["breakeven_bps"] == pytest.approx(22.5)
    assert row["breakeven_days"] == pytest.approx(COST / 9)
    assert row["fee_model_hash"] == fees.hash


@pytest.mark.parametrize("days", [1, 10, 30])
def test_the_net_rate_is_that_of_the_net_carry_over_the_window(days, fees):
    row = net_summary(paid(3e-4, days), fees).row(0, named=True)
    for at in ("", "_at_half_cost", "_at_twice_cost"):
        over_a_year = row[f"net_carry{at}_bps"] / 100 * 365 / days
        assert row[f"net_apr{at}_pct"] == pytest.approx(over_a_year)


def test_at_the_break_even_days_nothing_is_left(fees):
    days = net_summary(paid(3e-4), fees)["breakeven_days"].item()
    assert paid(3e-4, 1)["carry_bps"].item() * days == pytest.approx(COST)


@pytest.mark.parametrize("rate", [0.0, -1e-4])
def test_a_rate_that_is_paid_never_breaks_even(rate, fees):
    row = net_summary(paid(rate), fees).row(0, named=True)
    assert (row["breakeven_days"], row["breakeven_days_reason"]) == (None, "nothing_left")
    assert row["net_carry_bps"] < 0


def test_rebates_break_even_at_once():
    free = FeeModel.parse(TABLE.replace("maker_bps = 10.0", "maker_bps = -1.5"))
    row = net_summary(paid(-1e-4), free, style="maker").row(0, named=True)
    assert row["cost_bps"] < 0
    assert (row["breakeven_days"], row["breakeven_days_reason"]) == (0.0, None)


def test_unknown_costs_are_null_and_named_and_reasons_of_the_carry_come_first(fees):
    other = paid(3e-4, key="funding/BTC_USDT:BYBIT.futures:KRAKEN.futures")
    row = net_summary(other, fees).row(0, named=True)
    assert (row["net_carry_bps"], row["net_carry_reason"]) == (None, "unknown_fee")
    assert (row["breakeven_days"], row["breakeven_days_reason"]) == (None, "unknown_fee")
    assert row["cost_lacks"] == "an entry for BYBIT.futures"
    assert row["breakeven_bps"] == pytest.approx(22.5)
    empty = summary(pl.DataFrame(schema=PAID), JANUARY, JANUARY + 60)
    assert net_summary(empty, fees).is_empty()
    nothing = other.with_columns(
        carry_bps=pl.lit(None, pl.Float64), carry_reason=pl.lit("low_coverage")
    )
    assert net_summary(nothing, fees)["net_carry_reason"].item() == "low_coverage"


PAID = {
    "trajectory": pl.String,
    "ts": pl.Int64,
    "buy_rate": pl.Float64,
    "sell_rate": pl.Float64,
    "buy_interval_hours": pl.Float64,
    "sell_interval_hours": pl.Float64,
}


def test_one_leg_has_half_the_fills(fees):
    figures = paid(3e-4).with_columns(trajectory=pl.lit("BTC_USDT:KRAKEN.futures"))
    row = net_summary(figures, fees).row(0, named=True)
    assert (row["cost_bps"], row["breakeven_bps"]) == (41.5, pytest.approx(45))


def test_a_style_that_holds_nothing_is_refused(fees):
    for style in ("prefunded", "transfer"):
        with pytest.raises(InputError, match="is held"):
            net_summary(paid(1e-4), fees, style=style)
    with pytest.raises(InputError, match="carry_bps"):
        net_summary(paid(1e-4).drop("carry_bps"), fees)


def test_the_columns_are_those_of_the_docstring(fees):
    table = re.findall(
        r"^(\w+) +(Float64|String) +\w", inspect.getdoc(net_summary), flags=re.MULTILINE
    )
    figures = paid(1e-4)
    added = net_summary(figures, fees).drop(figures.columns)
    assert [(name, str(kind)) for name, kind in added.schema.items()] == table
