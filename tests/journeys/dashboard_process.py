"""`rail app` as a process, and its pages asked for over the socket.

Streamlit's agent API runs a page as a browser's session would and answers with all that is on it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.listening import free_port
from toolkit.dashboard.link import PAGES

from .conftest import RAIL

STREAMLIT = {
    "STREAMLIT_SERVER_ENABLE_AGENT_API": "true",
    # Else a page that takes over 30 s, as on a busy machine, is answered for before its end.
    "STREAMLIT_SERVER_AGENT_WAIT_TIMEOUT": "300",
}


@dataclass
class App:
    """A dashboard's process, and the session of somebody who goes from page to page in it."""

    process: subprocess.Popen[bytes]
    address: str
    output: Path
    session: str | None = None

    def get(self, path: str) -> bytes:
        """The answer to a plain GET."""
        with urllib.request.urlopen(self.address + path, timeout=300) as answer:
            found: bytes = answer.read()
        return found

    def page(self, name: str) -> list[dict[str, Any]]:
        """All that stands on a page once its script has run to the end."""
        asked: dict[str, Any] = {"page": "" if name == "overview" else name}
        if self.session:
            asked["session_id"] = self.session
        request = urllib.request.Request(
            f"{self.address}/_stcore/agent/interact",
            json.dumps(asked).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            shown = json.load(answer)
        self.session = shown["session_id"]
        elements = list(_elements(shown["tree"]))
        said = [node for node in elements if node["type"] in ("exception", "error")]
        assert shown["status"] == "ready", (name, shown["status"], said)
        assert shown["page"]["title"] == PAGES[name]
        return elements

    def end(self, how: signal.Signals, *, as_terminal: bool = False) -> int:
        """Send a signal to the command, or to all it started as Ctrl-C does; its exit code."""
        (os.killpg if as_terminal else os.kill)(self.process.pid, how)
        return self.process.wait(300)

    def has_left_a_dashboard(self) -> bool:
        """Whether somebody still answers at its address."""
        try:
            self.get("/_stcore/health")
        except OSError:
            return False
        return True

    def has_left_a_process(self) -> bool:
        """Whether the command or something it started still runs."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return False
        return True


def _elements(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("children", []):
        yield from _elements(child)


def properties(elements: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """What the elements of a kind were given."""
    return [node.get("props", {}) for node in elements if node["type"] == kind]


def faults(elements: list[dict[str, Any]]) -> list[str]:
    """Exceptions and errors that a page shows, and its source where that is not said."""
    found = [str(node) for node in elements if node["type"] in ("exception", "error")]
    said = [str(props["body"]) for props in properties(elements, "markdown")]
    return found if any("SIMULATED" in text for text in said) else [*found, f"no source: {said}"]


@contextmanager
def app_over(store: Path, folder: Path, *more: str, **environment: str) -> Iterator[App]:
    """`rail app` in a folder, over a store named as from there, once it answers."""
    port, output = free_port(), folder / "app.out"
    argv = [RAIL, "app", "--store", store, "--no-browser", "--port", str(port), *more]
    with output.open("wb") as out:
        process = subprocess.Popen(
            argv,
            stdout=out,
            stderr=out,
            cwd=folder,
            env=os.environ | STREAMLIT | environment,
            start_new_session=True,
        )
    app = App(process, f"http://127.0.0.1:{port}", output)
    try:
        while process.poll() is None:
            try:
                app.get("/_stcore/health")
                break
            except OSError:
                time.sleep(0.1)
        else:
            pytest.fail(f"the dashboard did not start: {output.read_text()}")
        yield app
    finally:
        process.terminate()
        process.wait(120)
