"""Foreign text on the pages: in Markdown it is code, in a figure text, in a table a plain cell."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from markdown_it import MarkdownIt
from streamlit.testing.v1 import AppTest

from toolkit.dashboard.export import rows_csv
from toolkit.dashboard.link import PAGES
from toolkit.market import Source
from toolkit.store import Store

from ...hostile import store_of, streams, texts
from .shown import figures

NOWHERE = "http://127.0.0.1:9"
LINKS = [
    *((name, {}) for name in PAGES),
    ("trajectory", {"trajectory": str(streams()[1])}),
    ("funding", {"trajectory": f"funding/{streams()[1]}"}),
    *(("events", {"event": text, "symbol": text, "window": text}) for text in texts("x").values()),
    ("spreads", {"exclude": texts(NOWHERE)["label"], "min": "`]![x](http://127.0.0.1:9/)"}),
]
READ_AS_MARKDOWN = ("markdown", "caption", "header", "subheader", "title", "error", "warning")
READ_AS_MARKDOWN += ("info", "success", "metric")
TAGS = {"br", "b", "/b", "i", "/i"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return store_of(tmp_path_factory.mktemp("hostile") / "rail.duckdb", NOWHERE)


def markdown_of(shown: AppTest) -> Iterator[str]:
    """Every text of a page that Streamlit reads as Markdown."""
    for kind in READ_AS_MARKDOWN:
        for element in shown.get(kind):
            proto = getattr(element, "proto", None)
            for name in ("body", "label", "help", "delta"):
                if text := getattr(proto, name, ""):
                    yield text


def active(markdown: str) -> list[str]:
    """What a browser would load, follow or run of a Markdown text."""
    found = []
    for token in MarkdownIt("commonmark").parse(markdown):
        for part in (token, *(token.children or [])):
            if part.type in ("image", "link_open", "html_inline", "html_block"):
                found += [part.content or str(part.attrs)]
    # A directive ends at the first bracket that closes it, in code or not: nothing foreign in one.
    found += re.findall(r":[a-z-]+\[[^\]]*`", markdown)
    return found


def strings(value: Any) -> Iterator[str]:
    """Every text of a figure."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def commands_of(shown: AppTest) -> list[str]:
    """The commands that a page tells to type: in blocks, and in code among words."""
    shells = [block.value for block in shown.code if block.language == "bash"]
    blocks = [line for block in shells for line in block.splitlines()]
    inline = [
        child.content
        for text in markdown_of(shown)
        for token in MarkdownIt("commonmark").parse(text)
        for child in token.children or []
        if child.type == "code_inline"
    ]
    return [line for line in (*blocks, *inline) if line.startswith("rail ")]


def run_as_rail_alone(commands: list[str], folder: Path) -> None:
    """Let a shell run commands of a page: nothing but `rail` is started, and no file is written."""
    stub = folder / "rail"
    stub.write_text('#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word" >> asked; done\n')
    stub.chmod(0o755)
    for command in commands:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env={"PATH": f"{folder}:/usr/bin:/bin"},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b""), command
    made = {path.name for path in folder.iterdir()} - {"no-store-yet.duckdb"}
    assert made <= {"rail", "asked"}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "params"), LINKS)
def test_a_page_shows_hostile_text_as_text_and_its_commands_run_as_rail_alone(
    page, store, tmp_path, name, params
):
    shown = page(store.path, name, **params)
    assert not shown.exception
    assert not shown.error
    for text in markdown_of(shown):
        assert active(text) == []
    for figure in figures(shown):
        for text in strings(figure["data"]):
            assert not set(re.findall(r"<(/?\w+)", text)) - TAGS - {"extra", "/extra"}, text
        for text in strings({k: v for k, v in figure["layout"].items() if k != "template"}):
            assert not set(re.findall(r"<(/?\w+)", text)) - TAGS, text
    for table in shown.dataframe:
        for cell in strings(json.loads(table.value.to_json(orient="values"))):
            assert not re.match(r"[=@+-](?![\d.]+)", cell), cell
            assert cell.isprintable(), cell
            assert len(cell) <= 1_001
    run_as_rail_alone(commands_of(shown), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "key"), [("trajectory", str(streams()[0])), ("funding", f"funding/{streams()[1]}")]
)
def test_a_command_that_loads_what_is_not_held_runs_as_rail_alone(page, store, tmp_path, name, key):
    asked = key.replace("A" * 60, "BYBIT")
    found = commands_of(page(store.path, name, trajectory=asked))
    assert found or asked.removeprefix("funding/") in map(str, streams())
    run_as_rail_alone(found, tmp_path)


def test_a_downloaded_file_computes_nothing() -> None:
    cells = list(texts(NOWHERE).values())
    rows = pl.DataFrame(
        {"trajectory": cells, "ts": range(len(cells)), "price": [-1.5] * len(cells)}
    )
    written = rows_csv(rows, Source("live", "=1+1"))
    read = pl.read_csv(written, infer_schema=False)
    for column in ("trajectory", "source"):
        assert not read[column].str.contains(r"^[=+\-@\t\r\n]").any()
    assert read["price"].unique().to_list() == ["-1.5"]
