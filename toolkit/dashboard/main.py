"""The pages and the way between them."""

from __future__ import annotations

import argparse
import os

import streamlit as st

from toolkit.dashboard.navigation import PAGES, page_file


def main() -> None:
    """Set the application up and show the page that the address names."""
    arguments = argparse.ArgumentParser(allow_abbrev=False)
    arguments.add_argument("--store")
    arguments.add_argument("--follow", action="store_true")
    given = arguments.parse_known_args()[0]
    if given.store:
        os.environ["RAIL_STORE"] = given.store
    if given.follow:
        st.session_state.setdefault("follow", True)
    # An emoji: any other icon of a page or of the navigation is fetched from elsewhere.
    st.set_page_config(page_title="machine-rail toolkit", page_icon="📈", layout="wide")
    first, *others = (
        st.Page(page_file(name), title=title, url_path=name, default=name == "overview")
        for name, title in PAGES.items()
    )
    st.navigation([first, *others], position="top").run()


if __name__ == "__main__":
    main()
