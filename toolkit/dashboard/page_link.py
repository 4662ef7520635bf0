"""The link of a page, kept in step with the page's widgets in both directions."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.dashboard.screen import st
from toolkit.foreign import Markdown

OPTION = "with_"
"""What the options of an analysis begin with in a link."""


@dataclass(frozen=True, slots=True)
class PageLink:
    """The parameters of one page's link: its state is kept under the page's name."""

    page: str
    names: tuple[str, ...]

    def to_follow(self, *widgets: str, ready: bool = True) -> dict[str, str] | None:
        """Return the parameters that the widgets must take over, None where there is nothing new.

        ``widgets`` are the keys of those that always have a value. Where a run ended before one, as
        with a locked store, Streamlit forgets its value or has None for it: it is then taken over
        again. ``ready`` is whether the values are still allowed. A page that is opened again
        without parameters follows the link that it had before.
        """
        ready = ready and all(st.session_state.get(key) is not None for key in widgets)
        params = {name: st.query_params[name] for name in self.names if name in st.query_params}
        written = st.session_state.get(f"{self.page}_written")
        if ready and params == written:
            return None
        st.session_state.pop(f"{self.page}_followed", None)
        return params or written or {}

    def asks_for(self, name: str) -> str | None:
        """Return a parameter of the link, or of the one that the page had before."""
        written = st.session_state.get(f"{self.page}_written", {})
        asked: str | None = st.query_params.get(name) or written.get(name)
        return asked

    def keep_faults(self, faults: list[Markdown]) -> None:
        """Keep what was wrong with the link until a widget is used."""
        st.session_state[f"{self.page}_faults"] = faults

    def write(self, params: dict[str, str]) -> None:
        """Set the link to the values of the widgets, and show what was wrong with it."""
        state = st.session_state
        if state.setdefault(f"{self.page}_followed", params) != params:
            self.keep_faults([])
            state[f"{self.page}_followed"] = params
        for name in self.names:
            if name in st.query_params and name not in params:
                del st.query_params[name]
        if any(st.query_params.get(name) != value for name, value in params.items()):
            st.query_params.update(params)
        state[f"{self.page}_written"] = params
        for fault in state[f"{self.page}_faults"]:
            st.warning(fault)
