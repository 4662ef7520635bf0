"""`rail` itself: what it lists and imports, completion, exit codes, faults without a traceback."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer

from toolkit.cli.root import COMMANDS
from toolkit.commands import ExitCode
from toolkit.errors import RailError

from .conftest import Rail


def test_the_version_is_that_of_the_package(rail: Rail) -> None:
    done = rail("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("rail 0.")


def test_the_help_of_a_group_has_the_whole_line_of_each_of_its_commands(rail: Rail) -> None:
    shown = rail("stats", "--help", columns=60).stdout
    assert "..." not in shown.partition("Commands:")[2]
    assert "of a position over (start, end], also as a yearly rate." in " ".join(shown.split())


def test_the_help_lists_each_exit_code_on_a_line_of_its_own(rail: Rail) -> None:
    lines = [line.strip() for line in rail("--help").stdout.splitlines()]
    assert all(f"{code.value:<3}  {code.words}" in lines for code in ExitCode)


def test_without_a_command_it_shows_the_help(rail: Rail) -> None:
    done = rail()
    assert done.returncode == 2
    assert "Usage: " in done.stdout + done.stderr


def test_with_debug_on_a_refusal_keeps_its_traceback(rail: Rail) -> None:
    with pytest.raises(RailError, match="allowed: http://HOST"):
        rail("symbols", base_url="rail", api_key="k", debug="1")


LOGS = """
import logging, sys, types
from toolkit.cli import main
def symbols_command() -> None:
    for name in ("toolkit.client", "websockets.client"):
        logging.getLogger(name).warning("careful, %s", name)
        try:
            {}["x"]
        except KeyError:
            logging.getLogger(name).exception("it failed in %s", name)
command = sys.modules["toolkit.cli.sync"] = types.ModuleType("toolkit.cli.sync")
command.symbols_command = symbols_command
sys.argv = ["rail", "symbols"]
main()
"""


def test_a_record_of_a_log_is_one_line_and_of_libraries_errors_alone_are_shown() -> None:
    done = subprocess.run([sys.executable, "-c", LOGS], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == [
        "careful, toolkit.client",
        "it failed in toolkit.client (KeyError: 'x')",
        "it failed in websockets.client (KeyError: 'x')",
    ]


def test_a_fault_of_the_toolkit_is_one_line_with_an_exit_code_of_its_own(
    rail: Rail, tmp_path: Path
) -> None:
    (tmp_path / "name").mkdir()
    done = rail("stats", "spread", store="name/" + "x" * 300)
    assert done.returncode in (1, 70)
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("rail: ")


HEAVY = {"duckdb", "httpx", "numpy", "plotly", "polars", "pyarrow", "rich", "streamlit", "mcp"}
PROGRAM = """
import atexit, json, sys
sys.argv[0] = "rail"
atexit.register(lambda: sys.stderr.write(json.dumps(sorted(sys.modules))))
from toolkit.cli import main
main()
"""


@functools.cache
def modules_loaded(*arguments: str, **environment: str) -> tuple[str, set[str]]:
    """What `rail` prints with these arguments, and the modules it has imported at its end."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, set(json.loads(done.stderr))


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_the_root_imports_no_command_and_nothing_heavy(argument: str) -> None:
    _, loaded = modules_loaded(argument)
    commands = {f"toolkit.cli.{place.partition(':')[0]}" for place, _ in COMMANDS.values()}
    assert "toolkit.cli.root" in loaded
    assert loaded & (HEAVY | commands) == set()


@pytest.mark.slow
def test_a_command_imports_no_other_command() -> None:
    _, loaded = modules_loaded("symbols", "--help")
    commands = {f"toolkit.cli.{place.partition(':')[0]}" for place, _ in COMMANDS.values()}
    assert loaded & commands == {"toolkit.cli.sync"}


def test_the_help_of_an_analysis_imports_no_workspace_and_no_store() -> None:
    _, loaded = modules_loaded("events", "survival", "--help")
    assert "toolkit.statistics.events.survival" in loaded
    assert not loaded & {"toolkit.workspace", "toolkit.series", "toolkit.store", "duckdb"}


def test_the_help_lists_every_command_with_its_whole_line() -> None:
    shown, _ = modules_loaded("--help")
    for name, (_, line) in COMMANDS.items():
        assert f"  {name:<8}  {line}\n" in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_place_in_the_table_holds_a_command_with_help_of_its_own(name: str) -> None:
    module, _, attribute = COMMANDS[name][0].partition(":")
    found = getattr(import_module(f"toolkit.cli.{module}"), attribute)
    assert isinstance(found, typer.Typer) or found.__doc__


def typed(shell: str, words: str) -> dict[str, str]:
    """The variables by which a shell asks what may come after the words."""
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    asked |= {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return asked | {"_RAIL_COMPLETE": f"complete_{shell}"}


def words_in(offered: str) -> set[str]:
    """The names and options that a shell is offered."""
    return set(re.findall(r"[\w-]{3,}", offered))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_a_commands_name_without_loading_one(shell: str) -> None:
    offered, loaded = modules_loaded(**typed(shell, "rail st"))
    assert {"status", "stats"} <= words_in(offered)
    assert not {"serve", "sync"} & words_in(offered)
    assert loaded & HEAVY <= {"rich"}  # in which typer writes the lines of zsh and fish


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("rail stats ", {"spread", "funding", "events"}),
        ("rail stats spread --st", {"--start"}),
        ("rail sync --", {"--workers"}),
    ],
)
def test_a_shell_completes_a_commands_own_commands_and_options(
    rail: Rail, monkeypatch: pytest.MonkeyPatch, shell: str, words: str, wanted: set[str]
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)  # else typer says "pytest"
    for name, value in typed(shell, words).items():
        monkeypatch.setenv(name, value)
    assert wanted <= words_in(rail().stdout)
