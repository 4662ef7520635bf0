"""The page of alerts: what is open, the history, rules made, changed and removed, and toasts."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from tests.unit.store.test_alerts import found
from toolkit.alerts.rules import EXAMPLE, AlertKind
from toolkit.store import LoadOrigin, Store, StoreWriter
from toolkit.store.writing.alerts import AlertRecord
from toolkit.workspace.alerts import find_alerts

from .conftest import PAIR, SERVED_AT
from .shown import rows_of


def record(store: Store, *changes: tuple[str, str, int]) -> None:
    writer = StoreWriter(store)
    load_id = writer.start_load(LoadOrigin("http://127.0.0.1:1", SERVED_AT, None, "0.1.0"))
    with writer.writing(load_id) as connection:
        AlertRecord(connection, load_id).record(found(*changes), {}, ())


@pytest.fixture
def rules(full: Store) -> Path:
    return full.path.parent / "rail.toml"


def test_what_is_open_and_what_was_are_tables(page, full, rules):
    rules.write_text(EXAMPLE)
    record(full, (PAIR.key, "opened", SERVED_AT - 60), ("x", "opened", 1), ("x", "cleared", 2))
    shown = page(full.path, "alerts")
    keys = ("alerts_open", "alerts_rules", "alerts_history")
    assert not shown.warning
    open_now, listed, history = (rows_of(shown, key) for key in keys)
    assert open_now["subject"] == [PAIR.key]
    assert open_now["value"] == ["60.00 bps"]
    assert listed["rule"][:2] == ["wide BTC", "funding apart"]
    assert listed["streams"][0] == "0"
    assert history["change"] == ["cleared", "opened", "opened"]


def test_the_form_says_what_the_rule_watches_and_would_have_caught(page, full):
    shown = page(full.path, "alerts")
    (said,) = [each.value for each in shown.caption if each.value.startswith("Watches ")]
    assert "it would have opened no alert" in said
    shown.number_input(key="alert_level_spread").set_value(2.0)
    shown.selectbox(key="alert_for").set_value(60).run()
    (said,) = [each.value for each in shown.caption if each.value.startswith("Watches ")]
    assert re.search(r"it would have opened \d+ alerts of \d+ pairs? or events?", said), said


def test_a_rule_is_changed_and_removed_and_the_rest_stays(page, full, rules):
    text = f"# mine\n{EXAMPLE}"
    rules.write_text(text)
    shown = page(full.path, "alerts")
    shown.session_state["alerts_rules_opened"] = "wide BTC"
    shown.run()
    assert shown.number_input(key="alert_level_spread").value == 50
    shown.number_input(key="alert_level_spread").set_value(60)
    shown.button(key="alert_keep").click().run()
    assert rules.read_text() == text.replace("above_bps = 50 ", "above_bps = 60 ")
    shown.session_state["alerts_rules_opened"] = "soon lost"
    shown.run()
    shown.button(key="alert_remove").click().run()
    assert "soon lost" not in rules.read_text()
    assert rules.read_text().startswith("# mine\n")


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        ("funding", "|funding differential| above 30 % per year for 5 min, over at 24"),
        ("event", "event of 5 % or more"),
        ("stale", "nothing new for 10 min"),
        ("loss", "dropped by the archive within 6 h"),
    ],
)
def test_each_kind_can_be_made(page, full, kind, condition):
    shown = page(full.path, "alerts")
    shown.selectbox(key="alert_kind").set_value(AlertKind(kind)).run()
    shown.button(key="alert_keep").click().run()
    assert not shown.exception
    (rule,) = find_alerts(full.path).rules
    assert str(rule) == condition
    assert shown.selectbox(key="alert_kind").value == "spread"
    assert shown.selectbox(key="alert_for").value == 300


def test_the_rule_that_is_changed_and_the_kind_of_a_new_one_are_in_the_link(page, full, rules):
    rules.write_text(EXAMPLE)
    shown = page(full.path, "alerts", rule="large pumps")
    assert shown.number_input(key="alert_level_event").value == 5
    assert not shown.warning
    shown.button(key="alert_close").click().run()
    assert "rule" not in shown.query_params
    shown.selectbox(key="alert_kind").set_value(AlertKind.LOSS).run()
    assert shown.query_params["kind"] == "loss"
    wrong = page(full.path, "alerts", rule="gone", kind="weather")
    assert len(wrong.warning) == 2
    assert wrong.selectbox(key="alert_kind").value == "spread"


def test_the_history_is_handed_over_with_its_source_and_the_python_of_it(page, full):
    record(full, ("x", "opened", 1), ("x", "cleared", 2))
    shown = page(full.path, "alerts")
    assert [button.label for button in shown.get("download_button")] == ["CSV", "Parquet"]
    names: dict[str, pl.DataFrame] = {}
    exec(shown.code[-1].value, names)
    assert names["found"]["change"].to_list() == ["cleared", "opened"]


def test_a_click_makes_the_rule_of_50_bps_for_5_minutes_and_a_mistake_none(page, full, rules):
    shown = page(full.path, "alerts")
    shown.text_input(key="alert_streams").set_value("BTC")
    shown.button(key="alert_keep").click().run()
    assert "BTC" in shown.error[0].value
    assert not rules.exists()
    shown = page(full.path, "alerts")
    shown.button(key="alert_keep").click().run()
    assert not shown.exception
    (rule,) = find_alerts(full.path).rules
    assert str(rule) == "|spread| above 50 bps for 5 min, over at 40"
    assert rule.name == "|Spread| above 50 bps for 5 min"
    assert any("is in" in each.value for each in shown.caption)


def test_a_test_says_where_it_went(page, full, rules):
    rules.write_text(EXAMPLE)
    shown = page(full.path, "alerts")
    shown.session_state["alerts_rules_opened"] = "large pumps"
    shown.run()
    shown.button(key="alert_test").click().run()
    assert any("no webhook" in each.value for each in shown.caption)


def test_rules_that_cannot_be_read_are_one_line(page, full, rules):
    rules.write_text('[[alert]]\nname = "x"\n')
    shown = page(full.path, "alerts")
    assert "kind" in shown.error[0].value


def test_an_alert_that_opens_is_a_toast_on_any_page_once(page, full):
    shown = page(full.path, "overview")
    assert not shown.toast
    record(full, ("x", "opened", SERVED_AT))
    shown.run()
    assert [each.value for each in shown.toast] == ["wide"]
    shown.run()
    assert not shown.toast
