"""Keys that are not shown by chance, and their removal from data."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping

SHORTEST_STRUCK = 8
"""Characters of a secret that is struck out of data. A shorter one may be a word of the market."""


class Secret:
    """A key whose repr is stars. `reveal` gives its text.

    Surrounding blanks are stripped. A value that is not text is an empty key.

    >>> Secret(" sekrit "), Secret("sekrit") == Secret(Secret("sekrit")), Secret("sekrit").reveal()
    (***, True, 'sekrit')
    """

    __slots__ = ("_text",)

    def __init__(self, text: str | Secret) -> None:
        given = text.reveal() if isinstance(text, Secret) else text
        self._text = given.strip() if isinstance(given, str) else ""

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def reveal(self) -> str:
        """Return the text, for a header or a digest alone."""
        return self._text

    @property
    def sendable(self) -> bool:
        """Whether a header can carry it: printable ASCII without blanks."""
        text = self._text
        return bool(text) and text.isascii() and text.isprintable() and " " not in text


class SecretBytes(bytes):
    """Bytes of a header with a secret. Their repr is stars.

    >>> SecretBytes(b"Bearer sekrit")
    b'***'
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "b'***'"


class _Environment(Mapping[str, str]):
    """The variables of this process, without secrets in the repr."""

    def __getitem__(self, name: str) -> str:
        return os.environ[name]

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


ENVIRONMENT = _Environment()


class Secrets:
    r"""Texts that stars replace, plain or with any of JSON's escapes.

    >>> Secrets(["sekrit/4711"]).struck(rb'{"note": "no key sekrit\/4711"}')
    b'{"note": "no key ***"}'
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = sorted({text for text in texts if text}, key=len, reverse=True)
        self._all = self._pattern(self._texts)
        long = [text for text in self._texts if len(text) >= SHORTEST_STRUCK]
        self._plain = [text.encode() for text in long]
        self._long = re.compile(self._pattern(long).pattern.encode())

    def hidden(self, text: str) -> str:
        r"""Replace each secret in a text that is shown.

        >>> Secrets(["a/b"]).hidden(r"no key a\/b")
        'no key ***'
        """
        return self._all.sub("***", text) if self._texts else text

    def struck(self, data: bytes) -> bytes:
        """Replace each secret of `SHORTEST_STRUCK` characters or more in data that is kept.

        Returns the same object if none is found, a cheap check.
        """
        found = (all(byte in data for byte in each) and each in data for each in self._plain)
        if b"\\" not in data and not any(found):  # first by its bytes, which is faster
            return data
        struck, times = self._long.subn(b"***", data)
        return struck if times else data

    def _pattern(self, texts: Iterable[str]) -> re.Pattern[str]:
        return re.compile("|".join(_escaped(text) for text in texts) or "(?!)")


def _escaped(text: str) -> str:
    """Return a pattern of a text with any character as a JSON escape."""
    optional = dict.fromkeys("\"'/\\", r"\\?")
    return "".join(rf"(?:\\u(?i:{ord(c):04x})|{optional.get(c, '')}{re.escape(c)})" for c in text)
