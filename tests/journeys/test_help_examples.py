"""Each example of a `--help` works when it is pasted after the first steps of the README."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.listening import free_port
from tests.once import made_once
from toolkit.analyses import analyses
from toolkit.cli import main
from toolkit.cli.analyses import events, stats
from toolkit.cli.report import app as report
from toolkit.cli.root import COMMANDS

from .conftest import RAIL, serving

COLUMNS = 80
LASTING = {
    "app": "dashboard over",
    "mcp": "MCP at",
    "open": "dashboard over",
    "serve": "listening at",
    "webhook": "listening at",
}
READING = (
    *("alerts", "doctor", "events", "fees", "import", "notebook", "report", "screen"),
    *("stats", "status", "store", "symbols"),
)
"""Commands that read and end. Their lines run in this process: to start one takes a second."""
SHOWN = [*(name for name in COMMANDS if name not in ("events", "stats", "store", "demo")), "demo"]
SHOWN += [f"stats {each.name}" for each in stats.registered_commands]
SHOWN += [f"events {each.name}" for each in events.registered_commands]
SHOWN += [
    f"events {each.command}" for each in analyses("events") if each.command not in ("", "channels")
]
SHOWN += [f"report {each.name}" for each in report.registered_commands]
SHOWN += [
    f"store {deed}" for deed in ("publish", "publications", "verify", "compact", "backup", "remap")
]


HELPS = """
import contextlib, sys
from toolkit.cli import main
for command in sys.argv[1:]:
    sys.argv = ["rail", *command.split(), "--help"]
    with contextlib.suppress(SystemExit):
        main()
    print("\\0", flush=True)
"""


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    """What `rail COMMAND --help` shows, by command, asked for by one process."""
    environment = os.environ | {"COLUMNS": str(COLUMNS)}
    argv = [sys.executable, "-c", HELPS, *SHOWN]
    shown = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout
    return dict(zip(SHOWN, shown.split("\0\n")[:-1], strict=True))


@dataclass
class Reader:
    """Where somebody types, in which environment, and what was typed before an example already."""

    folder: Path
    environment: dict[str, str]
    typed: set[str] = field(default_factory=lambda: {":"})

    def prepare(self, before: str) -> None:
        """Type a line that has to come first, once for all examples that need it."""
        if before not in self.typed:
            argv = ["bash", "-c", before]
            subprocess.run(argv, cwd=self.folder, env=self.environment, check=True)
            self.typed.add(before)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A reader who has loaded what the README loads."""
    folder = tmp_path_factory.mktemp("r")
    with serving("--seed", "7") as base_url:
        environment = os.environ | {
            "PATH": f"{RAIL.parent}{os.pathsep}{os.environ['PATH']}",
            "RAIL_BASE_URL": base_url,
            "XDG_DATA_HOME": str(folder),
            "COLUMNS": str(COLUMNS),
            "PYTHONUNBUFFERED": "1",
            "BROWSER": "true",
        }

        def load(made: Path) -> None:
            words = "sync --all-spreads --symbol LTC_USDT events/spread events/splash"
            funding = "funding/BTC_USDT:AURORA.futures:EQUINOX.futures"
            subprocess.run([RAIL, *words.split(), funding], cwd=made, env=environment, check=True)

        shutil.copytree(made_once(tmp_path_factory, "reader", load), folder, dirs_exist_ok=True)
        yield Reader(folder, environment)


def examples(command: str, shown: str) -> tuple[list[str], str]:
    """The examples in a command's help, one line each, and the line to be typed before them."""
    assert max(map(len, shown.splitlines())) <= COLUMNS
    found = re.findall(r"(?m)^ *Example: (.*)\n\s*(?:\n|$|Before:)", shown)
    before = re.findall(r"(?m)^ *Before: (.*)$", shown)
    assert len(found) == shown.count("Example:") > 0, "an example is longer than a line"
    for line in found:
        assert shlex.split(line)[: 1 + len(command.split())] == ["rail", *command.split()]
    return found, before[0] if before else ":"


@pytest.mark.parametrize("command", [name for name in SHOWN if name != "demo"])
def test_the_examples_of_a_command_work_when_pasted(
    reader: Reader,
    helps: dict[str, str],
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, environment = reader.folder, reader.environment
    lines, before = examples(command, helps[command])
    if command.split(maxsplit=1)[0] not in READING:
        for line in lines:
            pasted(f"{before}; exec {line}", command, folder, environment)
        return
    reader.prepare(before)
    monkeypatch.chdir(folder)
    for name in environment.keys() - os.environ.keys() | {"XDG_DATA_HOME"}:
        monkeypatch.setenv(name, environment[name])
    for line in lines:
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert not ended.value.code, said.err
        assert "Traceback" not in said.out + said.err
        assert (said.out + said.err).strip()


def test_the_example_of_the_demo_is_what_its_own_tests_run(helps: dict[str, str]) -> None:
    assert examples("demo", helps["demo"]) == (["rail demo --once"], ":")


def pasted(line: str, command: str, folder: Path, environment: dict[str, str]) -> None:
    """Run a line in a shell, to where a command that lasts is ready."""
    process = subprocess.Popen(
        ["bash", "-c", line],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said = ""
    try:
        if command in LASTING:
            for text in process.stdout:
                said += text
                if LASTING[command] in text:
                    process.send_signal(signal.SIGINT)
                    break
        said += process.communicate(timeout=240)[0]
    finally:
        process.kill()
    assert process.returncode in ((0, 130) if command in LASTING else (0,)), said
    assert "Traceback" not in said
    assert said.strip()


def test_a_sync_that_waits_goes_on_as_soon_as_the_service_answers(tmp_path: Path) -> None:
    argv = [RAIL, "sync", "--wait", "events/splash", "--base-url"]
    port = str(free_port())
    waits = subprocess.Popen(
        [*argv, f"http://127.0.0.1:{port}"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    with serving("--seed", "7", "--port", port):
        said, _ = waits.communicate(timeout=240)
    assert waits.returncode == 0
    assert "SIMULATED" in said
