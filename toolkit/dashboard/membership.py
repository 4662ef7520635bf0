"""The login by an OpenID Connect provider, and the way out of a dashboard that others reach."""

from __future__ import annotations

from streamlit import login, logout, session_state, stop, user

from toolkit.dashboard.screen import st
from toolkit.foreign import Markdown, markdown
from toolkit.workspace.login import ProviderLogin


def ask_login(provider: ProviderLogin) -> None:
    """Let the script go on for a member alone. Who is none sees a button and nothing of the store.

    It has to be called before anything else is read or drawn.
    """
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


def show_leaving() -> None:
    """Show the way to log out, where there was a login."""
    way = session_state.get("login")
    if way == "provider":
        st.button(Markdown("Log out"), key="log_out", on_click=logout)
    elif way == "password":
        st.markdown(Markdown("[Log out](/logout)"))
