"""The table of limits in docs/interface.md, printed from `toolkit.wire.limits` by `make docs`."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

from toolkit.wire.limits import LIMITS, Limits

PAGE = Path(__file__).parents[2] / "docs" / "interface.md"
HEAD = "| limit | value | of what, and why |\n|---|---|---|\n"
TABLE = re.compile(re.escape(HEAD) + r"(?:\|.*\n)*")


def limits_table() -> str:
    """Return the table: each limit with its value and what the class says of it."""
    _, _, listed = inspect.cleandoc(Limits.__doc__ or "").partition("Parameters\n----------\n")
    said = dict(re.findall(r"^(\w+)\n((?:    .+\n)+)", listed, re.MULTILINE))
    rows = []
    for each in dataclasses.fields(Limits):
        meaning = " ".join(said[each.name].split())
        rows.append(f"| `{each.name}` | {getattr(LIMITS, each.name):,} | {meaning} |\n")
    return HEAD + "".join(rows).replace("``", "`").replace(".0 |", " |")


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(limits_table().replace("\\", r"\\"), text), encoding="utf-8")
