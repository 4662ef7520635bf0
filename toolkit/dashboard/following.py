"""Whether anything keeps the store current, and a `rail follow` that the dashboard starts."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import polars as pl
from streamlit import cache_resource

from toolkit.commands import rail
from toolkit.dashboard.reading import Held
from toolkit.dashboard.screen import st
from toolkit.foreign import Markdown, markdown
from toolkit.wire.address import is_loopback

TAKES_NO_ROWS = Markdown(
    "This is published data, which takes no rows: load where its store is, and publish again."
)
_LIVELY_S = 180
"""A follow asks each minute. After three without an answer there is none."""

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


def is_followed(streams: pl.DataFrame, loads: pl.DataFrame, now: float) -> bool:
    """Return whether a load is under way that was answered lately. ``now`` is the local clock (s).

    >>> loads = pl.DataFrame({"finished_at": [None]})
    >>> streams = pl.DataFrame({"asked_at": [1000]})
    >>> is_followed(streams, loads, 1060), is_followed(streams, loads, 2000)
    (True, False)
    """
    asked = streams["asked_at"].drop_nulls().sort()
    under_way = loads.head(1)["finished_at"].null_count() > 0  # the newest
    return under_way and asked.len() > 0 and now - int(asked[-1]) < _LIVELY_S


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
    if is_followed(held.streams, held.loads, time.time()):
        st.markdown(Markdown("A load or `rail follow` brings new rows."))
        return
    if follower.fault:
        st.error(Markdown("Following ended: {}").format(markdown(follower.fault, 400)))
    st.markdown(Markdown("Nothing brings new rows."))
    st.button(
        Markdown("Follow the service"),
        key="follow_service",
        type="primary",
        on_click=follower.start,
        args=(address_to_ask(held.base_url),),
        help=Markdown("As {} does, until the dashboard ends.").format(
            markdown(rail("follow"), 400)
        ),
    )
