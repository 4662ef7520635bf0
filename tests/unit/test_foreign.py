"""The door for foreign text: each reader gets text, whatever was written."""

from __future__ import annotations

import csv
import io
import re
import shlex
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from toolkit.cards import Card
from toolkit.errors import InputError
from toolkit.foreign import (
    Html,
    Markdown,
    command,
    csv_cell,
    file_name,
    html,
    is_name,
    markdown,
    plain,
)
from toolkit.market import Leg, Market, Source, Symbol

from ..hostile import texts

HOSTILE = texts("http://127.0.0.1:9")
TEXTS = st.one_of(
    st.text(), st.text("`[]!()<>&\\:$'\"=+-@ \n\x1b\u202eab"), st.sampled_from([*HOSTILE.values()])
)


@given(TEXTS, st.integers(1, 200))
def test_a_plain_text_is_one_printable_line_and_bounded(text: str, at_most: int) -> None:
    line = plain(text, at_most)
    assert line.isprintable()
    assert len(line) <= at_most


def test_a_text_that_is_printable_and_short_is_not_changed() -> None:
    assert plain("Москва 東京 BTC_USDT, 1 % – ok") == "Москва 東京 BTC_USDT, 1 % – ok"


@given(TEXTS)
def test_markdown_is_one_piece_of_code(text: str) -> None:
    (paragraph,) = [t for t in MarkdownIt("commonmark").parse(markdown(text)) if t.children]
    kinds = [(part.type, part.content.strip()) for part in paragraph.children or []]
    assert kinds == [("code_inline", plain(text, 80))]


@given(TEXTS, TEXTS)
def test_what_is_put_into_markdown_makes_no_markup(first: str, second: str) -> None:
    texts = Markdown(" · ").join([first, second])
    shown = Markdown("{} of **{}**, {:,}").format(first, texts, 1_200)
    (paragraph,) = [t for t in MarkdownIt("commonmark").parse(shown) if t.children]
    parts = paragraph.children or []
    assert {part.type for part in parts} <= {"text", "code_inline", "strong_open", "strong_close"}
    # What Streamlit and GitHub read besides: directives, emoji, links, formulas, struck words.
    for part in parts:
        if part.type == "text":
            assert not re.search(r":\w+[:\[]|://|www\.|[$@~<>|\[\]]", part.content)


@given(st.text("abc 019.,:;-+=()'%/_", max_size=12))
def test_words_and_numbers_make_no_list_and_no_heading_in_markdown(text: str) -> None:
    shown = Markdown("{}").format(text)
    assert [t.type for t in MarkdownIt("commonmark").parse(shown)] in (
        ["paragraph_open", "inline", "paragraph_close"],
        [],
    )


@pytest.mark.parametrize(
    "words", ["5 min 3 s", "2023-03-10 00:00 UTC", "-3.4 %", "AR(1), n = 3", "Asia/Tokyo", "+0.5"]
)
def test_words_stay_words_in_markdown(words: str) -> None:
    assert Markdown("{}").format(words) == words


def test_what_was_written_for_a_reader_is_put_in_as_it_is_and_nothing_else() -> None:
    assert Markdown("a {}").format(markdown("![x](y)")) == "a `![x](y)`"
    assert Markdown("a {}").format(Html("![x](y)")) == "a `![x](y)`"
    assert Html("<p>{}</p>").format(Html("<b>{}</b>").format("<i>")) == "<p><b>&lt;i&gt;</b></p>"
    assert type(Html("").join(["<i>"])) is Html
    assert Markdown("{{}} {x}").format(x=Markdown("**b**")) == "{} **b**"


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[str]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, [name for name, _ in attrs]))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read_as_html(text: str) -> _Tags:
    parser = _Tags()
    parser.feed(text)
    parser.close()
    return parser


@given(TEXTS)
def test_html_has_no_tag_and_reads_as_the_text(text: str) -> None:
    read = read_as_html(html(text))
    assert read.tags == []
    assert "".join(read.words) == plain(text)


@given(TEXTS)
def test_a_card_has_the_same_tags_and_attributes_whatever_its_facts_are(text: str) -> None:
    card = Card(text, [(text, text), ("rows", "1")])
    assert read_as_html(card.html).tags == read_as_html(Card("", [("", ""), ("", "")]).html).tags
    assert all(c.isprintable() or c == "\n" for c in str(card))


@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_a_command_has_the_words_it_was_given(words: list[str]) -> None:
    assert shlex.split(command("rail", *words)) == ["rail", *map(plain, words)]


def test_a_shell_that_reads_a_command_runs_nothing_else(tmp_path: Path) -> None:
    for text in HOSTILE.values():
        line = command("echo", "a", text)
        done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, check=True)
        assert done.stderr == b""
    assert list(tmp_path.iterdir()) == []


@given(TEXTS)
def test_a_cell_is_no_formula_and_loses_nothing(text: str) -> None:
    cell = csv_cell(text)
    assert cell in (text, f"'{text}")
    number = re.fullmatch(r"[+-]?[\d,.e+-]+[\w %/]*", cell, re.ASCII | re.IGNORECASE)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) or number
    file = io.StringIO(newline="")
    csv.writer(file).writerow([cell, "next"])
    assert [*csv.reader(io.StringIO(file.getvalue(), newline=""))] == [[cell, "next"]]


@pytest.mark.parametrize("number", ["-3.4 %", "+1,234.5 log bps", "-1e-05", "-0.1 % per 8 h", "+5"])
def test_a_signed_number_stays_a_number(number: str) -> None:
    assert csv_cell(number) == number


@pytest.mark.parametrize("formula", ["-2+3+cmd|' /C calc'!A0", "+A1", "-1-1", "--1", "+1,A1(2)"])
def test_what_only_begins_like_a_number_is_no_number(formula: str) -> None:
    assert csv_cell(formula) == f"'{formula}"


@given(TEXTS)
def test_a_file_name_has_no_folder(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._-]*", file_name(text))


@pytest.mark.parametrize(
    "base", ["A\x1b[31m", "A\u202e", "A\u200b", "A\x00", "--store=x", "A" * 70, "\ue000", "A\u2028"]
)
def test_a_symbol_is_printable_and_bounded(base: str) -> None:
    assert not is_name(f"{base}_USD")
    with pytest.raises(InputError, match="BASE_QUOTE, printable and up to 64") as refused:
        Symbol(base, "USD")
    assert str(refused.value).isprintable()
    with pytest.raises(InputError, match="symbol"):
        Symbol.parse(f"{base}_USD")


@pytest.mark.parametrize(
    "symbol", ["1000SHIB_USDT", "$WIF_USDT", "币安人生_USDT", "A" * 60 + "_USD"]
)
def test_a_symbol_of_another_script_or_with_a_sign_is_one(symbol: str) -> None:
    assert str(Symbol.parse(symbol)) == symbol


def test_an_exchange_is_bounded() -> None:
    assert str(Leg("A" * 64, Market.SPOT)) == "A" * 64 + ".spot"
    with pytest.raises(InputError, match="up to 64 characters"):
        Leg("A" * 65, Market.SPOT)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_the_words_for_a_source_are_one_printable_line(text: str) -> None:
    label = Source(text, text).label
    assert label.isprintable()
    assert len(label) < 120
