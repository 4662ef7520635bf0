"""Saved views on the screen: pages of the navigation, and where they are saved and deleted."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from streamlit import Page
from streamlit.navigation.page import StreamlitPage

from toolkit.dashboard.navigation import go_to
from toolkit.dashboard.screen import st
from toolkit.dashboard.views import SavedView, delete_view, read_views, save_view
from toolkit.errors import InputError
from toolkit.foreign import LONGEST, Markdown, markdown

_OF_THE_BAR = ("kept", "clocks")
_FAULT = "view_fault"


def view_pages(store: Path) -> list[StreamlitPage]:
    """Return a page for each saved view, which leads to what was saved. [] where none can be read.

    They are pages so that the navigation opens them by one click.
    """
    try:
        views = read_views(store)
    except InputError:
        return []
    return [
        Page(partial(_open, view), title=f"★ {view.name}", url_path=f"view-{number}")
        for number, view in enumerate(views, 1)
    ]


def _open(view: SavedView) -> None:
    for page in (view.page, *_OF_THE_BAR):
        st.session_state.pop(f"{page}_written", None)
    go_to(view.page, **view.params)


def show_views(store: Path, page: str) -> None:
    """Show the popover in which a view is saved under a name, and those there are deleted."""
    with st.popover(Markdown("Views"), type="tertiary"):
        try:
            views = read_views(store)
        except InputError as error:
            st.error(markdown(str(error), LONGEST))
            return
        st.text_input(
            Markdown("Save what is shown as"), key="view_name", placeholder="My coins", max_chars=30
        )
        st.button(
            Markdown("Save"), key="view_save", type="primary", on_click=_save, args=(store, page)
        )
        if fault := st.session_state.pop(_FAULT, None):
            st.error(markdown(fault, LONGEST))
        for number, view in enumerate(views):
            st.button(
                Markdown("Delete {}").format(markdown(view.name)),
                key=f"view_delete_{number}",
                type="tertiary",
                on_click=delete_view,
                args=(store, view.name),
            )


def _save(store: Path, page: str) -> None:
    state = st.session_state
    try:
        save_view(store, SavedView.of(state["view_name"], page, dict(st.query_params)))
    except InputError as error:
        state[_FAULT] = str(error)
    else:
        state["view_name"] = ""
