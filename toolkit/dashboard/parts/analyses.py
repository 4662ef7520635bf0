"""The part of a page that asks what is shown any analysis of its kind: it is closed at first.

Which analyses there are, what each is asked with and what it shows is declared in
`toolkit.analyses`. Those that compare several series are named alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from streamlit import cache_resource

from toolkit.analyses import Analysis, Family, analyses
from toolkit.dashboard.choice import OPTION, PageLink
from toolkit.dashboard.export import literal
from toolkit.dashboard.fee_choice import Net, python_costs
from toolkit.dashboard.link import read_option
from toolkit.dashboard.parts.analysis_options import (
    draw_options,
    follow_options,
    options_in_link,
    taken_options,
)
from toolkit.dashboard.parts.answers import line_of, show_answer
from toolkit.dashboard.reading import KEEP_S
from toolkit.dashboard.screen import st
from toolkit.dashboard.shell import PageShell
from toolkit.errors import InputError, RailError, StoreLockedError
from toolkit.foreign import Markdown
from toolkit.workspace.answers import Costs, SeriesAnswer
from toolkit.workspace.events.event_answers import EventAnswer, answer_of
from toolkit.workspace.events.event_selection import EventSelection
from toolkit.workspace.selection import Selection

_OTHERS = {"arrivals", "figures"}
"""What an analysis takes in place of rows: documents as they came, or what another found."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked on a page: of which series or logs, over which window, net of which fees.

    ``selection`` is made when something is asked. ``versions`` change with its rows. ``opened`` is
    the Python that gives the same series, "" for none, ``quote`` the currency of prices. ``shown``
    are the names of analyses that the page shows elsewhere. ``one_log`` is whether the events are
    of one family, whose rows some analyses take.
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
        """The analyses by name, those that the page shows elsewhere or that lack fees last."""
        every = analyses(self.family)
        alone = [each for each in every if each.across is None and not _OTHERS & each.takes]
        rows_of = {each.of for each in every}  # one row per event, which others sum up
        found = [each for each in alone if each.result not in rows_of]
        found.sort(key=lambda each: (each.needs_fees and self.net is None, each.name in self.shown))
        return {each.name: each for each in found}

    @property
    def costs(self) -> Costs | None:
        """What net figures are computed by, None for gross ones."""
        net = self.net
        return None if net is None else Costs(net.fees, net.notional, net.style)

    def python(self, place: str, analysis: Analysis, options: Mapping[str, Any]) -> str | None:
        """Return the lines of Python that give the same rows from the store at a place."""
        if not self.opened or {"rows", "spreads"} & analysis.takes or analysis.of:
            return None
        given = ["rail.around(series)"] if "values" in analysis.takes else []
        given += [f"{name}={literal(value)}" for name, value in options.items()]
        if self.net is not None and (analysis.net or "fees" in analysis.takes):
            given += python_costs(self.net.fees, self.net.style, self.net.notional)
        lines = ("import toolkit as tk", "", f"rail = tk.open({literal(place)})")
        return "\n".join([*lines, f"series = {self.opened}", _call(analysis.name, given)])


def _call(name: str, given: list[str]) -> str:
    one_line = f"series.{name}({', '.join(given)})"
    if len(one_line) <= 80:
        return one_line
    return "\n".join([f"series.{name}(", *(f"    {each}," for each in given), ")"])


def show_analyses(shell: PageShell, asked: Asked) -> None:
    """Show the part. While it is closed nothing is computed, and the link says nothing of it."""
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
            follow_options(asked.page, known[state[chosen]], params, faults)
        link.keep_faults(faults)
    with st.expander(Markdown("More analyses"), key=opened, on_change="rerun") as part:
        if not part.open:
            link.write({})
            return
        if state.get(chosen) not in known:
            state[chosen] = next(iter(known))
        analysis = _choose(known, chosen)
        draw_options(asked.page, analysis)
        link.write({"analysis": analysis.name} | options_in_link(asked.page, analysis))
        try:
            _answer(shell, asked, analysis, taken_options(asked.page, analysis))
        except InputError as error:
            st.error(line_of(str(error)))
        _name_others(asked, known)


def _name_others(asked: Asked, known: Collection[str]) -> None:
    others = {each.name for each in analyses(asked.family) if each.command}.difference(known)
    if others:
        words = Markdown("What compares several series is in `rail stats`: {}.")
        if asked.family == "events":
            words = Markdown("What lists single events or documents is in `rail events`: {}.")
        st.caption(words.format(", ".join(map(_words, sorted(others)))))


def _link(page: str) -> PageLink:
    options = [name for name in st.query_params if name.startswith(OPTION)]
    return PageLink(f"{page}_analyses", ("analysis", *options))


def show_one(shell: PageShell, asked: Asked, analysis: Analysis) -> None:
    """Show the answer of one analysis as it is asked without options."""
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
        st.caption(Markdown("Choose one family of events at the top: each has rows of its own."))
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
    """Answer an analysis, once for each state of the rows."""
    net = asked.net and (asked.net.fees.hash, asked.net.style, asked.net.notional)
    question = repr((str(shell.held.path), analysis.result, options, net, asked.versions))
    return _answered(question, _asked=asked, _analysis=analysis, _options=options or {})


@cache_resource(ttl=KEEP_S, max_entries=32, show_spinner="Measuring")
def _answered(
    question: str, *, _asked: Asked, _analysis: Analysis, _options: Mapping[str, Any]
) -> SeriesAnswer | EventAnswer:
    del question
    return answer_of(_analysis, _asked.selection(), _asked.costs, **_options)
