"""What the page of a trajectory offers, and what of a chart's axis it takes over."""

import pytest

from toolkit.dashboard.shell import read_range
from toolkit.intervals import Interval
from toolkit.market import Trajectory

from .conftest import EDGE, LEG, PAIR, SERVED_AT, START, loading, price_rows
from .shown import figures


def test_the_trajectories_of_the_symbols_of_the_bar_are_offered_and_the_open_one(page, held):
    other = Trajectory.parse("ETH_USD:KRAKEN.spot")
    with loading(held) as batch:
        batch.add(other, price_rows(), Interval(START, SERVED_AT), EDGE)
    shown = page(held.path, trajectory=PAIR.key, symbols="ETH_USD")
    assert shown.selectbox(key="trajectory").options == [other.key, PAIR.key]
    shown.get_by_key("symbols").set_value([]).run()
    assert shown.selectbox(key="trajectory").options == [LEG.key, other.key, PAIR.key]


@pytest.mark.parametrize(
    "sent",
    [
        [],
        ["2026-11-20"],
        ["2026-11-21", "2026-11-20"],
        ["1969-01-01", "2026-11-20"],
        ["2026-11-20", "9999-12-31"],
        [1, 2],
        [None, None],
        ["2026-11-20", "2026-11-21", "2026-11-22"],
    ],
)
def test_what_is_no_stretch_of_time_is_all_of_the_window(sent):
    assert read_range(sent, "America/New_York") is None


def test_a_zoom_is_at_least_ten_seconds_of_whole_ones():
    sent = ["2026-11-20 00:00:00.9", "2026-11-20 00:00:01.1234567"]
    assert read_range(sent, "UTC") == Interval(1_795_132_800, 1_795_132_810)


def test_the_size_is_in_the_link_where_it_is_not_the_usual_one(page, held):
    shown = page(held.path, trajectory=PAIR.key, size="2500")
    assert shown.query_params["size"] == "2500"
    assert "size" not in page(held.path, trajectory=PAIR.key).query_params


def test_the_hours_of_the_week_are_below_a_spread_alone(page, held):
    shown = page(held.path, trajectory=PAIR.key)
    shown.get_by_key("below").set_value("Hours of the week").run()
    (cells,) = figures(shown)[1]["data"]
    assert cells["type"] == "heatmap"
    assert (
        "Hours of the week" not in page(held.path, trajectory=LEG.key).get_by_key("below").options
    )


@pytest.mark.parametrize(("side", "lines"), [("above", [2.0]), ("either", [2.0, -2.0])])
def test_a_threshold_of_sizes_is_dragged_on_either_side(page, held, side, lines):
    shown = page(held.path, trajectory=PAIR.key, threshold="2", side=side)
    shapes = figures(shown)[0]["layout"]["shapes"]
    assert [each["y0"] for each in shapes if each.get("name") == "threshold"] == lines


def test_a_link_shows_any_two_prices_that_are_held(page, held):
    other = Trajectory.parse("BTC_USD:COINBASE.spot")
    pair = f"pair/{LEG}/{other}"
    shown = page(held.path, trajectory=pair)
    assert any("is not in this store" in each.value for each in shown.warning)
    with loading(held) as batch:
        batch.add(other, price_rows(), Interval(START, SERVED_AT), EDGE)
    shown = page(held.path, trajectory=pair)
    assert not shown.warning
    assert shown.selectbox(key="trajectory").value == pair
    assert shown.query_params["trajectory"] == pair
    assert "coverage" in [each.label for each in shown.metric]
    assert "Coverage" not in shown.get_by_key("below").options
    shown.selectbox(key="trajectory").set_value(LEG.key).run()
    assert not shown.exception
    assert pair not in page(held.path, trajectory=LEG.key).selectbox(key="trajectory").options


def test_a_pair_of_other_coins_or_without_its_fx_leg_is_not_held(page, held):
    for key in (f"pair/{LEG}/ETH_USD:KRAKEN.spot", f"pair/{LEG}/BTC_USDT:KRAKEN.spot", "pair/BTC"):
        shown = page(held.path, trajectory=key)
        assert not shown.exception
        assert any("is not in this store" in each.value for each in shown.warning)


def test_a_pair_of_which_a_leg_has_no_row_in_the_window_is_an_empty_chart(page, held):
    other = Trajectory.parse("BTC_USD:COINBASE.spot")
    with loading(held) as batch:
        batch.add(other, price_rows(), Interval(START, SERVED_AT), EDGE)
    shown = page(held.path, trajectory=f"pair/{LEG}/{other}", start="2020-01-01", end="2020-01-02")
    assert not shown.exception
    assert not shown.metric
