"""The documents in docs/ hold: their examples run, and what points at them finds them."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from toolkit.wire.profile.layers import BUILT_IN_DOCUMENT
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.profile.user_profile import UserProfile

from .test_readme import PAGES

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "reference").glob("*.md")])
STATISTICS = sorted((ROOT / "docs" / "statistics").glob("*.md"))  # their examples run as docstrings
MADE_BY_RUNNING = {ROOT / "docs" / "questions.md", ROOT / "docs" / "assistant.md"}
SLOW = {"series.md", "workspace.md", "reports.md"}
CODE = re.compile(
    r"(?ms)(?:^<!-- (?:not run:|run by) (?P<reason>[^\n]+) -->\n\n)?"
    r"^```(?:sh|bash|console|python|sql)\n(?P<text>.*?)^```$"
)
INTERFACE = (ROOT / "docs" / "interface.md").read_text(encoding="utf-8")
PROFILES = re.findall(r"(?ms)^```toml\n(.*?)^```$", INTERFACE)
CITED = re.compile(r"(?P<name>[\w./-]*[\w-]+\.md)\b(?:,\s+\"(?P<heading>[^\"]+)\")?")
LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#]*)(?:#(?P<anchor>[^)]*))?\)")


PARTS = {
    path.stem
    for path in (ROOT / "toolkit").iterdir()
    if (path.is_dir() or path.suffix == ".py") and not path.name.startswith("_")
}
DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")


TABLES = INTERFACE.split("| assumed | how to correct it | shown by |\n|---|---|---|\n")[1:]
ASSUMED = [line for table in TABLES for line in table.split("\n\n")[0].splitlines()]
SHOWN = re.compile(r"(?P<says>\| .+ \| .+ \|) `(?P<file>[\w/]+\.py)::(?P<test>test_\w+)` \|")


def headings(document: Path) -> list[str]:
    """The headings of a document, without their marks."""
    return re.findall(r"(?m)^#+ (.+)$", document.read_text(encoding="utf-8"))


def citations(text: str) -> list[tuple[str, str | None]]:
    """The documents that a text names, each with the heading it quotes; a comment may wrap."""
    flat = re.sub(r"\n\s*#?\s*", " ", text) if ".md" in text else ""
    return [(match["name"], match["heading"]) for match in CITED.finditer(flat)]


def citation_faults(root: Path, text: str) -> list[str]:
    """What a text cites that is not in the repository, or has no such heading."""
    faults = []
    for name, heading in citations(text):
        document = root / name
        if not document.is_file():
            faults.append(f"{name} is not in the repository")
        elif heading is not None and heading not in headings(document):
            faults.append(f"{name} has no heading {heading!r}")
    return faults


def test_every_document_that_the_code_cites_is_in_the_repository() -> None:
    faults = [
        f"{path.relative_to(ROOT)}: {fault}"
        for path in sorted((ROOT / "toolkit").rglob("*.py"))
        for fault in citation_faults(ROOT, path.read_text(encoding="utf-8"))
    ]
    assert not faults, "\n".join(faults)


def test_an_absent_document_or_heading_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "design.md").write_text("# Design\n\n## Paging\n")
    text = '"""See docs/design.md,\n    "Paging", docs/design.md, "Keys" and notes.md."""'
    assert citation_faults(tmp_path, text) == [
        "docs/design.md has no heading 'Keys'",
        "notes.md is not in the repository",
    ]


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(path, marks=[pytest.mark.slow] if path.name in SLOW else [], id=path.name)
        for path in DOCUMENTS
    ],
)
def test_the_examples_of_a_document_run(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert not doctest.testfile(str(document), module_relative=False, optionflags=flags).failed


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_block_of_code_is_run_by_some_test_or_says_why_not(document: Path) -> None:
    if document in {*(ROOT / page for page in PAGES), *MADE_BY_RUNNING}:
        return
    code = list(CODE.finditer(document.read_text(encoding="utf-8")))
    assert [block[0] for block in code if not block["reason"] and ">>> " not in block[0]] == []
    named = [block["reason"] for block in code if (block["reason"] or "").startswith("tests/")]
    assert [each for each in named if not (ROOT / each).is_file()] == []


@pytest.mark.parametrize(
    "document",
    [*DOCUMENTS, *STATISTICS, ROOT / "README.md", ROOT / "CONTRIBUTING.md"],
    ids=lambda path: path.name,
)
def test_every_link_inside_the_repository_leads_somewhere(document: Path) -> None:
    for match in LINK.finditer(document.read_text(encoding="utf-8")):
        target = (document.parent / match["path"]) if match["path"] else document
        assert target.exists(), match[0]
        if match["anchor"]:
            anchors = [
                re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings(target)
            ]
            assert match["anchor"] in anchors, match[0]


@pytest.mark.parametrize("text", PROFILES)
def test_the_profiles_shown_are_profiles_that_are_accepted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    assert UserProfile.read(path).applied(BUILT_IN) != BUILT_IN


def names_in(document: Mapping[str, Any]) -> Iterator[str]:
    """The names of a document's entries and tables."""
    for name, value in document.items():
        yield name
        yield from names_in(value) if isinstance(value, dict) else ()


def test_every_name_that_a_profile_can_have_is_explained() -> None:
    names = set(names_in(BUILT_IN_DOCUMENT)) - set(BUILT_IN_DOCUMENT["limits"])
    unexplained = sorted(n for n in names if not re.search(rf"(?<!\w){n}(?!\w)", INTERFACE))
    assert not unexplained


def test_the_design_names_every_part_of_the_toolkit() -> None:
    layout = DESIGN.partition("## Layout")[2].partition("\n## ")[0]
    assert set(re.findall(r"`toolkit/(\w+)(?:/|\.py)`", layout)) == PARTS


def test_the_design_shows_the_import_contract_that_is_tested() -> None:
    source = (ROOT / "tests" / "test_architecture.py").read_text(encoding="utf-8")
    layers = next(
        ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS"
    )
    tested = [sorted(PARTS & set(layer)) for layer in layers]
    block = DESIGN.partition("## Who may import whom")[2].partition("```text\n")[2]
    shown = [sorted(line.split(", ")) for line in block.partition("\n```")[0].splitlines()]
    assert shown == [layer for layer in tested if layer]


def test_each_assumption_says_how_to_correct_it_and_names_a_test_that_is_there() -> None:
    assert len(ASSUMED) > 80
    for line in ASSUMED:
        shown = SHOWN.fullmatch(line)
        assert shown, line
        tests = (ROOT / "tests" / shown["file"]).read_text(encoding="utf-8")
        assert f"def {shown['test']}(" in tests, line
