"""How large events are: beside sizes sorted by hand, the tail of spreads, and a known tail."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.events import magnitudes
from toolkit.statistics.spread.tail_index import tail_index

from .event_lives import END, START, lives


def sized(sizes: np.ndarray, **columns: object) -> pl.DataFrame:
    """Events of these sizes, apart from each other, all closed in the window."""
    opened = START + np.linspace(0, END - START - 100, len(sizes)).astype(int)
    closed = np.ones(len(sizes), dtype=int)
    return lives(np.full(len(sizes), 30.0), closed, opened=opened, peak=sizes, **columns)


def test_quantiles_and_counts_are_those_of_the_sizes_that_opened_in_the_window():
    rng = np.random.default_rng(21)
    sizes = rng.normal(0, 2, 600)
    sizes[rng.random(600) < 0.1] = np.nan
    symbols = rng.choice(["A_B", "C_D", None], 600)
    kinds = rng.choice(["closed", "open", "reopened"], 600)
    frame = sized(sizes, symbol=pl.Series(symbols.tolist(), dtype=pl.String)).with_columns(
        kind=pl.Series(kinds), t_open=pl.col("t_open") - 2_000 * (pl.col("peak") > 3)
    )
    for row in magnitudes(frame, ["symbol"]).iter_rows(named=True):
        part = frame.filter(pl.col("symbol").eq_missing(pl.lit(row["symbol"])))
        inside = part.filter(pl.col("t_open") >= START)
        with_size = inside.filter(pl.col("peak").is_finite())
        found = np.abs(with_size["peak"].to_numpy())
        assert row["n"] == found.size
        assert row["n_without"] == inside.height - found.size
        assert row["n_opened_before"] == part.height - inside.height
        assert row["n_open"] == with_size.filter(pl.col("kind") != "closed").height
        assert row["size_mean_pct"] == pytest.approx(found.mean())
        for name, share in (("q05", 0.05), ("median", 0.5), ("q99", 0.99)):
            assert row[f"size_{name}_pct"] == pytest.approx(np.quantile(found, share))
        assert row["size_largest_pct"] == found.max()


def test_the_tail_of_sizes_is_that_of_spreads_of_these_sizes_at_these_times():
    sizes = np.random.default_rng(22).pareto(2.5, 3_000) + 1
    frame = sized(sizes)
    row = magnitudes(frame).row(0, named=True)
    rows = frame.select(trajectory=pl.lit("a"), ts="t_open", spread_log_bps="peak")
    spread = tail_index(rows, START, END).row(0, named=True)
    for percent in (1, 2, 5, 10):
        for name in ("n", "days", "index", "error", "lower", "upper", "reason"):
            column = f"tail_{percent}pct_{name}"
            assert row[column] == spread[column]
        beyond = row[f"size_tail_{percent}pct_x_min_pct"]
        assert beyond == spread[f"spread_tail_{percent}pct_x_min_log_bps"]


def test_few_events_have_no_tail_and_none_no_size():
    few = magnitudes(sized(np.arange(1.0, 31.0))).row(0, named=True)
    assert few["size_median_pct"] == 15.5
    assert few["tail_10pct_reason"] == "too_few"
    early = sized(np.ones(5)).with_columns(t_open=pl.lit(START - 60, pl.Int64))
    none = magnitudes(early).row(0, named=True)
    assert (none["n"], none["n_opened_before"], none["size_reason"]) == (0, 5, "empty")
    assert none["tail_10pct_reason"] == "empty"
    empty = magnitudes(early.clear(), ["family"])
    assert (empty.height, empty.schema) == (0, magnitudes(early).schema)


def test_the_coverage_is_the_part_of_the_window_in_which_the_log_of_the_family_is_held():
    middle = START + (END - START) // 4
    held = pl.DataFrame({"family": ["spread"], "start_ts": [middle], "end_ts": [END + 100]})
    frame = sized(np.ones(5)).with_columns(known_until=pl.lit(END, pl.Int64))
    assert magnitudes(frame, held=held)["coverage"].item() == 0.75
    assert magnitudes(frame)["coverage"].item() == 1.0


def test_lifecycles_without_a_size_are_refused():
    with pytest.raises(InputError, match="peak"):
        magnitudes(sized(np.ones(3)).drop("peak"))
    with pytest.raises(InputError, match="by"):
        magnitudes(sized(np.ones(3)), ["exchange"])
