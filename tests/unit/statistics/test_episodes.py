from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.spread import episodes, time_above, time_to_close

NAN = math.nan


def stretches(
    rows: list[tuple[int, float]], step: int, enter: float, leave: float, *, absolute: bool
) -> list[dict]:
    """Each stretch by the observations it begins and ends before, one state at a time."""
    size = abs if absolute else float
    found: list[dict] = []
    running: dict | None = None
    segment = 0
    for k, (t, v) in enumerate(rows):
        fresh = k == 0 or t - rows[k - 1][0] > 1.5 * step
        if fresh:
            segment += 1
            running = None
        if running is None and size(v) >= enter:
            running = {"from": k, "left": fresh, "segment": segment, "ended": False}
            found.append(running)
        elif running is not None and size(v) < leave:
            running["ended"] = True
            running = None
        if running is not None:
            running["until"] = k + 1
    return found


def merged(rows: list[tuple[int, float]], found: list[dict], merge: int) -> list[dict]:
    out: list[dict] = []
    for one in found:
        last = out[-1] if out else None
        near = last is not None and rows[one["from"]][0] - rows[last["until"]][0] <= merge
        if near and last["segment"] == one["segment"]:
            last |= {"until": one["until"], "ended": one["ended"]}
        else:
            out.append(one)
    return out


def brute_force(
    rows: list[tuple[int, float]],
    end: int,
    *,
    step: int,
    thresholds: tuple[float, float],
    merge: int,
    least: int,
    absolute: bool,
) -> list[dict]:
    """A loop over the observations of one trajectory."""
    stands = [
        min(3 * step, (rows[k + 1][0] if k + 1 < len(rows) else end) - t)
        for k, (t, _) in enumerate(rows)
    ]
    out, size = [], abs if absolute else float
    for one in merged(rows, stretches(rows, step, *thresholds, absolute=absolute), merge):
        k, until = one["from"], one["until"]
        inside = range(k, until)
        peak = max(inside, key=lambda j: (size(rows[j][1]), -j))
        ends = rows[until][0] if one["ended"] else rows[until - 1][0] + stands[until - 1]
        row = {
            "side": "positive" if rows[peak][1] > 0 else "negative",
            "start_ts": rows[k][0],
            "end_ts": ends,
            "duration_s": ends - rows[k][0],
            "peak_bps": rows[peak][1],
            "peak_ts": rows[peak][0],
            "area_bps_h": sum(size(rows[j][1]) * stands[j] for j in inside) / 3600,
            "censored_left": one["left"],
            "censored_right": not one["ended"],
            "n": len(inside),
        }
        if row["duration_s"] >= least:
            out.append(row)
    return out


@pytest.fixture
def drawn(autoregressive, series) -> list[pl.DataFrame]:
    """Twelve trajectories, of whose rows and values one in twenty is missing."""
    rng = np.random.default_rng(6)
    frames = []
    for seed in range(12):
        values = 12 * autoregressive(0.9, 400, seed=seed)[0] / 2.3
        values[rng.random(400) < 0.05] = NAN
        present = rng.random(400) >= 0.05
        ts = 60 * np.arange(400)[present]
        frames.append(series(values[present], ts=ts, trajectory=f"{seed:02}"))
    return frames


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("leave", [20.0, 12.0, 5.0])
@pytest.mark.parametrize("lengths", [(0, 0), (60, 0), (180, 0), (0, 120), (240, 300)])
def test_episodes_equal_a_loop_over_the_observations(leave, lengths, absolute, drawn):
    merge, least = lengths
    found = episodes(
        pl.concat(drawn),
        0,
        24_000,
        enter_bps=20.0,
        leave_bps=leave,
        merge_gap_s=merge,
        min_duration_s=least,
        absolute=absolute,
    )
    assert found.height > (40 if absolute else 15)
    for frame in drawn:
        name, rows = frame["trajectory"][0], frame.drop("trajectory").rows()
        expected = brute_force(
            [row for row in rows if math.isfinite(row[1])],
            24_000,
            step=60,
            thresholds=(20.0, leave),
            merge=merge,
            least=least,
            absolute=absolute,
        )
        of_one = found.filter(trajectory=name).rows(named=True)
        assert len(of_one) == len(expected), name
        for ours, theirs in zip(of_one, expected, strict=True):
            assert ours["area_bps_h"] == pytest.approx(theirs.pop("area_bps_h"), rel=1e-12)
            assert {name: ours[name] for name in theirs} == theirs


def test_episodes_on_the_edges_of_the_window_are_censored(series):
    frame = series([50.0] * 10, ts=list(range(0, 600, 60)))
    row = episodes(frame, 60, 540, enter_bps=40).row(0, named=True)
    assert (row["start_ts"], row["end_ts"], row["duration_s"]) == (60, 540, 480)
    assert row["censored_left"]
    assert row["censored_right"]
    assert (row["coverage"], row["n"]) == (1.0, 8)


def test_a_single_observation_stands_for_no_known_time(series):
    row = episodes(series([50.0], ts=[60]), 0, 600, enter_bps=40).row(0, named=True)
    assert (row["duration_s"], row["censored_right"]) == (0, True)
    assert (row["coverage"], row["observed_share"]) == (None, None)
    assert row["coverage_reason"] == "too_few"


@pytest.mark.parametrize("absolute", [False, True])
def test_time_above_equals_counting_seconds(absolute, series):
    rng = np.random.default_rng(11)
    for _ in range(30):
        ts = np.sort(rng.choice(3000, size=60, replace=False))
        values = rng.standard_normal(60) * 10
        limit = int(rng.integers(1, 200))
        held: dict[int, float] = {}
        for at, value in zip(ts.tolist(), values.tolist(), strict=True):
            held |= dict.fromkeys(range(at, min(at + limit, 3000)), value)
        asked = {"threshold_bps": 8, "absolute": absolute, "max_stale_s": limit}
        row = time_above(series(values, ts=ts), 0, 3000, **asked).row(0, named=True)
        name, size = ("time_abs_above", abs) if absolute else ("time_above", float)
        above = sum(size(value) >= 8 for value in held.values())
        assert row[f"{name}_s"] == above
        assert row[f"{name}_share"] == above / len(held)


def test_the_threshold_itself_is_above_with_its_sign_and_on_both_sides_where_sizes_are_meant(
    series,
):
    frame = series([40.0, -40.0, 39.9, -39.9], ts=[0, 60, 120, 180])
    row = time_above(frame, 0, 240, threshold_bps=40).row(0, named=True)
    assert (row["time_above_s"], row["time_above_share"]) == (60.0, 0.25)
    row = time_above(frame, 0, 240, threshold_bps=40, absolute=True).row(0, named=True)
    assert (row["time_abs_above_s"], row["time_abs_above_share"]) == (120.0, 0.5)
    assert "time_above_share" not in row
    assert episodes(frame, 0, 240, enter_bps=40)["start_ts"].to_list() == [0]
    assert episodes(frame, 0, 240, enter_bps=40, absolute=True)["n"].to_list() == [2]


def test_time_above_that_cannot_be_had_says_why(series):
    parts = [
        series([None, NAN], trajectory="a"),
        series([50.0], trajectory="b"),
        series([50.0, 50.0], trajectory="c"),
    ]
    frame = pl.concat(parts)
    start = frame["ts"].min()
    found = time_above(frame, start, start + 120, threshold_bps=40)
    assert found["time_above_reason"].to_list() == ["empty", "too_few", None]
    assert found["time_above_share"].to_list() == [None, None, 1.0]


@pytest.mark.parametrize("function", [episodes, time_above])
@pytest.mark.parametrize("value", [0, -1, NAN, math.inf, "40", True, None])
def test_a_threshold_that_is_no_number_above_zero_is_refused(function, value, series):
    name = "enter_bps" if function is episodes else "threshold_bps"
    with pytest.raises(InputError, match="basis points above 0"):
        function(series([1.0]), 0, 60, **{name: value})


def test_a_wrong_question_about_episodes_is_refused(series):
    frame = series([1.0])
    with pytest.raises(InputError, match="at most enter_bps"):
        episodes(frame, 0, 60, enter_bps=10, leave_bps=11)
    for name in ("merge_gap_s", "min_duration_s"):
        for value in (-1, 1.5, True):
            with pytest.raises(InputError, match=name):
                episodes(frame, 0, 60, enter_bps=10, **{name: value})
    with pytest.raises(InputError, match="a column in bps"):
        episodes(frame, 0, 60, enter_bps=10, column="buy_price")
    for function, level in ((episodes, "enter_bps"), (time_above, "threshold_bps")):
        with pytest.raises(InputError, match="absolute: 1 is not allowed"):
            function(frame, 0, 60, **{level: 10, "absolute": 1})


def test_thresholds_are_part_of_the_hash(series):
    frame = series([50.0, 50.0], ts=[0, 60])
    asked = [{"enter_bps": 40}, {"enter_bps": 41}, {"enter_bps": 40, "leave_bps": 39}]
    asked += [{"enter_bps": 40, "merge_gap_s": 1}, {"enter_bps": 40, "min_duration_s": 1}]
    asked += [{"enter_bps": 40, "absolute": True}]
    hashes = {episodes(frame, 0, 120, **options)["params_hash"].item() for options in asked}
    assert len(hashes) == 6
    same = episodes(frame, 0, 119, enter_bps=40.0, leave_bps=40)["params_hash"].item()
    assert same == episodes(frame, 0, 120, enter_bps=40)["params_hash"].item()


def lives_by_loop(
    ts: np.ndarray, sizes: np.ndarray, *, enter: float, leave: float, end: int
) -> tuple[list[tuple[float, int]], int]:
    """(duration, closed) of each entry seen, and how many were not seen. Steps of 60 s."""
    lives, truncated, since, seen, before = [], 0, None, True, None
    for k, (at, size) in enumerate(zip(ts, sizes, strict=True)):
        after_gap = k == 0 or at - ts[k - 1] > 90
        if after_gap and since is not None:
            lives += [(min(ts[k - 1] + 180, at) - since, 0)] if seen else []
            since = None
        if since is not None and size <= leave:
            lives += [(at - since, 1)] if seen else []
            since = None
        elif since is None and size >= enter:
            since, seen = at, not after_gap
            truncated += after_gap
        before = at
    if since is not None and seen:
        lives.append((min(before + 180, end) - since, 0))
    return lives, truncated


@pytest.mark.parametrize("seed", range(6))
def test_entries_and_closes_are_those_of_a_loop(seed, autoregressive, series, start):
    rng = np.random.default_rng(seed)
    values = 3 * autoregressive(0.9, 900, seed=seed)[0] + 2
    kept = rng.random(900) >= 0.03
    ts, values = (start + 60 * np.arange(900))[kept], values[kept]
    level, end = float(rng.choice([0, 2])), start + 54_000
    frame = series(values, ts=ts)
    asked = {"enter_bps": 8.0, "exit_bps": 1.5, "toward": level}
    row = time_to_close(frame, start, end, **asked).row(0, named=True)
    lives, truncated = lives_by_loop(ts, abs(values - level), enter=8, leave=1.5, end=end)
    assert (row["entries"], row["closed"]) == (len(lives), sum(closed for _, closed in lives))
    assert row["truncated"] == truncated
    share, median = 1.0, None
    for time in sorted({duration for duration, closed in lives if closed}):
        ended = sum(closed for duration, closed in lives if duration == time)
        share *= 1 - ended / sum(duration >= time for duration, _ in lives)
        if share <= 0.5 + 1e-12 and median is None:
            median = time
    assert row["close_median_s"] == median


def test_without_entries_there_is_no_time_and_a_reason(series, start):
    frame = pl.concat([series([1.0] * 9), series([None] * 9, trajectory="b")])
    found = time_to_close(frame, start, start + 600, enter_bps=5, exit_bps=1)
    assert found["close_median_reason"].to_list() == ["too_few", "empty"]
    assert found["entries"].to_list() == [0, 0]
    begun_before = time_to_close(series([9.0, 0.0]), start, start + 600, enter_bps=5, exit_bps=1)
    assert begun_before.select("truncated", "entries").row(0) == (1, 0)
    never = time_to_close(series([0.0, 9.0, 9.0]), start, start + 600, enter_bps=5, exit_bps=1)
    assert never.select("entries", "closed", "close_median_reason").row(0) == (1, 0, "censored")


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("enter_bps", {"enter_bps": 0, "exit_bps": 0}),
        ("exit_bps", {"enter_bps": 5, "exit_bps": 5}),
        ("toward", {"enter_bps": 5, "exit_bps": 1, "toward": math.nan}),
        ("column", {"enter_bps": 5, "exit_bps": 1, "column": "buy_price"}),
    ],
)
def test_levels_that_make_no_sense_are_refused(name, asked, series):
    with pytest.raises(InputError, match=name):
        time_to_close(series([1.0]), **asked)
