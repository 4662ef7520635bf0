"""One set of options, as a file and as flags, and a command that serves the page with them."""

import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from pathlib import Path

import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

from toolkit.dashboard import command
from toolkit.dashboard.settings import settings

ROOT = Path(__file__).parents[3]


def flat(table, prefix=""):
    for name, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def test_streamlit_knows_every_option_nothing_is_sent_and_nothing_is_asked():
    text = (ROOT / ".streamlit" / "config.toml").read_text()
    assert dict(flat(tomllib.loads(text))) == settings()
    known = set(config.get_config_options())
    assert set(settings()) <= known
    assert settings()["browser.gatherUsageStats"] is False
    assert settings()["server.showEmailPrompt"] is False
    assert settings()["server.address"] == "127.0.0.1"
    for theme in ("light", "dark"):
        assert len(settings()[f"theme.{theme}.chartCategoricalColors"]) == 10
    assert "theme.base" not in settings()


@pytest.mark.slow
def test_the_package_brings_neither_streamlit_nor_plotly_until_it_is_used():
    program = (
        "import sys, toolkit.dashboard; "
        "print(sorted({'streamlit', 'plotly', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_checkouts_script_shows_the_same_page(page, held):
    packaged = page(held.path, "overview")
    checkout = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    assert not checkout.exception
    assert [m.label for m in checkout.metric] == [m.label for m in packaged.metric] != []


def health(address: str) -> bytes:
    """What a server that starts answers, as soon as it does: it prints no line when it is ready."""
    while True:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health") as answer:
                return answer.read()
        except OSError:
            time.sleep(0.1)


@pytest.mark.timeout(120)
@pytest.mark.slow
def test_the_command_serves_the_page_from_anywhere(held, workdir):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    argv = command(held.path, port=port, host="127.0.0.1", headless=True)
    with subprocess.Popen(
        [sys.executable, "-m", *argv],
        cwd=workdir,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        try:
            assert health(f"http://127.0.0.1:{port}") == b"ok"
        finally:
            server.terminate()
            rest, _ = server.communicate(timeout=60)
    assert "Stopping" in rest
    assert server.returncode == 0
