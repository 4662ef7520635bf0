"""What prices, spreads and funding can be asked: the statistics over the series' own window."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import toolkit as tk
from toolkit import charts
from toolkit.errors import InputError
from toolkit.series import EventSeries, FundingSeries, PriceSeries, SpreadSeries
from toolkit.statistics import funding, quality, spread
from toolkit.statistics.fees import FeeModel
from toolkit.workspace import Workspace

from .conftest import PAIR, PRICE, RATES, WINDOW


def test_methods_that_are_not_declared_are_the_statistics_of_the_window(
    rail: Workspace, rates: FundingSeries
) -> None:
    pair, price = rail.spread(PAIR, *WINDOW), rail.prices(PRICE, *WINDOW)
    of_price = quality.coverage(price.df, *WINDOW, column="price")
    assert_frame_equal(price.coverage(), of_price)
    carry = funding.carry(rates.rows, *rates.window, prices=pair.rows)
    assert_frame_equal(rates.carry(prices=pair), carry)
    whole = pair.summary()
    assert pair.quantiles()["spread_q95_log_bps"].equals(whole["spread_q95_log_bps"])
    assert rates.coverage()["coverage"].equals(rates.summary()["coverage"])
    assert rates.df["ts"].is_between(*rates.window, closed="right").all()
    assert rates.intervals()["ts"].is_between(*rates.window, closed="right").all()


def test_a_missing_end_of_the_window_counts_as_not_covered(rail: Workspace) -> None:
    held = rail.spread(PAIR, *WINDOW)
    twice = rail.spread(PAIR, WINDOW[0] - (WINDOW[1] - WINDOW[0]), WINDOW[1])
    share, half = (each.coverage()["coverage"].item() for each in (held, twice))
    assert half == pytest.approx(share / 2, abs=0.01)
    assert f"coverage {100 * half:.2f} %" in repr(twice)


def test_figures_are_titled_and_bounded_by_the_series(
    rail: Workspace, pair: SpreadSeries, price: PriceSeries, rates: FundingSeries
) -> None:
    logs = rail.events("spread")
    figures = [
        price.plot(),
        pair.plot(thresholds_bps=[10.0]),
        pair.plot(events=logs),
        rates.plot(theme="dark"),
    ]
    for figure in figures:
        assert isinstance(figure, charts.Figure)
        assert "SIMULATED" in figure.to_json()
    assert "AURORA" in figures[1].to_json()


@pytest.mark.parametrize(
    ("method", "function"),
    [
        (PriceSeries.plot, charts.price_chart),
        (SpreadSeries.plot, charts.spread_chart),
        (FundingSeries.plot, charts.funding_chart),
        (EventSeries.plot, charts.event_timeline),
        (EventSeries.plot_activity, charts.activity_chart),
    ],
)
def test_a_plot_has_the_parameters_of_its_chart_that_the_series_does_not_know(
    method: Callable, function: Callable
) -> None:
    known = {"self", "frame", "lifecycles", "source", "trajectory", "start", "end", "step_s"}
    known |= {"polls", "fees"}
    own = inspect.signature(method).parameters
    passed = inspect.signature(function).parameters
    asked = [name for name in passed if name not in known]
    if function is charts.activity_chart:
        asked = [name for name in asked if name not in ("events", "before")]
    assert sorted(asked) == sorted(set(own) - known)
    assert {name: own[name].default for name in asked} == {
        name: passed[name].default for name in asked
    }


def test_net_figures_are_beside_the_gross_ones_by_the_table_given_or_the_workspaces(
    rail: Workspace, pair: SpreadSeries, rates: FundingSeries
) -> None:
    fees = FeeModel.example(["AURORA", "CORONA", "EQUINOX"])
    for series in (pair, rates):
        gross, net = series.summary(), series.summary(fees=fees, notional=5e3, style="maker")
        assert_frame_equal(net.select(gross.columns), gross)
        assert net["fee_model_hash"].item() == fees.hash
        assert (net["notional"].item(), net["style"].item()) == (5e3, "maker")
        with tk.open(rail.store.path, fees=fees) as other:
            mine = other.spread(PAIR) if series.stream.kind == "spread" else other.funding(RATES)
            assert_frame_equal(mine.summary(notional=5e3, style="maker"), net)
            assert ("fees", fees.label) in mine.card.facts
    with pytest.raises(InputError, match=r"rail\.toml"):
        pair.net_summary()
    with pytest.raises(InputError, match=r"rail\.toml"):
        pair.net_edge()


def test_resampled_bars_are_the_last_row_of_each_and_count_their_rows(rail: Workspace) -> None:
    minutes = rail.spread(PAIR, *WINDOW)
    fives = minutes.resample("5m")
    expected = (
        minutes.df.group_by(pl.col("ts") // 300 * 300, maintain_order=True)
        .agg(pl.col("spread_log_bps").last(), n=pl.len().cast(pl.Int64))
        .select("ts", "spread_log_bps", "n")
    )
    assert_frame_equal(fives.df.select("ts", "spread_log_bps", "n"), expected)
    assert fives.origin.step_s == 300
    late_s = (fives.df["known_at"] - fives.df["time"]).dt.total_seconds()
    assert late_s.unique().to_list() == [300]
    assert "last row of each 5 min" in repr(fives)
    assert fives.resample("1h").df["n"].sum() == len(minutes)
    prices = rail.prices(PRICE, *WINDOW)
    assert prices.resample("1h").df["volume"].sum() == pytest.approx(prices.df["volume"].sum())


def test_bars_that_the_window_cuts_are_left_out(rail: Workspace) -> None:
    cut = rail.prices(PRICE, WINDOW[0] + 120, WINDOW[1] - 120).resample("1h")
    assert cut.window == (WINDOW[0] + 3_600, WINDOW[1] - 3_600)
    assert cut.df["n"].to_list() == [60] * len(cut)


@pytest.mark.parametrize("every", ["7m", "30s", "60s", "2d", "5 minutes", 0, "90s"])
def test_a_length_that_makes_no_bars_is_refused(every: str | int, pair: SpreadSeries) -> None:
    with pytest.raises(InputError, match="every"):
        pair.resample(every)


def test_the_chart_of_coverage_has_the_states_of_the_ledger_in_the_window(
    rail: Workspace, price: PriceSeries
) -> None:
    window = WINDOW[0] - 3_600, WINDOW[1]
    for series in (rail.spread(PAIR, *window), rail.prices(PRICE, *window)):
        drawn = series.plot_coverage(timezone="Europe/London", theme="dark")
        states = rail.store.coverage(series.stream, series.window)
        expected = charts.coverage_chart(
            states,
            trajectory=series.stream,
            start=window[0],
            end=window[1],
            source=series.source,
            timezone="Europe/London",
            theme="dark",
        )
        assert drawn.to_json() == expected.to_json()
    own = tk.series.own_series(price.df.select("ts", "price"), PRICE)
    with pytest.raises(InputError, match="a stream that the service answered for"):
        own.plot_coverage()


def test_two_prices_are_compared_at_times_of_their_own(price: PriceSeries) -> None:
    later = price.df.select(pl.col("ts") + 120, "price")
    found = price.hayashi_yoshida(later, lags_s=[0, 120])
    assert found["correlation"].arg_max() == 2
    both = price.df.select("ts", buy_price="price").join(
        later.rename({"price": "sell_price"}), on="ts", how="full", coalesce=True
    )
    rows = both.with_columns(trajectory=pl.lit(PRICE))
    assert found.equals(spread.hayashi_yoshida(rows, *price.window, lags_s=[0, 120]))
    itself = price.hayashi_yoshida(price, lags_s=[0])
    assert itself["correlation"].item() == pytest.approx(1)
    with pytest.raises(InputError, match="other"):
        price.hayashi_yoshida(price.df.drop("price"))
