"""Rules written by a page: the rest of rail.toml stays byte for byte."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from toolkit.alerts.rules import EXAMPLE
from toolkit.errors import InputError
from toolkit.workspace.rules import EXAMPLE as WATCHLIST
from toolkit.workspace.user_files import alert_file, keep_rule, remove_rule

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
