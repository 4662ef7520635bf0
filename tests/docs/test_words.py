"""Plain English: turns of phrase that read as translated are counted, and there are none.

Counted in the toolkit (docstrings, comments, help, messages), the documents and the notebooks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READ = ("toolkit/**/*.py", "toolkit/**/*.csv", "docs/*.md", "docs/*/*.md", "notebooks/*.py", "*.md")
WRAPPED = re.compile(r"[\"']?\s*\n\s*(?:#:?\s|>\s|[rf]?[\"'](?=\S))?\s*")
COMPARED = "better|earlier|fewer|further|larger|later|less|longer|more|other|smaller"
COUNTED = (
    "bar|byte|cell|colour|column|file|lane|leg|line|page|part|point|poll|request|row|transition"
)
TURNS = {
    "is no X": re.compile(rf"(?i)(?<!\bthere )\b(?:is|are|was|were|be) no (?!(?:{COMPARED})\b)\w+"),
    "where it is no X": re.compile(r"(?i)\bwhere it is no\b"),
    "a row a pair": re.compile(rf"(?i)\b(?:a|one) (?:{COUNTED}) an? (?!second time)\w+"),
}
WAS = re.compile(r"(?i)\bwhere it (?:took|was|had|held)\b|\bit was\b|\bused to\b")
DOCSTRING = re.compile(r'(?s)(?:\s|#[^\n]*\n)*r?"""(.*?)"""')
QUESTIONS = {"How", "What", "When", "Where", "Whether", "Which", "Who", "Whose", "Why"}


def texts() -> Iterator[tuple[str, str]]:
    """Each file that is read by people, with its text."""
    for path in sorted({path for pattern in READ for path in ROOT.glob(pattern)}):
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def turns(text: str) -> list[tuple[str, str]]:
    """The turns in a text whose lines may wrap, each with the words around it."""
    flat = " ".join(WRAPPED.sub(" ", text).split())
    return [
        (turn, flat[max(0, m.start() - 40) : m.end() + 20])
        for turn, pattern in TURNS.items()
        for m in pattern.finditer(flat)
    ]


def opens_with_a_question(source: str) -> bool:
    """Whether a module's docstring opens with a question word."""
    opening = DOCSTRING.match(source)
    words = opening[1].split() if opening else []
    return bool(words) and words[0].strip("`*:,.").partition("'")[0] in QUESTIONS


def diary(changes: str) -> list[str]:
    """The bullets of a change log that tell what was before."""
    bullets = [" ".join(each.split()) for each in re.split(r"(?m)^- ", changes)[1:]]
    return [each for each in bullets if WAS.search(each)]


def test_a_turn_of_phrase_that_reads_as_translated_is_nowhere() -> None:
    assert [(name, *found) for name, text in texts() for found in turns(text)] == []


def test_no_module_s_docstring_opens_with_a_question_word() -> None:
    modules = [(name, text) for name, text in texts() if re.match(r"toolkit/.*\.py$", name)]
    assert [name for name, text in modules if opens_with_a_question(text)] == []


def test_the_change_log_tells_what_there_is_and_not_what_was() -> None:
    assert diary((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("turn", "text", "count"),
    [
        ("is no X", "for what is no\n    number; there is no end, it is no longer than that", 1),
        ("is no X", 'f"{text} is "\n        "no text"', 1),
        ("where it is no X", "null where it is no event", 1),
        ("a row a pair", "one row a leg, a lane a symbol, a delivery a second time", 2),
    ],
)
def test_a_turn_is_found(turn: str, text: str, count: int) -> None:
    assert [found for found, _ in turns(text)].count(turn) == count


def test_a_question_and_a_diary_are_found() -> None:
    assert opens_with_a_question('"""What a store holds."""')
    assert not opens_with_a_question('"""The contents of a store."""')
    assert not opens_with_a_question('""""""')
    assert len(diary("- Takes 340 MB where it took 410 MB.\n- Reads files.\n")) == 1
