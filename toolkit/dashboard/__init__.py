"""The Streamlit dashboard: one file per question a user asks, and the command that serves it.

Streamlit is imported by the pages alone, not by this package.
"""

from toolkit.dashboard.settings import command

__all__ = ["command"]
