"""How Streamlit is set up, once: for a checkout as a file, for an installed wheel as flags."""

from __future__ import annotations

import json
import sys
from pathlib import Path

MAIN = Path(__file__).with_name("main.py")
"""The script that Streamlit runs."""


def settings() -> dict[str, bool | str | list[str]]:
    """Return Streamlit's options for this dashboard: nothing is sent anywhere, nothing asked.

    Both themes are given and no base, so that the page follows the browser. Charts ignore fewer
    than ten colours.

    >>> settings()["browser.gatherUsageStats"], settings()["theme.dark.backgroundColor"]
    (False, '#0e1117')
    """
    from toolkit.charts.theme import BACKGROUND, COLOURS  # noqa: PLC0415 - keeps plotly out of rail's start

    options: dict[str, bool | str | list[str]] = {
        "browser.gatherUsageStats": False,
        "client.toolbarMode": "minimal",
        "logger.hideWelcomeMessage": True,
        "logger.level": "warning",
        "runner.magicEnabled": False,
        "server.address": "127.0.0.1",
        "server.showEmailPrompt": False,
        "theme.paddingTop": "2rem",
    }
    for theme, colours in COLOURS.items():
        options[f"theme.{theme}.backgroundColor"] = BACKGROUND[theme]
        options[f"theme.{theme}.chartCategoricalColors"] = list(colours)
        options[f"theme.{theme}.primaryColor"] = colours[0]
    return options


def command(
    store_path: str | Path, port: int, host: str, headless: bool, follow: bool = False
) -> list[str]:
    """Return the command that serves the dashboard over a store, from the package's files alone.

    ``headless`` opens no browser. With ``follow`` each page begins by following the store.
    Streamlit is not imported here.

    >>> argv = command("rail.duckdb", port=8501, host="127.0.0.1", headless=True)
    >>> argv[1:4], argv[-2:]
    (['-m', 'streamlit', 'run'], ['--store', 'rail.duckdb'])
    >>> argv[argv.index("--server.port") + 1], argv[argv.index("--browser.gatherUsageStats") + 1]
    ('8501', 'false')
    """
    options = settings() | {"server.address": host, "server.headless": headless}
    flags = ["--server.port", str(port)]
    for name, value in options.items():
        flags += [f"--{name}", value if isinstance(value, str) else json.dumps(value)]
    run = [sys.executable, "-m", "streamlit", "run", str(MAIN), *flags]
    return [*run, "--", "--store", str(store_path), *(["--follow"] if follow else [])]
