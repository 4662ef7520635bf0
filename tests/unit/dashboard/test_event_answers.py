"""What the page of events says of rates and lives, and of prices after pumps."""

from __future__ import annotations

from functools import partial

import polars as pl
import pytest
from scipy.stats import chi2

from toolkit.intervals import Interval
from toolkit.market import Trajectory
from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter

from .shown import figures, rows_of, texts
from .test_events_page import HOUR, LAST, SERVED_AT, START, fill, subtitle

LEG = Trajectory.parse("BTC_USDT:AURORA.spot")
PUMPED = START + HOUR * (LAST + 6)


def with_prices(path):
    """Add minutes of the leg's price, which jumps by 10 % and gives back half after 20 minutes."""
    ts = list(range(PUMPED - 2 * HOUR, PUMPED + 3 * HOUR, 60))
    price = [100.0 if t < PUMPED else 110.0 if t < PUMPED + 1_200 else 105.0 for t in ts]
    rows = {"ts": ts, "price": price, "mark_price": None, "volume": None, "extra": None}
    schema = {"mark_price": pl.Float64, "volume": pl.Float64, "extra": pl.String}
    batch, writer = Batch(), StoreWriter(Store(path))
    load = writer.start_load(LoadOrigin("http://127.0.0.1:1", SERVED_AT, None, "0.1.0"))
    edge = Edge(served_at=SERVED_AT, delay_s=0, retention_s=None, step_s=60)
    window = Interval(ts[0], ts[-1] + 60)
    batch.add(LEG, pl.DataFrame(rows, schema_overrides=schema), window, edge)
    writer.commit(load, batch)
    writer.finish_load(load, [])
    return path


def measured(shown, what):
    """Choose what is shown of one kind of event."""
    shown.get_by_key("event_measure").set_value(what).run()


@pytest.fixture
def page(page_alone):
    return partial(page_alone, "events")


def test_kinds_have_lives_with_the_time_by_which_half_are_over(page, tmp_path):
    shown = page(fill(tmp_path / "held.duckdb"), window="7 days")
    kinds = rows_of(shown, "kinds")
    assert kinds["events"] == ["2", "1", "1"]
    assert kinds["still open"] == ["1", "0", "0"]
    assert kinds["median lifetime"][-1] == "5 h"
    assert "lifetime lower" not in kinds  # of one life nothing is known
    assert "What followed is measured on the prices of their legs" in shown.info[0].value
    (button,) = [each for each in shown.button if "with most pumps and dumps" in each.label]
    assert "BTC_USDT:AURORA.spot" in button.key


def test_rates_are_over_the_time_in_which_the_log_is_held(page, tmp_path):
    shown = page(fill(tmp_path / "held.duckdb"), window="7 days")
    kinds = rows_of(shown, "kinds")
    lower, upper = chi2.ppf([0.025, 0.975], [4, 6]) / 2 / 7
    names = ("events per day", "per day lower", "per day upper")
    assert [kinds[name][0] for name in names] == ["0.29", f"{lower:.2f}", f"{upper:.2f}"]
    assert kinds["coverage"] == ["100.00 %"] * 3
    measured(shown, "How long they live")
    assert subtitle(shown, "How long events last")[0] == "spread events, all symbols"
    measured(shown, "How often by symbol")
    assert figures(shown)[1]["data"][0]["y"] == ["BTC_USDT", "ETH_USDT"]
    assert subtitle(shown, "How often events open")[2] == "n = 2 events of 2 groups, 2 shown"
    measured(shown, "Hours of the week")
    assert "**Events in each hour of the week (UTC)**" in texts(shown.markdown)
    shown.get_by_key("event_window").set_value("24 hours").run()
    assert len(figures(shown)) == 1  # a day has no hours of the week


def test_what_is_measured_is_chosen_and_kept(page, tmp_path):
    shown = page(fill(tmp_path / "held.duckdb"))
    assert "Hours of the week" not in shown.get_by_key("event_measure").options  # of one day
    assert len(figures(shown)) == 1
    measured(shown, "How often by legs")
    shown.get_by_key("event_rated").set_value("pump").run()
    league = figures(shown)[1]
    assert league["data"][0]["y"] == ["BTC_USDT AURORA.spot"]
    shown.get_by_key("event_family").set_value(["spread"]).run()
    league = figures(shown)[1]
    assert league["data"][0]["y"][0] == "BTC_USDT AURORA.spot<br>→ BOREAS.futures"


def test_events_of_one_state_have_no_rates_and_lives(page, tmp_path):
    shown = page(fill(tmp_path / "held.duckdb"), state="over")
    assert "events per day" not in rows_of(shown, "kinds")
    assert len(figures(shown)) == 1
    assert "Rates and lifetimes are shown for events in any state." in texts(shown.caption)


def test_after_pumps_the_path_from_the_next_price_and_what_was_given_back_are_shown(page, tmp_path):
    shown = page(with_prices(fill(tmp_path / "held.duckdb")))
    assert "**Before and after the events**" in texts(shown.markdown)
    later = {metric.label: metric for metric in shown.metric}
    assert later["5 min later: median return (bps)"].value == "0.00"
    assert later["30 min later: median return (bps)"].value == "-465.20"
    assert "continued 0.00 %, median retraced 48.81 %, with price 1" in texts(shown.caption)


def test_one_pump_has_its_price_and_what_followed(page, tmp_path):
    shown = page(with_prices(fill(tmp_path / "held.duckdb")), event="p1")
    around = figures(shown)[0]
    assert around["layout"]["shapes"][0]["x0"] == "2023-03-19 06:00"
    later = {metric.label: metric for metric in shown.metric}
    assert later["30 min later: return (bps)"].value == "-465.20"
    assert later["30 min later: return (bps)"].delta == "retraced 48.81 %"


def test_a_filter_without_pumps_has_no_section_of_them(page, tmp_path):
    shown = page(with_prices(fill(tmp_path / "held.duckdb")), family="spread")
    assert "After pumps and dumps" not in texts(shown.subheader)
    assert len(figures(shown)) == 1
