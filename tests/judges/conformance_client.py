"""The client that the conformance suite judges: lists the tools of the address given, calls each.

The suite's tools have names of their own, so each is called in a role, by a line of profile.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from toolkit.client.mcp import McpClient, McpTool
from toolkit.errors import NotFoundError
from toolkit.wire.user_profile import UserProfile

SAMPLES = {"integer": 5, "number": 5, "string": "BTC_USDT", "boolean": True}


def profile(folder: str, path: str, tool: str) -> UserProfile:
    """A file that says where MCP is, and that the tool is the one we call symbols."""
    file = Path(folder) / "profile.toml"
    file.write_text(f'mcp_path = "{path or "/mcp"}"\n[tools]\nsymbols = "{tool}"\n')
    return UserProfile.read(file)


def arguments(tool: McpTool) -> dict[str, object]:
    """A value of its type for each argument."""
    properties = tool.input_schema.get("properties", {})
    return {name: SAMPLES.get(said.get("type")) for name, said in properties.items()}


def main() -> None:
    """List, then call."""
    address = urlsplit(sys.argv[-1])
    base_url = f"{address.scheme}://{address.netloc}"
    with tempfile.TemporaryDirectory() as folder:
        users = profile(folder, address.path, "none")
        with McpClient(base_url, "any-key", profile=users) as client:
            tools = client.tools()
        for tool in tools:
            users = profile(folder, address.path, tool.name)
            with (
                contextlib.suppress(NotFoundError),  # a scenario may list what it does not serve
                McpClient(base_url, "any-key", profile=users) as client,
            ):
                client.call("symbols", **arguments(tool))


if __name__ == "__main__":
    main()
