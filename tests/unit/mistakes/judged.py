"""What every mistake gets: one line of the toolkit's own, which names what was wrong."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Mapping
from typing import Any

from toolkit.errors import RailError

LONGEST = 400
"""Characters of a message."""

RAW = re.compile(
    r"Traceback|polars\.|duckdb\.|httpx|pandas\.|numpy\.|object at 0x|<class|NoneType|_duckdb|Errno"
    r"|ComputeError|SchemaError|TypeError|ValueError|AttributeError|KeyError|unexpected keyword"
)
"""What a library or Python writes, and no message of ours. A value that was given may be shown."""

Row = tuple[str, type[RailError], tuple[str, ...]]


def run(typed: str, names: Mapping[str, Any]) -> object:
    """Run what was typed."""
    return eval(typed, dict(names))


def fault(
    typed: str, names: Mapping[str, Any], kind: type[RailError], words: tuple[str, ...]
) -> str:
    """Return what is wrong with the answer to a mistake: "" for one good line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = run(typed, names)
    except RailError as error:
        return fault_of(error, kind, words)
    except Exception as error:  # noqa: BLE001 - what is raw may be any of them
        return f"raw: {type(error).__name__}: {error}"
    return f"silent: {str(result)[:200]}"


def fault_of(
    error: RailError, kind: type[RailError] = RailError, words: tuple[str, ...] = ()
) -> str:
    """Return what is wrong with an error's message."""
    line = str(error)
    length = len(line.replace(tempfile.gettempdir(), "/tmp"))  # of any machine's, as long
    if not line or length > LONGEST or not line.isprintable():
        return f"not one line of at most {LONGEST} characters ({length}): {line}"
    if raw := RAW.search(line):
        return f"raw text ({raw[0]}): {line}"
    if error.__cause__ is not None or not (error.__suppress_context__ or error.__context__ is None):
        return f"raw cause ({error.__cause__ or error.__context__!r}): {line}"
    if not isinstance(error, kind):
        return f"{type(error).__name__} in place of {kind.__name__}: {line}"
    missing = [word for word in words if word not in line]
    return f"without {missing}: {line}" if missing else ""
