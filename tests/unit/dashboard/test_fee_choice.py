"""The choice of a fee table on the pages of spreads and of funding, and the net figures."""

from __future__ import annotations

import pytest

from toolkit.dashboard.link import page_file
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.spread import net_summary

from .conftest import PAIR, SERVED_AT, START
from .shown import values_of

TABLE = """
name = "mine"
[[fee]]
exchange = "COINBASE"
valid_from = 2017-01-01
taker_bps = 0.25
slippage_bps = 0
[[fee]]
exchange = "KRAKEN"
valid_from = 2017-01-01
taker_bps = 0.5
slippage_bps = 0
"""
NET = ["time, |spread| > cost", "mean net (bps)", "cost (bps)"]


@pytest.fixture
def own(held) -> FeeModel:
    """A table of the user's own, which the settings beside the store name."""
    (held.path.parent / "rail.toml").write_text('fees = "mine.toml"')
    (held.path.parent / "mine.toml").write_text(TABLE)
    return FeeModel.parse(TABLE)


def test_without_a_table_the_figures_are_gross_and_the_example_is_offered(page, held):
    shown = page(held.path, "spreads")
    assert shown.get_by_key("fees").value == "none"
    assert not set(NET) & set(values_of(shown, "spreads")[0])
    shown.get_by_key("fees").set_value("example").run()
    (row,) = values_of(shown, "spreads")
    example = FeeModel.example(["COINBASE", "KRAKEN"])
    assert row["cost (bps)"] == example.round_trip_bps(PAIR, at=START)
    (caption,) = shown.caption
    assert f"`{example.name}` ({example.hash}), style taker, notional 10,000" in caption.help
    assert shown.query_params["fees"] == "example"


def test_the_table_of_the_settings_is_in_force_unless_another_is_chosen(page, held, own):
    shown = page(held.path, "spreads")
    (row,) = values_of(shown, "spreads")
    rows = held.series(PAIR)
    net = net_summary(rows, START, SERVED_AT, fees=own).row(0, named=True)
    assert row["cost (bps)"] == net["cost_bps"] == 1.5
    assert row["time, |spread| > cost"] == pytest.approx(net["net_share"])
    assert row["mean net (bps)"] == pytest.approx(net["net_mean_bps"], rel=1e-6)
    assert f"`mine` ({own.hash}), style taker" in shown.caption[0].help
    shown.get_by_key("style").set_value("prefunded").run()
    assert values_of(shown, "spreads")[0]["cost (bps)"] == 0.75
    assert shown.query_params["style"] == "prefunded"
    shown.get_by_key("fees").set_value("none").run()
    assert "cost (bps)" not in values_of(shown, "spreads")[0]


def test_what_the_table_lacks_is_beside_the_spread(page, held, own):
    assert own.fees
    shown = page(held.path, "spreads", style="maker")
    notes = values_of(shown, "spreads")[0]["notes"]
    assert "the fee table lacks maker_bps of COINBASE.spot, maker_bps of KRAKEN.spot" in notes


def test_the_choice_stays_over_a_change_of_page(page, held):
    shown = page(held.path, "spreads", fees="example", style="maker_buy")
    shown.switch_page(page_file("overview")).run()
    shown.switch_page(page_file("spreads")).run()
    assert shown.get_by_key("fees").value == "example"
    assert shown.get_by_key("style").value == "maker_buy"


def test_a_table_that_cannot_be_read_or_is_not_offered_is_named_and_the_page_stays(page, held):
    shown = page(held.path, "spreads", fees="own")
    assert "fees=own" in " ".join(each.value for each in shown.warning)
    assert shown.get_by_key("fees").value == "none"
    (held.path.parent / "rail.toml").write_text('fees = "none.toml"')
    shown = page(held.path, "spreads")
    assert "none.toml" in " ".join(each.value for each in shown.warning)
    assert len(values_of(shown, "spreads")) == 1


def test_fees_of_ones_own_are_entered_in_the_browser_and_in_force_at_once(page, held):
    shown = page(held.path, "spreads")
    shown.get_by_key("fee_form").click().run()
    for exchange, taker in (("COINBASE", 0.25), ("KRAKEN", 0.5)):
        shown.get_by_key(f"fee_taker_bps_{exchange}").set_value(taker)
        shown.get_by_key(f"fee_slippage_bps_{exchange}").set_value(0.0)
    shown.get_by_key("fee_save").click().run()
    assert not shown.exception
    assert shown.get_by_key("fees").value == "own"
    (row,) = values_of(shown, "spreads")
    assert row["cost (bps)"] == 1.5
    assert 'fees = "fees.toml"' in (held.path.parent / "rail.toml").read_text()


@pytest.mark.usefixtures("own")
def test_the_form_changes_what_was_changed_and_refuses_what_no_table_may_have(page, held):
    shown = page(held.path, "spreads")
    shown.get_by_key("fee_form").click().run()
    shown.get_by_key("fee_taker_bps_KRAKEN").set_value(-1.0)
    shown.get_by_key("fee_save").click().run()
    assert any("taker_bps" in each.value for each in shown.error)
    assert (held.path.parent / "mine.toml").read_text() == TABLE
    shown = page(held.path, "spreads")
    shown.get_by_key("fee_form").click().run()
    assert shown.get_by_key("fee_taker_bps_KRAKEN").value == 0.5
    shown.get_by_key("fee_taker_bps_KRAKEN").set_value(0.75)
    shown.get_by_key("fee_save").click().run()
    kept = FeeModel.read(held.path.parent / "mine.toml")
    assert [(fee.exchange, fee.taker_bps) for fee in kept.fees] == [
        ("COINBASE", 0.25),
        ("KRAKEN", 0.5),
        ("KRAKEN", 0.75),
    ]
    assert (held.path.parent / "mine.toml").read_text().startswith(TABLE)
