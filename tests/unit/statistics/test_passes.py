"""Statistics of some trajectories at a time are those of all, in any order, to the last bit."""

from __future__ import annotations

import random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import InputError
from toolkit.statistics import funding, prices, spread
from toolkit.statistics.funding.differentials import service_differential
from toolkit.statistics.passes import in_one_pass
from toolkit.statistics.quality.flags import flags

from ...conftest import examples

START, END = 0, 86_400


def spread_rows(seed: int, count: int) -> pl.DataFrame:
    """Minutes of some trajectories, one in ten missing, each with an AR(1) for a spread."""
    draw, rows = random.Random(seed), []
    for number in range(count):
        level = 0.0
        for ts in range(START, END, 60):
            level = 0.95 * level + draw.gauss(0, 5)
            if draw.random() > 0.1:
                rows.append((f"t{number}", ts, 100.0, 100.0 + level / 100))
    columns = ["trajectory", "ts", "buy_price", "sell_price"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def funding_rows(seed: int, count: int) -> pl.DataFrame:
    """Settlements of 8 h on one leg and of 8 h or none on the other."""
    draw = random.Random(seed)
    rows = [
        (f"t{number}", ts, draw.gauss(0, 1e-4), draw.gauss(0, 1e-4) if number % 3 else 0.0)
        for number in range(count)
        for ts in range(-2 * END, 3 * END, 28_800)
    ]
    legs = ["buy_rate", "sell_rate"]
    frame = pl.DataFrame(rows, schema=["trajectory", "ts", *legs], orient="row")
    hours = pl.when(pl.col("sell_rate") != 0).then(8.0)
    return frame.with_columns(
        buy_interval_hours=pl.lit(8.0), sell_interval_hours=hours, differential_pct_8h=pl.lit(0.5)
    )


SPREADS = [
    lambda rows: spread.summary(rows, START, END),
    lambda rows: spread.half_life(rows, START, END),
    lambda rows: spread.episodes(
        rows, START, END, enter_bps=9, leave_bps=3, merge_gap_s=120, absolute=True
    ),
    lambda rows: spread.time_above(rows, START, END, threshold_bps=10),
    lambda rows: spread.rolling_z(rows, window_s=3_600).sort("trajectory", "ts"),
    lambda rows: spread.rolling_z_summary(rows, START, END, window_s=3_600),
    lambda rows: prices.summary(rows.rename({"buy_price": "price"}), START, END),
]
FUNDING = [
    lambda rows: funding.summary(rows, START, END),
    lambda rows: funding.carry(rows, START, END),
    lambda rows: funding.intervals(rows).sort("trajectory", "ts", "leg"),
    funding.differential,
    lambda rows: service_differential(rows, START, END),
]
ALONE = [
    lambda rows: spread.stationarity(rows, START, END),
    lambda rows: spread.hour_of_week(rows, START, END),
    lambda rows: spread.time_to_close(rows, START, END, enter_bps=10, exit_bps=2),
    lambda rows: spread.lead_lag(rows, START, END),
    lambda rows: spread.cross_correlation(rows, START, END),
    lambda rows: spread.tail_index(rows, START, END),
    lambda rows: flags(rows, START, END),
]


def check(groups: list[pl.DataFrame], analyses: list) -> None:
    rows = pl.concat(groups).sample(fraction=1, shuffle=True, seed=1).lazy()
    for analysis, found in zip(analyses, in_one_pass(groups, *analyses), strict=True):
        assert found.equals(analysis(rows))
        none = analysis(rows.clear())
        assert (none.height, none.schema) == (0, found.schema)


@pytest.mark.parametrize(
    ("rows", "analyses"),
    [
        (spread_rows(3, 4), ALONE),
        (funding_rows(3, 4), [lambda r: funding.persistence(r, START, END)]),
    ],
)
def test_a_trajectory_alone_gives_what_it_gives_among_others(rows, analyses) -> None:
    check(rows.partition_by("trajectory", maintain_order=True), analyses)


@examples(10)
@given(seed=st.integers(0, 99), count=st.integers(1, 5), together=st.integers(1, 5))
@pytest.mark.parametrize(("build", "analyses"), [(spread_rows, SPREADS), (funding_rows, FUNDING)])
def test_groups_of_trajectories_give_what_all_of_them_give(
    build, analyses, seed: int, count: int, together: int
) -> None:
    parts = build(seed, count).partition_by("trajectory", maintain_order=True)
    check([pl.concat(parts[at : at + together]) for at in range(0, count, together)], analyses)


def test_each_group_is_let_go_before_the_next_is_asked_for() -> None:
    asked = []

    def groups():
        for number in range(3):
            asked.append(number)
            yield pl.DataFrame({"trajectory": [number], "ts": [0]})

    seen = []
    (found,) = in_one_pass(groups(), lambda rows: (seen.append(len(asked)), rows)[1])
    assert seen == [1, 2, 3]
    assert found["trajectory"].to_list() == [0, 1, 2]


@pytest.mark.parametrize("groups", [[], [[1.0]]])
def test_no_group_and_what_is_no_frame_are_refused(groups) -> None:
    with pytest.raises(InputError, match="groups"):
        in_one_pass(groups, lambda rows: rows)
