"""Public names: what is handed on is listed and sorted, everything public is documented.

An underscore marks what is private, so a module does not list its own names once more. A list says
what of other modules a package or a module hands on. Read from syntax trees. A module that a user
reaches from ``tk`` lists what it offers, and completion offers just that.
"""

from __future__ import annotations

import ast
import itertools
import rlcompleter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

import toolkit
from toolkit.intervals import Interval
from toolkit.store import StoreWriter

ROOT = Path(__file__).parents[2]
Function = ast.FunctionDef | ast.AsyncFunctionDef
CUT = "from toolkit.rows import cut\n"
Documented = ast.Module | ast.ClassDef | Function


def trees(root: Path, word: str) -> Iterator[tuple[Path, ast.Module]]:
    """Read the modules in which a word is; to read all of them takes a second."""
    for path in sorted((root / "toolkit").rglob("*.py")):
        if word in (text := path.read_text(encoding="utf-8")):
            yield path, ast.parse(text)


def defined(tree: ast.Module) -> set[str]:
    """Public names that a module binds itself, not those it imports."""
    names = set()
    for node in tree.body:
        match node:
            case (
                ast.ClassDef(name=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
            ):
                names.add(name)
            case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar" | "ParamSpec"))):
                pass
            case ast.Assign(targets=targets):
                names |= {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return {name for name in names if not name.startswith("_")}


def handed_on(tree: ast.Module) -> set[str]:
    """Names that a module imports from others of ours, and so may list as its own."""
    blocks = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.If | ast.With))]
    return {
        alias.asname or alias.name
        for node in itertools.chain(*blocks)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "toolkit"
        for alias in node.names
    }


def listed(tree: ast.Module) -> list[str] | None:
    """What ``__all__`` lists, None where there is none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    return None


def offers(tree: ast.Module) -> bool:
    """Whether completion is told what the module offers."""
    return any(isinstance(node, Function) and node.name == "__dir__" for node in tree.body)


def in_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, each by name: as the linter sorts."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def name_faults(root: Path) -> list[str]:
    """Modules whose ``__all__`` is unsorted, of no use, or lacks something public."""
    found = []
    for path, tree in trees(root, "__all__"):
        name, names = path.relative_to(root), listed(tree)
        own, others = defined(tree), handed_on(tree)
        if names is None:
            continue
        if names != sorted(set(names), key=in_order):
            found.append(f"{name}: __all__ is not sorted")
        if path.stem != "__init__" and not offers(tree) and not others & set(names):
            found.append(f"{name}: __all__ hands on nothing of another module")
        missed, strays = sorted(own - set(names)), sorted(set(names) - own - others)
        found += [f"{name}: {missing} is public but not in __all__" for missing in missed]
        found += [f"{name}: {stray} is not public here" for stray in strays]
    return found


def public(tree: ast.Module) -> Iterator[Documented]:
    """The module, its public classes and functions, and the public methods of those classes.

    A protocol's methods without a body are types alone, as overloads are. A method that replaces a
    documented one of a class of the same module has its docstring.
    """
    yield tree
    for node in tree.body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
            if any("overload" in ast.unparse(d) for d in node.decorator_list):
                continue
            yield node
            if isinstance(node, ast.ClassDef):
                types_alone = any("Protocol" in ast.unparse(base) for base in node.bases)
                inherited = _documented(node, tree)
                yield from (
                    method
                    for method in node.body
                    if isinstance(method, Function)
                    and not method.name.startswith("_")
                    and not (types_alone and ast.unparse(method.body) == "...")
                    and not any("overload" in ast.unparse(d) for d in method.decorator_list)
                    and method.name not in inherited
                )


def _documented(of: ast.ClassDef, tree: ast.Module) -> set[str]:
    """The methods that classes of the module which a class is made from document."""
    bases = {ast.unparse(base) for base in of.bases}
    found = set[str]()
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in bases:
            methods = (each for each in node.body if isinstance(each, Function))
            found |= {each.name for each in methods if ast.get_docstring(each)}
            found |= _documented(node, tree)
    return found


def docstring_faults(root: Path) -> list[str]:
    """What is public and says nothing about itself, where the linter does not look for it."""
    return [
        f"{path.relative_to(root)}: {getattr(node, 'name', 'the module')} has no docstring"
        for path, tree in trees(root, "noqa: D1")
        for node in public(tree)
        if not ast.get_docstring(node)
    ]


def test_a_list_of_names_is_sorted_complete_and_hands_something_on() -> None:
    faults = name_faults(ROOT)
    assert not faults, "\n".join(faults)


def test_an_argument_that_names_a_stream_is_called_stream_or_trajectory() -> None:
    """And one that names a zone ``timezone``: docs/concepts.md, "Stream and key"."""
    found = [
        f"{path.name}: {function.name}({each.arg})"
        for word in ("key: ", "keys: ", "tz: ")
        for path, tree in trees(ROOT, word)
        for function in ast.walk(tree)
        if isinstance(function, Function) and function.name != "parse"
        for each in ast.walk(function.args)
        if isinstance(each, ast.arg)
        and (each.arg == "tz" or (each.arg in ("key", "keys") and _is_stream(each.annotation)))
    ]
    assert found == []


def _is_stream(annotation: ast.expr | None) -> bool:
    names = {"EventLog", "Pair", "SnapshotTrajectory", "Stream", "Subject", "Trajectory"}
    return annotation is not None and any(
        isinstance(node, ast.Name) and node.id in names for node in ast.walk(annotation)
    )


def test_everything_public_has_a_docstring_where_the_linter_does_not_look() -> None:
    faults = docstring_faults(ROOT)
    assert not faults, "\n".join(faults)


def test_the_toolkit_offers_at_most_sixteen_names_and_each_is_there() -> None:
    assert 0 < len(toolkit.__all__) <= 16
    for name in toolkit.__all__:
        assert getattr(toolkit, name) is not None


def reached(module: ModuleType) -> Iterator[ModuleType]:
    """The module, and the modules that completion leads to from it."""
    yield module
    for name in dir(module):
        if isinstance(found := getattr(module, name), ModuleType):
            yield from reached(found)


def test_a_module_that_completion_does_not_lead_to_offers_nothing() -> None:
    offering = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path, tree in trees(ROOT, "__dir__")
        if offers(tree)
    }
    assert offering == {module.__name__ for module in reached(toolkit)}


def completed(thing: object) -> set[str]:
    """What the plain Python prompt completes ``thing.`` to."""
    matches = rlcompleter.Completer({"thing": thing}).attr_matches("thing.")
    return {match.removeprefix("thing.").rstrip("()") for match in matches}


def test_completion_offers_of_each_module_what_it_lists() -> None:
    modules = list(reached(toolkit))
    assert {"toolkit.charts", "toolkit.series", "toolkit.statistics.spread"} <= {
        module.__name__ for module in modules
    }
    for module in modules:
        assert completed(module) == set(module.__all__), module.__name__


def test_completion_offers_of_each_object_what_users_use(tmp_path: Path) -> None:
    store = toolkit.Store(tmp_path / "s.duckdb")
    client = toolkit.Client("http://127.0.0.1:9", "key")
    pair = toolkit.Trajectory.parse("A_B:X.spot:Y.spot")
    known = toolkit.series.Origin(toolkit.Source("replay", "x"), store.path)
    rows = pl.DataFrame(schema={"ts": pl.Int64})
    series = toolkit.series.SpreadSeries(pair, Interval(0, 60), known, rows)
    writes = {name for name in vars(StoreWriter) if not name.startswith("_")}
    asked = {"allowance", "base_url", "card", "close", "discover", "event_pages", "history"}
    asked |= {"limits", "pages", "profile", "served_at", "snapshot", "symbols"}
    assert completed(client) == completed(toolkit.AsyncClient("http://127.0.0.1:9", "k")) == asked
    assert {"series", "reading", "catalogue"} <= completed(store)
    assert completed(store) & (writes | {"keep_lean"}) == set()
    assert {"df", "summary", "plot", "episodes"} <= completed(series)
    for thing in (store, client, series, toolkit.Workspace(client, store)):
        assert not [name for name in completed(thing) if name.startswith("_")]
    client.close()


def seeded(root: Path, source: str) -> Path:
    (root / "toolkit").mkdir()
    (root / "toolkit" / "rows.py").write_text(source)
    return root


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("__all__ = ['f']\ndef f(): ...", "__all__ hands on nothing of another module"),
        (f"{CUT}__all__ = ['cut']\nLIMIT: int = 3", "LIMIT is public but not in __all__"),
        (f"{CUT}__all__ = ['f', 'cut']\ndef f(): ...", "__all__ is not sorted"),
        (f"{CUT}__all__ = ['cut', 'STEP_S']\nSTEP_S = 1", "__all__ is not sorted"),
        (f"{CUT}from a import f\n__all__ = ['cut', 'f']", "f is not public here"),
    ],
)
def test_a_seeded_fault_in_the_public_names_is_found(
    tmp_path: Path, source: str, fault: str
) -> None:
    assert name_faults(seeded(tmp_path, source)) == [f"toolkit/rows.py: {fault}"]


def test_a_seeded_missing_docstring_is_found(tmp_path: Path) -> None:
    source = '"""Doc."""\nclass A:\n    """Doc."""\n    def f(self): ...\n    def _g(self): ...\n'
    source = f"# ruff: noqa: D102\n{source}"
    assert docstring_faults(seeded(tmp_path, source)) == ["toolkit/rows.py: f has no docstring"]
    source = source.replace("(self): ...", "(self): 'Doc.'")
    source += "class B(A):\n    'Doc.'\n    def f(self): ..."
    (tmp_path / "toolkit" / "rows.py").write_text(source)
    assert docstring_faults(tmp_path) == []
