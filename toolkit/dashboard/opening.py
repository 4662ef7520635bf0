"""Opening the chart of a stream from another page: what is not held is loaded first."""

from __future__ import annotations

from toolkit.cards import counted
from toolkit.dashboard.following import TAKES_NO_ROWS
from toolkit.dashboard.loads import Load, can_ask, load_now
from toolkit.dashboard.navigation import go_to
from toolkit.dashboard.screen import Screen, st
from toolkit.dashboard.shell import PageShell
from toolkit.errors import InputError
from toolkit.foreign import Markdown, markdown
from toolkit.market import Family, SnapshotKind, SnapshotTrajectory, Stream, Trajectory
from toolkit.workspace.snapshot_tables import held_stream

_FAILED = "opening_failed"
_KEPT = "snapshot-"
_WINDOWS = {Family.FUNDING: "7d"}
"""How much is loaded of what is not held, else 24 h: of funding these are three settlements."""


def can_load(key: str) -> bool:
    """Check that a key of foreign names is one, so that no command takes it for an option.

    >>> can_load("A_B:X.spot:Y.spot"), can_load("--store=x")
    (True, False)
    """
    try:
        Trajectory.parse(key)
    except InputError:
        return False
    return True


def show_failed(place: Screen) -> None:
    """Show why the row that was opened last could not be, until another one is opened."""
    if words := st.session_state.get(_FAILED):
        place.error(words)


def open_pair(shell: PageShell, key: str, place: Screen) -> None:
    """Go to the chart of a spread or of funding. What is not held is loaded, with its progress.

    Where it cannot be loaded, the page stays, with one line that says why.
    """
    st.session_state.pop(_FAILED, None)
    page = "funding" if key.startswith("funding/") else "trajectory"
    if not can_load(key):
        words = Markdown("{} is not a name that a service can be asked for.")
        st.session_state[_FAILED] = words.format(markdown(key))
    elif found := held_stream(key, set(shell.held.streams["stream"])):
        go_to(page, trajectory=found[0])
    elif load_now(shell.held, newest_of(key), place):
        go_to(page, trajectory=key)
    show_failed(place)


def offer_absent(shell: PageShell) -> None:
    """Offer to load the trajectory that a link asked for and the store does not hold."""
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
    """Offer the history of a pair of which ``rows`` snapshots are all that is held."""
    stream = Stream.parse(key) if key.startswith(_KEPT) else None
    if not isinstance(stream, SnapshotTrajectory) or stream.of is not SnapshotKind.SPREAD:
        return
    pair, held = stream.legs_key, shell.held
    if held.published or held_stream(pair, set(held.streams["stream"])) != (key, False):
        return
    load = Load.of(Markdown("Load 7 days of it"), pair, since="7d")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            Markdown("Of this pair {} kept from snapshots, and no history.").format(
                counted(rows, "value is", "values are")
            )
        )
        if not can_ask(held):
            st.code(load.commands, language="bash")
            return
        clicked = st.button(load.words, key="load_history")
    if clicked and load_now(held, load, st.container()):
        go_to("trajectory", trajectory=pair)


def newest_of(key: str) -> Load:
    """Return the load of the newest rows of a trajectory.

    >>> newest_of("A_B:X.spot").parts[0].words
    ('sync', 'A_B:X.spot', '--start', '24h')
    """
    since = _WINDOWS.get(Trajectory.parse(key).family, "24h")
    words = Markdown("Load {} {} of {}").format(since[:-1], since[-1], markdown(key))
    return Load.of(words, key, since=since)
