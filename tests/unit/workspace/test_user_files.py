"""Rules and fee tables written by a page: the rest of the files stays byte for byte."""

from __future__ import annotations

import datetime as dt
import tomllib
from pathlib import Path

import pytest

from toolkit.alerts.rules import EXAMPLE
from toolkit.errors import InputError
from toolkit.statistics.fees.fee_table import example_text
from toolkit.workspace import find_fees
from toolkit.workspace.rail_toml import EXAMPLE as WATCHLIST
from toolkit.workspace.user_files import (
    alert_file,
    fee_file,
    keep_fees,
    keep_rule,
    keep_table,
    remove_rule,
)

RULE = {"name": "mine", "kind": "spread", "above_bps": 50, "for": "5m", "streams": None}
ODD = "# a note\r\n[follow]\r\nopen_now   = true # all\r\n\r\n\r\n" + EXAMPLE.replace("\n", "\r\n")


@pytest.fixture
def path(workdir: Path) -> Path:
    return workdir / "rail.toml"


@pytest.mark.parametrize("text", [WATCHLIST, WATCHLIST + EXAMPLE, ODD, "[follow]\nopen_now=true"])
def test_a_rule_is_added_at_the_end_and_taken_out_again(path: Path, text: str) -> None:
    path.write_bytes(text.encode())
    keep_rule(path, RULE)
    written = path.read_bytes().decode()
    assert written.startswith(text)
    assert tomllib.loads(written)["alert"][-1] == {k: v for k, v in RULE.items() if v is not None}
    remove_rule(path, "mine")
    assert path.read_bytes().decode().rstrip() == text.rstrip()


def test_a_change_leaves_the_other_fields_and_their_comments(path: Path) -> None:
    text = f"{WATCHLIST}\n{EXAMPLE}"
    path.write_text(text)
    keep_rule(path, {"name": "wider BTC", "above_bps": 60}, "wide BTC")
    changed = text.replace('"wide BTC"', '"wider BTC"').replace("above_bps = 50", "above_bps = 60")
    assert path.read_text() == changed
    keep_rule(path, {"for": None}, "wider BTC")
    assert "for" not in tomllib.loads(path.read_text())["alert"][0]


def test_a_file_is_made_where_there_is_none(path: Path) -> None:
    assert alert_file(path.parent / "s.duckdb") == path
    keep_rule(path, RULE)
    assert list(tomllib.loads(path.read_text())) == ["alert"]


@pytest.mark.parametrize(
    ("table", "name", "says"),
    [
        ({**RULE, "above_bps": -1}, None, "above_bps: -1"),
        ({**RULE, "name": "old data"}, None, "a name that no other rule has"),
        ({"within": "soon"}, "soon lost", "within: 'soon'"),
        (RULE, "nobody", "rule: 'nobody'"),
    ],
)
def test_what_is_no_rule_is_refused_and_changes_nothing(
    path: Path, table: dict[str, object], name: str | None, says: str
) -> None:
    path.write_text(EXAMPLE)
    with pytest.raises(InputError, match=says):
        keep_rule(path, table, name)
    assert path.read_text() == EXAMPLE
    assert [each.name for each in path.parent.iterdir()] == ["rail.toml"]


def test_rules_of_another_form_are_left_to_their_writer(path: Path) -> None:
    path.write_text('alert = [{name = "a", kind = "loss", within = "1d"}]\n')
    with pytest.raises(InputError, match="by hand"):
        remove_rule(path, "a")
    with pytest.raises(InputError, match="by hand"):
        keep_rule(path, RULE)


def test_the_last_rule_leaves_no_trace(path: Path) -> None:
    path.write_text('fees = "fees.toml"\n')
    keep_rule(path, RULE)
    remove_rule(path, "mine")
    assert path.read_text() == 'fees = "fees.toml"\n\n'


SINCE = dt.date(2017, 1, 1)
ONE = {"maker_bps": 1.0, "taker_bps": 4.5, "slippage_bps": 0.5, "gas_quote": None}


@pytest.fixture
def store(workdir: Path) -> Path:
    return workdir / "rail.duckdb"


def test_a_first_table_is_written_and_in_force(store: Path) -> None:
    kept = keep_fees(store, {"KRAKEN": ONE, "BYBIT": dict.fromkeys(ONE)}, SINCE)
    assert kept == find_fees(store)
    assert [(fee.exchange, fee.taker_bps) for fee in kept.fees] == [("KRAKEN", 4.5)]
    assert kept.round_trip_bps("BTC_USD:KRAKEN.spot", at=1_700_000_000) == 9.5


def test_settings_that_are_there_stay_below_the_name_of_the_table(store: Path) -> None:
    settings = store.parent / "rail.toml"
    settings.write_text('# mine\n[follow]\nstreams = ["events/*"]\n')
    keep_fees(store, {"KRAKEN": ONE}, SINCE)
    text = settings.read_text()
    assert text == 'fees = "fees.toml"\n\n# mine\n[follow]\nstreams = ["events/*"]\n'


def test_new_fees_from_a_date_leave_those_before_it(store: Path) -> None:
    keep_table(store, example_text(["KRAKEN"]))
    before = fee_file(store).read_text()
    keep_fees(store, {"KRAKEN": ONE}, dt.date(2026, 1, 1))
    text = fee_file(store).read_text()
    assert text.startswith(before)
    kept = find_fees(store)
    assert kept is not None
    assert [fee.taker_bps for fee in kept.fees] == [20.0, 4.5]


def test_fees_of_the_same_date_are_changed_in_their_place(store: Path) -> None:
    keep_table(store, "# head\n" + example_text(["KRAKEN", "BYBIT"]))
    keep_fees(store, {"KRAKEN": ONE | {"slippage_bps": None}}, SINCE)
    kept = find_fees(store)
    assert kept is not None
    kraken, bybit = kept.fees
    assert (kraken.taker_bps, kraken.slippage_bps) == (4.5, None)
    assert dict(kraken.withdraw_quote) == {"BTC": 20.0, "ETH": 5.0}
    assert bybit.taker_bps == 5.0
    assert fee_file(store).read_text().startswith("# head\n")


def test_what_no_table_may_have_changes_nothing(store: Path) -> None:
    keep_fees(store, {"KRAKEN": ONE}, SINCE)
    before = fee_file(store).read_bytes()
    with pytest.raises(InputError, match="taker_bps: -1"):
        keep_fees(store, {"KRAKEN": ONE | {"taker_bps": -1.0}}, SINCE)
    with pytest.raises(InputError, match="TOML"):
        keep_table(store, "taker = ")
    assert fee_file(store).read_bytes() == before


def test_an_upload_keeps_the_file_before_it_beside_it(store: Path) -> None:
    keep_fees(store, {"KRAKEN": ONE}, SINCE)
    before = fee_file(store).read_bytes()
    keep_table(store, example_text(["BYBIT"]))
    assert fee_file(store).with_name("fees.toml.before").read_bytes() == before
    assert fee_file(store).read_text() == example_text(["BYBIT"])
