"""The error tree as drawn, as written, and as raised."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

from toolkit import errors

ROOT = Path(__file__).parents[2]
DERIVES = re.compile(r"\bclass\s+\w+\s*\([^:]*(Error|Exception|Warning)\b")
"""A file without this has no class that could be a stray, and is not parsed."""


def drawn(docstring: str) -> dict[str, str | None]:
    """Each class of the drawing with the class it hangs from, in the order drawn."""
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in docstring.splitlines():
        if match := re.match(r"(?P<indent>(?:    )+)(?P<name>\w+Error)\b", line):
            depth = len(match["indent"]) // 4 - 1
            path[depth:] = [match["name"]]
            parents[match["name"]] = path[depth - 1] if depth else None
    return parents


def written() -> dict[str, str | None]:
    """Each class of the module with the class of the module that it derives from."""
    classes = [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, Exception)]
    return {
        c.__name__: next((base.__name__ for base in c.__bases__ if base in classes), None)
        for c in classes
    }


def strays(root: Path) -> list[str]:
    """Exceptions outside the tree; the service may answer by raising an HTTP answer."""
    return [
        f"{path.relative_to(root)}:{node.lineno}: {node.name}"
        for path in sorted((root / "toolkit").rglob("*.py"))
        if path != root / "toolkit" / "errors.py"
        if DERIVES.search(text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
        and any(
            re.search(r"(Error|Exception|Warning)$", base) and base != "HTTPException"
            for base in map(ast.unparse, node.bases)
        )
    ]


def test_the_drawing_equals_the_classes_in_the_same_order() -> None:
    drawing = drawn(errors.__doc__)
    assert drawing == written()
    assert list(drawing) == list(written())


def test_every_error_of_the_toolkit_is_in_the_one_tree() -> None:
    faults = strays(ROOT)
    assert not faults, "\n".join(faults)


def test_an_error_outside_the_tree_is_found(tmp_path: Path) -> None:
    (tmp_path / "toolkit").mkdir()
    source = "class Lost(ValueError): ...\nclass Answer(HTTPException): ...\n"
    (tmp_path / "toolkit" / "rows.py").write_text(source)
    assert strays(tmp_path) == ["toolkit/rows.py:1: Lost"]
