"""The service's tools over MCP, for small questions: bulk data costs much less over REST.

Importing the protocol's SDK takes most of a second, so `toolkit.client` does not import this.
"""

from toolkit.errors import needs_extra

with needs_extra("service"):
    from toolkit.client.mcp.client import McpClient, McpResult, McpTool

__all__ = ["McpClient", "McpResult", "McpTool"]
