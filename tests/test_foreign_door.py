"""Foreign text has one door, `toolkit.foreign`, and nothing that could be another.

What is shown is of a type of its own, which mypy holds: `toolkit.dashboard.widgets` has the places
that take it. Here syntax trees show, as in test_architecture.py, that the types are given literals
alone and that nothing is shown beside those places. The local service is left out: what it writes
is read by programs.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from .test_architecture import ROOT, module_name, our_files, seeded

# What turns text into markup, a command or a table, with the one module that may use it.
DOORS = {
    "escape": "toolkit.foreign",  # html.escape
    "shlex": "toolkit.foreign",
    "Console": "toolkit.show.terminal",
    "dataframe": "toolkit.dashboard.shell",  # streamlit's
    "streamlit": "toolkit.dashboard.widgets",
    "write_csv": "toolkit.show.sheet",
    "from_markup": "",
}
WRITTEN = {"Markdown", "Html", "Command"}
OF_STREAMLIT = {"Page", "cache_data", "cache_resource", "navigation", "session_state"}
OF_STREAMLIT |= {"login", "logout", "set_page_config", "stop", "switch_page", "user"}
"""What shows no text of anybody's, so that it may be imported by itself."""


MAY_PASS = re.compile(rf"""\b({"|".join([*DOORS, *WRITTEN])})\b|["']`?rail""")
"""What a file that has a way past the door has in it: to read the trees of all takes a second."""


def door_faults(root: Path) -> list[str]:
    """Ways past `toolkit.foreign`: another escape, a console of its own, a command by hand."""
    found = []
    for path in our_files(root):
        module, name = module_name(root, path), path.relative_to(root)
        text = path.read_text(encoding="utf-8")
        if module.startswith("toolkit.service") or not MAY_PASS.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Attribute(attr=used) | ast.keyword(arg=str(used)) | ast.alias(name=used):
                    strays = used in DOORS and module != DOORS[used]
                    if strays and ast.unparse(node) not in ("re.escape", "glob.escape"):
                        place = DOORS[used] or "none"
                        found.append(f"{name}:{node.lineno}: {used} belongs in {place}")
                case ast.JoinedStr(
                    values=[ast.Constant(value=str(text)), ast.FormattedValue(), *_]
                ):
                    if text.startswith(("rail s", "`rail s")):
                        found.append(f"{name}:{node.lineno}: a command that is not quoted")
            found += [f"{name}:{node.lineno}: {fault}" for fault in written_faults(module, node)]
    return found


def written_faults(module: str, node: ast.AST) -> list[str]:
    """Ways into a type of text, or to a page, beside the door."""
    match node:
        case ast.Call(func=ast.Name(id=kind) | ast.Attribute(attr=kind), args=given) if (
            kind in WRITTEN
        ):
            literal = len(given) == 1 and isinstance(given[0], ast.Constant)
            return [] if literal or module == "toolkit.foreign" else [f"{kind} is given no literal"]
        case ast.ImportFrom(module="streamlit", names=names):
            others = (each.name for each in names if each.name not in OF_STREAMLIT)
            return [f"{each} is not for pages" for each in others]
    return []


def test_foreign_text_has_one_door() -> None:
    assert door_faults(ROOT) == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("from html import escape", "escape belongs in toolkit.foreign"),
        ("import shlex", "shlex belongs in toolkit.foreign"),
        ("from rich.console import Console", "Console belongs in toolkit.show.terminal"),
        ("import rich\nrich.console.Console()", "Console belongs in toolkit.show.terminal"),
        ("st.dataframe(rows)", "dataframe belongs in toolkit.dashboard.shell"),
        ("import streamlit as st", "streamlit belongs in toolkit.dashboard.widgets"),
        ("from streamlit import caption", "caption is not for pages"),
        ("Markdown(text)", "Markdown is given no literal"),
        ("Html(f'<b>{text}</b>')", "Html is given no literal"),
        ("Markdown('a' + text)", "Markdown is given no literal"),
        ("f'rail sync {key}'", "a command that is not quoted"),
    ],
)
def test_a_seeded_way_past_the_door_is_found(tmp_path: Path, source: str, fault: str) -> None:
    faults = door_faults(seeded(tmp_path, {"toolkit/charts/rows.py": source}))
    assert len(faults) == 1
    assert fault in faults[0]
