"""Each module has tests that can be named, and `make check` finds those of a change."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..tested_by import ROOT, faults, selected, selected_of_package

ROWS = """
| package | modules | tests |
|---|---|---|
| wire | `draft`, `codes` | `test_survey.py` |
| wire | `codes` | `laws/test_codes.py` |
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository whose every module has its tests."""
    for name in (
        *("toolkit/errors.py", "toolkit/wire/rows/rows.py", "toolkit/wire/doctor/draft.py"),
        *("toolkit/wire/deep/codes.py", "toolkit/wire/__init__.py"),
        *("tests/unit/test_errors.py", "tests/unit/wire/deep/test_rows.py"),
        *("tests/unit/wire/test_survey.py", "tests/unit/wire/conftest.py"),
        *("tests/laws/test_codes.py", "tests/docs/test_public_names.py"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "tests/README.md").write_text(ROWS)
    return tmp_path


def test_each_module_has_its_test_file_or_a_row_that_names_one() -> None:
    assert faults(ROOT) == []


def test_a_module_without_tests_and_rows_that_name_nothing_are_found(tree: Path) -> None:
    (tree / "toolkit/wire/new.py").touch()
    (tree / "toolkit/wire/doctor/draft.py").unlink()
    (tree / "tests/laws/test_codes.py").unlink()
    assert faults(tree) == [
        "toolkit/wire/new.py: no test file of its name and no row in the table",
        "tests/README.md: wire has no module draft",
        "tests/README.md: wire codes: there is no laws/test_codes.py",
    ]


def test_a_package_that_defines_something_itself_needs_tests_as_well(tree: Path) -> None:
    (tree / "toolkit/wire/__init__.py").write_text("def read() -> None: ...\n")
    assert faults(tree) == [
        "toolkit/wire/__init__.py: no test file of its name and no row in the table"
    ]


@pytest.mark.parametrize(
    ("changed", "run"),
    [
        ("toolkit/errors.py", {"toolkit/errors.py", "tests/unit/test_errors.py"}),
        (
            "toolkit/wire/rows/rows.py",
            {"toolkit/wire/rows/rows.py", "tests/unit/wire/deep/test_rows.py"},
        ),
        (
            "toolkit/wire/deep/codes.py",
            {
                "toolkit/wire/deep/codes.py",
                "tests/laws/test_codes.py",
                "tests/unit/wire/test_survey.py",
            },
        ),
        ("tests/laws/test_codes.py", {"tests/laws/test_codes.py"}),
        ("tests/unit/wire/conftest.py", {"tests/unit/wire"}),
        ("README.md", set()),
        ("toolkit/wire/gone.py", set()),
    ],
)
def test_a_change_selects_its_doctests_and_the_tests_that_hold_it(
    tree: Path, changed: str, run: set[str]
) -> None:
    assert set(selected(tree, [changed])) - set(selected(tree, [])) == run


def test_a_package_selects_its_unit_tests_and_doctests(tree: Path) -> None:
    assert selected_of_package(tree, "wire") == ["toolkit/wire", "tests/unit/wire"]
    assert selected_of_package(tree, "errors") == ["toolkit/errors.py", "tests/unit/test_errors.py"]
    with pytest.raises(SystemExit, match="PACKAGE=wires: toolkit/ has no package"):
        selected_of_package(tree, "wires")
