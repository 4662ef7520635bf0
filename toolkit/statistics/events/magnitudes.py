"""Sizes of events: quantiles by group, and the heaviness of the tail."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from toolkit.analyses import analysis
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import checked_types, collected, first_reason
from toolkit.statistics.core.observations import observed
from toolkit.statistics.events.exposure import Watched
from toolkit.statistics.events.groups import BY_ALL
from toolkit.statistics.spread.tail_index import fitted_tails, tail_columns

_QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95, "q99": 0.99}


@analysis(
    "events.magnitudes",
    (
        *("size_median_pct", "size_q25_pct", "size_q75_pct", "size_q95_pct", "size_q99_pct"),
        *("size_largest_pct", "n", "coverage", "tail_10pct_index", "tail_10pct_lower"),
        *("tail_10pct_upper", "n_open", "n_opened_before", "tail_5pct_index", "size_mean_pct"),
        "n_without",
    ),
    title="How large events become,",
    about="""
        Of events that opened in the window, by their largest size. Of those not closed it is the
        size so far. With a tail index of 3, sizes twice as large are 8 times as rare: it is of the
        largest 10 %, which have to be 50 events.""",
    example="splash --by symbol",
    by=BY_ALL,
)
def magnitudes(
    lives: pl.DataFrame, by: Sequence[str] = (), *, held: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Compute how large events become, by family and group, and how fast large ones become rare.

    ``lives`` are rows of `event_lifecycles` of one window, ``held`` is as in `survival`. The size
    is the ``peak`` without its sign, so far for open events. It is known only after the close:
    conditioning on it looks ahead. Events that opened before the window are left out, as long ones,
    which are larger, would be too many. The tail index is that of
    `toolkit.statistics.spread.tail_index`: with an index of 3, sizes twice as large are 8 times as
    rare. It needs 50 events in the tail. One row per family and group, sorted:

    {columns}

    ``window_start``, ``window_end``, ``method`` and ``params_hash`` are last.

    Raises
    ------
    InputError
        A column is missing or of another type. Lifecycles are of several windows.

    References
    ----------
    Hill, B. M. (1975), A simple general approach to inference about the tail of a distribution,
    Annals of Statistics 3.

    Examples
    --------
    >>> lives = pl.DataFrame({"family": "spread", "t_open": [0, 600, 1200, 1800],
    ...     "duration_s": 30.0, "entry_s": 0.0, "observed": [1] * 4, "kind": "closed",
    ...     "known_until": [3600] * 4, "window_start": [0] * 4, "window_end": [3600] * 4,
    ...     "peak": [0.6, 0.5, 1.1, None]})
    >>> row = magnitudes(lives).row(0, named=True)
    >>> row["n"], row["n_without"], row["size_median_pct"], row["tail_10pct_reason"]
    (3, 1, 0.6, 'too_few')
    """
    checked_types(lives, {"peak": "Float64"}, parameter="lives")
    watched, size = Watched.of(lives, by, held), pl.col("value")
    groups = watched.groups.rename({"_number": "number"})
    inside = pl.col("t_open").is_between(*watched.window, closed="left").fill_null(value=False)
    sizes = collected(lives.lazy().select(observed("peak").abs().alias("value")))
    rows = watched.lives.rename({"_number": "number"}).with_columns(sizes["value"], inside=inside)
    sized = rows.filter(pl.col("inside"), size.is_not_null())
    counts = rows.group_by("number").agg(
        (pl.col("inside") & size.is_not_null()).sum().cast(pl.Int64).alias("n"),
        (pl.col("inside") & size.is_null()).sum().cast(pl.Int64).alias("n_without"),
        (~pl.col("inside")).sum().cast(pl.Int64).alias("n_opened_before"),
    )
    figures = sized.group_by("number").agg(
        (pl.col("kind") != "closed").sum().cast(pl.Int64).alias("n_open"),
        size.mean().alias("size_mean_pct"),
        *(size.quantile(at, "linear").alias(f"size_{q}_pct") for q, at in _QUANTILES.items()),
        size.max().alias("size_largest_pct"),
    )
    tails = fitted_tails(sized.select("number", ts="t_open", value="value"))
    found = groups.join(watched.held_s(), on="family", how="left", maintain_order="left")
    for part in (counts, figures, tails):
        found = found.join(part, on="number", how="left", maintain_order="left")
    return found.select(
        *watched.names,
        "n",
        "n_without",
        "n_opened_before",
        pl.col("n_open").fill_null(0),
        "coverage",
        "size_mean_pct",
        *(f"size_{name}_pct" for name in _QUANTILES),
        "size_largest_pct",
        first_reason({Reason.EMPTY: pl.col("n") == 0}).alias("size_reason"),
        *tail_columns("size_pct"),
        *watched.question("events.magnitudes/3").columns,
    )
