"""The command tree: what it lists, and what it imports to do so."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module

import pytest
import typer

from toolkit.cli.root import COMMANDS

HEAVY = {"duckdb", "httpx", "numpy", "plotly", "polars", "pyarrow", "rich", "streamlit", "mcp"}
PROGRAM = """
import atexit, json, sys
atexit.register(lambda: sys.stderr.write(json.dumps(sorted(sys.modules))))
from toolkit.cli import main
main()
"""


def modules_loaded(*arguments: str) -> tuple[str, set[str]]:
    """What `rail` prints with these arguments, and the modules it has imported at its end."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout, set(json.loads(done.stderr))


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_the_root_imports_no_command_and_nothing_heavy(arguments: list[str]) -> None:
    _, loaded = modules_loaded(*arguments)
    commands = {f"toolkit.cli.{place.partition(':')[0]}" for place, _ in COMMANDS.values()}
    assert "toolkit.cli.root" in loaded
    assert loaded & (HEAVY | commands) == set()


@pytest.mark.slow
def test_a_command_imports_no_other_command() -> None:
    _, loaded = modules_loaded("symbols", "--help")
    commands = {f"toolkit.cli.{place.partition(':')[0]}" for place, _ in COMMANDS.values()}
    assert loaded & commands == {"toolkit.cli.symbols"}


def test_the_help_lists_every_command_with_its_whole_line() -> None:
    shown, _ = modules_loaded("--help")
    for name, (_, line) in COMMANDS.items():
        assert f"  {name:<7}  {line}\n" in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_place_in_the_table_holds_a_command_with_help_of_its_own(name: str) -> None:
    module, _, attribute = COMMANDS[name][0].partition(":")
    found = getattr(import_module(f"toolkit.cli.{module}"), attribute)
    assert isinstance(found, typer.Typer) or found.__doc__
