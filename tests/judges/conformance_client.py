"""The client that the conformance suite judges: lists the tools of the address given, calls each.

The suite's tools have names of their own, so each is called as that of the schemas, by a line of
profile, and without arguments.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from toolkit.client.mcp import McpClient
from toolkit.errors import ServiceError
from toolkit.wire.profile.user_profile import UserProfile


def looked(address: SplitResult, folder: str, tool: str) -> tuple[str, ...]:
    """The tools that are listed, after ``tool`` was called for the schemas if it is one of them."""
    file = Path(folder) / "profile.toml"
    file.write_text(f'mcp_path = "{address.path or "/mcp"}"\n[tools]\nschemas = "{tool}"\n')
    base_url = f"{address.scheme}://{address.netloc}"
    return McpClient(base_url, "any-key", profile=UserProfile.read(file)).listing().tools


def main() -> None:
    """List, then call."""
    address = urlsplit(sys.argv[-1])
    with tempfile.TemporaryDirectory() as folder:
        for tool in looked(address, folder, "none"):
            with contextlib.suppress(ServiceError):  # a scenario may list what it does not serve
                looked(address, folder, tool)


if __name__ == "__main__":
    main()
