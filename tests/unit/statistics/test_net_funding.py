"""What funding leaves after one round trip."""

from __future__ import annotations

import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.funding import net_summary, summary

from .conftest import FUNDING
from .test_fee_table import JANUARY, PERP, TABLE

KEY = f"funding/{PERP}"
COST = 2 * (3 + 20) + 0.25 + 1.5
DAYS = "funding_only_breakeven_days", "funding_only_breakeven_days_reason"


@pytest.fixture
def fees() -> FeeModel:
    return FeeModel.parse(TABLE)


def paid(
    rate: float,
    days: int = 10,
    key: str = KEY,
    start: int = JANUARY,
    *,
    widened_bps: float = 0.0,
    funding_only: bool = False,
) -> pl.DataFrame:
    """A pair whose sell leg pays a rate each 8 h, and whose spread widens over the whole time."""
    times = [start + 28_800 * k for k in range(1, 3 * days + 1)]
    rows = pl.DataFrame({"ts": times}).with_columns(
        trajectory=pl.lit(key),
        buy_rate=pl.lit(0.0),
        sell_rate=pl.lit(rate),
        buy_interval_hours=pl.lit(8.0),
        sell_interval_hours=pl.lit(8.0),
    )
    end = start + 86_400 * days
    known = {"ts": [start - 60, end - 60], "spread_log_bps": [5.0, 5.0 + widened_bps]}
    prices = None if funding_only else pl.DataFrame({"trajectory": key[8:]} | known)
    if prices is not None:
        prices = pl.concat([prices.with_columns(pl.col("ts") - 60), prices]).unique("ts").sort("ts")
    return summary(rows, start, end, prices=prices, funding_only=funding_only)


def test_a_carry_and_its_cost_give_what_a_hand_computes(fees):
    row = net_summary(paid(3e-4), fees).row(0, named=True)
    assert row["carry_bps"] == pytest.approx(90)
    assert row["cost_bps"] == COST
    assert row["net_carry_bps"] == pytest.approx(90 - COST)
    assert row["net_carry_at_half_cost_bps"] == pytest.approx(90 - COST / 2)
    assert row["net_carry_at_twice_cost_bps"] == pytest.approx(90 - 2 * COST)
    assert row["breakeven_bps"] == pytest.approx(22.5)
    assert row["funding_only_breakeven_days"] == pytest.approx(COST / 9)
    assert row["fee_model_hash"] == fees.hash


@pytest.mark.parametrize("days", [1, 10, 30])
def test_the_net_rate_is_that_of_the_net_carry_over_the_window(days, fees):
    row = net_summary(paid(3e-4, days), fees).row(0, named=True)
    for at in ("", "_at_half_cost", "_at_twice_cost"):
        over_a_year = row[f"net_carry{at}_bps"] / 100 * 365 / days
        assert row[f"net_apr{at}_pct"] == pytest.approx(over_a_year)


@pytest.mark.parametrize("rate", [0.0, -1e-4])
def test_a_rate_that_is_paid_never_breaks_even(rate, fees):
    row = net_summary(paid(rate), fees).row(0, named=True)
    assert [row[name] for name in DAYS] == [None, "nothing_left"]
    assert row["net_carry_bps"] < 0


def test_rebates_break_even_at_once():
    free = FeeModel.parse(TABLE.replace("maker_bps = 10.0", "maker_bps = -1.5"))
    row = net_summary(paid(-1e-4), free, style="maker").row(0, named=True)
    assert row["cost_bps"] < 0
    assert [row[name] for name in DAYS] == [0.0, None]


def test_unknown_costs_are_null_and_named_and_reasons_of_the_carry_come_first(fees):
    other = paid(3e-4, key="funding/BTC_USDT:BYBIT.futures:KRAKEN.futures")
    row = net_summary(other, fees).row(0, named=True)
    assert (row["net_carry_bps"], row["net_carry_reason"]) == (None, "unknown_fee")
    assert [row[name] for name in DAYS] == [None, "unknown_fee"]
    assert row["cost_lacks"] == "an entry for BYBIT.futures"
    assert row["breakeven_bps"] == pytest.approx(22.5)
    empty = summary(pl.DataFrame(schema=FUNDING), JANUARY, JANUARY + 60)
    assert net_summary(empty, fees).is_empty()
    nothing = other.with_columns(
        carry_bps=pl.lit(None, pl.Float64), carry_reason=pl.lit("low_coverage")
    )
    assert net_summary(nothing, fees)["net_carry_reason"].item() == "low_coverage"


def test_one_leg_has_half_the_fills(fees):
    figures = paid(3e-4).with_columns(trajectory=pl.lit("BTC_USDT:KRAKEN.futures"))
    row = net_summary(figures, fees).row(0, named=True)
    assert (row["cost_bps"], row["breakeven_bps"]) == (41.5, pytest.approx(45))


def test_a_style_that_holds_nothing_is_refused(fees):
    for style in ("prefunded", "transfer"):
        with pytest.raises(InputError, match="is held"):
            net_summary(paid(1e-4), fees, style=style)
    with pytest.raises(InputError, match="funding_bps"):
        net_summary(paid(1e-4).drop("funding_bps"), fees)


def test_what_prices_took_is_off_the_net_carry_and_its_rate(fees):
    flat, wider = (
        net_summary(paid(3e-4, widened_bps=by), fees).row(0, named=True) for by in (0.0, 30.0)
    )
    assert (wider["funding_bps"], wider["basis_bps"]) == (pytest.approx(90), pytest.approx(-30))
    for name in ("net_carry_bps", "net_carry_at_half_cost_bps", "net_carry_at_twice_cost_bps"):
        assert wider[name] == pytest.approx(flat[name] - 30)
    assert wider["net_apr_pct"] == pytest.approx(flat["net_apr_pct"] - 30 / 100 * 365 / 10)
    assert wider["breakeven_bps"] == pytest.approx((90 - 30) / 4)
    assert wider["funding_only_breakeven_days"] == flat["funding_only_breakeven_days"]


def test_funding_only_names_itself_in_every_net_figure_and_has_none_with_prices(fees):
    only = net_summary(paid(3e-4, funding_only=True), fees)
    row = only.row(0, named=True)
    assert row["funding_only_net_carry_bps"] == pytest.approx(90 - COST)
    assert row["funding_only_net_apr_pct"] == pytest.approx((90 - COST) / 100 * 365 / 10)
    unnamed = [each for each in only.columns if each.startswith(("net_", "breakeven", "basis"))]
    assert unnamed == []


def test_without_prices_the_net_carry_is_null_for_want_of_them_and_funding_is_given(fees):
    rows = pl.DataFrame({"trajectory": KEY, "ts": [JANUARY + 28_800], "sell_rate": 3e-4})
    rows = rows.with_columns(
        buy_rate=0.0, buy_interval_hours=pl.lit(None, pl.Float64), sell_interval_hours=8.0
    )
    row = net_summary(summary(rows, JANUARY, JANUARY + 28_800), fees).row(0, named=True)
    assert row["funding_bps"] == pytest.approx(3)
    for name in ("net_carry", "breakeven", "net_apr"):
        assert row[f"{name}_reason"] == "missing_price"
    assert (row["net_carry_bps"], row["breakeven_bps"], row["net_apr_pct"]) == (None, None, None)
