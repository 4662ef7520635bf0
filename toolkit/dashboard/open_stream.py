"""Opening a stream's chart from another page, loaded first if not stored."""

from __future__ import annotations

from toolkit.cards import counted
from toolkit.dashboard.link import go_to
from toolkit.dashboard.loads import TAKES_NO_ROWS, Load, can_ask, load_now
from toolkit.dashboard.shell import PageShell
from toolkit.dashboard.widgets import Container, side_by_side, st
from toolkit.errors import InputError
from toolkit.foreign import Markdown, markdown
from toolkit.market import Family, SnapshotKind, SnapshotTrajectory, Stream, Trajectory
from toolkit.workspace.snapshot_tables import held_stream

_FAILED = "opening_failed"
_KEPT = "snapshot-"
_WINDOWS = {Family.FUNDING: "7d"}
"""How much is loaded of a stream that is not stored, else 24 h: only three settlements."""


def can_load(key: str) -> bool:
    """Return whether a foreign key is valid, so that no command takes it for an option."""
    try:
        Trajectory.parse(key)
    except InputError:
        return False
    return True


def show_failed(place: Container) -> None:
    """Show why the last row could not be opened, until another one is."""
    if words := st.session_state.get(_FAILED):
        place.error(words)


def open_pair(shell: PageShell, key: str, place: Container) -> None:
    """Open the chart of a spread or of funding, loaded first if it is not stored.

    If it cannot be loaded the page stays and says why.
    """
    st.session_state.pop(_FAILED, None)
    page = "funding" if key.startswith("funding/") else "trajectory"
    if not can_load(key):
        words = Markdown("{} is not a valid name of a stream.")
        st.session_state[_FAILED] = words.format(markdown(key))
    elif found := held_stream(key, set(shell.held.streams["stream"])):
        go_to(page, trajectory=found[0])
    elif load_now(shell.held, newest_of(key), place):
        go_to(page, trajectory=key)
    show_failed(place)


def offer_absent(shell: PageShell) -> None:
    """Offer to load the trajectory of the link if it is not stored."""
    state = st.session_state
    key = state.get("trajectory_absent")
    if not (key and state["trajectory_faults"] and can_load(key)):
        return
    load = newest_of(key)
    if shell.held.published:
        st.caption(TAKES_NO_ROWS)
    elif not can_ask(shell.held):
        st.code(load.commands, language="bash")
    elif st.button(load.words, key="load_absent"):
        open_pair(shell, key, st.container())


def offer_history(shell: PageShell, key: str, rows: int) -> None:
    """Offer to load the history of a pair with ``rows`` values from snapshots alone."""
    stream = Stream.parse(key) if key.startswith(_KEPT) else None
    if not isinstance(stream, SnapshotTrajectory) or stream.of is not SnapshotKind.SPREAD:
        return
    pair, held = stream.legs_key, shell.held
    if held.published or held_stream(pair, set(held.streams["stream"])) != (key, False):
        return
    load = Load.of(Markdown("Load 7 days of it"), pair, since="7d")
    with side_by_side():
        st.caption(
            Markdown("{} from snapshots, and no history.").format(counted(rows, "value", "values"))
        )
        if not can_ask(held):
            st.code(load.commands, language="bash")
            return
        clicked = st.button(load.words, key="load_history")
    if clicked and load_now(held, load, st.container()):
        go_to("trajectory", trajectory=pair)


def newest_of(key: str) -> Load:
    """Return the load of the newest rows of a trajectory."""
    since = _WINDOWS.get(Trajectory.parse(key).family, "24h")
    words = Markdown("Load {} {} of {}").format(since[:-1], since[-1], markdown(key))
    return Load.of(words, key, since=since)
