"""The expander More analyses: any of `toolkit.analyses` of what a page shows.

Analyses that compare several series are only named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamlit import cache_resource

from toolkit.analyses import Analysis, Family, Parameter, analyses
from toolkit.columns import column
from toolkit.dashboard.choice import (
    OPTION,
    Number,
    Option,
    PageLink,
    Picked,
    SomeOf,
    Switch,
    Typed,
)
from toolkit.dashboard.export import literal
from toolkit.dashboard.fee_choice import Net, python_costs
from toolkit.dashboard.link import read_number, read_option
from toolkit.dashboard.parts.answers import line_of, show_answer
from toolkit.dashboard.reading import KEEP_S
from toolkit.dashboard.shell import PageShell
from toolkit.dashboard.widgets import st
from toolkit.errors import InputError, RailError, StoreLockedError
from toolkit.foreign import Markdown
from toolkit.workspace.answers import Costs, SeriesAnswer
from toolkit.workspace.events.event_answers import EventAnswer, answer_of
from toolkit.workspace.events.event_selection import EventSelection
from toolkit.workspace.selection import Selection

_MOST = 10**15
_LENGTHS_S = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_LEAST_PX = 150


@dataclass(frozen=True, slots=True)
class _Figure(Number):
    """A number, apart from 0 if it is left empty. It is whole with a whole step."""

    bounds: tuple[float, float] = (-_MOST, _MOST)
    step: float = 1.0

    def read(self, params: Mapping[str, str], faults: list[Markdown]) -> Any:
        if self.name not in params:
            return self.usual
        number = read_number(params, self.name, self.usual or 0.0, self.bounds, faults)
        return type(self.step)(number)

    def is_usual(self, value: Any) -> bool:
        return value is None or bool(value == self.usual)

    def draw(self, **looks: Any) -> None:
        form = {} if isinstance(self.step, int) else {"format": "%g"}
        st.number_input(self.label, **self._looks(step=self.step, **form, **looks))


def _options(page: str, analysis: Analysis) -> dict[Parameter, Option]:
    """Return the widget of each parameter that can be typed.

    It begins with the default, else with the parameter's example, which an empty one means too.
    """
    return {each: _option(page, analysis, each) for each in analysis.parameters if each.is_asked}


def _option(page: str, analysis: Analysis, parameter: Parameter) -> Option:
    label, about = map(Markdown.harmless, (label_of(parameter), parameter.help))
    given = (f"{OPTION}{parameter.name}", label, _start(parameter))
    key = f"{page}_{analysis.name}_{parameter.name}"
    looks: dict[str, Any] = {"help": about}
    if parameter.kind == "flag":
        return Switch(*given, key=key, looks=looks)
    if parameter.choices:
        kind = SomeOf if parameter.many else Picked
        return kind(*given, key=key, allowed=parameter.choices, looks=looks)
    looks["placeholder"] = "default"
    if _is_number(parameter):
        step = 1 if parameter.kind == "whole" else 1.0
        return _Figure(*given, key=key, step=step, looks=looks | {"value": None})
    return Typed(*given, key=key, looks=looks)


def _draw_options(options: Sequence[Option]) -> dict[str, str]:
    """Draw the widgets, and return their unusual values as parameters of a link."""
    state = st.session_state
    if options:
        with st.grid(6, min_column_width=_LEAST_PX):
            for option in options:
                state.setdefault(option.key, option.usual)
                option.draw()
    unusual = [each for each in options if not each.is_usual(state[each.key])]
    return {each.name: each.text(state[each.key]) for each in unusual}


def _taken_options(options: Mapping[Parameter, Option]) -> dict[str, Any]:
    """Return the arguments of the statistic for the widgets' values, without defaults.

    Raises `InputError` for a wrong length of time or number.
    """
    taken = {}
    for parameter, option in options.items():
        value = _taken(parameter, st.session_state[option.key])
        usual = parameter.default
        usual = list(usual) if isinstance(usual, tuple) else usual
        if parameter.required or value not in (None, usual):
            taken[parameter.name] = value
    return taken


def label_of(parameter: Parameter) -> str:
    """Return what a parameter is called above its widget, with the unit of a number.

    >>> label_of(Parameter("The level.", "bps", name="toward", kind="number"))
    'Toward (bps)'
    >>> label_of(Parameter("How many.", name="adf_lags", kind="whole"))
    'ADF lags'
    """
    one = column(parameter.name)
    name = parameter.name.removesuffix(f"_{parameter.unit}") if parameter.unit else parameter.name
    words = one.short if one.meaning else name.replace("_", " ")
    unit = parameter.unit if _is_number(parameter) else ""
    return f"{words[0].upper()}{words[1:]}{f' ({unit})' if unit else ''}"


def _is_number(parameter: Parameter) -> bool:
    return parameter.kind in ("number", "whole") and not parameter.many


def _start(parameter: Parameter) -> Any:
    value = parameter.example if parameter.required else parameter.default
    if parameter.choices:
        return list(value or ()) if parameter.many else value
    if parameter.kind == "flag":
        return bool(value)
    if _is_number(parameter):
        return value if value is None or parameter.kind == "whole" else float(value)
    if parameter.many:
        texts = [value] if isinstance(value, str) else value or ()
        return ", ".join(_text(parameter, each) for each in texts)
    return _text(parameter, value)


def _text(parameter: Parameter, value: Any) -> str:
    """Write a value as it is typed: a length of 3,600 s is 1h."""
    if value is None or parameter.kind != "length" or not isinstance(value, int):
        return "" if value is None else str(value)
    unit, length_s = next(each for each in _LENGTHS_S.items() if value % each[1] == 0)
    return f"{value // length_s}{unit if value else 's'}"


def _taken(parameter: Parameter, shown: Any) -> Any:
    """Return the value of a widget, None if it is left empty."""
    if shown in (None, "", []):
        shown = _start(parameter)
    if parameter.kind == "flag":
        return None if parameter.default is None and not shown else shown
    if shown in (None, "", []) or parameter.choices or _is_number(parameter):
        return shown or None if isinstance(shown, str | list) else shown
    if not parameter.many:
        return parameter.read(shown.strip(), label_of(parameter))
    parts = [part.strip() for part in shown.split(",") if part.strip()]
    return parameter.read(_numbers(parameter, parts), label_of(parameter))


def _numbers(parameter: Parameter, parts: list[str]) -> list[Any]:
    if parameter.kind not in ("number", "whole"):
        return list(parts)
    try:
        return [int(each) if parameter.kind == "whole" else float(each) for each in parts]
    except ValueError:
        typed = ", ".join(parts)
        raise InputError(label_of(parameter), typed, "numbers, commas between them") from None


_OTHERS = {"arrivals", "figures"}
"""What an analysis takes in place of rows: raw documents, or results of another."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The subject of analyses on a page: series or logs, over a window, net of fees.

    ``versions`` change with the rows of ``selection``. ``opened`` is the Python of the same series,
    "" for none, ``quote`` the currency of prices. ``shown`` names analyses that the page shows
    elsewhere. ``one_log`` is whether events are of one family.
    """

    page: str
    family: Family
    selection: Callable[[], Selection | EventSelection]
    versions: tuple[Any, ...]
    opened: str
    net: Net | None = None
    quote: str = ""
    shown: Collection[str] = ()
    one_log: bool = True

    @property
    def analyses(self) -> dict[str, Analysis]:
        """The analyses by name, last those shown elsewhere or without their fees."""
        every = analyses(self.family)
        alone = [each for each in every if each.across is None and not _OTHERS & each.takes]
        rows_of = {each.of for each in every}  # one row per event, which others sum up
        found = [each for each in alone if each.result not in rows_of]
        found.sort(key=lambda each: (each.needs_fees and self.net is None, each.name in self.shown))
        return {each.name: each for each in found}

    @property
    def costs(self) -> Costs | None:
        """The costs of net figures, None for gross ones."""
        net = self.net
        return None if net is None else Costs(net.fees, net.notional, net.style)

    def python(self, place: str, analysis: Analysis, options: Mapping[str, Any]) -> str | None:
        """Return the Python that gives the same rows from the store at a place."""
        if not self.opened or {"rows", "spreads"} & analysis.takes or analysis.of:
            return None
        given = ["rail.around(series)"] if "values" in analysis.takes else []
        given += [f"{name}={literal(value)}" for name, value in options.items()]
        if self.net is not None and analysis.costs:
            given += python_costs(self.net.fees, self.net.style, self.net.notional)
        lines = ("import toolkit as tk", "", f"rail = tk.open({literal(place)})")
        return "\n".join([*lines, f"series = {self.opened}", _call(analysis.name, given)])


def _call(name: str, given: list[str]) -> str:
    one_line = f"series.{name}({', '.join(given)})"
    if len(one_line) <= 80:
        return one_line
    return "\n".join([f"series.{name}(", *(f"    {each}," for each in given), ")"])


def show_analyses(shell: PageShell, asked: Asked) -> None:
    """Show the expander. A closed one computes nothing, and is not in the link."""
    known = asked.analyses
    if not known:
        return
    state, link = st.session_state, _link(asked.page)
    opened, chosen = f"{asked.page}_analyses_open", f"{asked.page}_analysis"
    params = link.to_follow()
    if params is not None:
        faults: list[Markdown] = []
        if "analysis" in params:
            state[opened] = True
            first = next(iter(known))
            state[chosen] = read_option(params, "analysis", known, first, faults)
            for option in _options(asked.page, known[state[chosen]]).values():
                state[option.key] = option.read(params, faults)
        link.keep_faults(faults)
    with st.expander(Markdown("More analyses"), key=opened, on_change="rerun") as part:
        if not part.open:
            link.write({})
            return
        if state.get(chosen) not in known:
            state[chosen] = next(iter(known))
        analysis = _choose(known, chosen)
        options = _options(asked.page, analysis)
        link.write({"analysis": analysis.name} | _draw_options(list(options.values())))
        try:
            _answer(shell, asked, analysis, _taken_options(options))
        except InputError as error:
            st.error(line_of(str(error)))
        _name_others(asked, known)


def _name_others(asked: Asked, known: Collection[str]) -> None:
    others = {each.name for each in analyses(asked.family) if each.command}.difference(known)
    if others:
        words = Markdown("`rail stats` also compares several series: {}.")
        if asked.family == "events":
            words = Markdown("`rail events` also lists single events or documents: {}.")
        st.caption(words.format(", ".join(map(_words, sorted(others)))))


def _link(page: str) -> PageLink:
    options = [name for name in st.query_params if name.startswith(OPTION)]
    return PageLink(f"{page}_analyses", ("analysis", *options))


def show_one(shell: PageShell, asked: Asked, analysis: Analysis) -> None:
    """Show one analysis with default options."""
    _say(analysis)
    _answer(shell, asked, analysis, {})


def _choose(known: Mapping[str, Analysis], key: str) -> Analysis:
    name = st.selectbox(
        Markdown("Analysis"),
        list(known),
        key=key,
        format_func=_words,
        label_visibility="collapsed",
        persist_state="session",
        width=330,
    )
    _say(known[name])
    return known[name]


def _say(analysis: Analysis) -> None:
    sentence, about = (
        Markdown.harmless(" ".join(text.replace("`", "").split()))
        for text in (analysis.sentence, analysis.about)
    )
    st.markdown(sentence, help=about or None)


def _words(name: str) -> str:
    words = name.replace("_", " ")
    return f"{words[0].upper()}{words[1:]}"


def _answer(shell: PageShell, asked: Asked, analysis: Analysis, options: Mapping[str, Any]) -> None:
    if analysis.needs_fees and asked.net is None:
        st.caption(Markdown("Choose a fee table in the bar above, where it says Gross."))
        return
    if not asked.one_log and {"values", "family"} & analysis.takes:
        st.caption(Markdown("Choose one family of events above: their rows differ."))
        return
    try:
        answer = answered(shell, asked, analysis, options)
    except StoreLockedError:
        raise
    except RailError as error:
        st.error(line_of(str(error)))
        return
    python = asked.python(shell.held.place, analysis, options)
    show_answer(shell, answer, asked.page, quote=asked.quote, python=python)


def answered(
    shell: PageShell, asked: Asked, analysis: Analysis, options: Mapping[str, Any] | None = None
) -> SeriesAnswer | EventAnswer:
    """Answer an analysis, cached until the rows change."""
    net = asked.net and (asked.net.fees.hash, asked.net.style, asked.net.notional)
    question = repr((str(shell.held.path), analysis.result, options, net, asked.versions))
    return _answered(question, _asked=asked, _analysis=analysis, _options=options or {})


@cache_resource(ttl=KEEP_S, max_entries=32, show_spinner="Measuring")
def _answered(
    question: str, *, _asked: Asked, _analysis: Analysis, _options: Mapping[str, Any]
) -> SeriesAnswer | EventAnswer:
    del question
    return answer_of(_analysis, _asked.selection(), _asked.costs, **_options)
