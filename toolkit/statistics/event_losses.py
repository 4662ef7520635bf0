"""Events near a time that is lost at the source: they may have begun, ended or been otherwise."""

from __future__ import annotations

import polars as pl

from toolkit.market import Family, Stream, Trajectory

BEFORE_S = 3_600
"""How long before an event a loss may be that is near it (s)."""

_LOST = {"symbol": pl.String(), "lost_legs": pl.List(pl.String), "of_funding": pl.Boolean()}


def with_losses(lives: pl.DataFrame, gaps: pl.DataFrame) -> pl.DataFrame:
    """Add to rows of `event_lifecycles` why rows of their legs are lost at the source near them.

    ``gaps`` are of `toolkit.store.Store.gaps`, of which those with the status lost count. Of the
    first that touches an event, or the `BEFORE_S` before it, ``near_lost`` (String) has the reason.
    Without one it is null, also where nothing was loaded of these legs. Funding counts for funding
    events, prices and spreads for others, and a pair where the event has both of its legs.

    >>> lives = pl.DataFrame({"family": ["splash"], "symbol": ["A_B"], "legs": ["X.spot"],
    ...     "since": [9_000], "t_close": [9_060], "known_until": [9_900]})
    >>> gaps = pl.DataFrame({"stream": ["A_B:X.spot"], "start_ts": [7_200], "end_ts": [7_800],
    ...     "cause": ["no answer for 90 s"], "status": ["lost"]})
    >>> with_losses(lives, gaps)["near_lost"].to_list()
    ['no answer for 90 s']
    """
    lost = gaps.filter(status="lost").select("stream", "start_ts", "end_ts", "cause")
    of = [
        (str(s.symbol), [*map(str, s.legs)], s.family is Family.FUNDING)
        if isinstance(s, Trajectory)
        else (None, None, None)  # a log has no legs
        for s in map(Stream.parse, lost["stream"])
    ]
    told = lost.hstack(pl.DataFrame(of, _LOST, orient="row"))
    numbered = lives.with_row_index("life")
    near = numbered.join(told, on="symbol").filter(
        pl.col("lost_legs").list.set_difference(pl.col("legs").str.split(" → ")).list.len() == 0,
        pl.col("of_funding") == (pl.col("family") == Family.FUNDING.value),
        pl.col("start_ts") <= pl.coalesce("t_close", "known_until"),
        pl.col("end_ts") >= pl.col("since") - BEFORE_S,
    )
    first = near.sort("start_ts", "cause").group_by("life").agg(near_lost=pl.col("cause").first())
    return numbered.join(first, on="life", how="left", maintain_order="left").drop("life")
