"""What a rail.toml may hold: the watchlist, the fee table in force, and an error for all else."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

import toolkit as tk
from tests.tested_by import ROOT
from toolkit.errors import InputError
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.fees.fee_table import example_text
from toolkit.workspace import fees_file, find_fees
from toolkit.workspace.rail_toml import EXAMPLE, FILE_NAME, Watchlist, find_watchlist, pages_days


def written(folder: Path, text: str) -> Path:
    path = folder / FILE_NAME
    path.write_text(text, encoding="utf-8")
    return path


def test_the_example_names_every_field_and_is_a_watchlist(tmp_path: Path) -> None:
    found = Watchlist.read(written(tmp_path, EXAMPLE))
    assert [*tomllib.loads(EXAMPLE)["follow"], "name"] == [each.name for each in fields(Watchlist)]
    assert found.top_open == 50
    assert EXAMPLE in (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    assert (found.back_s, found.keep_s, found.poll_s) == (30 * 86_400, 86_400, 60.0)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('streams = "BTC_USDT:*"', "streams: 'BTC_USDT:*' is not allowed; allowed: a list of"),
        ('streams = ["BTC"]', "streams: 'BTC' is not allowed; allowed:"),
        ("symbols = [1]", "symbols: [1] is not allowed; allowed: a list of texts"),
        ('exchanges = [""]', "exchanges: [''] is not allowed; allowed: a list of texts"),
        ('families = ["spreads"]', "nearest: spread"),
        ("open_now = 1", "open_now: 1 is not allowed; allowed: true or false"),
        ("top_open = 0", "top_open: 0 is not allowed; allowed: a whole number of 1 or more"),
        ("top_open = true", "top_open: True is not allowed"),
        ('widest_funding = "yes"', "widest_funding: 'yes' is not allowed"),
        ("events_above_pct = -1.0", "allowed: percent above 0, to 1000; 1.0 is one percent"),
        ('events_within = "week"', "events_within: 'week' is not allowed; allowed: a length"),
        ('snapshots = ["spread", "depth"]', "snapshots: 'depth' is not allowed; allowed: symbols"),
        ('back = "7"', "back: '7' is not allowed; allowed: a length such as 90s, 5m, 12h"),
        ('keep = "0d"', "keep: '0d' is not allowed"),
        ("poll_s = 0.5", "poll_s: 0.5 is not allowed; allowed: seconds from 1 to 86400"),
        ("sweep_s = true", "sweep_s: True is not allowed"),
        ('rules_s = "5m"', "rules_s: '5m' is not allowed"),
        ('stream = ["BTC_USDT:*"]', "follow: 'stream' is not allowed; allowed: streams, symbols"),
    ],
)
def test_each_wrong_value_is_one_line_with_its_field_and_what_is_allowed(
    tmp_path: Path, line: str, said: str
) -> None:
    path = written(tmp_path, f"[follow]\n{line}\n")
    with pytest.raises(InputError) as refused:
        Watchlist.read(path)
    assert str(refused.value).startswith(f"{path} follow")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_lengths_are_read_as_everywhere_in_weeks_and_in_whole_seconds(tmp_path: Path) -> None:
    read = Watchlist.read(written(tmp_path, '[follow]\nback = "2w"\nkeep = 300\nopen_now = true\n'))
    assert (read.back_s, read.keep_s) == (14 * 86_400, 300)


@pytest.mark.parametrize(
    "text", ["[follow", "", "follow = 1", "[follow]\nsnapshots = []", "[follows]\nopen_now = true"]
)
def test_a_file_that_is_no_watchlist_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"rail\.toml"):
        Watchlist.read(written(tmp_path, text))


def test_it_is_found_beside_the_store_before_the_working_directory(
    tmp_path: Path, workdir: Path
) -> None:
    store = tmp_path / "stores" / "rail.duckdb"
    store.parent.mkdir()
    assert find_watchlist(store).streams == ("watchlist",)
    written(workdir, "")  # it names nothing
    assert find_watchlist(store).streams == ("watchlist",)
    written(workdir, "[follow]\ntop_open = 1\n")
    assert find_watchlist(store).top_open == 1
    written(store.parent, "[follow]\ntop_open = 2\n")
    assert find_watchlist(store).top_open == 2
    other = tmp_path / "other.toml"
    other.write_text("[follow]\ntop_open = 3\n", encoding="utf-8")
    assert find_watchlist(store, other).top_open == 3


def test_for_how_long_pages_are_kept_is_given_or_set_beside_the_store(tmp_path: Path) -> None:
    store = tmp_path / "rail.duckdb"
    assert pages_days(store) == 30
    written(tmp_path, "pages_days = 7")
    assert (pages_days(store), pages_days(store, 0)) == (7, 0)
    for wrong in ('"7d"', "-1", "true", "1e9"):
        written(tmp_path, f"pages_days = {wrong}")
        with pytest.raises(InputError, match=r"pages_days: .* allowed: days from 0 to 36500"):
            pages_days(store)


TABLE = FeeModel.example()


@pytest.fixture
def store(tmp_path: Path, workdir: Path) -> Path:
    """The place of a store, in another folder than the working directory."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "mine.toml").write_text(example_text())
    assert workdir != folder
    return folder / "rail.duckdb"


def test_without_a_word_there_is_no_table(store: Path) -> None:
    assert find_fees(store) is None
    with tk.open(store) as rail:
        assert rail.fees is None


def test_a_table_or_its_file_is_taken_as_given(store: Path) -> None:
    assert find_fees(store, TABLE) is TABLE
    assert find_fees(store, store.with_name("mine.toml")) == TABLE
    with tk.open(store, fees=TABLE) as rail:
        assert rail.fees == TABLE
        assert rail.as_of("2026-01-01").fees == TABLE


def test_rail_toml_names_a_file_beside_itself(store: Path) -> None:
    settings = store.with_name("rail.toml")
    settings.write_text('fees = "mine.toml"\n')
    assert fees_file(store) == store.with_name("mine.toml")
    with tk.open(store) as rail:
        assert rail.fees == TABLE
        assert ("fees", TABLE.label) in rail.card.facts
        assert TABLE.hash in TABLE.label


def test_settings_without_rules_leave_the_default_watchlist(store: Path) -> None:
    store.with_name("rail.toml").write_text('fees = "mine.toml"\n')
    assert find_watchlist(store) == find_watchlist(store.parent.parent / "none.duckdb")
    store.with_name("rail.toml").write_text('fees = "mine.toml"\n[follow]\ntop_open = 7\n')
    assert find_watchlist(store).top_open == 7
    assert find_fees(store) == TABLE


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('fees = "none.toml"', "none.toml"),
        ("fees = 5", "the name of a file"),
        ('fee = "mine.toml"', "nearest: fees"),
        ("fees = ", "TOML"),
    ],
)
def test_what_is_named_wrongly_is_refused(store: Path, settings: str, words: str) -> None:
    store.with_name("rail.toml").write_text(settings)
    with pytest.raises(InputError, match=words):
        find_fees(store)


def test_a_file_given_is_read_before_anything_else(store: Path) -> None:
    with pytest.raises(InputError, match="rail fees --example"):
        tk.open(store, fees="none.toml")
