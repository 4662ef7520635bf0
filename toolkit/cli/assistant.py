"""`rail mcp`: the store's statistics as read-only tools for an assistant."""

from __future__ import annotations

import sys
from pathlib import Path

from toolkit.cli.options import asks
from toolkit.cli.show import errors
from toolkit.errors import needs_extra
from toolkit.workspace import open_workspace


@asks(
    http="Serve at http://127.0.0.1:PORT/mcp instead of stdio.",
    port="With --http: the port to listen on; 0 takes a free one.",
)
def mcp_command(
    store: Path | None = None, fees: Path | None = None, http: bool = False, port: int = 8701
) -> None:
    """Serve the store's statistics to an assistant over MCP, by stdio or local HTTP.

    The tools are read-only: search_streams, screen, coverage, chart, sql, and one per analysis of a
    series, such as summary. Each answer has n, coverage, window, interval, unit, and why a figure
    is null. Over stdio the assistant's program starts this command: docs/assistant.md has its
    settings. It ends with its input or with Ctrl-C.

    Example: rail mcp --http --port 0
    """
    with needs_extra("service"):
        from toolkit.assistant.server import serve_http, serve_stdio  # noqa: PLC0415 - an extra
    with open_workspace(store, fees=fees) as rail:
        if http:
            serve_http(rail, port, lambda url: errors.print(f"MCP at {url}/mcp; Ctrl-C ends it"))
            return
        if sys.stdin.isatty():
            errors.print("waiting for a program's messages; Ctrl-C ends it; --http for an address")
        serve_stdio(rail)
