"""Who may import whom, what may be imported at all, and how large things may grow.

Read from syntax trees: nothing is imported, so that an import inside a function counts as well.
"""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# High to low. A part may import what is below it. "toolkit" is __init__, with the public names.
LAYERS = (
    ("app", "cli", "toolkit"),
    ("assistant", "dashboard", "reports"),
    ("workspace",),
    ("loader", "series"),
    ("alerts", "charts", "cluster"),
    ("client", "statistics", "store"),
    ("analyses", "service", "show", "wire"),
    (
        "cards",
        "columns",
        "commands",
        "ending",
        "errors",
        "fields",
        "files",
        "foreign",
        "interrupts",
        "intervals",
        "market",
        "reasons",
        "serving",
        "tables",
    ),
)
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
LOWEST = len(LAYERS) - 1
"""The modules of the lowest layer may import one another, though never in a circle."""

# Narrower than the layers: all of ours that a part may import, and all who may import it.
IMPORTS_AT_MOST = {"service": {"market", "serving", "errors"}, "app": {"dashboard"}}
IMPORTED_ONLY_BY = {"service": {"workspace"}, "dashboard": {"app"}}

# Third parties, each with the modules that may import it; "toolkit" is anywhere.
THIRD_PARTIES = {
    "apprise": ("toolkit.alerts.channels",),
    "argon2": ("toolkit.workspace.login",),
    "authlib": (),  # Streamlit imports it for a login
    "ccxt": ("toolkit.service.market.exchanges.reading",),
    "distributed": ("toolkit.cluster.placement",),
    "duckdb": ("toolkit.store", "toolkit.service.market.exchanges.archive"),
    "filelock": ("toolkit.files",),
    "httpcore": ("toolkit.client.transport",),
    "httpx": ("toolkit.client.http", "toolkit.client.transport", "toolkit.client.webhook_session"),
    "httpx2": ("toolkit.client.mcp",),
    "jinja2": ("toolkit.reports.page",),
    "mcp": (
        "toolkit.assistant.server",
        "toolkit.client.mcp",
        "toolkit.service.transports.mcp",
        "toolkit.service.transports.mcp_server",
    ),
    "msgspec": ("toolkit",),
    "numpy": ("toolkit",),
    "obstore": ("toolkit.store.publish.destinations",),
    "orjson": ("toolkit.charts", "toolkit.dashboard"),
    "pandas": ("toolkit.series",),
    "platformdirs": ("toolkit.workspace.settings",),
    "plotly": ("toolkit.charts", "toolkit.reports"),
    "polars": ("toolkit",),
    "pyarrow": ("toolkit.series", "toolkit.service", "toolkit.store"),
    "rich": ("toolkit.cli", "toolkit.show", "toolkit.workspace"),
    # The receiver is mountable, and the door is a middleware.
    "starlette": (
        *("toolkit.assistant.server", "toolkit.dashboard.door", "toolkit.dashboard.shared"),
        *("toolkit.loader.webhook.webhooks", "toolkit.service", "toolkit.serving"),
    ),
    "statsmodels": ("toolkit.statistics.events.hazards",),
    "streamlit": ("toolkit.dashboard", "app"),
    "tomlkit": ("toolkit.workspace.user_files",),
    "toolz": ("toolkit.cluster.placement",),
    "typer": ("toolkit.cli",),
    "tzdata": (),  # zoneinfo reads it, on Windows
    "uvicorn": ("toolkit.serving",),
    "zstandard": ("toolkit.store.writing.pages",),
    "websockets": ("toolkit.client.stream", "toolkit.client.stream"),
}
# The MCP SDK's interface is written in the terms of these two.
THIRD_PARTIES |= dict.fromkeys(("anyio", "mcp_types"), THIRD_PARTIES["mcp"])
NEVER = {"plotly.express"}  # slow to import, and of no use where figures are built from traces
PURE = {"statistics": {"numpy", "polars", "statsmodels"}}
SOCKETS = {"asyncio", "http.client", "http.server", "select", "selectors", "socket", "ssl"}
SANS_IO = {"wire": SOCKETS | {"threading", "urllib.request"}}

VAGUE_NAMES = {"common", "helpers", "misc", "utils"}
MODULE_LINES, BODY_LINES = 600, 50

COSTLY = {
    *("apprise", "distributed", "mcp", "pandas", "plotly.express", "scipy", "starlette"),
    *("statsmodels", "streamlit", "typer", "uvicorn"),
}


def module_name(root: Path, path: Path) -> str:
    """The dotted name of a file: ``toolkit.store.ledger.ledger``."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(module: str) -> str:
    """The part of the contract that a module of ours lies in."""
    inside = module.split(".")
    return inside[1] if inside[0] == "toolkit" and len(inside) > 1 else inside[0]


def within(module: str, packages: tuple[str, ...] | set[str]) -> bool:
    """Whether a module is one of the packages or lies inside one."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


@functools.cache
def imports(root: Path, path: Path) -> list[tuple[int, str]]:
    """Every import of a file, wherever it stands: its line and the dotted name imported."""
    return list(_imports(root, path))


def _imports(root: Path, path: Path) -> Iterator[tuple[int, str]]:
    package = module_name(root, path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = package[: len(package) - level + 1] if level else []
                stem = ".".join([*base, *([module] if module else [])])
                yield from ((node.lineno, f"{stem}.{alias.name}") for alias in names)
            case ast.Call(
                func=ast.Name(id=("import_module" | "__import__"))
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def our_files(root: Path) -> list[Path]:
    """The files under the contract."""
    return sorted([*(root / "toolkit").rglob("*.py"), *root.glob("app.py")])


def part_imported(root: Path, name: str) -> str:
    """Which part an import of ours names; ``from toolkit import connect`` names the package."""
    part = part_of(name)
    inside = root / "toolkit"
    known = part in RANK or (inside / part).is_dir() or (inside / f"{part}.py").is_file()
    return part if known else "toolkit"


def own_import_fault(here: str, there: str) -> str | None:
    """Why the part ``here`` may not import the part ``there``, None where it may."""
    if here == there or here not in RANK or there not in RANK:
        return None
    if there not in IMPORTS_AT_MOST.get(here, RANK):
        return f"{here} imports {there}, but of ours only {sorted(IMPORTS_AT_MOST[here])}"
    if here not in IMPORTED_ONLY_BY.get(there, RANK):
        return f"{here} imports {there}, which only {sorted(IMPORTED_ONLY_BY[there])} may"
    if RANK[here] >= RANK[there] and RANK[there] < LOWEST:
        return f"{here} imports {there}, which is not below it"
    return None


def foreign_import_fault(module: str, name: str) -> str | None:
    """Why a module may not import something that is not ours, None where it may."""
    top, part = name.partition(".")[0], part_of(module)
    if within(name, NEVER):
        return f"{name} is never imported"
    if within(name, SANS_IO.get(part, set())):
        return f"{part} imports {name}, but holds no socket and no thread"
    if top in sys.stdlib_module_names:
        return None
    if top not in THIRD_PARTIES:
        return f"{name} has no place in the contract"
    if not within(module, THIRD_PARTIES[top]) or top not in PURE.get(part, THIRD_PARTIES):
        return f"{module} imports {top}, which belongs elsewhere"
    return None


def import_faults(root: Path) -> list[str]:
    """Every breach of the import contract below ``root``."""
    found = []
    for path in our_files(root):
        module = module_name(root, path)
        if part_of(module) not in RANK:
            found.append(f"{module} has no place in the contract")
        for line, name in imports(root, path):
            if name.split(".")[0] in {"toolkit", "app"}:
                fault = own_import_fault(part_of(module), part_imported(root, name))
            else:
                fault = foreign_import_fault(module, name)
            if fault:
                found.append(f"{path.relative_to(root)}:{line}: {fault}")
    return list(dict.fromkeys(found))


def circles(root: Path) -> list[list[str]]:
    """Modules that import one another in a circle, imports for types and in functions included."""
    files = {module_name(root, path): path for path in our_files(root)}
    needs = {
        module: {
            found
            for _, name in imports(root, path)
            if (found := name if name in files else name.rpartition(".")[0]) in files
        }
        - {module}
        for module, path in files.items()
    }
    while free := [module for module, needed in needs.items() if not needed & needs.keys()]:
        for module in free:
            del needs[module]
    while last := [m for m in needs if not any(m in needed for needed in needs.values())]:
        for module in last:
            del needs[module]
    return [[module, *sorted(needed & needs.keys())] for module, needed in needs.items()]


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a file, methods and inner ones included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a body, without signature and docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def size_faults(root: Path, folders: tuple[str, ...] = ("toolkit",)) -> list[str]:
    """Modules, bodies and names that outgrow or blur the rules."""
    found = []
    files = [path for folder in folders for path in (root / folder).rglob("*.py")]
    for path in sorted([*files, *root.glob("app.py")]):
        name = str(path.relative_to(root))
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > MODULE_LINES:
            found.append(f"{name}: {lines} lines")
        if VAGUE_NAMES & {path.stem, *path.relative_to(root).parts}:
            found.append(f"{name}: says nothing about what it holds")
        found += [
            f"{name}:{function.lineno}: {function.name} has a body of {body_lines(function)} lines"
            for function in functions(path)
            if body_lines(function) > BODY_LINES
        ]
    return found


def test_every_import_of_the_checkout_keeps_the_contract_and_none_goes_in_a_circle() -> None:
    faults = import_faults(ROOT)
    assert not faults, "\n".join(faults)
    assert circles(ROOT) == []


@pytest.mark.slow
def test_modules_and_bodies_of_the_checkout_are_small_and_named_for_what_they_hold() -> None:
    faults = size_faults(ROOT, ("toolkit", "benchmarks", "tests"))
    assert not faults, "\n".join(faults)


def test_a_seeded_circle_is_found(tmp_path: Path) -> None:
    two = {"toolkit/a.py": "from toolkit.b import c", "toolkit/b.py": "def f(): import toolkit.a"}
    assert circles(seeded(tmp_path, two)) == [
        ["toolkit.a", "toolkit.b"],
        ["toolkit.b", "toolkit.a"],
    ]


def test_no_folder_of_the_checkout_holds_more_than_25_modules() -> None:
    folders = Counter(p.parent for p in our_files(ROOT) if p.name != "__init__.py")
    assert {str(folder) for folder, modules in folders.items() if modules > 25} == set()


def test_the_placed_third_parties_are_the_declared_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = dict(project["optional-dependencies"])
    assert extras.pop("all") == [f"machine-rail-toolkit[{','.join(extras)}]"]
    lines = [*project["dependencies"], *(line for lines in extras.values() for line in lines)]
    names = (line.split("[")[0].split(">")[0].strip().replace("-", "_") for line in lines)
    declared = [name.removesuffix("_cffi") for name in names]
    assert sorted(declared) == sorted(THIRD_PARTIES)


@pytest.mark.slow
def test_importing_the_toolkit_is_cheap_and_leaves_no_trace(workdir: Path) -> None:
    program = """
import json, sys, threading
import toolkit, toolkit.client
print(json.dumps([sorted(sys.modules), threading.active_count()]))
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    loaded, threads = json.loads(done.stdout)
    assert "toolkit" in loaded
    assert COSTLY.intersection(loaded) == set()
    assert threads == 1
    assert done.stderr == ""
    assert list(workdir.iterdir()) == []


def seeded(root: Path, files: dict[str, str]) -> Path:
    """A small package that holds the given files."""
    for name, source in {"toolkit/__init__.py": "", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return root


SEEDED_IMPORTS = [
    ("statistics/spread.py", "import duckdb", "toolkit.statistics.spread imports duckdb"),
    ("statistics/spread.py", "import msgspec", "toolkit.statistics.spread imports msgspec"),
    ("service/rest.py", "from toolkit.wire import rows", "service imports wire, but of ours"),
    ("service/rest.py", "def f():\n    from ..tables import META", "service imports tables"),
    ("store/ledger.py", "import toolkit.client.http", "store imports client"),
    ("cli/serve.py", "from toolkit.service import serve", "cli imports service, which only"),
    ("charts/price.py", "from toolkit import connect", "charts imports toolkit"),
    ("dashboard/page.py", "from .. import cli", "dashboard imports cli, which is not below"),
    ("tables.py", "from toolkit.show import words", "tables imports show, which is not below"),
    ("client/stream.py", "import httpx", "toolkit.client.stream imports httpx"),
    ("charts/price.py", "import plotly.express as px", "plotly.express is never imported"),
    ("charts/price.py", "from plotly import express", "plotly.express is never imported"),
    ("wire/paging.py", "import asyncio", "wire imports asyncio, but holds no socket"),
    ("wire/paging.py", "from http.client import OK", "wire imports http.client.OK"),
    ("store/scan.py", "import scipy", "scipy has no place in the contract"),
    ("market.py", "import importlib\nimportlib.import_module('toolkit.wire')", "market import"),
    ("errors.py", "if TYPE_CHECKING:\n    import toolkit.wire", "errors imports wire"),
    ("strays.py", "", "toolkit.strays has no place in the contract"),
]
SEEDED_SIZES = [
    ("rows.py", "x = 1\n" * 601, "toolkit/rows.py: 601 lines"),
    ("store/utils.py", "", "toolkit/store/utils.py: says nothing"),
    ("helpers/rows.py", "", "toolkit/helpers/rows.py: says nothing"),
    ("rows.py", 'def f():\n    """Doc."""\n' + "    x = 1\n" * 51, "f has a body of 51 lines"),
]


@pytest.mark.parametrize(
    ("check", "name", "source", "fault"),
    [
        *((import_faults, *each) for each in SEEDED_IMPORTS),
        *((size_faults, *each) for each in SEEDED_SIZES),
    ],
)
def test_a_seeded_fault_is_found(
    tmp_path: Path, check: Callable[[Path], list[str]], name: str, source: str, fault: str
) -> None:
    (found,) = check(seeded(tmp_path, {f"toolkit/{name}": source}))
    assert fault in found


def test_the_entry_script_imports_nothing_but_the_dashboard(tmp_path: Path) -> None:
    faults = import_faults(seeded(tmp_path, {"app.py": "from toolkit.store import Store"}))
    assert faults == ["app.py:1: app imports store, but of ours only ['dashboard']"]


def test_sizes_at_the_limit_are_no_faults(tmp_path: Path) -> None:
    source = 'def f():\n    """Doc."""\n' + "    x = 1\n" * 50 + "\n" * 348
    assert size_faults(seeded(tmp_path, {"toolkit/rows.py": source})) == []


# Low to high: a room imports only those before it.
ROOMS = ("market", "events", "problems", "accounts", "api", "transports")
MOST_ROOMS, MOST_IMPORTS = 12, 30


def rooms(root: Path) -> set[str]:
    """Return the modules and packages directly under the service."""
    found = (root / "toolkit" / "service").glob("*")
    return {path.stem for path in found if path.is_dir() or path.suffix == ".py"} - {
        "__init__",
        "__pycache__",
    }


def room_imports(root: Path) -> set[tuple[str, str]]:
    """Return which room imports which; the package's own __init__, which names all, is left out."""
    known, found = rooms(root), set()
    for path in (root / "toolkit" / "service").rglob("*.py"):
        here = [*module_name(root, path).split("."), ""][2]
        for _, name in imports(root, path):
            there = [*name.split("."), "", ""]
            if here and there[:2] == ["toolkit", "service"] and there[2] in known - {here}:
                found.add((here, there[2]))
    return found


def imports_back_up(found: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the imports that go from a room to a later one, or to one that is not in the order."""
    return sorted(
        (here, there)
        for here, there in found
        if {here, there} - set(ROOMS) or ROOMS.index(there) > ROOMS.index(here)
    )


def test_the_service_has_few_rooms_and_few_imports_between_them() -> None:
    assert rooms(ROOT) <= set(ROOMS)
    assert len(rooms(ROOT)) <= MOST_ROOMS
    assert 0 < len(room_imports(ROOT)) <= MOST_IMPORTS


def test_no_room_of_the_service_imports_a_later_one() -> None:
    assert imports_back_up(room_imports(ROOT)) == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("market/clock.py", "from toolkit.service.events import archive"),
        ("market/clock.py", "def f():\n    from ..events.archive import EventArchive"),
        ("strays.py", "from toolkit.service.events.archive import EventArchive"),
    ],
)
def test_a_seeded_import_back_up_is_found(tmp_path: Path, name: str, source: str) -> None:
    files = {f"toolkit/service/{name}": source, "toolkit/service/events/archive.py": ""}
    found = imports_back_up(room_imports(seeded(tmp_path, files)))
    assert found == [(name.partition("/")[0].removesuffix(".py"), "events")]
