# ruff: noqa: D102 - what each kind of option does is described once, in `Option`
"""Choices of a page, declared once: each is a widget, a parameter of the link, a filter and Python.

A run follows the link, draws the widgets, reads their values and writes the link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolkit.dashboard.link import read_choice, read_number, read_option, read_zoom, zoom_text
from toolkit.dashboard.widgets import st
from toolkit.foreign import Markdown

OPTION = "with_"
"""The prefix of an analysis' options in a link."""


@dataclass(frozen=True, slots=True)
class PageLink:
    """The parameters of one page's link, with state under the page's name."""

    page: str
    names: tuple[str, ...]

    def to_follow(self, *widgets: str, ready: bool = True) -> dict[str, str] | None:
        """Return the parameters that the widgets must take over, None if nothing is new.

        ``widgets`` are the keys of those that always have a value: Streamlit forgets one that a run
        did not draw, so it is read again. ``ready`` is whether the values are still allowed. A page
        opened again without parameters follows its previous link.
        """
        ready = ready and all(st.session_state.get(key) is not None for key in widgets)
        params = {name: st.query_params[name] for name in self.names if name in st.query_params}
        written = st.session_state.get(f"{self.page}_written")
        if ready and params == written:
            return None
        st.session_state.pop(f"{self.page}_followed", None)
        return params or written or {}

    def asks_for(self, name: str) -> str | None:
        """Return a parameter of the link, or of the page's previous one."""
        written = st.session_state.get(f"{self.page}_written", {})
        asked: str | None = st.query_params.get(name) or written.get(name)
        return asked

    def keep_faults(self, faults: list[Markdown]) -> None:
        """Keep the faults of the link until a widget is used."""
        st.session_state[f"{self.page}_faults"] = faults

    def write(self, params: dict[str, str]) -> None:
        """Set the link to the widgets' values, and show its faults."""
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


@dataclass(frozen=True, slots=True)
class Option:
    """One choice of a page.

    ``name`` is its parameter in the link, ``usual`` the value that the link leaves out, ``looks``
    further arguments of its widget. A filter has the ``argument`` of
    `toolkit.workspace.Workspace.screen` that takes its value, or the condition ``where`` with a
    place for it, for the page's rows and its Python. The usual value filters nothing.
    """

    name: str
    label: Markdown
    usual: Any
    key: str = ""
    allowed: Sequence[str] | Mapping[str, str] = ()
    argument: str = ""
    where: str = ""
    looks: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Use the name as the widget's key unless one is given."""
        if not self.key:
            object.__setattr__(self, "key", self.name)

    @property
    def always(self) -> bool:
        """Whether its widget always has a value."""
        return self.usual is not None

    def read(self, params: Mapping[str, str], faults: list[Markdown]) -> Any:
        """Return the value in a link, or the usual one and why in ``faults``."""
        raise NotImplementedError

    def text(self, value: Any) -> str:
        """Format a value for the link."""
        return str(value)

    def is_usual(self, value: Any) -> bool:
        """Return whether the link leaves a value out."""
        return bool(value == self.usual)

    def fitted(self, value: Any) -> Any:
        """Return the part of an earlier value that is still allowed."""
        return value

    def draw(self, **looks: Any) -> None:
        """Draw the widget."""
        raise NotImplementedError

    def _looks(self, **looks: Any) -> dict[str, Any]:
        return {"key": self.key, "persist_state": "session", **self.looks, **looks}


class OneOf(Option):
    """One of the allowed values, as buttons. A mapping has labels for them."""

    def read(self, params: Mapping[str, str], faults: list[Markdown]) -> Any:
        if self.usual is None:
            return next(iter(read_choice(params, self.name, list(self.allowed), faults)), None)
        return read_option(params, self.name, self.allowed, self._first, faults)

    @property
    def _first(self) -> Any:
        return self.usual if self.usual in self.allowed else next(iter(self.allowed), self.usual)

    def fitted(self, value: Any) -> Any:
        return value if value in self.allowed else self.usual and self._first

    def draw(self, **looks: Any) -> None:
        st.segmented_control(
            self.label, list(self.allowed), **self._looks(**self._words(), required=True, **looks)
        )

    def _words(self) -> dict[str, Any]:
        words = self.allowed
        return {"format_func": words.__getitem__} if isinstance(words, Mapping) else {}


class Picked(OneOf):
    """One of the allowed values, from a list. It may be empty where None is usual."""

    def draw(self, **looks: Any) -> None:
        none = {} if self.always else {"index": None}
        st.selectbox(
            self.label, list(self.allowed), **self._looks(**self._words(), **none, **looks)
        )


class SomeOf(Option):
    """Some of the allowed values. An empty choice is the usual one."""

    def read(self, params: Mapping[str, str], faults: list[Markdown]) -> Any:
        return read_choice(params, self.name, list(self.allowed), faults) or list(self.usual)

    def text(self, value: Any) -> str:
        return ",".join(value)

    def is_usual(self, value: Any) -> bool:
        return set(value) == set(self.usual)

    def fitted(self, value: Any) -> Any:
        return [each for each in value or () if each in self.allowed]

    def draw(self, **looks: Any) -> None:
        st.multiselect(self.label, self.allowed, **self._looks(**looks))


class Marked(SomeOf):
    """Some of the allowed values, as buttons."""

    def text(self, value: Any) -> str:
        return ",".join(each for each in self.allowed if each in value)

    def draw(self, **looks: Any) -> None:
        st.pills(self.label, list(self.allowed), **self._looks(selection_mode="multi", **looks))


@dataclass(frozen=True, slots=True)
class Number(Option):
    """A number within bounds. Where None is usual the widget may be empty, and 0 means None."""

    bounds: tuple[float, float] = (0.0, 10_000.0)
    step: float = 5.0

    def read(self, params: Mapping[str, str], faults: list[Markdown]) -> Any:
        usual = self.usual or 0.0
        number = read_number(params, self.name, usual, self.bounds, faults)
        return number or None if self.usual is None else number

    def text(self, value: Any) -> str:
        return f"{value:.15g}"

    def is_usual(self, value: Any) -> bool:
        return bool(value == self.usual or (self.usual is None and not value))

    def draw(self, **looks: Any) -> None:
        st.number_input(
            self.label, *self.bounds, **self._looks(step=self.step, format="%g", **looks)
        )


class Typed(Option):
    """A text. An empty one is the usual one."""

    def read(self, params: Mapping[str, str], faults: list[Markdown]) -> Any:  # noqa: ARG002 - any text is allowed
        return params.get(self.name, self.usual)

    def is_usual(self, value: Any) -> bool:
        return not value or bool(value == self.usual)

    def draw(self, **looks: Any) -> None:
        st.text_input(self.label, **self._looks(**looks))


@dataclass(frozen=True, slots=True)
class Switch(Option):
    """A toggle, in the link one of two words."""

    on: str = "on"
    off: str = "off"

    def read(self, params: Mapping[str, str], faults: list[Markdown]) -> Any:
        usual = self.text(self.usual)
        words = (self.off, self.on)
        return read_option(params, self.name, words, usual, faults) == self.on

    def text(self, value: Any) -> str:
        return self.on if value else self.off

    def draw(self, **looks: Any) -> None:
        st.toggle(self.label, **self._looks(**looks))


class Zoom(Option):
    """The stretch of time shown, None for the whole window. A button zooms out."""

    def read(self, params: Mapping[str, str], faults: list[Markdown]) -> Any:
        return read_zoom(params, faults)

    def text(self, value: Any) -> str:
        return zoom_text(value)

    def end(self) -> None:
        """Zoom out."""
        st.session_state[self.key] = None

    def draw(self, **looks: Any) -> None:
        if st.session_state[self.key]:
            st.button(self.label, key=f"{self.key}_out", on_click=self.end, **looks)


@dataclass(frozen=True, slots=True)
class Choices:
    """A page's options in the order of its link, after ``also``, which it handles itself."""

    page: str
    options: tuple[Option, ...]
    also: tuple[str, ...] = ()

    @property
    def link(self) -> PageLink:
        """The page's link."""
        return PageLink(self.page, (*self.also, *(option.name for option in self.options)))

    def __getitem__(self, name: str) -> Option:
        """Return the option of that name."""
        return next(option for option in self.options if option.name == name)

    def __iter__(self) -> Iterator[Option]:
        """Iterate over the options."""
        return iter(self.options)

    def given(self, **known: Mapping[str, Any]) -> Choices:
        """Return the same with fields of options that only a run knows, such as ``allowed``."""
        options = (replace(each, **known.get(each.name, {})) for each in self.options)
        return replace(self, options=tuple(options))

    def early(self, name: str) -> Any:
        """Return the value of one option before the others' are known."""
        state, option = st.session_state, self[name]
        params = self._to_follow(ready=True)
        if params is not None or option.key not in state:
            state[option.key] = option.read(params or {}, [])
        return state[option.key]

    def follow(
        self,
        read_also: Callable[[dict[str, str], list[Markdown]], None] | None = None,
        *,
        ready: bool = True,
        besides: Mapping[str, str] | None = None,
    ) -> None:
        """Fill the widgets from a link that the page did not write itself.

        ``read_also`` reads the parameters ``also``. ``besides`` are the link's defaults. Without a
        new link, values that are still allowed stay.
        """
        state = st.session_state
        params = self._to_follow(ready=ready)
        if params is None:
            for option in self.options:
                state[option.key] = option.fitted(state.get(option.key))
            return
        params = {**(besides or {}), **params}
        faults: list[Markdown] = []
        if read_also is not None:
            read_also(params, faults)
        for option in self.options:
            state[option.key] = option.read(params, faults)
        self.link.keep_faults(faults)

    def _to_follow(self, *, ready: bool) -> dict[str, str] | None:
        always = (option.key for option in self.options if option.always)
        return self.link.to_follow(*always, ready=ready)

    def draw(self, *names: str, **looks: Any) -> None:
        """Draw the widgets of some options."""
        for name in names:
            self[name].draw(**looks)

    def values(self) -> dict[str, Any]:
        """Return the value of each option by its name."""
        return {option.name: st.session_state[option.key] for option in self.options}

    def chosen(self, *names: str) -> list[Option]:
        """Return the options, among the names if any are given, with unusual values."""
        state = st.session_state
        among = (option for option in self.options if not names or option.name in names)
        return [option for option in among if not option.is_usual(state[option.key])]

    def arguments(self) -> dict[str, Any]:
        """Return the chosen filters as arguments of `toolkit.workspace.Workspace.screen`."""
        state, chosen = st.session_state, self.chosen()
        given = {each.argument: state[each.key] for each in chosen if each.argument}
        wheres = [each.where.format(state[each.key]) for each in chosen if each.where]
        return given | ({"where": " and ".join(wheres)} if wheres else {})

    def params(self) -> dict[str, str]:
        """Return the unusual values as parameters of a link."""
        state = st.session_state
        return {each.name: each.text(state[each.key]) for each in self.chosen()}

    def write(self, also: Mapping[str, str] | None = None) -> None:
        """Write the link: the parameters ``also``, then the widgets' values."""
        self.link.write({**(also or {}), **self.params()})
