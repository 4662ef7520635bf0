"""Foreign text has one door, `toolkit.foreign`, and nothing that could be another.

Read from syntax trees, as in test_architecture.py. The local service is left out: what it writes is
read by programs.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from .test_architecture import ROOT, module_name, our_files, seeded

# What turns text into markup, a command or a table, with the one module that may use it.
DOORS = {
    "escape": "toolkit.foreign",  # html.escape
    "shlex": "toolkit.foreign",
    "Console": "toolkit.workspace.terminal",
    "dataframe": "toolkit.dashboard.shell",  # streamlit's
    "write_csv": "toolkit.workspace.csv_rows",
    "from_markup": "",
    "unsafe_allow_html": "",
}


def door_faults(root: Path) -> list[str]:
    """Ways past `toolkit.foreign`: another escape, a console of its own, a command by hand."""
    found = []
    for path in our_files(root):
        module, name = module_name(root, path), path.relative_to(root)
        if module.startswith("toolkit.service"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Attribute(attr=used) | ast.keyword(arg=str(used)) | ast.alias(name=used):
                    another = ast.unparse(node) in ("re.escape", "glob.escape")
                    if used in DOORS and module != DOORS[used] and not another:
                        place = DOORS[used] or "none"
                        found.append(f"{name}:{node.lineno}: {used} belongs in {place}")
                case ast.JoinedStr(
                    values=[ast.Constant(value=str(text)), ast.FormattedValue(), *_]
                ):
                    if text.startswith(("rail s", "`rail s")):
                        found.append(f"{name}:{node.lineno}: a command that is not quoted")
    return found


def test_foreign_text_has_one_door() -> None:
    assert door_faults(ROOT) == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("from html import escape", "escape belongs in toolkit.foreign"),
        ("import shlex", "shlex belongs in toolkit.foreign"),
        ("from rich.console import Console", "Console belongs in toolkit.workspace.terminal"),
        ("import rich\nrich.console.Console()", "Console belongs in toolkit.workspace.terminal"),
        ("st.dataframe(rows)", "dataframe belongs in toolkit.dashboard.shell"),
        ("st.markdown(text, unsafe_allow_html=True)", "unsafe_allow_html belongs in none"),
        ("f'rail sync {key}'", "a command that is not quoted"),
    ],
)
def test_a_seeded_way_past_the_door_is_found(tmp_path: Path, source: str, fault: str) -> None:
    faults = door_faults(seeded(tmp_path, {"toolkit/charts/rows.py": source}))
    assert len(faults) == 1
    assert fault in faults[0]
