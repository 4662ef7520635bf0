"""`rail mcp`: the store's statistics as read-only tools for an assistant."""

from __future__ import annotations

import sys
from pathlib import Path

from toolkit.cli.options import asks
from toolkit.cli.show import errors
from toolkit.errors import needs_extra
from toolkit.workspace import open_workspace


@asks(
    http="Answer at http://127.0.0.1:PORT/mcp, not over stdio.",
    port="With --http: where to listen; 0 takes a free one.",
)
def mcp_command(
    store: Path | None = None,
    fees: Path | None = None,
    http: bool = False,
    port: int = 8701,
) -> None:
    """Answer an assistant's questions about the store by MCP, over stdio or local HTTP.

    The tools read and write nothing: search_streams, screen, coverage, chart, sql, and one for each
    analysis of a series, such as summary. Each answer has n, coverage, window, interval, unit, and
    why a figure is null. Over stdio the assistant's program starts this command: docs/assistant.md
    has its settings. It ends with the input, or by Ctrl-C.

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
