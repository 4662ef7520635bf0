"""Matters of a store that need attention, one line each: streams behind, gaps soon lost, quota."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from streamlit import cache_data

from toolkit.cards import duration
from toolkit.dashboard.navigation import page_file
from toolkit.dashboard.reading import Held
from toolkit.dashboard.screen import st
from toolkit.foreign import Markdown, markdown
from toolkit.market import Family
from toolkit.store import Store
from toolkit.store.reading.lookup import soonest_losses
from toolkit.tables import GapStatus

_LATE_S, _DAY_S = 300, 86_400
_KEEP_S = 300
_LEAST_QUOTA = 0.1


def show_attention(held: Held) -> None:
    """Show a line for each thing that needs attention, and nothing where none does."""
    lines = [*behind_words(held.streams), *lost_words(held), *quota_words(held.loads)]
    if not lines:
        return
    with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
        st.markdown(Markdown(":orange[**⚠**] {}").format(Markdown(" · ").join(lines)))
        st.page_link(page_file("health"), label=Markdown("Data health"))


def behind_words(streams: pl.DataFrame) -> list[Markdown]:
    """Count the streams that end long before the newest of their kind.

    That is by five minutes and the plan's delay, and by two of their own steps at least.

    >>> streams = pl.DataFrame({"kind": ["price"] * 2, "stream": ["A_B:X.spot", "A_B:Y.spot"],
    ...     "last_ts": [0, 7200], "step_s": [60, 60], "delay_s": [0, 0]})
    >>> behind_words(streams)
    ['1 of 2 streams is behind the others, `A_B:X.spot` by 2 h']
    """
    rows = streams.filter(pl.col("kind").is_in(list(Family))).drop_nulls("last_ts")
    late_s = pl.max_horizontal(
        _LATE_S + pl.col("delay_s").fill_null(0), 2 * pl.col("step_s").fill_null(0)
    )
    behind = rows.with_columns(
        behind_s=pl.col("last_ts").max().over("kind") - pl.col("last_ts")
    ).filter(pl.col("behind_s") > late_s)
    if behind.is_empty():
        return []
    worst = behind.sort("behind_s", "stream", descending=[True, False]).row(0, named=True)
    return [
        Markdown("{:,} of {:,} streams {} behind the others, {} by {}").format(
            behind.height,
            rows.height,
            "is" if behind.height == 1 else "are",
            markdown(worst["stream"]),
            duration(worst["behind_s"]),
        )
    ]


def lost_words(held: Held) -> list[Markdown]:
    """Count the streams of which something leaves the service's archive within a day."""
    leaving, soonest_s, open_gaps = _gaps(held.path, (held.as_of or 0) // _KEEP_S)
    words = []
    if leaving:
        words.append(
            Markdown("gaps of {:,} {} leave the archive within a day, the first in {}").format(
                leaving, "stream" if leaving == 1 else "streams", duration(soonest_s)
            )
        )
    if open_gaps:
        words.append(
            Markdown("{:,} {} of live capture not filled yet").format(
                open_gaps, "gap" if open_gaps == 1 else "gaps"
            )
        )
    return words


@cache_data(ttl=_KEEP_S, max_entries=4, show_spinner=False)
def _gaps(path: Path, moment: int) -> tuple[int, int, int]:
    """Read how many streams lose something within a day, how soon (s), and the gaps of capture.

    The ledger is read once in five minutes of the service's clock: ``moment`` counts them.
    """
    del moment
    store = Store(path, wait_s=3.0)
    with store.reading():
        ledger = store.ledger()
        lost = store.gaps().filter(status=GapStatus.OPEN.value).height
    soonest = soonest_losses(ledger, _DAY_S).values()
    return len(soonest), min(soonest, default=0), lost


def quota_words(loads: pl.DataFrame) -> list[Markdown]:
    """Name the quota where the service last left less than a tenth of it.

    >>> quota_words(pl.DataFrame({"quota_left": [5], "quota": [600]}))
    ['5 of 600 requests left of the quota']
    >>> quota_words(pl.DataFrame({"quota_left": [500], "quota": [600]}))
    []
    """
    named = loads.drop_nulls(["quota_left", "quota"]).head(1)
    return [
        Markdown("{:,} of {:,} requests left of the quota").format(left, quota)
        for left, quota in named.select("quota_left", "quota").iter_rows()
        if left < _LEAST_QUOTA * quota
    ]
