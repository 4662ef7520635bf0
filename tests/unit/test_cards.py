"""Cards: the same facts as text and as HTML, few, escaped, in the colours of the page."""

from __future__ import annotations

import re
from html import unescape

import polars as pl
import pytest

from toolkit.cards import Card, Shown, readable_tables
from toolkit.errors import InputError

FACTS = [("rows", "1,000 <b>new</b>"), ("source", 'A "quoted" & odd one')]


def cells(html: str) -> list[str]:
    """The text of every cell of the table, in order."""
    return [unescape(text) for text in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", html)]


def test_text_and_html_say_the_same() -> None:
    card = Card("Store <a.duckdb>", FACTS)
    assert cells(card.html) == [part for fact in FACTS for part in fact]
    heading, *lines = str(card).splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [list(fact) for fact in FACTS]
    assert unescape(re.findall(r"<b>(.*?)</b>", card.html)[0]) == heading == "Store <a.duckdb>"


def test_what_a_fact_says_cannot_become_markup() -> None:
    html = Card("<script>", FACTS).html
    assert "<script>" not in html
    assert "<b>new" not in html
    assert "&quot;quoted&quot; &amp; odd" in html


def test_no_colour_is_fixed() -> None:
    html = Card("Store", FACTS).html
    assert not re.search(r"#[0-9a-f]{3}|rgb|(?<!-)color:(?!inherit)", html)
    assert set(re.findall(r"background:([^;\"]+)", html)) == {"none"}


@pytest.mark.parametrize(("facts", "shown", "last"), [(10, 10, "9"), (11, 10, "2 more")])
def test_a_card_shows_at_most_ten_facts_and_says_how_many_it_does_not(
    facts: int, shown: int, last: str
) -> None:
    card = Card("Listing", [(f"symbol {n}", str(n)) for n in range(facts)])
    assert len(str(card).splitlines()) == 1 + shown
    assert card.html.count("<tr") == shown
    assert cells(card.html)[-1] == last


def test_what_is_shown_hands_its_card_to_a_notebook_in_both_forms() -> None:
    class Thing(Shown):
        @property
        def card(self) -> Card:
            return Card("Thing", FACTS)

    bundle = Thing()._repr_mimebundle_(include=None, exclude=None)
    assert bundle == {"text/plain": str(Thing().card), "text/html": Thing().card.html}


def test_tables_have_every_column_and_as_many_decimals_as_asked_for() -> None:
    wide = pl.DataFrame({f"column_{n}": [1234.5678] for n in range(9)})
    with pl.Config():
        readable_tables(decimals=3)
        shown = str(wide)
    assert shown.count("1,234.568") == wide.width
    assert "f64" not in shown
    for wrong in (-1, 13, 1.5, True):
        with pytest.raises(InputError, match=r"decimals: .* allowed: 0 to 12"):
            readable_tables(decimals=wrong)  # type: ignore[arg-type]  # what is refused
