"""The one door for foreign text: what a service, a store or a link wrote, made harmless to show.

Each type is text for one kind of reader: `Markdown`, `Html`, `Command`. Each function is the way
to a reader: a terminal, Markdown, HTML, a shell, a spreadsheet, a file's name. docs/design.md names
the tests that hold this.
"""

from __future__ import annotations

import re
import shlex
import string
from collections.abc import Iterable
from html import escape
from typing import Self

LONGEST = 1_000
"""Characters of one text that are shown at most: enough for a message with a URL."""

NAME_LONGEST = 64
"""Characters of a symbol or an exchange at most."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?( [\w%][\w %/]*)?")
_WORDS = re.compile(
    r"(?! |\d+\) )(?:[^\W_]|(?<=[^\W_])[-_](?=[^\W_])|(?<=\d)[:.,](?=\d)|[-+](?=\d)|[,;:](?= )"
    r"|(?<=[^\W\d_])\.(?= |$)|(?<= )[=>](?= )|\|spread\|(?= )|[ ()'%–·×≥→/])*"
)
"""Words, numbers and times: nothing in them is markup, a link, an address or a list of Markdown."""
_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9.-]+")


def plain(text: str, at_most: int = LONGEST) -> str:
    r"""Return one line of printable text, cut with "…" where it is longer.

    White space of any kind is one blank. Each other character that is not printable is "�": a
    control character moves a terminal's cursor, a change of direction shows a name backwards.

    >>> plain("a\x1b[31m\n\u202eb"), plain("abcdef", at_most=4)
    ('a�[31m �b', 'abc…')
    """
    words = " ".join(text[: 4 * at_most].split())
    line = "".join(c if c.isprintable() else "�" for c in words)
    whole = len(text) <= 4 * at_most and len(line) <= at_most
    return line if whole else f"{line[: at_most - 1]}…"


def escaped(text: str) -> str:
    r"""Return a text in which a character that is not printable is written as its escape.

    No two texts become one by it, so that an id stays one.

    >>> print(escaped("a\x1b[31m \u202eb"))
    a\x1b[31m \u202eb
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def is_name(text: str) -> bool:
    r"""Check that a text can be a symbol or an exchange: printable, without blanks, not too long.

    A name does not begin with a dash, since a command would read it as an option.

    >>> is_name("BTC_USDT"), is_name("BTC\u202e_USDT"), is_name("--store=x"), is_name("A" * 65)
    (True, False, False, False)
    """
    whole = 0 < len(text) <= NAME_LONGEST and not text.startswith("-")
    return whole and text.isprintable() and " " not in text


class Written(str):
    """Text for one kind of reader. It is made of literals, and of other text by `format` alone.

    What is put in is made harmless unless it is of the same type already. So a function that shows
    such text takes this type, and a type checker refuses any other. The type itself is given
    literals alone, which tests/test_foreign_door.py holds.
    """

    __slots__ = ()

    @classmethod
    def harmless(cls, text: str) -> Self:
        """Return text of anybody's as text for this reader."""
        raise NotImplementedError

    def format(self, *values: object, **named: object) -> Self:
        """Put values in the places of this text, as `str.format` does, each made harmless."""
        made = type(self)
        return made(_Formatter(made).vformat(self, values, named))

    def join(self, parts: Iterable[str], /) -> Self:
        """Join texts, each made harmless."""
        made = type(self)
        return made(str.join(self, (_part(made, part) for part in parts)))


class _Formatter(string.Formatter):
    def __init__(self, made: type[Written]) -> None:
        self._made = made

    def format_field(self, value: object, format_spec: str) -> str:
        return _part(self._made, value if isinstance(value, str) else format(value, format_spec))


def _part(made: type[Written], text: str) -> str:
    return text if isinstance(text, made) else made.harmless(text)


class Markdown(Written):
    """Markdown, of Streamlit's kind. Numbers, times and words stay words, and the rest is code.

    >>> Markdown("Held of **{}**: {:,} rows, {}").format("A_B:X.spot", 1200, "5 min old")
    'Held of **`A_B:X.spot`**: 1,200 rows, 5 min old'
    """

    __slots__ = ()

    @classmethod
    def harmless(cls, text: str) -> Self:
        """Return words as they are, and other text as code."""
        words = len(text) <= LONGEST and _WORDS.fullmatch(text)
        return cls(text if words else _code(text, LONGEST))


class Html(Written):
    """HTML. Texts of plotly's figures are HTML as well.

    >>> Html("<b>{}</b>").format("<img src=x>")
    '<b>&lt;img src=x&gt;</b>'
    """

    __slots__ = ()

    @classmethod
    def harmless(cls, text: str) -> Self:
        """Return HTML that shows the text and has no tag."""
        return cls(escape(plain(text)))

    def __html__(self) -> Self:
        return self  # a template takes it as it is


class Command(Written):
    """What a reader pastes into a shell, made by `command`."""

    __slots__ = ()

    @classmethod
    def harmless(cls, text: str) -> Self:
        """Return what a shell reads as one word."""
        return cls(shlex.quote(plain(text)))


def markdown(text: str, at_most: int = 80) -> Markdown:
    r"""Return Markdown that shows the text as code: it makes no markup, no image and no link.

    Within the brackets of a directive, such as ``:small[…]``, not even code is safe.

    >>> markdown("![x](https://example.org)")
    '`![x](https://example.org)`'
    >>> markdown("a`b\n\nc"), markdown("")
    ('`` a`b c ``', '` `')
    """
    return Markdown(_code(text, at_most))


def _code(text: str, at_most: int) -> str:
    line = plain(text, at_most)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    if not longest:
        return f"`{line or ' '}`"
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}"


def html(text: str, at_most: int = LONGEST) -> Html:
    """Return HTML that shows the text and has no tag.

    >>> html("<img src=x>")
    '&lt;img src=x&gt;'
    """
    return Html.harmless(plain(text, at_most))


def command(*words: str) -> Command:
    """Return a command line in which a shell reads each word as that word and nothing else.

    >>> command("rail", "sync", "A_B:X.spot"), command("rail", "sync", "$(reboot)_B:X.spot")
    ('rail sync A_B:X.spot', "rail sync '$(reboot)_B:X.spot'")
    """
    return Command(" ").join(words)


def csv_cell(text: str) -> str:
    """Return a cell that a spreadsheet shows and does not compute: one apostrophe is put before it.

    A number with its sign and unit stays as it is.

    >>> csv_cell("=1+1"), csv_cell("@SUM(A1)"), csv_cell("-3.4 %"), csv_cell("A_B")
    ("'=1+1", "'@SUM(A1)", '-3.4 %', 'A_B')
    """
    harmless = not text.startswith(_FORMULA) or _NUMBER.fullmatch(text)
    return text if harmless else f"'{text}"


def file_name(text: str) -> str:
    """Return a text as a part of a file's name.

    >>> file_name("../BTC_USD:KRAKEN.spot")
    '.._BTC_USD_KRAKEN.spot'
    """
    return _NO_FILE_NAME.sub("_", text[:200])
