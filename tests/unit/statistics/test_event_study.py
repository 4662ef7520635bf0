"""Event studies and known values, against loops and processes whose changes are known."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.events.paths import KnownValues, checked_events, without_overlaps
from toolkit.statistics.events.study import study

DAY = 86_400


def walk(rng, names=("a", "b"), steps=2_000, step_s=60):
    """Random prices of minutes, of which one in ten is missing."""
    parts = []
    for name in names:
        prices = 100 * np.exp(np.cumsum(rng.normal(0, 1e-3, steps)))
        rows = {"trajectory": name, "ts": step_s * np.arange(steps), "price": prices}
        parts.append(pl.DataFrame(rows).filter(pl.Series(rng.random(steps) > 0.1)))
    return pl.concat(parts)


def some_events(rng, names=("a", "b"), count=60, end=2_000 * 60):
    return pl.DataFrame(
        {
            "trajectory": rng.choice(names, count),
            "ts": np.sort(rng.integers(0, end, count)),
            "direction": rng.choice([1, -1], count),
        }
    )


def price_known(bars, name, at):
    """The close of the newest bar that has ended, if it ended at most three minutes ago."""
    own = bars.filter(pl.col("trajectory") == name, pl.col("ts") + 60 <= at).tail(1)
    if own.is_empty() or at - own["ts"][0] - 60 > 180:
        return None
    return float(own["price"][0])


def start_after(bars, name, at):
    """When the first close that follows an event is known, if that is within three minutes."""
    own = bars.filter(pl.col("trajectory") == name, pl.col("ts") + 60 > at).head(1)
    if own.is_empty() or own["ts"][0] + 60 - at > 180:
        return None
    return own["ts"][0] + 60


@pytest.mark.parametrize("from_detection", [False, True])
def test_figures_are_those_of_a_loop_over_the_events(from_detection):
    rng = np.random.default_rng(11)
    bars, events = walk(rng), some_events(rng)
    options = {"before_s": 600, "after_s": 900, "every_s": 300}
    found = study(events, bars, **options, from_detection=from_detection)
    kept, last = [], {}
    for name, ts, way in events.iter_rows():
        if ts - last.get(name, -math.inf) >= 900:
            last[name] = ts
            start = ts if from_detection else start_after(bars, name, ts)
            kept.append((name, start, way))
    stem = "return_from_detection" if from_detection else "return"
    for row in found.iter_rows(named=True):
        path = []
        for name, start, way in kept:
            first = None if start is None else price_known(bars, name, start)
            then = None if start is None else price_known(bars, name, start + row["offset_s"])
            if first is not None and then is not None:
                path.append(way * 1e4 * math.log(then / first))
        assert row["n"] == len(path)
        assert row["n_overlapping"] == events.height - len(kept)
        assert row[f"{stem}_mean_log_bps"] == pytest.approx(np.mean(path), abs=1e-9)
        assert row[f"{stem}_q25_log_bps"] == pytest.approx(np.quantile(path, 0.25), abs=1e-9)
    assert found["offset_s"].to_list() == [-600, -300, 0, 300, 600, 900]


def test_nothing_known_later_than_an_offset_is_in_the_path_there():
    rng = np.random.default_rng(12)
    bars = walk(rng, ("a",))
    events = pl.DataFrame({"trajectory": ["a"], "ts": [60_030]})
    # a bar that begins at 60,600 is known at 60,660
    later = bars.with_columns(price=pl.when(pl.col("ts") < 60_600).then("price").otherwise(1.0))
    options = {"before_s": 600, "after_s": 1_200, "every_s": 30}
    first, second = (study(events, each, **options) for each in (bars, later))
    same = first["return_mean_log_bps"].eq_missing(second["return_mean_log_bps"])
    start = start_after(bars, "a", 60_030)
    assert first.filter(~same)["offset_s"].min() == 60_660 - start


@pytest.mark.parametrize("column", ["price", "spread_log_bps"])
@pytest.mark.parametrize("at", [60_000, 60_030])
def test_nothing_known_by_the_event_is_in_what_followed(at, column):
    rng = np.random.default_rng(17)
    bars = walk(rng, ("a",)).rename({"price": column})
    events = pl.DataFrame({"trajectory": ["a"], "ts": [at]})
    # a bar that begins at 59,940 is known at 60,000, the very second of the first of the events
    known = pl.col("ts") + 60 <= at
    other = bars.with_columns(pl.when(known).then(pl.col(column) * 3).otherwise(column))
    options = {"column": column, "before_s": 600, "after_s": 1_200, "every_s": 60}
    for less in ("none", "controls"):
        first, second = (study(events, each, **options, less=less) for each in (bars, other))
        after = pl.col("offset_s") >= 0
        mean = next(name for name in first.columns if "_mean" in name)
        if less == "none":
            assert first.filter(after)[mean].equals(second.filter(after)[mean])
            assert not first.filter(~after)[mean].equals(second.filter(~after)[mean])
    detected = [study(events, each, **options, from_detection=True) for each in (bars, other)]
    assert not detected[0].tail(1).equals(detected[1].tail(1))


def jumps(then, count=60, height=0.02, minute=10):
    """Minutes of a price that jumps each hour within a bar, and then stays or goes back."""
    rng = np.random.default_rng(18)
    ts = 60 * np.arange(60 * (count + 2))
    age = ts % 3_600 - 60 * minute
    level = np.where((age >= 0) & (age < 1_200), height, 0.0)
    if then == "back":
        level = np.where(age >= 60, 0.0, level)
    noise = np.cumsum(rng.normal(0, 1e-5, ts.size))
    bars = pl.DataFrame({"trajectory": "a", "ts": ts, "price": np.exp(level + noise)})
    at = 3_600 * np.arange(1, count + 1) + 60 * minute
    return bars, at


@pytest.mark.parametrize("second", [0, 31, 59])
@pytest.mark.parametrize(("then", "after", "since"), [("stays", 0, 200), ("back", -200, 0)])
def test_the_move_that_made_an_event_is_no_return_after_it(then, after, since, second):
    bars, at = jumps(then)
    events = pl.DataFrame({"trajectory": "a", "ts": at + second})
    options = {"before_s": 600, "after_s": 900, "every_s": 300}
    for less in ("none", "past"):
        row = study(events, bars, **options, less=less).row(-2, named=True)
        assert row["return_mean_log_bps"] == pytest.approx(after, abs=1)
        assert row["n"] == len(at)
        assert row["wait_median_s"] == 60 - second
    found = study(events, bars, **options, from_detection=True).row(-2, named=True)
    assert found["return_from_detection_mean_log_bps"] == pytest.approx(since, abs=1)
    assert found["wait_median_s"] == 0
    assert "return_mean_log_bps" not in found


def test_a_bar_that_is_missing_at_the_event_starts_no_path_from_before_it():
    bars, at = jumps("stays")
    events = pl.DataFrame({"trajectory": "a", "ts": at + 30})
    options = {"before_s": 600, "after_s": 600, "every_s": 300}
    for missing in (1, 2):
        seen = bars.filter(~pl.col("ts").is_in([t + 60 * k for t in at for k in range(missing)]))
        found = study(events, seen, **options)
        assert found["wait_median_s"][0] == 30 + 60 * missing
        assert found["return_mean_log_bps"][-1] == pytest.approx(0, abs=1)
    seen = bars.filter(~pl.col("ts").is_in([t + 60 * k for t in at for k in range(4)]))
    assert study(events, seen, **options)["n_unknown"].unique().to_list() == [len(at)]


def test_from_the_detection_a_level_is_taken_from_its_median_before_the_quiet_time():
    ts = [60 * k for k in range(60)]
    values = [5.0] * 25 + [50.0] * 5 + [9.0] * 30
    frame = pl.DataFrame({"trajectory": ["a"] * 60, "ts": ts, "spread_log_bps": values})
    events = pl.DataFrame({"trajectory": ["a"], "ts": [1_800]})
    options = {"column": "spread_log_bps", "before_s": 1_200, "after_s": 600, "known_after_s": 0}
    found = study(events, frame, quiet_s=300, from_detection=True, **options)
    assert found.filter(offset_s=600)["spread_change_from_before_mean_log_bps"].item() == 4.0
    after = study(events, frame, quiet_s=300, **options)
    assert after.filter(offset_s=600)["spread_change_mean_log_bps"].item() == 0.0


def test_what_the_comparison_did_as_well_is_taken_off():
    ts = np.arange(40 * 1_440) * 60
    daily = np.where(ts % DAY >= DAY // 2, 0.05, 0.0)  # each noon up by 5 %
    trend = 1e-6 * ts / 60
    rng = np.random.default_rng(13)
    noise = np.cumsum(rng.normal(0, 1e-5, ts.size))
    jump = np.where((ts >= 20 * DAY + DAY // 2) & (ts < 21 * DAY), 0.02, 0.0)
    bars = pl.concat(
        pl.DataFrame({"trajectory": name, "ts": ts, "price": np.exp(each)})
        for name, each in {"a": daily + jump + noise, "b": daily, "c": trend}.items()
    )
    noon = 20 * DAY + DAY // 2 - 60
    options = {"before_s": 1_800, "after_s": 1_800, "every_s": 600}

    def after(name, less, **more):
        events = pl.DataFrame({"trajectory": [name], "ts": [noon], **more})
        return study(events, bars, less=less, **options)["return_mean_log_bps"][-1]

    assert after("a", "none") == pytest.approx(700, abs=5)
    assert after("a", "controls") == pytest.approx(200, abs=5)
    assert after("a", "against", against=["b"]) == pytest.approx(200, abs=5)
    assert after("c", "none") == pytest.approx(1e4 * 30e-6, abs=1e-6)
    assert after("c", "past") == pytest.approx(0, abs=1e-6)


def test_controls_are_apart_from_every_event_of_the_trajectory():
    ts = np.arange(10 * 1_440) * 60
    prices = np.exp(np.where(ts % DAY >= DAY // 2, 0.05, 0.0))
    bars = pl.DataFrame({"trajectory": "a", "ts": ts, "price": prices})
    every_noon = [DAY * day + DAY // 2 - 60 for day in range(1, 9)]
    events = pl.DataFrame({"trajectory": ["a"] * 8, "ts": every_noon})
    found = study(events, bars, before_s=600, after_s=600, less="controls")
    # only the first and the last day are without one
    assert found["n_unknown"].unique().to_list() == [0]
    alone = study(events, bars.filter(pl.col("ts") > DAY), before_s=600, after_s=600)
    assert alone["n"].max() == 8
    inner = bars.filter(pl.col("ts").is_between(DAY, 9 * DAY, closed="left"))
    none = study(events, inner, before_s=600, after_s=600, less="controls")
    assert none["n_unknown"].unique().to_list() == [8]
    assert none["path_reason"].unique().to_list() == ["empty"]


def test_opposite_directions_and_other_orders_of_rows_change_what_they_should():
    rng = np.random.default_rng(14)
    bars, events = walk(rng), some_events(rng)
    options = {"before_s": 300, "after_s": 600, "cluster": "trajectory_day"}
    found = study(events, bars, **options)
    turned = study(events.with_columns(-pl.col("direction")), bars, **options)
    shuffled = bars.sample(fraction=1, shuffle=True, seed=3)
    again = study(events.reverse(), shuffled.lazy(), **options)
    for name in ("return_mean_log_bps", "return_median_log_bps"):
        assert (found[name] + turned[name]).abs().max() < 1e-9
    assert again.equals(found)
    assert set(found["band_reason"]) == {"few_clusters"}  # two trajectories and two days
    assert study(events, bars, before_s=300, after_s=600)["band_reason"].null_count() == 16


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"before_s": 0}, "before_s"),
        ({"after_s": 1.5}, "after_s"),
        ({"quiet_s": 3_600}, "quiet_s"),
        ({"less": "market"}, "less"),
        ({"less": "against"}, "events"),
        ({"cluster": "week"}, "cluster"),
        ({"column": "prize"}, "column"),
        ({"every_s": 0}, "every_s"),
        ({"from_detection": 1}, "from_detection"),
    ],
)
def test_options_that_cannot_be_are_refused(options, parameter):
    rng = np.random.default_rng(15)
    with pytest.raises(InputError) as caught:
        study(some_events(rng), walk(rng, steps=100), **options)
    assert caught.value.parameter == parameter


def known_of(frame, column="price", step_s=None, known_after_s=None, max_stale_s=None):
    return KnownValues.of(frame, column, step_s, known_after_s, max_stale_s)


def newest_known(held, trajectory, at, after_s, stale_s):
    """Look at every row: the newest that was known at the time, if it is not too old."""
    rows = [
        (ts + after_s, price)
        for name, ts, price in held
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
    held = frame.rows()
    wanted = [
        newest_known(held, name, at, after_s, 200) for name, at in zip(names, times, strict=True)
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
    rows = [(ts + after_s, name, price) for name, ts, price in frame.sort("ts").rows()]
    wanted = []
    for name, at in zip(asked, times, strict=True):
        late = ((known, price) for known, of, price in rows if of == name and known > at)
        known_at, price = next(late, (math.inf, None))
        wanted.append(price if known_at - at <= 50 else None)
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
