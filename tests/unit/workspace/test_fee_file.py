"""The fee table written from a form or an upload: the rest of the files stays byte for byte."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from toolkit.errors import InputError
from toolkit.statistics.fees.fee_table import example_text
from toolkit.workspace import find_fees
from toolkit.workspace.user_files import fee_file, keep_fees, keep_table

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
