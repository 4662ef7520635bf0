"""Open spreads by the newest stored answer: the service's list or its event log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import polars as pl

from toolkit.foreign import Markdown
from toolkit.wire.rows.snapshot_rows import SnapshotItems, snapshot_items
from toolkit.workspace.snapshot_tables import open_spreads

_OLD_S = 3_600


@dataclass(frozen=True, slots=True)
class OpenNow:
    """The spreads open at the time ``at`` (s UTC) of one answer, the widest first.

    ``rows`` has symbol, buy, sell, trajectory, spread_pct (percent, null where not known) and
    opened_at (s UTC, null where not known). ``items`` is what is understood of the service's list,
    None for rows of the event log. ``tracked`` are the list's rows that no event opened, none of a
    list an hour older than the log.
    """

    at: int
    rows: pl.DataFrame
    tracked: pl.DataFrame
    items: SnapshotItems | None = None

    def kept(self, keep: Callable[[pl.DataFrame], pl.DataFrame]) -> OpenNow:
        """Select rows, such as those of some symbols."""
        return replace(self, rows=keep(self.rows), tracked=keep(self.tracked))

    @property
    def count(self) -> Markdown:
        """How many are open, as far as the answer is understood."""
        n_open = self.rows.height
        if self.items and self.items.why and not n_open:
            return Markdown("not understood")
        if self.items and not self.items.dated:
            return Markdown("not known")
        more = self.items and self.items.odd
        return (Markdown("{:,} or more") if more else Markdown("{:,}")).format(n_open)

    @property
    def open_s(self) -> pl.Series:
        """How long each had been open at the time of the answer (s), null where not known."""
        return (self.at - self.rows["opened_at"].cast(pl.Int64)).clip(lower_bound=0)


def open_now(
    snapshot: tuple[int, str] | None, logged: pl.DataFrame, known_until: int | None
) -> OpenNow | None:
    """Choose the newest of two answers, the list where both are of one time. None without any.

    ``snapshot`` is the time (s UTC) and the text of the service's list. ``logged`` are rows of
    `toolkit.dashboard.parts.event_tables.open_events` and ``known_until`` (s UTC) is where the
    answers of their log end.

    >>> logged = pl.DataFrame({"symbol": ["A_B"], "buy_exchange": ["X"], "buy_market": ["spot"],
    ...     "sell_exchange": ["Y"], "sell_market": ["dex"], "magnitude_pct": [2.0], "t_open": [60]})
    >>> newest = open_now((300, '{"items": []}'), logged, 660)
    >>> newest.at, newest.count, newest.open_s[0], newest.rows["trajectory"][0]
    (660, '1', 600, 'A_B:X.spot:Y.dex')
    >>> open_now((700, '{"items": []}'), logged, 660).count
    '0'
    """
    listed = open_spreads(snapshot[1] if snapshot else "{}")
    old = bool(snapshot and known_until and known_until - snapshot[0] > _OLD_S)
    tracked = listed.filter(pl.col("opened_at").is_null() & (not old))
    if snapshot and (known_until is None or snapshot[0] >= known_until):
        items = snapshot_items("spread", snapshot[1])
        return OpenNow(snapshot[0], listed.drop_nulls("opened_at"), tracked, items)
    if known_until is None:
        return None
    rows = logged.select(
        "symbol",
        pl.format("{}.{}", "buy_exchange", "buy_market").alias("buy"),
        pl.format("{}.{}", "sell_exchange", "sell_market").alias("sell"),
        pl.col("magnitude_pct").alias("spread_pct"),
        pl.col("t_open").alias("opened_at"),
    ).with_columns(trajectory=pl.format("{}:{}:{}", "symbol", "buy", "sell"))
    widest = rows.sort("spread_pct", "trajectory", descending=[True, False], nulls_last=True)
    return OpenNow(known_until, widest, tracked)
