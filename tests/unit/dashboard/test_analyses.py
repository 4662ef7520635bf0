"""The part of a page that asks any analysis of what is shown, and what it is asked with."""

import pytest

from toolkit.analyses import analyses
from toolkit.workspace.answers import SeriesAnswer

from .conftest import LEG, PAIR
from .shown import rows_of

NET = ("net_edge", "net_episodes", "net_summary", "net_time_to_close")


def opened(page, path, **link):
    return page(path, **{"trajectory": PAIR.key} | link)


def python_lines(page):
    """The Python that the part shows."""
    (code,) = [each.value for each in page.get("code") if "series = " in each.value]
    return code.split("\n")


def python_of(page):
    """Run it."""
    *lines, last = python_lines(page)
    place = {}
    exec("\n".join([*lines, f"found = {last}"]), place)
    return place["found"]


def test_nothing_is_computed_of_a_part_that_is_closed(page, held, monkeypatch):
    def refused(*_asked, **_options):
        raise AssertionError

    monkeypatch.setattr(SeriesAnswer, "of", refused)
    assert "analysis" not in opened(page, held.path).query_params


def test_an_analysis_that_is_chosen_is_in_the_link_and_gives_the_rows_of_its_python(page, held):
    shown = opened(page, held.path, analysis="stationarity")
    offered = shown.selectbox(key="trajectory_analysis").options
    assert offered[-len(NET) :] == [name.replace("_", " ").capitalize() for name in NET]
    assert len(offered) == len(analyses("spread"))
    assert ("ADF lags", "16") in [(each.label, each.value) for each in shown.metric]
    shown.selectbox(key="trajectory_analysis").set_value("cross_correlation").run()
    shown.number_input(key="trajectory_cross_correlation_max_lag_steps").set_value(3).run()
    assert shown.query_params["analysis"] == "cross_correlation"
    assert shown.query_params["with_max_lag_steps"] == "3"
    cells = rows_of(shown, "trajectory_cross_correlation")
    found = python_of(shown)
    assert cells["lag"] == ["-3 min", "-2 min", "-1 min", "0 s", "1 min", "2 min", "3 min"]
    assert cells["correlation"] == [f"{value:.4f}" for value in found["correlation"]]
    again = opened(page, held.path, **shown.query_params)
    assert rows_of(again, "trajectory_cross_correlation") == cells
    again.session_state["trajectory_analyses_open"] = False
    assert not {"analysis", "with_max_lag_steps"} & set(again.run().query_params)


def test_what_cannot_be_asked_is_one_line(page, held):
    link = {"analysis": "episodes", "with_merge_gap_s": "soon", "with_enter_bps": "nan"}
    shown = opened(page, held.path, **link)
    (line,) = [each.value for each in shown.error]
    assert (
        line == "Merge gap: 'soon' is not allowed; allowed: a length such as 90s, 5m, 12h, 7d or 2w"
    )
    assert "`with_enter_bps=nan`" in shown.warning[0].value


def test_every_analysis_of_a_spread_is_answered_before_anything_is_typed(page, held):
    shown = opened(page, held.path, analysis="flags", fees="example")
    for each in analyses("spread"):
        shown.selectbox(key="trajectory_analysis").set_value(each.name).run()
        assert not shown.exception
        assert not shown.error
        assert f"series.{each.name}(" in "".join(python_lines(shown))


@pytest.mark.slow
def test_an_analysis_of_the_events_shown_gives_the_rows_of_its_python(page_alone, logged):
    link = {"analysis": "summary", "window": "7 days"}
    shown = page_alone("events", logged.path, **link)
    assert rows_of(shown, "events_summary")["family"] == ["splash", "spread"]
    assert not [each for each in shown.get("code") if "series = " in each.value]  # of two logs
    shown.selectbox(key="events_analysis").set_value("study").run()
    assert "Choose one family of events above" in shown.caption[-2].value
    assert "documents: Channels." in shown.caption[-1].value
    shown = page_alone("events", logged.path, family="spread", **link | {"analysis": "magnitudes"})
    (found,) = python_of(shown).to_dicts()
    figures = {each.label: each.value for each in shown.metric}
    assert figures["largest size (%)"] == f"{found['size_largest_pct']:.3f}"
    assert figures["events"] == f"{found['n']}"
    assert not shown.error


@pytest.mark.parametrize(
    ("key", "heading", "figure"),
    [
        (LEG.key, "volatility (%)", "realized_volatility_pct"),
        ("snapshot-funding/BTC_USD:KRAKEN.futures", "median APR (%)", "funding_apr_median_pct"),
    ],
)
def test_prices_and_rates_in_force_are_asked_as_well(page, full, key, heading, figure):
    shown = page(full.path, trajectory=key, analysis="summary")
    assert not shown.error
    (found,) = python_of(shown).to_dicts()
    assert {each.label: each.value for each in shown.metric}[heading] == f"{found[figure]:,.2f}"
