"""Loads that a page starts: one at a time of a store, in a thread, with progress on every page.

A load goes on where its page is left. Where no service is known, a page shows the command instead.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from streamlit import cache_resource

from toolkit.cards import counted, duration
from toolkit.commands import rail
from toolkit.dashboard.following import TAKES_NO_ROWS, address_to_ask
from toolkit.dashboard.formatting import command_words
from toolkit.dashboard.reading import Held
from toolkit.dashboard.screen import Screen, st
from toolkit.ending import under_way
from toolkit.errors import EmptyWindowError, RailError, StoppedError
from toolkit.foreign import LONGEST, Command, Markdown, markdown
from toolkit.loader import LoadResult, Progress
from toolkit.market import EventFamily, format_ts
from toolkit.workspace import open_workspace

_LOOK_S = 1.0
_MOST_LINES, _MOST_KEYS = 5, 5


@dataclass(frozen=True, slots=True)
class LoadPart:
    """What is asked for: keys, patterns of keys or ``watchlist``, and a window as `sync` takes it.

    >>> LoadPart(("A_B:X.spot",), "24h").words
    ('sync', 'A_B:X.spot', '--start', '24h')
    >>> LoadPart(("events/splash",), 0, 60).words[2:]
    ('--start', '1970-01-01T00:00Z', '--end', '1970-01-01T00:01Z')
    """

    streams: tuple[str, ...]
    start: str | int | None = None
    end: int | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The same as words of the command."""
        ends = {"--start": self.start, "--end": self.end}
        given = [(name, _time_text(value)) for name, value in ends.items() if value is not None]
        return ("sync", *self.streams, *(word for pair in given for word in pair))


def _time_text(value: str | int) -> str:
    if isinstance(value, str):
        return value
    return format_ts(value).removesuffix(" UTC").replace(" ", "T") + "Z"


@dataclass(frozen=True, slots=True)
class Load:
    """What a button brings: its words, and one question or more, asked one after another."""

    words: Markdown
    parts: tuple[LoadPart, ...]

    @classmethod
    def of(cls, words: Markdown, *streams: str, since: str | None = None) -> Self:
        """Return the load of some streams up to now."""
        return cls(words, (LoadPart(streams, since),))

    @property
    def commands(self) -> Command:
        """What to type for the same, a line for each question, the first five."""
        return Command("\n").join(rail(*part.words) for part in self.parts[:_MOST_LINES])


WATCHLIST = Load.of(Markdown("Load 7 days of the watchlist"), "watchlist", since="7d")
"""Prices, spreads and funding of the 5 symbols of most legs, every log and snapshot."""
LOGS = Load.of(
    Markdown("Load 7 days of events"), *(f"events/{family}" for family in EventFamily), since="7d"
)
"""Every event log."""
FUNDING = Load.of(Markdown("Load 7 days of funding of all pairs"), "funding/*", since="7d")
"""What every pair of futures legs has settled."""
RATES = Load.of(Markdown("Load the rates in force"), "snapshot/funding")
"""The service's funding overview."""


@dataclass(eq=False, slots=True)
class PageLoader:
    """The loads of one store that pages of this process start. One runs at a time.

    ``words`` are of the load that runs or ended last. ``fault`` is why it ended early, one line.
    ``done`` is what came of it.
    """

    store: Path
    words: Markdown = field(default_factory=lambda: Markdown(""))
    fault: Markdown | None = None
    done: Markdown | None = None
    _parts: int = 0
    _part: int = 0
    _progress: Progress | None = None
    _thread: threading.Thread | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _starting: threading.Lock = field(default_factory=threading.Lock)

    @property
    def runs(self) -> bool:
        """Whether a load is under way."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def fraction(self) -> float:
        """How far it is, from 0 to 1."""
        of_part = self._progress.fraction if self._progress else 0.0
        return min(1.0, (self._part + of_part) / max(1, self._parts))

    @property
    def progress_words(self) -> Markdown:
        """How far it is, in words."""
        now = self._progress
        if now is None:
            return Markdown("{}: asking the service").format(self.words)
        left = f", {duration(now.eta_s)} left" if now.eta_s and self._parts == 1 else ""
        pages = counted(now.pages, "page")
        return Markdown("{}: {:,} rows, {}{}").format(self.words, now.rows, pages, left)

    def start(self, load: Load, base_url: str | None) -> bool:
        """Start a load from a service, None for that of the settings. False where one runs."""
        with self._starting:
            if self.runs:
                return False
            self.words, self.fault, self.done = load.words, None, None
            self._parts, self._part, self._progress = len(load.parts), 0, None
            self._stop.clear()
            asked = load.parts[0]
            short = len(load.parts) == 1 and len(asked.streams) <= _MOST_KEYS
            command = command_words(*asked.words, store=self.store, base_url=base_url)
            by_hand = Markdown(" By hand: {}").format(command) if short else ""
            arguments = (load, base_url, by_hand)
            self._thread = threading.Thread(target=self._carry_out, args=arguments, daemon=True)
            self._thread.start()
        return True

    def stop(self) -> None:
        """End the load after the page of rows that it is at. What came is kept."""
        self._stop.set()

    def wait(self, look: Callable[[], object] = lambda: None) -> None:
        """Wait until no load runs, and ``look`` now and then."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.1)
            look()

    def forget(self) -> None:
        """Let go of what came of the last load."""
        self.fault = self.done = None

    def _carry_out(self, load: Load, base_url: str | None, by_hand: str) -> None:
        results: list[LoadResult] = []
        nothing: list[EmptyWindowError] = []
        try:
            with (
                under_way(self._stop.set),
                open_workspace(self.store, base_url=base_url) as workspace,
            ):
                for self._part, asked in enumerate(load.parts):
                    try:
                        found = workspace.sync(
                            asked.streams, asked.start, asked.end, on_progress=self._report
                        )
                    except EmptyWindowError as error:
                        nothing.append(error)
                    else:
                        results.append(found)
            if nothing and not results:
                raise nothing[0]
        except StoppedError:
            self.done = Markdown("{}: stopped, what came is kept.").format(load.words)
        except RailError as error:
            self.fault = Markdown("{} failed: {}{}").format(
                load.words, markdown(str(error), LONGEST), by_hand
            )
        else:
            self.done = Markdown("{}: {}").format(load.words, _came(results))

    def _report(self, progress: Progress) -> None:
        self._progress = progress
        if self._stop.is_set():
            raise StoppedError


def _came(results: list[LoadResult]) -> Markdown:
    new = sum(result.rows.new for result in results)
    requests = sum(result.requests.total for result in results)
    parts = [Markdown("{:,} new, {}").format(new, counted(requests, "request"))]
    refused = {stream: error for result in results for stream, error in result.refused.items()}
    for stream, error in list(refused.items())[:1]:
        parts.append(
            Markdown("{} refused, {}: {}").format(
                len(refused), markdown(stream.key), markdown(str(error), LONGEST)
            )
        )
    return Markdown("; ").join(parts)


@cache_resource(show_spinner=False)
def loader_of(store: Path) -> PageLoader:
    """Return the one loader of a store, for all who look at it."""
    return PageLoader(store)


def can_ask(held: Held) -> bool:
    """Return whether a service of the store's data is known. A SIMULATED market can be started."""
    named = os.environ.get("RAIL_BASE_URL") or address_to_ask(held.base_url)
    return bool(named) or held.source.kind == "simulated"


def load_button(
    held: Held, load: Load, key: str, *, cost: Markdown | None = None, **looks: object
) -> None:
    """Show the button of a load, with what it costs, or its command where no service is known.

    Published data has none of both.
    """
    if held.published:
        return
    if not can_ask(held):
        st.code(load.commands, language="bash")
        return
    loader = loader_of(held.path)
    st.button(
        Markdown("{} · {}").format(load.words, cost) if cost else load.words,
        key=key,
        disabled=loader.runs,
        on_click=loader.start,
        args=(load, address_to_ask(held.base_url)),
        **looks,
    )


def offer(held: Held, what: Markdown, *loads: Load, part: str = "load") -> None:
    """Show what a page lacks, with the button of each load that brings it.

    ``part`` tells the buttons of several parts of a page apart.
    """
    if held.published:
        st.info(Markdown("{} {}").format(what, TAKES_NO_ROWS))
        return
    st.info(what)
    with st.container(horizontal=True, gap="small"):
        for load in loads:
            load_button(held, load, key=f"{part}_{'_'.join(load.parts[0].streams)}")


def show_load(held: Held) -> None:
    """Show the load that a page has started, its progress, and what came of it."""
    loader = loader_of(held.path)
    if loader.runs:
        _watch(loader)
        return
    words = loader.fault or loader.done
    if words is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if loader.fault:
            st.error(words)
        else:
            st.markdown(Markdown(":green[✓] {}").format(words))
        st.button(Markdown("Close"), key="load_seen", type="tertiary", on_click=loader.forget)


def _watch(loader: PageLoader) -> None:
    @st.fragment(run_every=_LOOK_S)
    def look() -> None:
        if not loader.runs:
            st.rerun(scope="app")
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.progress(loader.fraction, text=loader.progress_words)
            st.button(Markdown("Stop"), key="load_stop", type="tertiary", on_click=loader.stop)

    look()


def load_now(held: Held, load: Load, place: Screen) -> bool:
    """Load while the page waits, with the progress, and return whether it came.

    Where another load runs, or none can as of published data, the page goes on and shows why.
    """
    if held.published:
        place.error(TAKES_NO_ROWS)
        return False
    loader = loader_of(held.path)
    if not loader.start(load, address_to_ask(held.base_url)):
        words = Markdown("{} runs, and one load runs at a time. Try again when it is done.")
        place.error(words.format(loader.words))
        return False
    bar = place.progress(0.0, text=loader.progress_words)
    loader.wait(lambda: bar.progress(loader.fraction, text=loader.progress_words))
    bar.empty()
    if loader.fault:
        place.error(loader.fault)
        return False
    loader.forget()
    return True
