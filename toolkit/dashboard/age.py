"""The age of the data, counted by the browser: it grows and changes colour in a tab left open."""

from __future__ import annotations

from toolkit.dashboard.formatting import dated, newest_end
from toolkit.dashboard.reading import Held
from toolkit.dashboard.screen import component

_LATE_S, _OLD_S = 300, 900
_AGE = component("age")


def show_age(held: Held) -> None:
    """Show how long ago the newest row ended, beside a dot.

    The dot is green until five minutes above the plan's delay, amber until fifteen and red from
    then on. Without a dated row it is grey.
    """
    _AGE(data=age_facts(held, held.now()), key="age")


def age_facts(held: Held, now: int) -> dict[str, int | None]:
    """Return what the browser counts from: the age ``now``, and where it turns amber and red.

    ``now`` is the service's clock (s).
    """
    delays = dated(held.streams)["delay_s"].sort()
    delay_s = int(delays[-1]) if delays.len() else 0
    ended = newest_end(held.streams)
    age_s = None if ended is None else max(0, now - ended)
    return {
        "age_s": age_s,
        "late_s": delay_s + _LATE_S,
        "old_s": delay_s + _OLD_S,
    }
