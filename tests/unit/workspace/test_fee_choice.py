"""Which fee table is in force: the one given, else the one that ``rail.toml`` names."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolkit as tk
from toolkit.errors import InputError
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.fees.fee_table import example_text
from toolkit.workspace import fees_file, find_fees
from toolkit.workspace.rules import find_watchlist

EXAMPLE = FeeModel.example()


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
    assert find_fees(store, EXAMPLE) is EXAMPLE
    assert find_fees(store, store.with_name("mine.toml")) == EXAMPLE
    with tk.open(store, fees=EXAMPLE) as rail:
        assert rail.fees == EXAMPLE
        assert rail.as_of("2026-01-01").fees == EXAMPLE


def test_rail_toml_names_a_file_beside_itself(store: Path) -> None:
    settings = store.with_name("rail.toml")
    settings.write_text('fees = "mine.toml"\n')
    assert fees_file(store) == store.with_name("mine.toml")
    with tk.open(store) as rail:
        assert rail.fees == EXAMPLE
        assert ("fees", EXAMPLE.label) in rail.card.facts
        assert EXAMPLE.hash in EXAMPLE.label


def test_settings_without_rules_leave_the_default_watchlist(store: Path) -> None:
    store.with_name("rail.toml").write_text('fees = "mine.toml"\n')
    assert find_watchlist(store) == find_watchlist(store.parent.parent / "none.duckdb")
    store.with_name("rail.toml").write_text('fees = "mine.toml"\n[follow]\ntop_open = 7\n')
    assert find_watchlist(store).top_open == 7
    assert find_fees(store) == EXAMPLE


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
