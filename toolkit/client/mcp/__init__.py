"""The service's tools over MCP: a thin driver over the protocol's own SDK.

Bulk data are loaded over REST, at a small part of the cost. `toolkit` and `toolkit.client` do not
import this package: the SDK takes most of a second.
"""

from toolkit.client.mcp.client import McpClient, McpResult, McpTool
from toolkit.client.mcp.connection import Refusal

__all__ = ["McpClient", "McpResult", "McpTool", "Refusal"]
