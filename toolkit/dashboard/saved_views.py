"""Saved views: a page and its link under a name, in ``rail.duckdb.views.json`` beside the store.

The file is a list of objects with name, page and link, each a page of the navigation.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from streamlit import Page
from streamlit.navigation.page import StreamlitPage

from toolkit.dashboard.link import PAGES, go_to
from toolkit.dashboard.widgets import st
from toolkit.errors import InputError
from toolkit.files import replace_file
from toolkit.foreign import LONGEST, Markdown, markdown, plain

_NAME_LONGEST = 30
_LINK_LONGEST = 4_000
_MOST = 12
_NAME = f"1 to {_NAME_LONGEST} characters of words and numbers"


@dataclass(frozen=True, slots=True)
class SavedView:
    """A page and the parameters of its link, under a name."""

    name: str
    page: str
    link: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or self.name.strip() != self.name:
            raise InputError("name", self.name, f"{_NAME}, no blank at either end")
        if len(self.name) > _NAME_LONGEST or Markdown.harmless(self.name) != self.name:
            raise InputError("name", self.name, _NAME)
        if self.page not in PAGES:
            raise InputError("page", self.page, PAGES)
        if not isinstance(self.link, str) or len(self.link) > _LINK_LONGEST:
            raise InputError("link", self.link, f"a link of up to {_LINK_LONGEST:,} characters")

    @classmethod
    def of(cls, name: str, page: str, params: dict[str, str]) -> SavedView:
        """Make the view of a page's parameters."""
        return cls(name.strip(), page, urlencode(params))

    @property
    def params(self) -> dict[str, str]:
        """The parameters of the link."""
        return dict(parse_qsl(self.link))


def views_file(store: Path) -> Path:
    """Return the file of a store's views."""
    return store.with_name(f"{store.name}.views.json")


def read_views(store: Path) -> list[SavedView]:
    """Return the views of a store, [] without a file. Raises `InputError` for a malformed file."""
    file = views_file(store)
    try:
        found: Any = json.loads(file.read_text("utf-8"))
        return [SavedView(**each) for each in found][:_MOST]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError) as error:
        said = plain(str(error), 160)
        raise InputError(
            "views",
            str(file),
            f"a list of name, page and link ({said})",
            advice="mend or remove it",
        ) from None


def save_view(store: Path, view: SavedView) -> None:
    """Save a view, replacing one of the same name. Raises `InputError` for too many."""
    before = [each for each in read_views(store) if each.name != view.name]
    if len(before) >= _MOST:
        raise InputError("views", len(before) + 1, f"{_MOST} views", advice="delete one")
    _write(store, [*before, view])


def delete_view(store: Path, name: str) -> None:
    """Delete a view, if it exists."""
    _write(store, [each for each in read_views(store) if each.name != name])


def _write(store: Path, views: Sequence[SavedView]) -> None:
    """Replace the file atomically."""
    file = views_file(store)
    text = json.dumps([asdict(view) for view in views], indent=1, ensure_ascii=False)
    try:
        replace_file(file, f"{text}\n".encode(), mode=0o600)
    except OSError as error:
        raise InputError(
            "views", str(file), f"a file that this user may write ({error.strerror})"
        ) from None


_OF_THE_BAR = ("kept", "clocks")
_FAULT = "view_fault"


def view_pages(store: Path) -> list[StreamlitPage]:
    """Return a page per saved view that opens it, [] if none can be read."""
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
    """Show the popover that saves and deletes views."""
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
