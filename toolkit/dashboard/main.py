"""The pages and the way between them."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import streamlit as st

__all__ = ["main"]

_PAGES = Path(__file__).parent


def main() -> None:
    """Set the page up and show the one that the address names."""
    arguments = argparse.ArgumentParser(allow_abbrev=False)
    arguments.add_argument("--store")
    store = arguments.parse_known_args()[0].store
    if store:
        os.environ["RAIL_STORE"] = store
    st.set_page_config(page_title="machine-rail toolkit", page_icon="📈", layout="wide")
    # Absolute, so that an installed package finds its pages without a checkout.
    st.navigation([st.Page(str(_PAGES / "trajectory.py"), title="Trajectory", default=True)]).run()


if __name__ == "__main__":
    main()
