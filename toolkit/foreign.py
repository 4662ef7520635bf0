"""The one door for foreign text: what a service, a store or a link wrote, made harmless to show.

Each function is the way to one kind of reader: a terminal, Markdown, HTML, a shell, a spreadsheet,
a file's name. Text of ours needs none of them. docs/design.md names the tests that hold this.
"""

from __future__ import annotations

import re
import shlex
from html import escape

LONGEST = 1_000
"""Characters of one text that are shown at most: enough for a message with a URL."""

NAME_LONGEST = 64
"""Characters of a symbol or an exchange at most."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?( [\w%][\w %/]*)?")
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


def is_name(text: str) -> bool:
    r"""Check that a text can be a symbol or an exchange: printable, without blanks, not too long.

    A name does not begin with a dash, since a command would read it as an option.

    >>> is_name("BTC_USDT"), is_name("BTC\u202e_USDT"), is_name("--store=x"), is_name("A" * 65)
    (True, False, False, False)
    """
    whole = 0 < len(text) <= NAME_LONGEST and not text.startswith("-")
    return whole and text.isprintable() and " " not in text


def markdown(text: str, at_most: int = 80) -> str:
    r"""Return Markdown that shows the text as code: it makes no markup, no image and no link.

    Within the brackets of a directive, such as ``:small[…]``, not even code is safe.

    >>> markdown("![x](https://example.org)")
    '`![x](https://example.org)`'
    >>> markdown("a`b\n\nc"), markdown("")
    ('`` a`b c ``', '` `')
    """
    line = plain(text, at_most)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    if not longest:
        return f"`{line or ' '}`"
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}"


def html(text: str, at_most: int = LONGEST) -> str:
    """Return HTML that shows the text and has no tag. Texts of plotly's figures are HTML as well.

    >>> html("<img src=x>")
    '&lt;img src=x&gt;'
    """
    return escape(plain(text, at_most))


def command(*words: str) -> str:
    """Return a command line in which a shell reads each word as that word and nothing else.

    >>> command("rail", "sync", "A_B:X.spot"), command("rail", "sync", "$(reboot)_B:X.spot")
    ('rail sync A_B:X.spot', "rail sync '$(reboot)_B:X.spot'")
    """
    return shlex.join(plain(word) for word in words)


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
