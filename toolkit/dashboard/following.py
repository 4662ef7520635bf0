"""The process that keeps the store current, and a `rail follow` that the dashboard starts."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from streamlit import cache_data, cache_resource

from toolkit.cards import counted
from toolkit.commands import rail
from toolkit.dashboard.reading import Held
from toolkit.dashboard.screen import st
from toolkit.errors import RailError
from toolkit.foreign import Markdown, markdown
from toolkit.intervals import Interval
from toolkit.loader.sync.planned import load_words, plan_load
from toolkit.store.writing.follows import running_follow
from toolkit.wire.address import is_loopback
from toolkit.workspace import open_workspace
from toolkit.workspace.loading import named_streams, wanted_watchlist

TAKES_NO_ROWS = Markdown(
    "This is published data, which takes no rows: load where its store is, and publish again."
)
_RUNS_RAIL = "from toolkit.cli import main; main()"


@dataclass(eq=False, slots=True)
class Follower:
    """A `rail follow` of one store, as a process of its own that ends with the dashboard.

    It takes the key from the settings of the one who started the dashboard, and the service of
    `address_to_ask`.
    """

    store: Path
    _process: subprocess.Popen[bytes] | None = None
    _errors: IO[bytes] | None = None
    _fault: str = ""

    @property
    def runs(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The number of its process, None where it does not run."""
        return self._process.pid if self._process is not None and self.runs else None

    @property
    def fault(self) -> str:
        """The last line that it wrote before it ended by itself, "" where it did not."""
        if self._process is not None and self._errors is not None and not self.runs:
            self._errors.seek(0)
            written = self._errors.read().decode("utf-8", "replace").strip().splitlines()
            ended = f"ended with exit code {self._process.returncode}"
            self._fault = written[-1] if written else ended
            self._let_go()
        return self._fault

    def start(self, base_url: str | None = None) -> None:
        """Start it, where it does not run. None is for the service of the settings."""
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
        """End it cleanly, and wait until it has committed what it holds."""
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
    """Return the service of this machine that was asked last, where the user names no other.

    A store may be somebody else's. An address in it that is not of this machine gets no key.
    """
    if os.environ.get("RAIL_BASE_URL") or not asked or not is_loopback(urlsplit(asked).hostname):
        return None
    return asked


@cache_resource(show_spinner=False)
def follower_of(store: Path) -> Follower:
    """Return the one follower of a store, for all who look at it."""
    return Follower(store)


def is_followed(held: Held) -> bool:
    """Return whether a follow of the store runs now, whoever started it."""
    return follower_of(held.path).runs or running_follow(held.path) is not None


def show_following(held: Held) -> None:
    """Show whether the store is kept current, with a button that starts it, or ends our own."""
    if held.published:
        st.markdown(TAKES_NO_ROWS)
        return
    follower = follower_of(held.path)
    if follower.runs:
        st.markdown(Markdown("This dashboard follows the service for the store."))
        st.button(Markdown("Stop following"), key="unfollow", on_click=follower.stop)
        return
    if (running := running_follow(held.path)) is not None:
        st.markdown(Markdown("`rail follow` brings new rows (process {}).").format(running.pid))
        return
    if follower.fault:
        st.error(Markdown("Following ended: {}").format(markdown(follower.fault, 400)))
    st.markdown(Markdown("Nothing brings new rows."))
    follow_button(held, "follow_service")


def follow_button(held: Held, key: str) -> None:
    """Show the button of a follow. A click says what the follow loads first; another starts it."""
    follower, state = follower_of(held.path), st.session_state
    address, asked = address_to_ask(held.base_url), f"{key}_asked"
    if not state.get(asked):
        st.button(
            Markdown("Follow the service"),
            key=key,
            on_click=state.__setitem__,
            args=(asked, True),
            help=Markdown("As {} does, until the dashboard ends.").format(
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
