"""What the page of a trajectory offers, and what of a chart's axis it takes over."""

import pytest

from toolkit.dashboard.zoom import read_range
from toolkit.intervals import Interval
from toolkit.market import Trajectory
from toolkit.store import Batch, LoadOrigin, StoreWriter

from .conftest import EDGE, LEG, PAIR, SERVED_AT, START, price_rows
from .shown import figures


def test_the_trajectories_of_the_symbols_of_the_bar_are_offered_and_the_open_one(page, held):
    writer = StoreWriter(held)
    load = writer.start_load(LoadOrigin("http://127.0.0.1:1", SERVED_AT, None, "0.1.0"))
    other = Trajectory.parse("ETH_USD:KRAKEN.spot")
    batch = Batch()
    batch.add(other, price_rows(), Interval(START, SERVED_AT), EDGE)
    writer.commit(load, batch)
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


def test_a_threshold_is_dragged_on_either_side(page, held):
    shown = page(held.path, trajectory=PAIR.key, threshold="2")
    shapes = figures(shown)[0]["layout"]["shapes"]
    assert [each["y0"] for each in shapes if each.get("name") == "threshold"] == [2.0, -2.0]
