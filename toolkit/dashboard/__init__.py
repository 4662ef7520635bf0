"""The Streamlit dashboard: its pages, and the command that serves them.

Only the pages import Streamlit, not this package.
"""

from toolkit.dashboard.settings import command

__all__ = ["command"]
