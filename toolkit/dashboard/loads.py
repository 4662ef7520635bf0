"""Loads and a `rail follow` that pages start, with their progress on every page.

Each store has one load at a time, in a thread that outlives its page. Without a known service a
page shows the command.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self
from urllib.parse import urlsplit

from streamlit import cache_data, cache_resource

from toolkit import commands
from toolkit.cards import counted, duration
from toolkit.commands import rail
from toolkit.dashboard.reading import StoreState
from toolkit.dashboard.widgets import Container, side_by_side, st
from toolkit.ending import under_way
from toolkit.errors import EmptyWindowError, RailError, StoppedError
from toolkit.foreign import LONGEST, Command, Markdown, markdown
from toolkit.intervals import Interval
from toolkit.loader import LoadResult, Progress
from toolkit.loader.sync.planned import load_words, plan_load
from toolkit.market import EventFamily, format_ts
from toolkit.store.writing.follows import running_follow
from toolkit.wire.address import is_loopback
from toolkit.workspace import open_workspace
from toolkit.workspace.loading import named_streams, wanted_watchlist


def command_words(*words: str, store: Path | None = None, base_url: str | None = None) -> Markdown:
    """Format a command of `toolkit.commands.rail` as Markdown, never shortened."""
    whole = commands.rail(*words, store=store, base_url=base_url)
    return markdown(whole, len(whole))


TAKES_NO_ROWS = Markdown(
    "This is published data and cannot be changed: load into its store, and publish again."
)
_RUNS_RAIL = "from toolkit.cli import main; main()"


@dataclass(eq=False, slots=True)
class Follower:
    """A `rail follow` of one store that ends with the dashboard.

    It has the dashboard's settings, with their key.
    """

    store: Path
    _process: subprocess.Popen[bytes] | None = None
    _errors: IO[bytes] | None = None
    _fault: str = ""

    @property
    def runs(self) -> bool:
        """Whether it is running."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The id of its process, None unless it runs."""
        return self._process.pid if self._process is not None and self.runs else None

    @property
    def fault(self) -> str:
        """The last line that it wrote before it ended by itself, else ""."""
        if self._process is not None and self._errors is not None and not self.runs:
            self._errors.seek(0)
            written = self._errors.read().decode("utf-8", "replace").strip().splitlines()
            ended = f"ended with exit code {self._process.returncode}"
            self._fault = written[-1] if written else ended
            self._let_go()
        return self._fault

    def start(self, base_url: str | None = None) -> None:
        """Start it unless it runs, with the service of the settings by default."""
        if self.runs:
            return
        self._let_go()
        self._fault, self._errors = "", tempfile.TemporaryFile()  # noqa: SIM115 - it writes there
        address = [] if base_url is None else ["--base-url", base_url]
        follow = ["follow", "--store", str(self.store.resolve()), *address]
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-c", _RUNS_RAIL, *follow],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
        )
        atexit.register(self.stop)

    def stop(self) -> None:
        """End it cleanly, and wait for its last commit."""
        if self._process is not None and self.runs:
            self._process.terminate()
            self._process.wait()
        self._let_go()

    def _let_go(self) -> None:
        atexit.unregister(self.stop)
        if self._errors is not None:
            self._errors.close()
        self._process = self._errors = None


def address_to_ask(asked: str | None) -> str | None:
    """Return the local service that was last asked, None where the settings name another.

    An address in somebody else's store gets no key unless it is of this machine.
    """
    if os.environ.get("RAIL_BASE_URL") or not asked or not is_loopback(urlsplit(asked).hostname):
        return None
    return asked


@cache_resource(show_spinner=False)
def follower_of(store: Path) -> Follower:
    """Return the one follower of a store, for all sessions."""
    return Follower(store)


def is_followed(held: StoreState) -> bool:
    """Return whether any follow of the store runs now."""
    return follower_of(held.path).runs or running_follow(held.path) is not None


def show_following(held: StoreState) -> None:
    """Show whether a follow keeps the store current, with a button to start or stop one."""
    if held.published:
        st.markdown(TAKES_NO_ROWS)
        return
    follower = follower_of(held.path)
    if follower.runs:
        st.markdown(Markdown("This dashboard follows the service and stores new rows."))
        st.button(Markdown("Stop following"), key="unfollow", on_click=follower.stop)
        return
    if (running := running_follow(held.path)) is not None:
        st.markdown(Markdown("`rail follow` loads new rows (process {}).").format(running.pid))
        return
    if follower.fault:
        st.error(Markdown("Following ended: {}").format(markdown(follower.fault, 400)))
    st.markdown(Markdown("Nothing loads new rows."))
    follow_button(held, "follow_service")


def follow_button(held: StoreState, key: str) -> None:
    """Show the button of a follow. A click shows what it loads, a second one starts it."""
    follower, state = follower_of(held.path), st.session_state
    address, asked = address_to_ask(held.base_url), f"{key}_asked"
    if not state.get(asked):
        st.button(
            Markdown("Follow the service"),
            key=key,
            on_click=state.__setitem__,
            args=(asked, True),
            help=Markdown("Same as {}, until the dashboard ends.").format(
                markdown(rail("follow"), 400)
            ),
        )
        return
    try:
        with st.spinner(Markdown("Asking the service what a follow loads first")):
            words = Markdown("A follow loads {} first.").format(_first_load(held.path, address))
    except RailError as error:
        words = Markdown.harmless(str(error))
    st.markdown(words)

    def begin() -> None:
        state.pop(asked, None)
        follower.start(address)

    with st.container(horizontal=True, gap="small"):
        st.button(Markdown("Start"), key=f"{key}_start", on_click=begin)
        st.button(Markdown("Not now"), key=f"{key}_not", on_click=state.pop, args=(asked, None))


@cache_data(ttl=60, max_entries=4, show_spinner=False)
def _first_load(path: Path, base_url: str | None) -> str:
    with open_workspace(path, base_url=base_url) as workspace:
        client, store = workspace.client, workspace.store
        watchlist = wanted_watchlist(store)
        streams = list(named_streams(client, store, watchlist))
        now = client.served_at()
        planned = plan_load(client, store, streams, Interval(now - watchlist.back_s, now))
        of = counted(len(streams), "stream")
        return f"{load_words(store, planned.requests, planned.rows)} of {of}"


_LOOK_S = 1.0
_MOST_LINES, _MOST_KEYS = 5, 5


@dataclass(frozen=True, slots=True)
class LoadPart:
    """Keys, patterns of keys or ``watchlist``, and a window as `rail sync` takes it."""

    streams: tuple[str, ...]
    start: str | int | None = None
    end: int | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the command."""
        ends = {"--start": self.start, "--end": self.end}
        given = [(name, _time_text(value)) for name, value in ends.items() if value is not None]
        return ("sync", *self.streams, *(word for pair in given for word in pair))


def _time_text(value: str | int) -> str:
    if isinstance(value, str):
        return value
    return format_ts(value).removesuffix(" UTC").replace(" ", "T") + "Z"


@dataclass(frozen=True, slots=True)
class Load:
    """What a button loads: its label, and the parts, one after another."""

    words: Markdown
    parts: tuple[LoadPart, ...]

    @classmethod
    def of(cls, words: Markdown, *streams: str, since: str | None = None) -> Self:
        """Return the load of streams up to now."""
        return cls(words, (LoadPart(streams, since),))

    @property
    def commands(self) -> Command:
        """The commands of the first five parts, one per line."""
        return Command("\n").join(rail(*part.words) for part in self.parts[:_MOST_LINES])


WATCHLIST = Load.of(Markdown("Load 7 days of the watchlist"), "watchlist", since="7d")
"""Prices, spreads and funding of the 5 symbols of most legs, every log and snapshot."""
LOGS = Load.of(
    Markdown("Load 7 days of events"), *(f"events/{family}" for family in EventFamily), since="7d"
)
"""Every event log."""
FUNDING = Load.of(Markdown("Load 7 days of funding of all pairs"), "funding/*", since="7d")
"""The settled funding of every pair of futures legs."""
RATES = Load.of(Markdown("Load the rates in force"), "snapshot/funding")
"""The service's funding overview."""


@dataclass(eq=False, slots=True)
class PageLoader:
    """The loads of one store that pages of this process start, one at a time.

    ``words`` are the current or last load's label, ``fault`` is why it failed, ``done`` its
    outcome.
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
        """The progress, from 0 to 1."""
        of_part = self._progress.fraction if self._progress else 0.0
        return min(1.0, (self._part + of_part) / max(1, self._parts))

    @property
    def progress_words(self) -> Markdown:
        """The progress in words."""
        now = self._progress
        if now is None:
            return Markdown("{}: asking the service").format(self.words)
        left = f", {duration(now.eta_s)} left" if now.eta_s and self._parts == 1 else ""
        pages = counted(now.pages, "page")
        return Markdown("{}: {:,} rows, {}{}").format(self.words, now.rows, pages, left)

    def start(self, load: Load, base_url: str | None) -> bool:
        """Start a load, by default from the service of the settings. Return False if one runs."""
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
        """End the load after the current page of rows, which is kept."""
        self._stop.set()

    def wait(self, look: Callable[[], object] = lambda: None) -> None:
        """Wait until no load runs, and call ``look`` meanwhile."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(0.1)
            look()

    def forget(self) -> None:
        """Forget the outcome of the last load."""
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
            self.done = Markdown("{}: stopped, the rows loaded so far are kept.").format(load.words)
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
    """Return the one loader of a store, for all sessions."""
    return PageLoader(store)


def can_ask(held: StoreState) -> bool:
    """Return whether a service of the store is known. A simulated market can be started."""
    named = os.environ.get("RAIL_BASE_URL") or address_to_ask(held.base_url)
    return bool(named) or held.source.kind == "simulated"


def load_button(
    held: StoreState, load: Load, key: str, *, cost: Markdown | None = None, **looks: object
) -> None:
    """Show the button of a load with its cost, or its command if no service is known.

    Published data has neither.
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


def offer(held: StoreState, what: Markdown, *loads: Load, part: str = "load") -> None:
    """Show what is missing, with a button for each load.

    ``part`` distinguishes the buttons of several parts of a page.
    """
    if held.published:
        st.info(Markdown("{} {}").format(what, TAKES_NO_ROWS))
        return
    st.info(what)
    with st.container(horizontal=True, gap="small"):
        for load in loads:
            load_button(held, load, key=f"{part}_{'_'.join(load.parts[0].streams)}")


def show_load(held: StoreState) -> None:
    """Show the progress of the load, or its outcome."""
    loader = loader_of(held.path)
    if loader.runs:
        _watch(loader)
        return
    words = loader.fault or loader.done
    if words is None:
        return
    with side_by_side():
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
        with side_by_side():
            st.progress(loader.fraction, text=loader.progress_words)
            st.button(Markdown("Stop"), key="load_stop", type="tertiary", on_click=loader.stop)

    look()


def load_now(held: StoreState, load: Load, place: Container) -> bool:
    """Load while the page waits, with the progress, and return whether that succeeded.

    Show why if another load runs, or none can for published data.
    """
    if held.published:
        place.error(TAKES_NO_ROWS)
        return False
    loader = loader_of(held.path)
    if not loader.start(load, address_to_ask(held.base_url)):
        words = Markdown("Another load is running ({}). Try again when it is done.")
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
