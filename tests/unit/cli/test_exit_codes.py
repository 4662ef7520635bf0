"""The exit codes: scripts rely on the numbers, and `rail --help` lists them."""

from __future__ import annotations

import pytest

from toolkit.cli.exit_codes import ExitCode

from .conftest import Rail


def test_the_numbers_never_change() -> None:
    numbers = {"DONE": 0, "REFUSED": 1, "USAGE": 2, "PARTLY": 3, "FAULT": 70}
    assert {code.name: code.value for code in ExitCode} == {**numbers, "STOPPED": 130, "ENDED": 143}


def test_the_help_lists_each_code_on_a_line_of_its_own(rail: Rail) -> None:
    lines = [line.strip() for line in rail("--help").stdout.splitlines()]

    for code in ExitCode:
        assert f"{code.value:<3}  {code.words}" in lines


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--version",), ExitCode.DONE),
        (("status",), ExitCode.REFUSED),
        (("statis",), ExitCode.USAGE),
    ],
)
def test_a_command_ends_with_the_code_of_what_it_did(
    rail: Rail, arguments: tuple[str, ...], code: ExitCode
) -> None:
    assert rail(*arguments).returncode == code
