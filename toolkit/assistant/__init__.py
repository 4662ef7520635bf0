"""The statistics of a store as read-only tools for an assistant, by MCP: `rail mcp`.

`tools` says what can be asked: a `tool` for each question, most of them made of a declaration
(`declared`). `questions` asks a workspace, `answers` writes what was found, and `server` speaks the
protocol. Only `server` imports the MCP SDK.
"""

from toolkit.assistant.answers import ToolAnswer
from toolkit.assistant.tool import StoreTool
from toolkit.assistant.tools import TOOLS

__all__ = ["TOOLS", "StoreTool", "ToolAnswer"]
