"""The application: pages, navigation and the login by an OpenID Connect provider."""

from __future__ import annotations

import argparse
import os

from streamlit import Page, login, logout, navigation, session_state, set_page_config, stop, user

from toolkit.dashboard.link import PAGES, page_file
from toolkit.dashboard.saved_views import view_pages
from toolkit.dashboard.widgets import st
from toolkit.foreign import Markdown, markdown
from toolkit.workspace import store_path
from toolkit.workspace.login import ProviderLogin


def ask_login(provider: ProviderLogin) -> None:
    """Stop the script unless the user is a member. Call it before anything is read or drawn."""
    if not user.is_logged_in:
        st.header(Markdown("machine-rail toolkit"), anchor=False)
        st.button(Markdown("Log in"), key="log_in", type="primary", on_click=login)
        stop()
    if not provider.lets_in(user.to_dict()):
        who = markdown(str(user.to_dict().get("email") or "this account"))
        st.error(Markdown("{} may not open this dashboard.").format(who))
        st.button(Markdown("Log out"), key="log_out", on_click=logout)
        stop()
    session_state["login"] = "provider"


def main() -> None:
    """Set up the application and show the page of the address."""
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
