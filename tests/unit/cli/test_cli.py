"""`rail` itself: help, version, exit codes, and faults without a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.errors import RailError

from .conftest import Rail

COMMANDS = (
    *("serve", "doctor", "symbols", "sync", "follow", "webhook", "status", "app", "open", "demo"),
    *("stats spread", "stats funding", "stats events", "import"),
    *("events survival", "events rates", "events magnitudes", "events payoff"),
    *("events together", "events audit", "events study", "events channels"),
    *("events open", "webhook setup"),
    *("report spread", "report funding", "report events", "report symbol", "report watchlist"),
    *("store publish", "store publications", "store verify", "store compact"),
    *("store backup", "store remap"),
)


def test_the_version_is_that_of_the_package(rail: Rail) -> None:
    done = rail("--version")

    assert done.returncode == 0
    assert done.stdout.startswith("rail 0.")


def test_help_names_every_command(rail: Rail) -> None:
    shown = rail("--help").stdout

    assert all(command.split()[0] in shown for command in COMMANDS)


def test_the_help_of_a_group_has_the_whole_line_of_each_of_its_commands(rail: Rail) -> None:
    shown = rail("stats", "--help", columns=60).stdout
    assert "..." not in shown.partition("Commands:")[2]
    assert "of a position over (start, end], also as a yearly rate." in " ".join(shown.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(rail: Rail, command: str) -> None:
    shown = rail(*command.split(), "--help")

    assert shown.returncode == 0
    assert f"Example: rail {command}" in " ".join(shown.stdout.split())


def test_without_a_command_it_shows_the_help(rail: Rail) -> None:
    done = rail()

    assert done.returncode == 2
    assert "Usage: " in done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("spin",),
        ("sync", "--workers", "0"),
        ("stats", "spread", "--sideways"),
        ("events", "survival", "spred"),
    ],
)
def test_a_word_that_is_no_command_or_option_ends_with_exit_code_2(
    rail: Rail, arguments: tuple[str, ...]
) -> None:
    done = rail(*arguments)

    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("rail: ")
    assert line.endswith(" --help` lists what there is")
    assert "Value error" not in line
    assert ".;" not in line


def test_with_debug_on_a_refusal_keeps_its_traceback(rail: Rail) -> None:
    with pytest.raises(RailError, match="allowed: http://HOST"):
        rail("symbols", base_url="rail", api_key="k", debug="1")


LOGS = """
import logging, sys
import toolkit.cli.sync as command
from toolkit.cli import main
def symbols_command() -> None:
    for name in ("toolkit.client", "websockets.client"):
        logging.getLogger(name).warning("careful, %s", name)
        try:
            {}["x"]
        except KeyError:
            logging.getLogger(name).exception("it failed in %s", name)
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
