"""README as a program: its blocks run in order, in one directory, as a reader would type them.

The pages that go on from it (`PAGES`) run after it, in the same directory.

``sh`` blocks share one terminal (directory, exported variables, background processes). Of
``console`` blocks, the lines after a ``$ `` command are its output, compared as doctest does with
ELLIPSIS. ``python`` blocks share one namespace, and a ``text`` block after one is what it prints,
but for its numbers. A `make` command is checked to name a target
of the Makefile and not run: `make test` would run this test again. A block under
``<!-- not run: reason -->`` is left out, and one under ``<!-- run by tests/... -->``.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import signal
import subprocess
import sysconfig
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from toolkit.cli.root import app
from toolkit.workspace import Workspace

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ("docs/command-line.md", "docs/python.md", "docs/operations.md", "docs/publish.md")
RUN = {"sh", "console", "python"}
SHOWN = {"ini", "json", "mermaid", "sql", "text", "toml"}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MAKE = re.compile(r"(?m)(?P<before>^|&&|;)[ \t]*make\b(?P<arguments>[^\n&;|>#]*)")
HIDDEN_MAKE = re.compile(r"(?m)^[^#\n]*\bmake\s+[a-z]")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the line of its fence, its text and why it is not run."""

    language: str
    line: int
    text: str
    reason: str = ""
    page: str = "README.md"


def blocks(markdown: str, page: str = "README.md") -> list[Block]:
    """The fenced blocks of a page; one that would pass unseen is an error."""
    found: list[Block] = []
    reason, opened = "", None
    for number, line in enumerate(markdown.splitlines(), 1):
        if line.startswith("```") and opened is None:
            opened = Block(line[3:].strip(), number, "", reason, page)
            if opened.language not in RUN | SHOWN:
                raise ValueError(f"line {number}: a block in {opened.language or 'no language'!r}")
        elif line.startswith("```"):
            found.append(opened)
            opened, reason = None, ""
        elif opened is not None:
            opened = replace(opened, text=f"{opened.text}{line}\n")
        elif line.lstrip().startswith(("```", "~~~")):
            raise ValueError(f"line {number}: a block that does not begin with ``` at the margin")
        elif line.strip():
            match = re.fullmatch(r"<!-- (?:not run:|run by) (.+) -->", line.strip())
            reason = match[1] if match else ""
    if opened is not None:
        raise ValueError(f"line {opened.line}: a block without an end")
    return found


class Terminal:
    """A shell in which each command starts where the one before left off."""

    def __init__(self, directory: Path, state: Path) -> None:
        self.directory, self.state = directory, state
        self.groups: list[int] = []
        (state / "home").mkdir(parents=True)
        (state / "left").touch()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
            "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(state / "home"),
            "COLUMNS": "100",
        }

    def run(self, commands: str) -> str:
        """What the commands print; a failing one raises `AssertionError` with that."""
        left, printed = shlex.quote(str(self.state / "left")), self.state / "printed"
        leave = f'trap \'{{ export -p; printf "cd %q\\n" "$PWD"; }} > {left}\' EXIT'
        commands = MAKE.sub(self.checked, commands)
        if HIDDEN_MAKE.search(commands):
            raise AssertionError("a make command stands on a line of its own")
        script = f"source {left}\nset -euo pipefail\n{leave}\n{commands}"
        with printed.open("w+", encoding="utf-8") as output:
            shell = subprocess.Popen(
                ["bash", "-c", script],
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self.groups.append(shell.pid)
            status = shell.wait(timeout=200)
            text = printed.read_text(encoding="utf-8")
        if status:
            raise AssertionError(f"exit status {status}\n{text}")
        return text

    def checked(self, match: re.Match[str]) -> str:
        """Nothing in the place of a make command that names targets of the Makefile."""
        done = subprocess.run(  # noqa: PLW1510 - the status is read below
            ["make", "--dry-run", *shlex.split(match["arguments"])],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise AssertionError(done.stderr)
        return f"{match['before']} :"

    def close(self) -> None:
        """End what the commands left running, and wait for the end."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.signalled(number)
            for _ in range(100):
                if not self.signalled(0):
                    return
                time.sleep(0.1)

    def signalled(self, number: int) -> list[int]:
        """The process groups that were there to receive the signal."""
        there = []
        for group in self.groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, number)
                there.append(group)
        return there


def transcript(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output shown under it."""
    shown: list[tuple[str, str]] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            shown.append((line[2:], ""))
        elif not shown:
            raise ValueError(f"a console block starts with '$ ', not with {line!r}")
        elif shown[-1][0].endswith("\\\n"):
            shown[-1] = (shown[-1][0] + line, "")
        else:
            shown[-1] = (shown[-1][0], shown[-1][1] + line)
    return shown


def run_console(text: str, terminal: Terminal) -> None:
    """Run the commands; the output of those that show one has to be alike."""
    for command, wanted in transcript(text):
        printed = terminal.run(command)
        alike = doctest.OutputChecker().check_output(wanted, printed, FLAGS)
        if wanted and not alike and not MAKE.search(command):
            raise AssertionError(f"$ {command}shown:\n{wanted}printed:\n{printed}")


def without_numbers(text: str) -> list[str]:
    """The words of an output, with a # for each number and the width of tables left out."""
    return re.sub(r"[─═]+", "─", re.sub(r"\d[\w.,:%-]*", "#", text)).split()


def run_python(block: Block, namespace: dict[str, object], shown: str = "") -> None:
    """Run code that prints what is shown, or the examples where it is written as a session."""
    if ">>> " not in block.text:
        code = compile("\n" * block.line + block.text, block.page, "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if shown and without_numbers(shown) != without_numbers(printed.getvalue()):
            raise AssertionError(f"shown:\n{shown}printed:\n{printed.getvalue()}")
        return
    test = doctest.DocTestParser().get_doctest(
        block.text, namespace, block.page, block.page, block.line
    )
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(
        test, out=report.append, clear_globs=False
    )
    if results.failed:
        raise AssertionError("".join(report))
    namespace.update(test.globs)


def close_workspaces(namespace: dict[str, object]) -> None:
    """Close what the reader's session would close at its end."""
    for value in namespace.values():
        if isinstance(value, Workspace):
            value.close()


def run(found: list[Block], tmp_path: Path) -> int:
    """Run the blocks in order, in one directory; returns how many were run."""
    directory = tmp_path / "reader"
    directory.mkdir()
    terminal = Terminal(directory, tmp_path / "terminal")
    namespace: dict[str, object] = {"__name__": "__main__"}
    ran = 0
    with (
        contextlib.closing(terminal),
        contextlib.chdir(directory),
        contextlib.ExitStack() as opened,
    ):
        opened.callback(close_workspaces, namespace)
        for block, after in zip(found, [*found[1:], Block("", 0, "")], strict=True):
            shown = after.text if after.language == "text" else ""
            if block.language not in RUN or block.reason:
                continue
            try:
                if block.language == "sh":
                    terminal.run(block.text)
                elif block.language == "console":
                    run_console(block.text, terminal)
                else:
                    run_python(block, namespace, shown)
            except Exception as error:
                error.add_note(f"{block.page}, the {block.language} block at line {block.line}")
                raise
            ran += 1
    return ran


@pytest.mark.slow
def test_every_block_of_the_readme_and_of_the_pages_that_go_on_from_it_runs(tmp_path: Path) -> None:
    pages = [each for name in PAGES for each in blocks((ROOT / name).read_text("utf-8"), name)]
    assert run([*blocks(README), *pages], tmp_path) > 0


def test_at_most_two_blocks_of_the_readme_are_not_run() -> None:
    left_out = [(block.line, block.reason) for block in blocks(README) if block.reason]
    assert len(left_out) <= 2, left_out


def test_the_readme_is_read_in_two_minutes_and_its_table_names_commands_that_there_are() -> None:
    assert len(README.splitlines()) <= 175
    table = [line for line in README.splitlines() if line.startswith("| ") and "`rail " in line]
    typed = [shlex.split(each) for line in table for each in re.findall(r"`(rail [^`]+)`", line)]
    assert len(typed) > 10
    for _, *words in typed:
        shown = CliRunner().invoke(app, [*words, "--help"])
        assert shown.exit_code == 0, (words, shown.output)


def ran(tmp_path: Path, *fenced: str) -> int:
    """Run blocks given as ``language`` and text, in a page of their own."""
    page = "".join(
        f"```{language}\n{text}\n```\n" for language, _, text in (f.partition(" ") for f in fenced)
    )
    return run(blocks(page), tmp_path)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("sh false", "exit status 1"),
        ("sh false | cat", "exit status 1"),
        ("sh echo $NEVER_SET", "NEVER_SET"),
        ("sh make no-such-target", "no-such-target"),
        ("sh X=1 make test", "a line of its own"),
        ("console $ echo 3 rows\n4 rows", "printed:\n3 rows"),
        ("python assert 1 == 2, 'two rows'", "two rows"),
        ("python >>> 1 + 1\n3", "Expected"),
    ],
)
def test_a_block_that_fails_is_found(tmp_path: Path, block: str, message: str) -> None:
    with pytest.raises(AssertionError) as caught:
        ran(tmp_path, "sh true", block)
    assert message in str(caught.value)
    language = block.partition(" ")[0]
    assert caught.value.__notes__ == [f"README.md, the {language} block at line 4"]


def test_a_make_command_is_checked_and_not_run(tmp_path: Path) -> None:
    assert ran(tmp_path, "sh make test && echo went on > on.txt", "console $ make demo\nnoise") == 2
    assert (tmp_path / "reader" / "on.txt").read_text() == "went on\n"


def test_a_block_marked_as_not_run_is_left_out_with_its_reason(tmp_path: Path) -> None:
    page = "<!-- not run: needs a key -->\n\n```sh\nfalse\n```\n```sh\ntrue\n```\n"
    assert [block.reason for block in blocks(page)] == ["needs a key", ""]
    assert run(blocks(page), tmp_path) == 1


@pytest.mark.parametrize(
    "page",
    [
        "```\nfalse\n```\n",
        "```bash\nfalse\n```\n",
        "  ```sh\n  false\n  ```\n",
        "~~~sh\nfalse\n~~~\n",
        "```sh\nfalse\n",
    ],
)
def test_a_block_that_would_pass_unseen_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="line 1: a block"):
        blocks(page)
