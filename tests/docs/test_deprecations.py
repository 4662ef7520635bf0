"""What goes is said before: by a warning with the successor and the version, and by a command."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from toolkit.cli.root import COMMANDS, GONE

ROOT = Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
WORDS = re.compile(r"\buse \S+.* goes in \d+\.\d+")


def unclear(source: str) -> list[str]:
    """Return the texts of deprecation warnings that name no successor or no version."""
    if "DeprecationWarning" not in source:
        return []
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    warned = [
        ast.unparse(call.args[0])
        for call in calls
        if ast.unparse(call.func) in {"warnings.warn", "warn"}
        and "DeprecationWarning" in ast.unparse(call)
    ]
    return [text for text in warned if not WORDS.search(text)]


def test_each_warning_names_what_to_use_and_the_version_in_which_the_old_goes() -> None:
    files = [path.read_text(encoding="utf-8") for path in (ROOT / "toolkit").rglob("*.py")]
    found = [text for source in files for text in unclear(source)]
    assert found == []
    warned = sum("DeprecationWarning)" in source and "warn(" in source for source in files)
    assert not warned or "### Deprecated" in CHANGELOG


@pytest.mark.parametrize(
    ("text", "is_clear"),
    [("use Store.known: Store.then goes in 0.3", True), ("Store.then is old", False)],
)
def test_a_warning_that_is_not_clear_is_seen(text: str, is_clear: bool) -> None:
    assert (unclear(f"warnings.warn({text!r}, DeprecationWarning)") == []) is is_clear


def test_each_command_that_is_gone_names_one_that_is_there_and_is_in_the_changelog() -> None:
    for gone, successor in GONE.items():
        assert gone not in COMMANDS
        assert successor.removeprefix("rail ").split()[0] in COMMANDS
        assert f"`rail {gone}`" in CHANGELOG
