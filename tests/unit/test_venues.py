"""Each place that asks what is true of one exchange reads its table in `venues.toml`."""

from __future__ import annotations

import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.market import Market, Pair
from toolkit.market.venues import canonical, stated, venue_of, venues
from toolkit.service.market.exchanges import KNOWN
from toolkit.service.market.exchanges.reading import Exchange
from toolkit.statistics import funding
from toolkit.statistics.fees.fee_table import FeeModel
from toolkit.statistics.funding.settlements import settlements
from toolkit.workspace.local import ExchangeChoice

OTHER = "AURORA"  # has no table
HOUR = 3_600


def only(items):
    [item] = items
    return item


def legs_of(exchange, ts, rates, hours):
    """Settlements of one exchange, beside those of another at the same times."""
    return pl.DataFrame(
        {
            "trajectory": [f"funding/A_B:{exchange}.futures:{OTHER}.futures"] * len(ts),
            "ts": ts,
            "buy_rate": rates,
            "sell_rate": rates,
            "buy_interval_hours": pl.Series([hours] * len(ts), dtype=pl.Float64),
            "sell_interval_hours": pl.Series([hours] * len(ts), dtype=pl.Float64),
        }
    )


def test_a_table_has_known_facts_alone_and_no_two_share_a_name():
    names = [name for table, one in venues().items() for name in (table, *one.aliases)]
    assert len(names) == len(set(names))
    assert {name.upper() for name in names} - {"DEFAULT"} == set(names) - {"default"}
    assert venue_of(OTHER) == venues()["default"]


@pytest.mark.parametrize("exchange", venues())
def test_a_pair_counts_the_coins_of_each_exchange_by_its_names(exchange):
    exchange = exchange.upper()
    facts = venue_of(exchange)
    for lot, coins in facts.lots.items():
        two = Pair.of(f"PEPE_USDT:{OTHER}.spot", f"{lot}PEPE_USDT:{exchange}.futures")
        assert two.coins() == (1, coins)
    for name, coin in facts.coins.items():
        two = Pair.of(f"{coin}_USDT:{OTHER}.spot", f"{name}_USDT:{exchange}.futures")
        assert two.coins() == (1, 1)


@pytest.mark.parametrize("base", ["kHYPE", "XBT", "kX1000"])
def test_a_name_that_is_another_coin_there_is_not_read_as_lots(base):
    exchange = "HYPERLIQUID"
    with pytest.raises(InputError, match="multiplier"):
        Pair.of(f"HYPE_USDT:{OTHER}.spot", f"{base}_USDT:{exchange}.spot").coins()


@pytest.mark.parametrize(("exchange", "hours"), stated("interval_hours").items())
def test_settlements_without_a_declared_interval_have_that_of_their_exchange(exchange, hours):
    found = settlements(legs_of(exchange, [0], [1e-4], None)).rows
    assert found.select("leg", "interval_hours").rows() == [("buy", hours), ("sell", None)]
    declared = settlements(legs_of(exchange, [0], [1e-4], 24.0)).rows
    assert declared["interval_hours"].to_list() == [24.0, 24.0]


@pytest.mark.parametrize(("exchange", "late_s"), stated("stamped_late_s").items())
def test_a_settlement_that_its_exchange_stamps_late_is_on_the_hour(exchange, late_s):
    ts = [HOUR * hour + late_s for hour in range(1, 4)]
    found = settlements(legs_of(exchange, ts, [1e-4, 2e-4, 3e-4], 1.0)).rows
    buy, sell = (found.filter(leg=leg)["ts"].to_list() for leg in ("buy", "sell"))
    assert (buy, sell) == ([HOUR, 2 * HOUR, 3 * HOUR], ts)
    often = list(range(0, 4 * HOUR, 60))
    rates = [1e-4 * (1 + at // HOUR) for at in often]
    paid = settlements(legs_of(exchange, often, rates, 1.0))
    assert paid.rows["ts"].to_list() == [0, HOUR, 2 * HOUR, 3 * HOUR] * 2


@pytest.mark.parametrize(("exchange", "cap"), stated("cap_per_hour").items())
def test_a_rate_is_at_the_cap_of_its_exchange_alone(exchange, cap):
    ts = [8 * HOUR * place for place in range(1, 5)]
    rates = [1e-4, 1e-4, 8 * cap, -8 * cap]
    row = only(funding.persistence(legs_of(exchange, ts, rates, 8.0), 0, 40 * HOUR).to_dicts())
    assert (row["buy_at_cap_share"], row["sell_at_cap_share"]) == (0.5, 0.0)
    row = only(
        funding.persistence(legs_of(exchange, ts[:2], rates[:2], 8.0), 0, 40 * HOUR).to_dicts()
    )
    assert row["buy_at_cap_share"] == 0


@pytest.mark.parametrize(("exchange", "baseline"), stated("baseline_8h").items())
def test_a_rate_is_at_the_baseline_of_its_exchange(exchange, baseline):
    ts = [8 * HOUR * place for place in range(1, 5)]
    rates = [baseline, baseline, baseline, 1e-4]
    row = only(funding.persistence(legs_of(exchange, ts, rates, 8.0), 0, 40 * HOUR).to_dicts())
    assert (row["buy_at_baseline_share"], row["sell_at_baseline_share"]) == (0.75, 0.25)


@pytest.mark.parametrize(
    ("alias", "exchange"),
    [(alias, name) for name, one in venues().items() for alias in one.aliases],
)
def test_an_alias_is_its_exchange_in_fees_and_in_the_local_service(alias, exchange):
    assert canonical(alias) == exchange
    entry = '[[fee]]\nexchange = "{}"\nvalid_from = 2020-01-01\ntaker_bps = 5\nslippage_bps = 1\n'
    fees = FeeModel.parse('name = "mine"\n' + entry.format(alias))
    assert fees.round_trip_bps(f"A_B:{exchange}.spot", at=1_700_000_000) == 11
    with pytest.raises(InputError, match="one entry"):
        FeeModel.parse('name = "mine"\n' + entry.format(alias) + entry.format(exchange))
    assert Exchange(alias.lower()).name == exchange
    assert ExchangeChoice.read([alias, exchange]).exchanges == (exchange,)


@pytest.mark.parametrize("exchange", ["AURORA", *venues()])
def test_the_form_of_a_fee_table_has_the_example_of_its_exchange(exchange):
    exchange = exchange.upper()
    fee = only(FeeModel.example([exchange]).fees)
    assert (fee.maker_bps, fee.taker_bps, fee.slippage_bps) == venue_of(exchange).example_fees_bps


def test_the_local_service_reads_the_markets_that_tables_have():
    read = {
        name: {Market.SPOT: one.spot, Market.FUTURES: one.futures} for name, one in venues().items()
    }
    markets = {name: {each for each, told in of.items() if told} for name, of in read.items()}
    assert {name: set(of) for name, of in KNOWN.items()} == {
        n: of for n, of in markets.items() if of
    }
