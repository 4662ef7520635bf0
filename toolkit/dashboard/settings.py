"""Settings of Streamlit, and the command with them as flags."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from toolkit.workspace.login import PasswordFile, ProviderLogin

MAIN = Path(__file__).with_name("pages") / "main.py"
"""The script that Streamlit runs, in ``pages`` so that Streamlit finds no such folder beside it."""

_SHARED = Path(__file__).with_name("shared.py")
"""The same with a door before it."""

_OWN_NAMES = ["localhost", "*.localhost", "127.0.0.1", "::1"]

_TEXT = {"light": "#0b0e13", "dark": "#f5f7fa"}
"""Strong, as captions have it at 60 % and need a contrast of 4.5:1."""


_CHOSEN = {"light": "#22627a", "dark": "#59caf0"}
"""The colour of chosen widgets: a chart's first, darker on light as it colours text too."""


def settings() -> dict[str, bool | int | str | list[str]]:
    """Return Streamlit's options for this dashboard: nothing is sent anywhere.

    Its socket answers only to names of this machine. Both themes are given without a base, so that
    the page follows the browser. Charts need ten colours.
    """
    from toolkit.charts.theme import BACKGROUND, COLOURS  # noqa: PLC0415 - keeps plotly out of rail's start

    options: dict[str, bool | int | str | list[str]] = {
        "browser.gatherUsageStats": False,
        "client.toolbarMode": "minimal",
        "logger.hideWelcomeMessage": True,
        "logger.level": "warning",
        "runner.magicEnabled": False,
        "server.address": "127.0.0.1",
        "server.allowedHosts": _OWN_NAMES,
        "server.enableCORS": True,
        "server.enableXsrfProtection": True,
        "server.showEmailPrompt": False,
        "theme.baseFontSize": 14,
        "theme.codeFontSize": "0.85rem",
        "theme.headingFontSizes": ["1.4rem", "1.4rem", "1.15rem", "1rem", "1rem", "1rem"],
        "theme.metricValueFontSize": "1.3rem",
        "theme.paddingTop": "0.25rem",
    }
    for theme, colours in COLOURS.items():
        options[f"theme.{theme}.backgroundColor"] = BACKGROUND[theme]
        options[f"theme.{theme}.textColor"] = _TEXT[theme]
        options[f"theme.{theme}.codeTextColor"] = _TEXT[theme]
        options[f"theme.{theme}.chartCategoricalColors"] = list(colours)
        options[f"theme.{theme}.primaryColor"] = _CHOSEN[theme]
    return options


def command(
    store_path: str | Path,
    port: int,
    host: str,
    headless: bool,
    *,
    follow: bool = False,
    login: PasswordFile | ProviderLogin | None = None,
    names: Sequence[str] = (),
) -> list[str]:
    """Return Streamlit's command line that serves the dashboard over a store.

    ``headless`` opens no browser. ``follow`` refreshes pages every 5 s. With ``login`` others can
    reach it, also by ``names``.
    """
    options = settings() | {"server.address": host, "server.headless": headless}
    script, ours = MAIN, ["--store", str(store_path), *(["--follow"] if follow else [])]
    if login is None:
        options["server.allowedHosts"] = [*_OWN_NAMES, host]
    else:
        script, options["server.allowedHosts"] = _SHARED, ["*"]  # the door looks at them
        ours += [word for name in names for word in ("--name", name)]
        if isinstance(login, PasswordFile):
            ours += ["--password-file", str(login.path)]
        else:
            ours += [word for rule in login.allowed for word in ("--member", rule)]
    options["server.port"] = port
    flags = [word for name, value in options.items() for word in _flags(name, value)]
    return ["streamlit", "run", str(script), *flags, "--", *ours]


def _flags(name: str, value: bool | int | str | list[str]) -> list[str]:
    """Return an option as flags: one per host of a list, JSON for another list."""
    values = value if name == "server.allowedHosts" and isinstance(value, list) else [value]
    shown = (each if isinstance(each, str) else json.dumps(each) for each in values)
    return [word for each in shown for word in (f"--{name}", each)]
