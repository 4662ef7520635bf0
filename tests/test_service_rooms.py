"""How the service's rooms import one another: read from syntax trees, nothing is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_architecture import ROOT, imports, module_name, seeded

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
        ("market/source.py", "from toolkit.service.events import archive"),
        ("market/source.py", "def f():\n    from ..events.archive import EventArchive"),
        ("strays.py", "from toolkit.service.events.archive import EventArchive"),
    ],
)
def test_a_seeded_import_back_up_is_found(tmp_path: Path, name: str, source: str) -> None:
    files = {f"toolkit/service/{name}": source, "toolkit/service/events/archive.py": ""}
    found = imports_back_up(room_imports(seeded(tmp_path, files)))
    assert found == [(name.partition("/")[0].removesuffix(".py"), "events")]
