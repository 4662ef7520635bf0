"""The statistics of a store as read-only tools for an assistant, by MCP: `rail mcp`.

`tools` lists them, `questions` asks a workspace, `answers` writes the result, and `server`, which
alone imports the MCP SDK, serves them.
"""

from toolkit.assistant.answers import ToolAnswer
from toolkit.assistant.tools import TOOLS, StoreTool

__all__ = ["TOOLS", "StoreTool", "ToolAnswer"]
