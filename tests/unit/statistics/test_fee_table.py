"""The fee table and net edges, by hand."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import InputError
from toolkit.market import Leg, Market, Trajectory
from toolkit.statistics.fees import FILLS, Fee, FeeModel, Style, net_edge

SPOT = "BTC_USDT:BINANCE.spot:KRAKEN.spot"
PERP = "BTC_USDT:BINANCE.futures:KRAKEN.futures"
DEX = "ETH_USDT:DEX-ETHEREUM.dex:BINANCE.spot"
NOW = 1_780_000_000  # 28 May 2026
TABLE = """
name = "mine"

[[fee]]
exchange = "BINANCE"
valid_from = 2026-01-01
maker_bps = 1.0
taker_bps = 4.0
slippage_bps = 0.5
withdraw_quote = {BTC = 12.0}

[[fee]]
exchange = "BINANCE"
market = "futures"
valid_from = 2026-01-01
maker_bps = -0.5
taker_bps = 3.0
slippage_bps = 0.25

[[fee]]
exchange = "BINANCE"
valid_from = 2026-03-01T12:00:00Z
maker_bps = 2.0
taker_bps = 8.0
slippage_bps = 0.5

[[fee]]
exchange = "KRAKEN"
valid_from = 2026-01-01
maker_bps = 10.0
taker_bps = 20.0
slippage_bps = 1.5

[[fee]]
exchange = "DEX-ETHEREUM"
valid_from = 2026-01-01
taker_bps = 30.0
slippage_bps = 6.0
gas_quote = 2.0
"""
PROMOTION = 'valid_from = 2026-03-01\nvalid_to = 2026-04-01\ntier = "VIP 1"'
JANUARY, MARCH = 1_767_225_600, 1_772_366_400


@pytest.fixture
def fees() -> FeeModel:
    return FeeModel.parse(TABLE)


@pytest.mark.parametrize(
    ("trajectory", "style", "at", "cost"),
    [
        pytest.param(SPOT, "taker", JANUARY, 2 * (4 + 20) + 0.5 + 1.5, id="four fills"),
        pytest.param(SPOT, "maker", JANUARY, 2 * (1 + 10) + 0.5 + 1.5, id="makers"),
        pytest.param(SPOT, "taker", MARCH - 1, 50, id="until the next entry"),
        pytest.param(SPOT, "taker", MARCH, 2 * (8 + 20) + 0.5 + 1.5, id="from it on"),
        pytest.param(PERP, "taker", MARCH, 2 * (3 + 20) + 0.25 + 1.5, id="its own market first"),
        pytest.param(PERP, "maker", MARCH, 2 * (-0.5 + 10) + 0.25 + 1.5, id="a rebate"),
        pytest.param(DEX, "taker", JANUARY, 2 * (30 + 2 + 4) + 6 + 0.5, id="gas by the notional"),
        pytest.param(SPOT, "transfer", JANUARY, 4 + 20 + 1 + 12, id="bought here, sold there"),
        pytest.param(SPOT, "taker", JANUARY - 1, None, id="before the first entry"),
        pytest.param(SPOT, "transfer", MARCH, None, id="no withdrawal stated"),
        pytest.param(PERP, "transfer", JANUARY, None, id="futures are not withdrawn"),
        pytest.param(DEX, "maker", JANUARY, None, id="no maker's fee stated"),
        pytest.param("BTC_USDT:BINANCE.spot:BYBIT.spot", "taker", JANUARY, None, id="no entry"),
    ],
)
def test_costs_are_what_the_table_adds_up_to_by_hand(trajectory, style, at, cost, fees):
    assert fees.round_trip_bps(trajectory, 10_000, style, at=at) == cost
    assert fees.round_trip_bps(Trajectory.parse(trajectory), 10_000, style, at=at) == cost


@pytest.mark.parametrize("missing", ["taker_bps", "slippage_bps", "gas_quote"])
def test_what_the_table_does_not_state_is_unknown_and_never_nothing(missing):
    lines = [line for line in TABLE.splitlines() if not line.startswith(missing)]
    assert FeeModel.parse("\n".join(lines)).round_trip_bps(DEX, 1e4, at=JANUARY) is None


def test_a_stated_nothing_is_nothing():
    table = TABLE.replace("gas_quote = 2.0", "gas_quote = 0")
    assert FeeModel.parse(table).round_trip_bps(DEX, 1e4, at=JANUARY) == 2 * 34 + 6.5


def test_a_table_is_read_from_a_file(tmp_path, fees):
    path = tmp_path / "fees.toml"
    path.write_text(TABLE, encoding="utf-8")
    assert FeeModel.read(path) == FeeModel.read(str(path)) == fees
    assert fees.fees[1] == Fee("BINANCE", "futures", JANUARY, -0.5, 3.0, 0.25)
    with pytest.raises(InputError, match="a TOML file"):
        FeeModel.read(tmp_path / "none.toml")


def test_the_hash_tells_tables_apart_and_not_the_order_of_their_entries(fees):
    turned = FeeModel(fees.name, fees.fees[::-1])
    dearer = FeeModel.parse(TABLE.replace("taker_bps = 20.0", "taker_bps = 20.5"))
    named = FeeModel("other", fees.fees)
    assert turned.hash == fees.hash
    assert len({fees.hash, dearer.hash, named.hash, FeeModel.example().hash}) == 4


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ('name = "mine"', "", "a name"),
        ("gas_quote", "gas", "'gas' is not allowed"),
        ("gas_quote = 2.0", "gas_quote = -2.0", "gas_quote: -2.0"),
        ("gas_quote = 2.0", "gas_quote = nan", "gas_quote: nan"),
        ("gas_quote = 2.0", 'gas_quote = "2"', "a finite number"),
        ("gas_quote = 2.0", "gas_quote = true", "a finite number"),
        ('"DEX-ETHEREUM"', '"dex-ethereum"', "UPPERCASE"),
        ('market = "futures"', 'market = "perp"', "spot, futures, dex"),
        ("2026-03-01T12:00:00Z", "2026-01-01", "one entry an exchange"),
        ("2026-03-01T12:00:00Z", "1772366400", "a date or time"),
        ("{BTC = 12.0}", "12.0", "amounts by asset"),
        ("{BTC = 12.0}", "{BTC = -12.0}", "BTC: -12.0"),
        ("[[fee]]", "[[fees]]", "a name, and"),
        ('exchange = "KRAKEN"', "", "an exchange"),
        ("taker_bps = 30.0", "taker_bps =", "a TOML text"),
        ("gas_quote", "valid_to = 2026-01-01\ngas_quote", "after valid_from, 2026-01-01"),
        ("gas_quote", "valid_to = 1\ngas_quote", "valid_to: 1"),
        ("gas_quote", "tier = 1\ngas_quote", "tier: 1"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_what_is_wrong(was, now, says):
    with pytest.raises(InputError, match=re.escape(says)):
        FeeModel.parse(TABLE.replace(was, now))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"notional": 0}, "an amount above 0"),
        ({"notional": math.nan}, "an amount above 0"),
        ({"notional": True}, "an amount above 0"),
        ({"style": "both"}, "prefunded, transfer"),
        ({"trajectory": "BTC_USDT:BINANCE.spot", "style": "maker_buy"}, "has one leg"),
        ({"trajectory": "events/spread"}, "BUY.market:SELL.market"),
    ],
)
def test_a_wrong_question_is_refused(asked, says, fees):
    with pytest.raises(InputError, match=says):
        fees.round_trip_bps(
            asked.get("trajectory", SPOT),
            asked.get("notional", 1e4),
            asked.get("style", "taker"),
            at=JANUARY,
        )


@pytest.mark.parametrize(
    ("trajectory", "style", "cost"),
    [
        pytest.param(SPOT, "maker_buy", 2 * (1 + 20) + 0.5 + 1.5, id="maker on the buy leg"),
        pytest.param(SPOT, "maker_sell", 2 * (4 + 10) + 0.5 + 1.5, id="maker on the sell leg"),
        pytest.param(SPOT, "prefunded", 4 + 20 + 1, id="two fills, half the slippage"),
        pytest.param(PERP, "prefunded", 3 + 20 + 0.875, id="held on both futures legs"),
        pytest.param(DEX, "prefunded", 30 + 2 + 4 + 3.25, id="gas of one fill"),
        pytest.param(DEX, "maker_sell", 2 * (30 + 2 + 1) + 6.5, id="the pool takes, we make"),
        pytest.param(DEX, "maker_buy", None, id="no maker's fee of the pool"),
        pytest.param("BTC_USDT:KRAKEN.spot", "taker", 41.5, id="one leg, two fills"),
        pytest.param("BTC_USDT:BINANCE.futures", "maker", -0.75, id="a rebate on one leg"),
        pytest.param("snapshot-funding/BTC_USDT:KRAKEN.futures", "maker", 21.5, id="a kept leg"),
        pytest.param(f"funding/{PERP}", "taker", 2 * (3 + 20) + 1.75, id="a funding pair"),
        pytest.param(f"snapshot-spread/{SPOT}", "taker", 50, id="a kept pair"),
    ],
)
def test_each_style_pays_for_its_own_fills(trajectory, style, cost, fees):
    assert fees.round_trip_bps(trajectory, 1e4, style, at=JANUARY) == cost
    assert (fees.lacking(trajectory, style, at=JANUARY) == []) == (cost is not None)


def test_the_notional_and_the_style_have_defaults(fees):
    assert fees.round_trip_bps(DEX, at=JANUARY) == fees.round_trip_bps(
        DEX, 10_000, "taker", at=JANUARY
    )


def test_an_entry_ends_where_it_says_and_the_one_before_it_holds_again():
    told = 'name = "mine"\n'
    for dates, rate in (("valid_from = 2026-01-01", 8), (PROMOTION, 1)):
        told += f'[[fee]]\nexchange = "KRAKEN"\n{dates}\ntaker_bps = {rate}\nslippage_bps = 0\n'
    fees = FeeModel.parse(told)
    key, (begins, ends) = "BTC_USDT:KRAKEN.spot", fees.changes[1:]
    costs = [fees.round_trip_bps(key, at=at) for at in (begins - 1, begins, ends - 1, ends)]
    assert costs == [16, 2, 2, 16]
    assert fees.fees[1].tier == "VIP 1"
    assert FeeModel.parse(told.replace("VIP 1", "VIP 2")).hash != fees.hash


def test_an_exchange_entry_does_not_stand_in_for_a_market_entry_that_ended():
    fees = FeeModel.parse(
        TABLE.replace('market = "futures"', 'market = "futures"\nvalid_to = 2026-02-01')
    )
    assert fees.round_trip_bps(PERP, at=MARCH) is None
    assert fees.lacking(PERP, at=MARCH) == ["an entry for BINANCE.futures"]


@pytest.mark.parametrize(
    ("trajectory", "style", "lacks"),
    [
        (DEX, "maker", ["maker_bps of DEX-ETHEREUM.dex"]),
        ("BTC_USDT:BYBIT.spot:KRAKEN.spot", "taker", ["an entry for BYBIT.spot"]),
        (PERP, "transfer", ["a withdrawal: what trades on futures is not withdrawn"]),
        (SPOT.replace("BTC", "ETH"), "transfer", ["withdraw_quote of ETH at BINANCE.spot"]),
        ("BTC_USDT:BYBIT.spot:KRAKEN.spot", "transfer", ["an entry for BYBIT.spot"]),
    ],
)
def test_what_is_missing_is_named(trajectory, style, lacks, fees):
    assert fees.lacking(trajectory, style, at=JANUARY) == lacks
    assert fees.round_trip_bps(trajectory, 1e4, style, at=JANUARY) is None


def test_a_withdrawal_that_costs_nothing_is_not_missing():
    fees = FeeModel.parse(TABLE.replace("{BTC = 12.0}", "{BTC = 0}"))
    assert fees.lacking(SPOT, "transfer", at=JANUARY) == []
    assert fees.round_trip_bps(SPOT, 1e4, "transfer", at=JANUARY) == 25


def test_the_example_has_the_exchanges_that_are_named_and_says_what_it_is():
    example = FeeModel.example(["AURORA", "DEX-BASE"])
    assert [fee.exchange for fee in example.fees] == ["AURORA", "DEX-BASE"]
    assert "EXAMPLE" in example.name
    assert example.round_trip_bps("ETH_USDC:DEX-BASE.dex:AURORA.spot", at=NOW) == 91


SWAPPED = {"maker_buy": "maker_sell", "maker_sell": "maker_buy"}
amounts = st.floats(0, 100).map(lambda number: round(number, 3))


@given(
    rates=st.lists(st.tuples(amounts, amounts, amounts, amounts), min_size=2, max_size=2),
    notional=st.floats(1, 1e9),
)
def test_laws_of_costs(rates, notional):
    """Legs swapped cost the same, legs add up, gas halves with twice the notional, fills count."""
    buy, sell = Leg("DEX-A", Market.DEX), Leg("DEX-B", Market.DEX)
    entries = zip((buy, sell), rates, strict=True)
    fees = FeeModel("any", tuple(Fee(leg.exchange, None, 0, *each) for leg, each in entries))
    free = FeeModel("free gas", tuple(replace(fee, gas_quote=0.0) for fee in fees.fees))

    def cost(
        *legs: Leg, style: Style = "taker", of: float = notional, by: FeeModel = fees
    ) -> float:
        key = ":".join(["ETH_USDC", *map(str, legs)])
        return by.round_trip_bps(key, of, style, at=0)

    for style in FILLS.keys() - {"transfer"}:
        swapped = cost(sell, buy, style=SWAPPED.get(style, style))
        assert cost(buy, sell, style=style) == pytest.approx(swapped, rel=1e-12)
        gas = cost(buy, sell, style=style) - cost(buy, sell, style=style, by=free)
        half = cost(buy, sell, style=style, of=2 * notional)
        half -= cost(buy, sell, style=style, of=2 * notional, by=free)
        assert 2 * half == pytest.approx(gas, rel=1e-6, abs=1e-6)
    for style in ("taker", "maker"):
        assert cost(buy, sell, style=style) == pytest.approx(
            cost(buy, style=style) + cost(sell, style=style), rel=1e-12
        )
    mixed = cost(buy, sell, style="maker_buy") + cost(buy, sell, style="maker_sell")
    assert mixed == pytest.approx(cost(buy, sell) + cost(buy, sell, style="maker"), rel=1e-12)
    assert 2 * cost(buy, sell, style="prefunded") == pytest.approx(cost(buy, sell), rel=1e-12)


def rows(values: list[float | None], trajectory: str = SPOT, start: int = NOW) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "trajectory": [trajectory] * len(values),
            "ts": [start + 60 * k for k in range(len(values))],
            "spread_bps": values,
        },
        schema_overrides={"spread_bps": pl.Float64},
    )


def test_an_edge_is_what_the_spread_leaves_on_either_side(fees):
    net = net_edge(rows([100.0, -100.0, 10.0, None]), fees, notional=1e4)
    assert net["gross_bps"].to_list() == [100.0, 100.0, 10.0, None]
    assert net["cost_bps"].to_list() == [58.0] * 4
    assert net["edge_bps"].to_list() == [42.0, 42.0, -48.0, None]
    assert net["edge_at_half_cost_bps"].to_list() == [71.0, 71.0, -19.0, None]
    assert net["edge_at_twice_cost_bps"].to_list() == [-16.0, -16.0, -106.0, None]
    assert net["breakeven_bps"].to_list() == [25.0, 25.0, 2.5, None]
    assert net["gross_reason"].to_list() == [None, None, None, "empty"]
    assert net["edge_reason"].to_list() == [None, None, None, "empty"]
    assert set(net["fee_model_hash"]) == {fees.hash}


def test_the_level_at_which_it_closes_is_taken_off(fees):
    net = net_edge(rows([100.0, -20.0]), fees, notional=1e4, exit_bps=-10)
    assert net["gross_bps"].to_list() == [110.0, 10.0]


def test_a_transfer_earns_on_one_side_only(fees):
    net = net_edge(rows([100.0, -100.0], start=JANUARY), fees, notional=1e4, style="transfer")
    assert net["edge_bps"].to_list() == [63.0, -137.0]
    assert net["breakeven_bps"].to_list() == [50.0, -50.0]


def test_what_is_held_on_both_sides_earns_on_either_and_has_no_exit(fees):
    frame = rows([100.0, -100.0], start=JANUARY)
    net = net_edge(frame, fees, style="prefunded", exit_bps=50)
    assert net["edge_bps"].to_list() == [75.0, 75.0]
    assert net["breakeven_bps"].to_list() == [50.0, 50.0]


def test_breakeven_is_the_cost_a_fill_at_which_nothing_is_left():
    row = net_edge(rows([100.0]), FeeModel("none", ()), notional=1e4).row(0, named=True)
    told = TABLE.replace("slippage_bps = 0.5", "slippage_bps = 0")
    told = told.replace("slippage_bps = 1.5", "slippage_bps = 0")
    for rate in ("taker_bps = 4.0", "taker_bps = 8.0", "taker_bps = 20.0"):
        told = told.replace(rate, f"taker_bps = {row['breakeven_bps']}")
    exact = net_edge(rows([100.0]), FeeModel.parse(told), notional=1e4)
    assert exact["edge_bps"].item() == 0.0


def test_an_unknown_fee_leaves_the_gross_figures_and_no_edge(fees):
    frame = pl.concat(
        [rows([80.0]), rows([80.0], "BTC_USDT:BYBIT.spot:KRAKEN.spot"), rows([80.0], start=0)]
    )
    net = net_edge(frame, fees, notional=1e4)
    assert net["gross_bps"].to_list() == [80.0] * 3
    assert net["edge_bps"].to_list() == [22.0, None, None]
    assert net["edge_reason"].to_list() == [None, "unknown_fee", "unknown_fee"]
    assert net["cost_reason"].to_list() == net["edge_reason"].to_list()


def test_fees_are_those_of_the_time_of_the_row_in_any_order_of_rows(fees):
    frame = pl.concat(
        [rows([100.0] * 4, trajectory, start=MARCH - 120) for trajectory in (SPOT, PERP)]
    ).sample(fraction=1, shuffle=True, seed=4)
    net = net_edge(frame.lazy(), fees, notional=1e4)
    assert net.select(frame.columns).equals(frame)
    for key, ts, cost in net.select("trajectory", "ts", "cost_bps").rows():
        assert cost == fees.round_trip_bps(key, 1e4, at=ts)
    assert net["cost_bps"].n_unique() == 3


def test_spreads_are_computed_from_prices_where_the_frame_has_only_those(fees):
    frame = pl.DataFrame(
        {"trajectory": [SPOT], "ts": [NOW], "buy_price": [100.0], "sell_price": [101.0]}
    )
    assert net_edge(frame, fees, notional=1e4)["gross_bps"].item() == pytest.approx(100)


def test_rows_that_name_no_legs_are_refused(fees):
    numbered = rows([1.0]).with_columns(trajectory=pl.lit(7))
    with pytest.raises(InputError, match="trajectory is Int32"):
        net_edge(numbered, fees, notional=1e4)
    with pytest.raises(InputError, match="SYMBOL:"):
        net_edge(rows([1.0], "a"), fees, notional=1e4)
    with pytest.raises(InputError, match=r"BUY\.market:SELL\.market"):
        net_edge(rows([1.0], "BTC_USDT:KRAKEN.spot"), fees, notional=1e4)
    with pytest.raises(InputError, match="exit_bps"):
        net_edge(rows([1.0]), fees, notional=1e4, exit_bps=math.nan)
