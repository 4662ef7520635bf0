"""Who watches a load, in a notebook or on a terminal, sees a bar; nobody else sees anything."""

from __future__ import annotations

import io
import itertools
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from tests import miniature
from tests.terminal import on_a_terminal
from toolkit.workspace import load_progress

pytestmark = [pytest.mark.usefixtures("workdir"), pytest.mark.slow]

LOAD = f"""
import toolkit as tk
rail = tk.open("s.duckdb", base_url={{service!r}})
done = rail.sync(["BTC_USDT:AURORA.spot"], {miniature.START}, {miniature.END}{{options}})
rail.close()
"""
HALF = """
from toolkit.loader import Progress
from toolkit.workspace import load_progress
half = Progress(rows=1000, pages=2, answered_s=600, asked_s=1200, elapsed_s=20.0)
with load_progress("3 <trajectories>", lines={lines}) as watch:
    if watch.show:
        watch.show(half)
    {then}
"""
TOLD = "50%, 1,000 rows, 2 pages, 50 rows/s, 20 s left"
RESULT = "4,320 rows new, 0 held already; "


class Watched(NotebookClient):
    """Runs cells in a real kernel, and keeps every picture that it was sent."""

    def __init__(self, notebook: NotebookNode, **options: Any) -> None:
        super().__init__(notebook, **options)
        self.pictures: list[tuple[str, str, dict[str, str]]] = []

    def process_message(self, msg: dict[str, Any], *where: Any) -> NotebookNode | None:
        if msg["msg_type"] in {"display_data", "update_display_data"}:
            content = msg["content"]
            shown_as = content["transient"].get("display_id", "")
            self.pictures.append((msg["msg_type"], shown_as, content["data"]))
        return super().process_message(msg, *where)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A notebook's kernel, in which the toolkit is imported once."""
    with pytest.MonkeyPatch.context() as patched:
        for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR"):
            patched.setenv(name, str(tmp_path_factory.getbasetemp() / "jupyter"))
        nobody = nbformat.v4.new_notebook()
        client = Watched(nobody, kernel_name="python3", timeout=120, allow_errors=True)
        with client.setup_kernel():
            yield client


@pytest.fixture
def cell(workdir: Path, kernel: Watched) -> Callable[[str], Watched]:
    """Runs one cell in the empty folder; an error of the cell is among its outputs."""

    def run(source: str) -> Watched:
        told = [f"import os; os.chdir({str(workdir)!r})", source]
        for cell in map(nbformat.v4.new_code_cell, told):
            kernel.nb = nbformat.v4.new_notebook(cells=[cell])
            kernel.pictures.clear()
            kernel.reset_execution_trackers()
            kernel.execute_cell(cell, 0)
        return kernel

    return run


def outputs(client: Watched) -> list[NotebookNode]:
    found: list[NotebookNode] = client.nb.cells[0].outputs
    return found


def on_terminal(program: str) -> tuple[int, str, str]:
    return on_a_terminal(program, columns=120, stdout=subprocess.PIPE)


def left_on_screen(written: str) -> list[str]:
    """The lines that stay: what was erased afterwards is not among them."""
    lines = [""]
    for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|\r|\n)", written):
        if part == "\n":
            lines.append("")
        elif part.endswith("2K"):
            lines[-1] = ""
        elif part.endswith("A") and part.startswith("\x1b"):
            lines = lines[:-1] or [""]
        elif not part.startswith("\x1b") and part != "\r":
            lines[-1] += part
    return [line for line in lines if line.strip()]


def test_a_notebook_shows_one_bar_that_ends_as_the_result(
    cell: Callable[[str], Watched], service: str
) -> None:
    client = cell(LOAD.format(service=service, options=""))
    (output,) = outputs(client)
    assert output.data["text/plain"].startswith(RESULT)
    assert output.data["text/html"] == f"<div>{output.data['text/plain']}</div>"
    kinds, ids, pictures = zip(*client.pictures, strict=True)
    assert kinds[0] == "display_data"
    assert set(kinds[1:]) == {"update_display_data"}
    assert len(set(ids)) == 1
    assert '<progress max="1" value="0.0000"' in pictures[0]["text/html"]


def test_a_notebook_s_bar_tells_rows_pages_pace_and_time_left(
    cell: Callable[[str], Watched],
) -> None:
    client = cell(HALF.format(lines=False, then="pass"))
    begun, half, ended = (data for _, _, data in client.pictures)
    assert begun["text/plain"] == "3 <trajectories>: 0%"
    assert half["text/plain"] == f"3 <trajectories>: {TOLD}"
    assert half["text/html"].startswith('<div>3 &lt;trajectories&gt; <progress max="1" value="0.5')
    assert half["text/html"].endswith(f"</progress> {TOLD}</div>")
    assert ended == {"text/plain": "", "text/html": ""}


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "OSError"])
def test_a_notebook_s_bar_is_gone_after_an_error(
    cell: Callable[[str], Watched], error: str
) -> None:
    shown, failed = outputs(cell(HALF.format(lines=False, then=f"raise {error}")))
    assert shown.data == {"text/plain": "", "text/html": ""}
    assert failed.ename == error


@pytest.mark.parametrize("options", [", progress=False", ", on_progress=[].append"])
def test_a_notebook_shows_no_bar_where_none_is_wanted(
    cell: Callable[[str], Watched], service: str, options: str
) -> None:
    client = cell(LOAD.format(service=service, options=options))
    assert outputs(client) == []
    assert client.pictures == []


def test_a_terminal_shows_a_bar_and_keeps_the_result(service: str) -> None:
    code, said, written = on_terminal(LOAD.format(service=service, options=""))
    assert (code, said) == (0, "")
    assert "1 trajectory" in written.split(RESULT)[0]
    (line,) = left_on_screen(written)
    assert line.startswith(RESULT)


def test_a_terminal_s_bar_tells_rows_and_time_left_within_80_columns() -> None:
    _, _, written = on_terminal(HALF.format(lines=True, then="pass"))
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)
    assert " 50 %  1,000 rows, 20 s left" in plain
    assert "━" in plain
    assert left_on_screen(written) == []


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "OSError"])
def test_a_terminal_s_bar_is_gone_after_an_error(error: str) -> None:
    code, _, written = on_terminal(HALF.format(lines=True, then=f"raise {error}"))
    assert code != 0
    lines = left_on_screen(written)
    assert lines[0].startswith("Traceback")
    assert lines[-1] == error


class Terminal(io.StringIO):
    """A terminal in which Ctrl-C is pressed at one of the moments that something asks or writes."""

    def __init__(self, pressed_at: int) -> None:
        super().__init__()
        self.moments, self.pressed_at = 0, pressed_at

    def _moment(self) -> None:
        self.moments += 1
        if self.moments == self.pressed_at:
            signal.raise_signal(signal.SIGINT)

    def isatty(self) -> bool:
        self._moment()
        return True

    def write(self, text: str, /) -> int:
        self._moment()
        return super().write(text)


def test_a_ctrl_c_at_any_moment_leaves_a_terminal_its_cursor_and_its_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for pressed_at in itertools.count(1):
            terminal = Terminal(pressed_at)
            monkeypatch.setattr(sys, "stderr", terminal)
            try:
                with load_progress("3 trajectories"):
                    pass
            except KeyboardInterrupt:
                pass
            assert sys.stderr is terminal
            assert terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h")
            if terminal.moments < pressed_at:
                break
    finally:
        signal.signal(signal.SIGINT, before)
    assert pressed_at > 20


def in_a_pipe(program: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr


def test_a_script_whose_output_is_piped_stays_silent(service: str) -> None:
    assert in_a_pipe(LOAD.format(service=service, options="")) == ("", "")
    assert in_a_pipe(HALF.format(lines=False, then="pass")) == ("", "")


def test_the_command_line_in_a_pipe_tells_a_line_every_ten_seconds() -> None:
    twice = "watch.show(half)"  # the same moment again, as of a page that came right after
    assert in_a_pipe(HALF.format(lines=True, then=twice)) == ("", f"3 <trajectories>: {TOLD}\n")
