"""Conditions and columns that a user types as text, checked before their use."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping

import polars as pl
from polars.exceptions import PolarsError

from toolkit.errors import InputError

Schema = Mapping[str, pl.DataType]
"""The columns that may be named, with their types."""

_FORM = "e.g. coverage >= 0.95 and half_life_s < 3600"
_LONGEST = 1_000
_WORDS = {"and", "or", "not", "in", "between", "like", "ilike", "is", "null", "true", "false"}
_TOKEN = re.compile(
    r"""\s*(?:
        '(?:[^'\\]|'')*'
      | "(?P<quoted>[^"\\]+)"
      | (?P<comment>--|/\*)
      | (?P<word>[A-Za-z_]\w*)
      | (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?!\w)
      | [<>!=]=|<>|[-+*/%(),<>=]
    )""",
    re.VERBOSE | re.ASCII,
)


def condition(text: str, columns: Schema, *, parameter: str = "where") -> pl.Expr:
    """Parse a condition over some columns, written in SQL's words, to an expression.

    Allowed are columns, numbers, texts in single quotes, comparisons, arithmetic, and the words
    and, or, not, in, between, like, ilike, is, null, true and false: no functions, queries or
    files. A row whose comparison is null does not pass. Raises `InputError`, which names the
    ``parameter``.
    """
    _check_words(text, columns, parameter)
    try:
        found = pl.sql_expr(f"({text})")  # in brackets: what follows a condition names a column
        nothing = pl.DataFrame({name: [None] for name in columns}, schema=dict(columns))
        given = nothing.select(found).dtypes
    except PolarsError as error:
        why = str(error).splitlines()[0]
        raise InputError(parameter, text, f"a condition, {_FORM}", advice=why) from None
    if given != [pl.Boolean]:
        raise InputError(parameter, text, f"a condition, which is true or not, {_FORM}")
    return found


def column(name: str, columns: Collection[str], *, parameter: str) -> str:
    """Return the name of a column. An unknown one is refused with the nearest."""
    if name in columns:
        return name
    nearest = difflib.get_close_matches(name.lower(), columns, n=1, cutoff=0.4)
    advice = f"nearest: {nearest[0]}" if nearest else ""
    raise InputError(parameter, name, list(columns), advice=advice)


def _check_words(text: str, columns: Schema, parameter: str) -> None:
    """Refuse whatever is not part of a condition, such as queries, functions and comments."""
    at, end = 0, len(text.rstrip())
    if not 0 < end <= _LONGEST:
        raise InputError(parameter, text[:80], f"a condition of 1 to {_LONGEST:,} characters")
    while at < end:
        token = _TOKEN.match(text, at)
        if token is None or token["comment"]:
            left = text[at:].split(maxsplit=1)[0]
            raise InputError(parameter, left, f"columns, numbers, 'texts', comparisons, {_FORM}")
        word = token["quoted"] or token["word"]
        if word and (token["quoted"] or word.lower() not in _WORDS):
            _check_column(word, columns, parameter)
        at = token.end()


def _check_column(word: str, columns: Schema, parameter: str) -> None:
    try:
        column(word, columns, parameter=parameter)
    except InputError as error:
        advice = [error.advice] if error.advice else []
        advice.append(f"a text is written in single quotes: '{word}'")
        raise InputError(error.parameter, word, error.allowed, advice="; ".join(advice)) from None
