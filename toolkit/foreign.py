"""Foreign text of a service, a store or a link, made harmless for its reader.

`Markdown`, `Html` and `Command` are texts for one kind of reader. docs/design.md names the tests.
"""

from __future__ import annotations

import re
import shlex
import string
from collections.abc import Iterable
from html import escape
from typing import Self

LONGEST = 1_000
"""The most characters of a text that are shown: enough for a message with a URL."""

NAME_LONGEST = 64
"""The most characters of a symbol or an exchange."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?( [\w%][\w %/]*)?")
_WORDS = re.compile(
    r"(?! |\d+\) )(?:[^\W_]|(?<=[^\W_])[-_](?=[^\W_])|(?<=\d)[:.,](?=\d)|[-+](?=\d)|[,;:](?= )"
    r"|(?<=[^\W\d_])\.(?= |$)|(?<= )[=>](?= )|\|spread\|(?= )|[ ()'%–·×≥→/])*"
)
"""Words, numbers and times, without markup, links, addresses or lists of Markdown."""
_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9.-]+")


def plain(text: str, at_most: int = LONGEST) -> str:
    r"""Return one line of printable text, cut with "…".

    White space becomes one blank, any other unprintable character "�": a control character moves a
    terminal's cursor, a change of direction shows a name backwards.

    >>> plain("a\x1b[31m\n\u202eb"), plain("abcdef", at_most=4)
    ('a�[31m �b', 'abc…')
    """
    words = " ".join(text[: 4 * at_most].split())
    line = "".join(c if c.isprintable() else "�" for c in words)
    whole = len(text) <= 4 * at_most and len(line) <= at_most
    return line if whole else f"{line[: at_most - 1]}…"


def escaped(text: str) -> str:
    r"""Return a text with unprintable characters escaped. Different texts stay different.

    >>> print(escaped("a\x1b[31m \u202eb"))
    a\x1b[31m \u202eb
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def is_name(text: str) -> bool:
    r"""Return whether a text can name a symbol or exchange: printable, short, no blank, not "-…".

    >>> is_name("BTC_USDT"), is_name("BTC\u202e_USDT"), is_name("--store=x"), is_name("A" * 65)
    (True, False, False, False)
    """
    whole = 0 < len(text) <= NAME_LONGEST and not text.startswith("-")
    return whole and text.isprintable() and " " not in text


class Written(str):
    """Text for one kind of reader, made of literals, and of other text by `format` and `join`.

    These make it harmless unless it is of the same type. A test checks that the type is called with
    literals only.
    """

    __slots__ = ()

    @classmethod
    def harmless(cls, text: str) -> Self:
        """Return any text as text for this reader."""
        raise NotImplementedError

    def format(self, *values: object, **named: object) -> Self:
        """Format as `str.format` does, each value made harmless."""
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
    """Markdown of Streamlit. Numbers, times and words stay as they are, other text becomes code.

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
    """HTML, which texts in plotly's figures are as well.

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
    """A command line for a shell, made by `command`."""

    __slots__ = ()

    @classmethod
    def harmless(cls, text: str) -> Self:
        """Return the text as one word of a shell."""
        return cls(shlex.quote(plain(text)))


def markdown(text: str, at_most: int = 80) -> Markdown:
    r"""Return Markdown that shows the text as code.

    Not even code is safe in the brackets of a directive, such as ``:small[…]``.

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
    """Return a command line in which a shell reads each of these as one literal word.

    >>> command("rail", "sync", "A_B:X.spot"), command("rail", "sync", "$(reboot)_B:X.spot")
    ('rail sync A_B:X.spot', "rail sync '$(reboot)_B:X.spot'")
    """
    return Command(" ").join(words)


def csv_cell(text: str) -> str:
    """Return a cell that no spreadsheet computes: an apostrophe is put before a formula.

    >>> csv_cell("=1+1"), csv_cell("@SUM(A1)"), csv_cell("-3.4 %"), csv_cell("A_B")
    ("'=1+1", "'@SUM(A1)", '-3.4 %', 'A_B')
    """
    harmless = not text.startswith(_FORMULA) or _NUMBER.fullmatch(text)
    return text if harmless else f"'{text}"


def file_name(text: str) -> str:
    """Return a text as part of a file name.

    >>> file_name("../BTC_USD:KRAKEN.spot")
    '.._BTC_USD_KRAKEN.spot'
    """
    return _NO_FILE_NAME.sub("_", text[:200])
