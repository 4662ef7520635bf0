"""What CONTRIBUTING promises of every file, and of every test."""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Written so that no pattern matches itself.
REGISTRIES = re.compile(
    r"pypi[.]org|pythonhosted[.]org|registry[.]npmjs|registry[.]yarnpkg|deb[.]debian[.]org"
    r"|archive[.]ubuntu[.]com|conda[.]anaconda[.]org|(?<!emit-)index[-]url"
)
PERSONAL = re.compile(r"(?<![\w.~-])/(?:home|root|Users|work|farm|mnt)/\w|[A-Z]:\\+Users\\")
REASON = re.compile(
    r"(?:noqa(?::\s*[A-Z]+\d+(?:\s*,\s*[A-Z]+\d+)*)?|(?:type|pyright):\s*ignore(?:\[[^]]*\])?)"
    r"(?P<reason>.*)"
)
SENTENCE_WORDS = 3
MOCK = re.compile(r"(?:^|\.)(?:Magic|Async)?Mock$|(?:^|\.)patch(?:\.\w+)?$|\.setattr$|^mocker\.")
STOPWATCHES = {"perf_counter", "perf_counter_ns", "process_time", "process_time_ns", "timeit"}


def files(root: Path) -> list[Path]:
    """The files that are, or would be, committed; all of them where there is no git."""
    if not (root / ".git").exists():
        return sorted(path for path in root.rglob("*") if path.is_file())
    listing = subprocess.run(
        [
            *("git", "-c", f"safe.directory={root}", "ls-files", "-z"),
            *("--cached", "--others", "--exclude-standard"),
        ],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return sorted(path for name in listing.split("\0") if (path := root / name).is_file())


def naming_faults(root: Path) -> list[str]:
    """Lines that name a registry host or a path of somebody's machine."""
    here = re.escape(str(root)) if len(root.parts) > 2 else "(?!)"
    forbidden = re.compile(f"{REGISTRIES.pattern}|{PERSONAL.pattern}|{here}")
    found = []
    for path in files(root):
        content = path.read_bytes()
        if b"\0" in content:
            continue
        for number, line in enumerate(content.decode("utf-8").splitlines(), 1):
            if match := forbidden.search(line):
                found.append(f"{path.relative_to(root)}:{number}: {match[0]}")
    return found


def exemption_faults(path: Path) -> list[str]:
    """Comments that switch a check off without saying why."""
    text = path.read_text(encoding="utf-8")
    if not REASON.search(text):
        return []
    lines = io.StringIO(text).readline
    return [
        f"{path.parent.name}/{path.name}:{token.start[0]}: {token.string}"
        for token in tokenize.generate_tokens(lines)
        if token.type == tokenize.COMMENT
        and (match := REASON.search(token.string))
        and not re.search(r"[A-Za-z]{3}", match["reason"])
    ]


def cases_of(tree: ast.Module) -> list[str]:
    """The names of the test functions of a module."""
    return [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
    ]


def mocks_of(tree: ast.Module) -> int:
    """How often a test module puts something in the place of the real thing."""
    calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return sum(bool(MOCK.search(call)) for call in calls)


def stopwatches_of(tree: ast.Module) -> set[str]:
    """The stopwatches that a test module reads."""
    nodes = list(ast.walk(tree))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return STOPWATCHES & (attributes | {node.id for node in nodes if isinstance(node, ast.Name)})


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """Every module below tests, parsed."""
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "tests").rglob("*.py"))
    }


def test_no_file_names_a_registry_or_a_path_of_a_machine() -> None:
    faults = naming_faults(ROOT)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    "line",
    [
        "see https://pypi" + ".org/simple",
        "pip install --index" + "-url=http://mirror",
        "open('/" + "home/jane/rail.duckdb')",
        "cd /" + "root/rail",
        "C:\\" + "Users\\jane",
    ],
)
def test_a_seeded_registry_or_path_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "notes.md").write_text(f"first\n{line}\n")
    (tmp_path / "prices.parquet").write_bytes(b"\0" + line.encode())
    (fault,) = naming_faults(tmp_path)
    assert fault.startswith("notes.md:2: ")


def test_a_path_of_this_very_checkout_is_found(tmp_path: Path) -> None:
    checkout = tmp_path / "rail"
    checkout.mkdir()
    (checkout / "a.toml").write_text(f"store = '{checkout}/rail.duckdb'")
    assert naming_faults(checkout) == [f"a.toml:1: {checkout}"]


def test_an_ignored_file_is_not_read_and_a_new_one_is(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    for name in (".gitignore", "kept.md", "left.log"):
        (tmp_path / name).write_text("*.log\n")
    assert [path.name for path in files(tmp_path)] == [".gitignore", "kept.md"]


@pytest.mark.slow
def test_every_check_that_is_switched_off_says_why() -> None:
    python = [path for path in files(ROOT) if path.suffix == ".py"]
    faults = [fault for path in python for fault in exemption_faults(path)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("comment", "faults"),
    [
        ("# noqa", 1),
        ("# noqa: S608", 1),
        ("# noqa: S608, E501 -", 1),
        ("# type: ignore", 1),
        ("# type: ignore[arg-type]", 1),
        ("# noqa: S608 - names are ours", 0),
        ("# type: ignore[arg-type]  # the stubs lag behind", 0),
        ("# an ordinary comment", 0),
    ],
)
def test_an_exemption_without_a_reason_is_found(tmp_path: Path, comment: str, faults: int) -> None:
    path = tmp_path / "rows.py"
    path.write_text(f"x = 1  {comment}\n")
    assert len(exemption_faults(path)) == faults


@pytest.mark.slow
def test_a_test_states_its_behaviour_in_its_name(trees: dict[str, ast.Module]) -> None:
    short = [
        f"{path}: {name}"
        for path, tree in trees.items()
        for name in cases_of(tree)
        if len(name.split("_")) <= SENTENCE_WORDS
    ]
    assert not short, "\n".join(short)


@pytest.mark.slow
def test_at_most_two_mocks_stand_in_a_hundred_tests(trees: dict[str, ast.Module]) -> None:
    mocks = {path: count for path, tree in trees.items() if (count := mocks_of(tree))}
    tests = sum(len(cases_of(tree)) for tree in trees.values())
    assert sum(mocks.values()) <= 0.02 * tests, mocks


@pytest.mark.slow
def test_no_test_reads_a_stopwatch(trees: dict[str, ast.Module]) -> None:
    assert {path: found for path, tree in trees.items() if (found := stopwatches_of(tree))} == {}


@pytest.mark.parametrize(
    ("source", "mocks", "stopwatches"),
    [
        ("m = MagicMock()", 1, set()),
        ("with mock.patch('a.b'): ...", 1, set()),
        ("@patch('a.b')\ndef test_it(): ...", 1, set()),
        ("monkeypatch.setattr(a, 'b', 1)", 1, set()),
        ("monkeypatch.setenv('TZ', 'UTC')", 0, set()),
        ("assert time.perf_counter() - t0 < 1", 0, {"perf_counter"}),
    ],
)
def test_mocks_and_stopwatches_are_seen(source: str, mocks: int, stopwatches: set[str]) -> None:
    tree = ast.parse(source)
    assert (mocks_of(tree), stopwatches_of(tree)) == (mocks, stopwatches)


def test_the_ci_runs_the_command_that_contributors_run() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text(encoding="utf-8").splitlines()
    assert "make test" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
