"""Which tests hold which module: by name, or by the table of tests/README.md.

``python tests/tested_by.py`` prints what `make check` gives to pytest: the unit tests and doctests
of what differs from the branch ``main``. With the name of a package it prints those of the package.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"\| (?P<package>\S+) \| (?P<modules>`.+`) \| (?P<tests>`.+`) \|")
EVERYWHERE = ("tests/docs/test_public_names.py", "tests/docs/test_repository.py")
"""Quick checks of the repository that any change can break."""


def modules(root: Path) -> list[Path]:
    """Return the modules that define something, relative to toolkit/."""
    return [
        path.relative_to(root / "toolkit")
        for path in sorted((root / "toolkit").rglob("*.py"))
        if not path.name.startswith("__") or defines(path)
    ]


def defines(path: Path) -> bool:
    """Return whether a file has a function or a class, but for what completion asks."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return bool({node.name for node in nodes if isinstance(node, kinds)} - {"__dir__"})


def stem(module: Path) -> str:
    """Return a module's name in the table and in its test file.

    An ``__init__`` and the ``page`` of the dashboard have that of their package.
    """
    own = module.stem == "__init__" or module.match("pages/*/page.py")
    name = module.parent.name or "toolkit" if own else module.stem
    return name.strip("_")


def package(module: Path) -> str:
    """Return the folder directly below toolkit/ that holds a module, "toolkit" for a loose one."""
    return module.parts[0] if len(module.parts) > 1 else "toolkit"


def table(root: Path) -> dict[tuple[str, str], list[str]]:
    """Read the table of tests/README.md: package and module, with the tests that hold it."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in (root / "tests" / "README.md").read_text(encoding="utf-8").splitlines():
        if row := ROW.fullmatch(line):
            for module in re.findall(r"`([^`]+)`", row["modules"]):
                tests = re.findall(r"`([^`]+)`", row["tests"])
                found.setdefault((row["package"], module), []).extend(tests)
    return found


def holders(root: Path, module: Path, named: dict[tuple[str, str], list[str]]) -> list[Path]:
    """Return the files that test a module.

    They are ``test_<module>.py`` anywhere below tests/unit/<package>/, where a sub-package may
    stand before the module's name (``test_event_audit.py``), and those of its row in the table, or
    of its folder's, ``<folder>/``. A name with a slash there is a path below tests/, another is
    looked for in the package's unit tests.
    """
    tests, own = root / "tests", package(module)
    folder = tests / "unit" / ("" if own == "toolkit" else own)
    inner = module.parent.name.removesuffix("s")  # events/audit.py: test_event_audit.py
    names = (f"test_{stem(module)}.py", f"test_{inner}_{stem(module)}.py")
    found = {path for name in names for path in folder.rglob(name) if own != "toolkit"}
    found |= set((tests / "unit").glob(f"test_{stem(module)}.py")) if own == "toolkit" else set()
    rows = ((own, stem(module)), (own, f"{module.parent.name}/"))
    for name in (each for row in rows for each in named.get(row, [])):
        found |= {tests / name} if "/" in name else set(folder.rglob(name))
    return sorted(path for path in found if path.exists())


def faults(root: Path) -> list[str]:
    """List the modules without a test file, and the rows that name what is not there."""
    named, every = table(root), modules(root)
    known = {(package(module), stem(module)) for module in every}
    known |= {(package(module), f"{module.parent.name}/") for module in every}
    found = [
        f"toolkit/{module}: no test file of its name and no row in the table"
        for module in every
        if not holders(root, module, named)
    ]
    for (own, module), tests in named.items():
        if (own, module) not in known:
            found.append(f"tests/README.md: {own} has no module {module}")
            continue
        folder = root / "tests" / "unit" / own
        found += [
            f"tests/README.md: {own} {module}: there is no {name}"
            for name in tests
            if not ((root / "tests" / name).exists() if "/" in name else list(folder.rglob(name)))
        ]
    return found


def selected(root: Path, changed: Iterable[str]) -> list[str]:
    """Return what to run for changed files: doctests, the tests that hold them, tests."""
    named, found = table(root), set(EVERYWHERE)
    for name in changed:
        path = Path(name)
        if path.suffix != ".py" or not (root / path).exists():
            continue
        if path.parts[0] == "toolkit":
            held_by = holders(root, path.relative_to("toolkit"), named)
            found |= {name, *(str(test.relative_to(root)) for test in held_by)}
        elif path.parts[0] == "tests" and path.name.startswith("test_"):
            found.add(name)
        elif path.parts[:2] == ("tests", "unit"):  # what the tests of a folder share
            found.add(str(path.parent))
    return sorted(found)


def selected_of_package(root: Path, name: str) -> list[str]:
    """Return the doctests and unit tests of one package or module directly below toolkit/."""
    places = (f"toolkit/{name}", f"toolkit/{name}.py")
    tests = (f"tests/unit/{name}", f"tests/unit/test_{name}.py")
    if not any((root / place).exists() for place in places):
        raise SystemExit(f"PACKAGE={name}: toolkit/ has no package or module of this name")
    return [path for path in (*places, *tests) if (root / path).exists()]


def changed_files(root: Path) -> list[str]:
    """Ask git which files differ from where this branch left ``main``, new ones included."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
        )
        return done.stdout

    base = git("merge-base", "HEAD", "main").strip() or "HEAD"
    listed = git("diff", "--name-only", base) + git("ls-files", "--others", "--exclude-standard")
    return sorted(set(listed.splitlines()))


if __name__ == "__main__":
    wanted = sys.argv[1:]
    paths = selected_of_package(ROOT, *wanted) if wanted else selected(ROOT, changed_files(ROOT))
    sys.stdout.write("\n".join(paths) + "\n")
