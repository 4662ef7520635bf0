"""The pages and the way between them."""

from __future__ import annotations

import argparse
import os

from streamlit import Page, navigation, session_state, set_page_config

from toolkit.dashboard.membership import ask_login
from toolkit.dashboard.navigation import PAGES, page_file
from toolkit.dashboard.view_menu import view_pages
from toolkit.workspace import store_path
from toolkit.workspace.login import ProviderLogin


def main() -> None:
    """Set the application up and show the page that the address names."""
    arguments = argparse.ArgumentParser(allow_abbrev=False)
    arguments.add_argument("--store")
    arguments.add_argument("--follow", action="store_true")
    arguments.add_argument("--password-file")
    arguments.add_argument("--member", action="append", default=[])
    given = arguments.parse_known_args()[0]
    if given.store:
        os.environ["RAIL_STORE"] = given.store
    if given.follow:
        session_state.setdefault("follow", True)
    # An emoji: any other icon of a page or of the navigation is fetched from elsewhere.
    set_page_config(page_title="machine-rail toolkit", page_icon="📈", layout="wide")
    if given.member:
        ask_login(ProviderLogin(tuple(given.member)))
    elif given.password_file:
        session_state.setdefault("login", "password")
    first, *others = (
        Page(page_file(name), title=title, url_path=name, default=name == "overview")
        for name, title in PAGES.items()
    )
    navigation([first, *others, *view_pages(store_path())], position="top").run()


if __name__ == "__main__":
    main()
