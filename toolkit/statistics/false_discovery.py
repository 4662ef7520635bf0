"""The rate of false discoveries among many tests, by Benjamini and Hochberg (1995)."""

from __future__ import annotations

import polars as pl


def q_values(chances: pl.Series) -> pl.Series:
    """Return the q-value of each p-value, null of null, over the m that are not null.

    Of the tests with a q-value up to q, at most the share q is expected to be of true null
    hypotheses: the smallest m p / rank among this and all larger p-values. That holds for tests
    apart from each other and for those that are alike in one direction, as of pairs that share a
    leg (Benjamini and Yekutieli 2001).

    >>> q_values(pl.Series([0.01, 0.04, None, 0.02])).to_list()
    [0.03, 0.04, None, 0.03]
    """
    ranked = pl.DataFrame({"place": range(len(chances)), "p": chances.cast(pl.Float64)})
    tested = ranked.drop_nulls().sort("p", "place", descending=[True, False])
    m = tested.height
    found = tested.select(
        "place",
        (pl.col("p") * m / (m - pl.int_range(pl.len()))).cum_min().alias("q"),
    )
    joined = ranked.join(found, on="place", how="left", maintain_order="left")
    return joined["q"].rename(chances.name)
