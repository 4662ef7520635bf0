"""What taking events would have paid in sum: counted anew by hand, on random positions."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from toolkit.errors import InputError
from toolkit.statistics.events.clusters import cluster_band
from toolkit.statistics.events.positions import LEFT_OUT, payoff

from .drawn_positions import drawn


@pytest.mark.parametrize("by", [[], ["symbol"], ["trajectory", "symbol"]])
@pytest.mark.parametrize("cluster", ["path", "day", "trajectory_day"])
def test_each_figure_is_that_of_a_count_by_hand(by, cluster):
    rows = drawn()
    found = payoff(rows, by=by, cluster=cluster)
    assert found.select(*by, "delay_s").rows() == sorted(
        rows.select(*by, "delay_s").unique().rows()
    )
    for row in found.iter_rows(named=True):
        part = [
            each
            for each in rows.iter_rows(named=True)
            if all(each[name] == row[name] for name in [*by, "delay_s"])
        ]
        taken = [each for each in part if each["gross_bps"] is not None]
        for name, reasons in LEFT_OUT.items():
            assert row[name] == sum(each["position_reason"] in reasons for each in part)
        assert row["n_events"] == row["n"] + sum(row[name] for name in LEFT_OUT) == len(part)
        over = row["n_closed_before"] + row["n_returned_before"]
        assert row["coverage"] == (len(taken) + over) / len(part)
        assert row["taken_share"] == len(taken) / (len(taken) + over)
        gross = np.array([each["gross_bps"] for each in taken])
        with_zeros = [*gross, *[0.0] * over]
        assert row["gross_per_event_bps"] == pytest.approx(np.mean(with_zeros))
        assert row["gross_mean_bps"] == pytest.approx(gross.mean())
        assert row["gross_q05_bps"] == pytest.approx(np.quantile(gross, 0.05))
        assert row["gross_positive_share"] == (gross > 0).mean()
        ways = [each["ended_by"] for each in taken]
        assert [row["n_closed"], row["n_returned"], row["n_limited"]] == [
            ways.count(way) for way in ("close", "return", "limit")
        ]
        assert row["held_median_s"] == np.median([each["held_s"] for each in taken])
        priced = [each for each in taken if each["cost_bps"] is not None]
        assert row["net_n"] == len(priced)
        for at, multiple in (("", 1), ("_at_half_cost", 0.5), ("_at_twice_cost", 2)):
            net = np.array([each["gross_bps"] - multiple * each["cost_bps"] for each in priced])
            assert row[f"net_mean{at}_bps"] == pytest.approx(net.mean())
            assert row[f"net_positive_share{at}"] == (net > 0).mean()
        assert row["net_per_event_bps"] == pytest.approx(row["net_mean_bps"] * row["taken_share"])


def test_the_bands_are_those_of_clusters_as_long_as_the_positions():
    rows = drawn()
    row = payoff(rows).row(0, named=True)
    taken = rows.filter(delay_s=0).drop_nulls("gross_bps").sort("t_open", "trajectory")
    lasted = np.sort((taken["exit_ts"] - taken["t_open"]).to_numpy())
    longest = lasted[int(np.ceil(0.95 * (lasted.size - 1)))]
    clusters = taken["t_open"].to_numpy() // longest
    band = cluster_band(clusters, taken["gross_bps"].to_numpy())
    assert row["n_clusters"] == np.unique(clusters).size
    assert (row["gross_mean_lower_bps"], row["gross_mean_upper_bps"]) == band.mean
    assert (row["gross_median_lower_bps"], row["gross_median_upper_bps"]) == band.median
    priced = taken["net_bps"].is_not_null().to_numpy()
    net = cluster_band(clusters[priced], taken["net_bps"].drop_nulls().to_numpy())
    assert (row["net_mean_lower_bps"], row["net_mean_upper_bps"]) == net.mean


def test_few_events_have_no_band_and_no_cost_no_net():
    few = payoff(drawn(20)).row(0, named=True)
    assert few["gross_mean_bps"] is not None
    assert (few["gross_band_reason"], few["gross_mean_lower_bps"]) == ("too_few", None)
    free = payoff(drawn(priced=0.0)).row(0, named=True)
    assert (free["net_n"], free["net_mean_bps"]) == (0, None)
    assert free["net_reason"] == free["net_band_reason"] == "unknown_fee"
    assert free["gross_mean_lower_bps"] < free["gross_mean_bps"] < free["gross_mean_upper_bps"]


def test_where_all_are_over_an_event_pays_nothing_and_where_none_is_known_nothing_is_stated():
    rows = drawn().filter(pl.col("gross_bps").is_null())
    over = payoff(rows.with_columns(position_reason=pl.lit("closed_before"))).row(0, named=True)
    assert (over["n"], over["taken_share"], over["gross_per_event_bps"]) == (0, 0.0, 0.0)
    assert (over["net_per_event_bps"], over["gross_mean_bps"]) == (0.0, None)
    assert over["gross_reason"] == "empty"
    gone = payoff(rows.with_columns(position_reason=pl.lit("no_rows"))).row(0, named=True)
    assert (gone["coverage"], gone["taken_share"], gone["events_reason"]) == (0.0, None, "empty")
    assert gone["gross_per_event_bps"] is None


def test_the_order_of_rows_changes_nothing_and_no_rows_give_no_result():
    rows = drawn()
    shuffled = rows.sample(fraction=1, shuffle=True, seed=3)
    assert_frame_equal(payoff(shuffled, by="symbol"), payoff(rows, by="symbol"))
    none = payoff(rows.clear())
    assert (none.height, none.schema) == (0, payoff(rows).schema)


def test_what_is_no_question_is_refused():
    rows = drawn()
    with pytest.raises(InputError, match="gross_bps"):
        payoff(rows.drop("gross_bps"))
    with pytest.raises(InputError, match="by"):
        payoff(rows, by=["exchange"])
    with pytest.raises(InputError, match="cluster"):
        payoff(rows, cluster="week")
    other = rows.with_columns(params_hash=pl.lit("ef"))
    with pytest.raises(InputError, match="one call of positions"):
        payoff(pl.concat([rows, other]))
