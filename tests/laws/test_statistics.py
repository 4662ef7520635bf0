"""Laws of the spread statistics that hold for any rows, not only for those we thought of."""

from __future__ import annotations

import math

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from toolkit.statistics import spread

from ..conftest import examples

START, MINUTES = 1_700_000_040, 400
END = START + 60 * MINUTES

prices = st.one_of(
    st.floats(0.5, 2.0),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([None, 0.0, -1.0, 1.0, math.nan, math.inf]),
)

SCHEMA = {
    "trajectory": pl.String,
    "ts": pl.Int64,
    "buy_price": pl.Float64,
    "sell_price": pl.Float64,
}


@st.composite
def trajectories(draw: st.DrawFn) -> pl.DataFrame:
    """Up to six trajectories of plausible prices, gaps and rubbish, with the rows in any order."""
    parts = []
    for number in range(draw(st.integers(1, 6))):
        kept = draw(st.lists(st.integers(0, MINUTES + 20), max_size=30, unique=True))
        rows = [(f"t{number}", START + 60 * k, draw(prices), draw(prices)) for k in kept]
        # a long plain run, so that half-lives are among what the laws are held against
        plain = draw(st.integers(0, 150))
        wobble = draw(st.integers(1, 10**6))
        rows += [
            (f"t{number}", START + 60 * k + 30, 1.0, 1.0 + ((k * wobble) % 997) / 1e5)
            for k in range(plain)
        ]
        parts.append(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    frame = pl.concat(parts)
    return frame.sample(fraction=1, shuffle=True, seed=draw(st.integers(0, 99)))


EACH_PHASE_ONCE = pl.DataFrame(
    [("t", START + after, 1.0, 1.0) for after in (0, 240, 600, 1_800)], schema=SCHEMA, orient="row"
)


@given(buy=prices, sell=prices)
def test_swapping_the_legs_flips_the_sign_to_the_last_bit(buy, sell):
    frame = pl.DataFrame(
        {"buy_price": [buy, sell], "sell_price": [sell, buy]},
        schema_overrides={"buy_price": pl.Float64, "sell_price": pl.Float64},
    )
    there, back = spread.with_spread(frame)["spread_log_bps"]
    assert (there is None) == (back is None)
    assert there is None or there == -back


@given(buy=prices, sell=prices)
def test_a_spread_is_a_finite_number_of_the_right_sign_or_null(buy, sell):
    frame = pl.DataFrame(
        {"buy_price": [buy], "sell_price": [sell]},
        schema_overrides={"buy_price": pl.Float64, "sell_price": pl.Float64},
    )
    row = spread.with_spread(frame).row(0, named=True)
    log, simple = row["spread_log_bps"], row["spread_bps"]
    assert (log is None) == (simple is None)
    if log is not None:
        assert math.isfinite(log)
        assert math.isfinite(simple)
        assert math.copysign(1, sell - buy) * log >= 0
        assert log <= simple or math.isclose(log, simple, rel_tol=1e-12)


@examples(40)
@given(frame=trajectories())
def test_swapping_the_legs_mirrors_the_summary(frame):
    swapped = frame.rename({"buy_price": "sell_price", "sell_price": "buy_price"})
    there, back = spread.summary(frame, START, END), spread.summary(swapped, START, END)
    same = ["n", "n_null", "coverage", "n_segments", "spread_std_log_bps"]
    fit = [name for name in there.columns if name.startswith(("ar1", "half", "noise", "acf"))]
    same += [name for name in there.columns if name.endswith("_reason") and name not in fit]
    assert there.select(*same, *fit).equals(back.select(*same, *fit))
    # an interpolation between two values rounds as it goes up, so these mirror but for that
    mirrors = [("mean", "mean", -1), ("median", "median", -1), ("mad", "mad", 1)]
    mirrors += [("q05", "q95", -1), ("q25", "q75", -1)]
    for one, other, sign in mirrors:
        left, right = there[f"spread_{one}_log_bps"], back[f"spread_{other}_log_bps"]
        for value, mirrored in zip(left, right, strict=True):
            assert (value is None) == (mirrored is None)
            assert value is None or math.isclose(value, sign * mirrored, rel_tol=1e-9, abs_tol=1e-6)


@examples(40)
@given(frame=trajectories(), shift=st.integers(-(10**6), 10**6))
@example(frame=EACH_PHASE_ONCE, shift=-1)
def test_moving_rows_and_window_in_time_moves_nothing_else(frame, shift):
    times = ["t_first", "t_last", "window_start", "window_end"]
    here = spread.summary(frame, START, END)
    moved = frame.with_columns(pl.col("ts") + shift)
    there = spread.summary(moved, START + shift, END + shift)
    assert there.with_columns(pl.col(times) - shift).equals(here)


@examples(40)
@given(frame=trajectories(), seed=st.integers(0, 10**6))
def test_the_order_of_the_rows_changes_no_bit(frame, seed):
    shuffled = frame.sample(fraction=1, shuffle=True, seed=seed)
    whole = spread.summary(frame, START, END)
    assert spread.summary(shuffled, START, END).equals(whole)
    assert spread.summary(shuffled.lazy(), START, END).equals(whole)


@examples(30)
@given(frame=trajectories())
def test_each_trajectory_alone_gives_what_it_gives_among_others(frame):
    whole = spread.summary(frame, START, END)
    alone = [spread.summary(part, START, END) for part in frame.partition_by("trajectory")]
    assert whole.equals(pl.concat([*alone, whole.clear()]).sort("trajectory"))


@examples(40)
@given(frame=trajectories())
def test_rows_outside_the_window_change_nothing(frame):
    inside = frame.filter(pl.col("ts").is_between(START, END, closed="left"))
    whole = spread.summary(frame, START, END)
    kept = whole.filter(pl.col("trajectory").is_in(inside["trajectory"].implode()))
    assert spread.summary(inside, START, END).equals(kept)
    assert whole["trajectory"].to_list() == sorted(frame["trajectory"].unique())
    assert whole["n"].sum() + whole["n_null"].sum() == inside.height


@examples(40)
@given(frame=trajectories())
def test_figures_stay_within_their_bounds(frame):
    for row in spread.summary(frame, START, END).rows(named=True):
        assert row["coverage"] is None or 0 <= row["coverage"] <= 1
        assert row["n_segments"] <= row["n"]
        assert row["ar1_pairs"] <= max(0, row["n"] - 1)
        assert row["half_life_triples"] <= row["ar1_pairs"]
        ordered = [row[f"spread_q{percent:02}_log_bps"] for percent in (1, 5, 25, 50, 75, 95, 99)]
        if row["n"]:
            assert START <= row["t_first"] <= row["t_last"] < END
            assert ordered == sorted(ordered)
            assert ordered[3] == row["spread_median_log_bps"]
            assert row["spread_expected_shortfall_95_log_bps"] >= ordered[5] - 1e-9 * abs(
                ordered[5]
            )
        halves = [row[f"half_life{end}_s"] for end in ("_lower", "", "_upper")]
        known = [value for value in halves if value is not None]
        assert known == sorted(known)
        assert all(value > 0 for value in known)
