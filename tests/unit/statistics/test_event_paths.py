"""Values around events: each as it was known at that time, by a loop over all rows."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.events.paths import KnownValues, checked_events, without_overlaps


def known_of(frame, column="price", step_s=None, known_after_s=None, max_stale_s=None):
    return KnownValues.of(
        frame, column, step_s=step_s, known_after_s=known_after_s, max_stale_s=max_stale_s
    )


def newest_known(frame, trajectory, at, after_s, stale_s):
    """Look at every row: the newest that was known at the time, if it is not too old."""
    rows = [
        (ts + after_s, price)
        for name, ts, price in frame.select("trajectory", "ts", "price").iter_rows()
        if name == trajectory and price is not None and price > 0 and ts + after_s <= at
    ]
    newest = max(rows, default=(-math.inf, math.nan))
    return newest[1] if at - newest[0] <= stale_s else math.nan


@pytest.mark.parametrize("after_s", [0, 60])
@pytest.mark.parametrize(("steps", "names", "looked_up"), [(4_000, "abc", False), (400, "a", True)])
def test_each_value_is_the_newest_that_was_known_and_not_too_old(after_s, steps, names, looked_up):
    rng = np.random.default_rng(3)
    ts = np.sort(rng.choice(steps, 300, replace=False)) * 7
    prices = np.where(rng.random(300) < 0.1, np.nan, rng.normal(1, 1, 300))
    frame = pl.DataFrame(
        {"trajectory": rng.choice(list(names), 300), "ts": ts, "price": prices}
    ).with_columns(pl.col("price").fill_nan(None))
    known = known_of(frame.sample(fraction=1, shuffle=True, seed=1), "price", 7, after_s, 200)
    assert (known.grid is not None) == looked_up
    names = pl.Series(rng.choice(["a", "b", "c", "no such"], 500))
    times = rng.integers(-100, 8 * steps, 500)
    found = known.at(known.numbered(names), times)
    wanted = [
        newest_known(frame, name, at, after_s, 200) for name, at in zip(names, times, strict=True)
    ]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("after_s", [0, 60])
@pytest.mark.parametrize(("steps", "names", "looked_up"), [(4_000, "abc", False), (400, "a", True)])
def test_the_first_value_after_a_time_is_known_later_and_soon_enough(
    after_s, steps, names, looked_up
):
    rng = np.random.default_rng(5)
    ts = np.sort(rng.choice(steps, 300, replace=False)) * 7
    frame = pl.DataFrame(
        {"trajectory": rng.choice(list(names), 300), "ts": ts, "price": rng.uniform(1, 2, 300)}
    )
    known = known_of(frame, "price", 7, after_s, 50)
    assert (known.grid is not None) == looked_up
    asked = pl.Series(rng.choice(["a", "b", "c", "no such"], 500))
    times = rng.integers(-100, 8 * steps, 500)
    times[:200] = rng.choice(ts + after_s, 200)  # the very second of a value
    places = known.first_after(known.numbered(asked), times)
    found = [None if place < 0 else float(known.values[place]) for place in places]
    wanted = []
    for name, at in zip(asked, times, strict=True):
        late = frame.filter(pl.col("ts") + after_s > at, trajectory=name).sort("ts").head(1)
        soon = late.filter(pl.col("ts") + after_s - at <= 50)
        wanted.append(soon["price"].item() if soon.height else None)
    assert found == wanted
    assert {None} < set(wanted)


def test_the_step_is_the_commonest_and_staleness_three_of_them():
    ts = [0, 60, 120, 180, 900]
    frame = pl.DataFrame({"trajectory": ["a"] * 5, "ts": ts, "price": [1.0] * 5})
    known = known_of(frame)
    assert (known.step_s, known.max_stale_s) == (60, 180)
    with pytest.raises(InputError, match="no trajectory has two rows"):
        known_of(frame.head(1))


def test_events_left_out_are_those_that_follow_the_last_kept_too_soon():
    rng = np.random.default_rng(4)
    events = pl.DataFrame(
        {"trajectory": rng.choice(["a", "b"], 200), "ts": np.sort(rng.integers(0, 9_000, 200))}
    )
    kept = without_overlaps(events, 100)
    for (name,), rows in kept.partition_by("trajectory", as_dict=True).items():
        assert (rows["ts"].diff().drop_nulls() >= 100).all()
        left = events.filter(trajectory=name).join(rows, on="ts", how="anti")["ts"]
        assert all(any(0 <= at - each < 100 for each in rows["ts"]) for at in left)


@pytest.mark.parametrize(
    ("events", "parameter"),
    [
        ({"ts": [0]}, "events"),
        ({"trajectory": ["a"], "ts": [None]}, "events"),
        ({"trajectory": ["a"], "ts": [0], "direction": [2]}, "direction"),
        ({"trajectory": ["a"], "ts": [0], "direction": ["up"]}, "direction"),
        ({"trajectory": ["a"], "ts": [1_700_000_000_000]}, "ts"),
    ],
)
def test_events_without_what_is_needed_are_refused(events, parameter):
    with pytest.raises(InputError) as caught:
        checked_events(pl.DataFrame(events, schema_overrides={"ts": pl.Int64}))
    assert caught.value.parameter == parameter
