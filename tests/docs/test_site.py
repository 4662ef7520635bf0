"""The site of the documents: it builds without a warning, and every public name is on it.

Links to other places are checked by `make links`, which asks the network.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest
from sphinx.util.inventory import InventoryFile

import toolkit

ROOT = Path(__file__).parents[2]
INDEX = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    made = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", str(made)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


class _Page(HTMLParser):
    """What a page leads to, and where it can be led to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links, self.anchors = set[str](), set[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - the parser's name
        given = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := given.get(name))}
        named = [given.get("href"), given.get("src"), given.get("srcset")]
        self.links |= {value for value in named if value}


def broken_links(site: Path) -> list[str]:
    """Links of the pages to what is not in the site."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            where, _, anchor = unquote(link).partition("#")
            target = (path.parent / where.partition("?")[0]).resolve() if where else path
            there = pages[target].anchors if target in pages else {anchor}
            if not target.exists() or (anchor and anchor not in there):
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken


def public_names(module: ModuleType = toolkit) -> Iterator[tuple[str, object]]:
    """What completion leads to from ``tk``, with its full name."""
    for name in module.__all__:
        found = getattr(module, name)
        if isinstance(found, ModuleType):
            yield from public_names(found)
        else:
            yield f"{module.__name__}.{name}", found


def methods(thing: object) -> list[str]:
    """The public methods and properties of a class of ours."""
    if not inspect.isclass(thing) or thing is toolkit.charts.Figure:
        return []
    defined = {
        name: value
        for each in reversed(thing.__mro__)
        if each.__module__.startswith("toolkit.")
        for name, value in vars(each).items()
        if inspect.isroutine(value) or isinstance(value, property | classmethod | staticmethod)
    }
    return [name for name in dir(thing) if name in defined and not name.startswith("_")]


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_every_name_and_link_is_there(site: Path) -> None:
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    there = {name for kind, named in inventory.data.items() if kind[:3] == "py:" for name in named}
    wanted = {
        full
        for name, thing in public_names()
        for full in (name, *(f"{name}.{each}" for each in methods(thing)))
    }
    assert sorted(wanted - there) == []
    assert broken_links(site) == []


def test_a_link_to_a_page_or_a_heading_that_is_not_there_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html"></a><a href="#x"></a><a href="#y" id="y"></a><img src="c.png">'
    )
    assert sorted(broken_links(tmp_path)) == [
        f"a.html: {link}" for link in ("#x", "b.html", "c.png")
    ]


def test_the_index_shows_each_page_that_it_lists() -> None:
    listed = re.findall(r"(?m)^```{toctree}\n(?:.+\n)*\n((?:[\w/-]+\n)+)```", INDEX)
    pages = [page for block in listed for page in block.split()]
    assert pages
    assert pages == re.findall(r"(?m)^- \[.+?\]\(([\w/-]+)\.md\)", INDEX)


def examples() -> str:
    """Every example that is run: the lines of docstrings, and blocks of the reference's pages."""
    pages = (ROOT / "docs" / "reference").glob("*.md")
    blocks = [re.findall(r"(?ms)^```python\n(.*?)^```", page.read_text("utf-8")) for page in pages]
    sources = [path.read_text("utf-8") for path in (ROOT / "toolkit").rglob("*.py")]
    lines = [re.findall(r"(?m)^ *(?:>>>|\.\.\.) (.*)$", source) for source in sources]
    return "\n".join(each for found in (*blocks, *lines) for each in found)


def test_every_public_name_and_every_method_has_an_example() -> None:
    used = set(re.findall(r"\w+", examples()))
    without = [
        f"{name}{method and '.'}{method}"
        for name, thing in public_names()
        if inspect.isclass(thing) or inspect.isfunction(thing)
        for method in ("", *methods(thing))
        if (method or name.rpartition(".")[2]) not in used
    ]
    assert without == []
