"""Events that come together: against loops, without any relation, and where one follows another."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from toolkit.errors import InputError
from toolkit.statistics.events import cooccurrence
from toolkit.statistics.explanation import explain

from .event_lives import openings
from .test_season_shifts import pairs_of_seconds

HOUR, DAY = 3_600, 86_400

LOGS = int(os.environ.get("RAIL_PLACEBOS", "200"))  # without any relation; `make soak` has more


def of(end: int, *, start: int = 0, **times: object) -> pl.DataFrame:
    """Openings of several families, by name."""
    parts = [
        openings(np.asarray(each), start, end).with_columns(family=pl.lit(family))
        for family, each in times.items()
    ]
    return pl.concat(parts)


def held_of(**stretches: list[tuple[int, int]]) -> pl.DataFrame:
    rows = [(family, *each) for family, found in stretches.items() for each in found]
    return pl.DataFrame(rows, ["family", "start_ts", "end_ts"], orient="row")


def test_each_figure_is_that_of_the_shifts_of_what_both_logs_hold():
    rng = np.random.default_rng(4)
    first, other = (np.sort(rng.integers(0, 4_000, n)) for n in (60, 80))
    held = {"splash": [(0, 1_000), (1_030, 4_000)], "spread": [(100, 2_500), (2_490, 3_900)]}
    row = cooccurrence(
        of(4_000, splash=first, spread=other), held=held_of(**held), within_s=20, season_s=100
    ).row(0, named=True)
    both = [(100, 1_000), (1_030, 3_900)]
    mine, theirs = (
        [ts for ts in each.tolist() if any(start <= ts < end for start, end in both)]
        for each in (first, other)
    )
    counts = pairs_of_seconds(both, 100, mine, [(ts, 0) for ts in theirs], groups=1, within_s=20)[
        :, 0
    ]
    assert (row["n"], row["n_other"], row["held_s"]) == (len(mine), len(theirs), 3_770)
    assert row["coverage"] == 3_770 / 4_000
    assert row["n_shifts"] == counts.shape[1] - 1 == 37
    for name, found in (("", counts.sum(axis=0)), ("after_", counts[2])):
        pairs, drawn = found[0], found[1:]
        assert row[f"{name}pairs"] == pairs
        assert row[f"{name}pairs_expected"] == pytest.approx(drawn.mean(), rel=1e-12)
        assert row[f"{name}ratio"] == pytest.approx(pairs / drawn.mean(), rel=1e-12)
        assert row[f"{name}p_value"] == (1 + (drawn >= pairs).sum()) / 38
        band = (row[f"{name}null_band_lower"], row[f"{name}null_band_upper"])
        assert band == pytest.approx((drawn.min() / drawn.mean(), drawn.max() / drawn.mean()))


def test_of_39_shifts_and_more_the_band_leaves_out_one_in_forty_on_each_side():
    rng = np.random.default_rng(8)
    frame = of(90 * DAY, a=rng.integers(0, 90 * DAY, 900), b=rng.integers(0, 90 * DAY, 900))
    row = cooccurrence(frame, within_s=HOUR).row(0, named=True)
    times = [frame.filter(family=each)["t_open"].to_numpy() for each in "ab"]
    drawn = np.sort(
        [
            (abs(np.subtract.outer((times[0] + day * DAY) % (90 * DAY), times[1])) <= HOUR).sum()
            for day in range(1, 90)
        ]
    )
    band = (row["null_band_lower"], row["null_band_upper"])
    assert band == pytest.approx((drawn[1] / drawn.mean(), drawn[-2] / drawn.mean()))
    # of events apart the pairs expected are known: n * n_other * (2 * within_s + 1) / held_s
    assert row["pairs_expected"] == pytest.approx(900 * 900 * 7_201 / (90 * DAY), rel=0.02)


def test_both_orders_have_the_same_pairs_and_share_those_of_one_second():
    frame = of(
        30 * DAY, a=np.arange(30) * DAY + 7, b=np.arange(30) * DAY + 7 + np.arange(30) % 3 - 1
    )
    found = cooccurrence(frame)
    assert found.select("family", "other_family").rows() == [("a", "b"), ("b", "a")]
    assert found["pairs"].to_list() == [30, 30]
    assert found["after_pairs"].to_list() == [10, 10]
    for name in ("pairs_expected", "ratio", "p_value", "q_value"):
        assert found[name][0] == found[name][1]
    mixed = cooccurrence(frame.sample(fraction=1.0, shuffle=True, seed=1))
    assert mixed.equals(found)


def busy(rng: np.random.Generator, days: int, hours: np.ndarray, bursts: float) -> np.ndarray:
    """Times of a log with its own hours. Some events have two more in the minutes after."""
    counts = rng.poisson(np.tile(hours, days))
    times = np.repeat(np.arange(24 * days) * HOUR, counts) + rng.integers(0, HOUR, counts.sum())
    more = np.repeat(times[rng.random(times.size) < bursts], 2)
    times = np.concatenate([times, more + rng.integers(1, 200, more.size)])
    return times[times < days * DAY]


def p_values(runs: int, seed: int, *, bursts: float = 0.4, follows: float = 0.0) -> pl.DataFrame:
    """Draw logs of two families with gaps, bursts, and hours that are busy in both.

    ``follows`` is the part of splashes that a spread follows within a minute.
    """
    rng = np.random.default_rng(seed)
    noon = np.where(np.abs(np.arange(24) - 13) < 3, 2.0, 0.2)
    evening = np.where(np.abs(np.arange(24) - 15) < 3, 3.0, 0.5)
    parts = []
    for run in range(runs):
        first, other = busy(rng, 41, noon, bursts), busy(rng, 41, evening, bursts)
        later = first[rng.random(first.size) < follows]
        other = np.concatenate([other, later + rng.integers(1, 60, later.size)])
        frame = of(41 * DAY, splash=first, spread=other[other < 41 * DAY])
        parts.append(frame.with_columns(run=pl.lit(run, pl.Int64)))
    gaps = held_of(
        splash=[(0, 9 * DAY + 30_000), (9 * DAY + 52_000, 41 * DAY)],
        spread=[(0, 20 * DAY), (20 * DAY + 11 * HOUR, 31 * DAY), (31 * DAY + HOUR, 41 * DAY)],
    )
    return cooccurrence(pl.concat(parts), ["run"], same=["run"], held=gaps)


def expected_without_hours(found: Any) -> Any:
    return found["n"] * found["n_other"] * 601 / found["held_s"]


@pytest.mark.slow
def test_p_values_of_many_logs_without_any_relation_are_uniform():
    both = p_values(LOGS, 5)
    assert both.height == 2 * LOGS
    assert (both["n_shifts"] == 39).all()
    found = both.filter(family="splash")
    for name in ("p_value", "after_p_value"):
        shares = [(found[name] <= level).mean() for level in (0.05, 0.1, 0.25, 0.5)]
        sys.stdout.write(f"\n{name}: mean {found[name].mean():.3f}, below {shares}\n")
        # 40 values are possible, so that the distance from a uniform one is at least 1/40
        assert stats.kstest(found[name], "uniform").statistic < 0.025 + 1.36 / LOGS**0.5
        assert shares[0] < 0.05 + 3 * (0.05 * 0.95 / LOGS) ** 0.5
    outside = (found["ratio"] < found["null_band_lower"]) | (
        found["ratio"] > found["null_band_upper"]
    )
    sys.stdout.write(f"outside the band: {outside.mean():.3f}\n")
    assert outside.mean() < 0.05 + 3 * (0.05 * 0.95 / LOGS) ** 0.5
    # by the hour alone most of them would seem to come together
    assert (found["ratio"] / (found["pairs"] / expected_without_hours(found))).mean() < 0.7


def test_a_family_that_follows_another_is_found_and_only_in_that_order():
    found = p_values(40, 3, bursts=0.0, follows=0.2)
    first, other = (found.filter(family=each) for each in ("splash", "spread"))
    assert (first["after_p_value"] <= 0.05).mean() >= 0.9
    assert (other["after_p_value"] <= 0.05).mean() <= 0.2
    assert first["after_ratio"].median() > 1.3 > other["after_ratio"].median()
    assert (first["q_value"] <= 0.05).mean() > 0.8


def test_a_gap_is_no_silence():
    """Both logs are held in the first third alone, where events come apart."""
    rng = np.random.default_rng(2)
    times = {each: rng.integers(0, 20 * DAY, 400) for each in "ab"}
    whole = cooccurrence(of(60 * DAY, **times)).row(0, named=True)
    held = held_of(a=[(0, 20 * DAY)], b=[(0, 20 * DAY)])
    known = cooccurrence(of(60 * DAY, **times), held=held).row(0, named=True)
    assert (whole["n_shifts"], known["n_shifts"]) == (59, 19)
    assert whole["ratio"] > 2 > known["ratio"] == pytest.approx(1, abs=0.3)


def test_q_values_are_those_of_scipy_over_all_rows():
    rng = np.random.default_rng(6)
    times = np.sort(rng.integers(0, 60 * DAY, 3_000))
    symbols = [f"S{k}" for k in rng.integers(0, 12, 3_000)]
    lives = openings(times, 0, 60 * DAY, symbol=symbols)
    found = cooccurrence(lives, ["symbol"])
    assert found.height == 12 * 11
    for name in ("", "after_"):
        expected = stats.false_discovery_control(found[f"{name}p_value"])
        assert found[f"{name}q_value"].to_numpy() == pytest.approx(expected)


def test_events_of_one_symbol_alone_are_pairs_where_that_is_asked():
    days = np.arange(30) * DAY + np.arange(30) ** 2 % 24 * HOUR
    lives = pl.concat(
        [
            of(30 * DAY, splash=days, spread=days + 60).with_columns(symbol=pl.lit("A_B")),
            of(30 * DAY, splash=days + 90).with_columns(symbol=pl.lit("C_D")),
            of(30 * DAY, spread=days + 90).with_columns(symbol=pl.lit(None, pl.String)),
        ]
    )
    assert cooccurrence(lives)["pairs"].to_list() == [120, 120]
    same = cooccurrence(lives, same=["symbol"])
    assert same["pairs"].to_list() == [30, 30]
    assert same["n"].to_list() == [60, 30]
    apart = cooccurrence(lives, ["symbol"], same=["symbol"])
    assert apart.select("symbol", "other_symbol").rows() == [("A_B", "A_B")] * 2
    renamed = cooccurrence(lives.rename({"symbol": "group"}), ["group"], same="group")
    assert renamed["pairs"].to_list() == apart["pairs"].to_list() == [30, 30]
    every = cooccurrence(lives, ["symbol"])
    assert every.height == 4 * 3
    assert set(every["other_symbol"]) == {"A_B", "C_D", None}


def test_what_cannot_be_compared_has_a_reason():
    def reasons(frame: pl.DataFrame, **asked: object) -> set[tuple]:
        found = cooccurrence(frame, **asked)
        return set(found.select("ratio", "ratio_reason", "p_value", "p_value_reason").rows())

    few = of(30 * DAY, a=range(9), b=range(1_000, 1_060))
    assert reasons(few) == {(None, "too_few", None, "too_few")}
    assert cooccurrence(few, within_s=2_000)["pairs"].to_list() == [540, 540]
    short = of(19 * HOUR, a=range(20), b=range(20))
    assert reasons(short) == {(None, "too_short", None, "too_short")}
    assert cooccurrence(short)["after_pairs"].to_list() == [190, 190]
    nothing = held_of(a=[(0, HOUR)], b=[(HOUR, 2 * HOUR)])
    assert reasons(short, held=nothing) == {(None, "empty", None, "empty")}
    never = of(30 * DAY, a=range(20), b=range(40_000, 40_020))
    assert reasons(never) == {(None, "too_few", 1.0, None)}
    assert cooccurrence(few.clear()).is_empty()
    assert cooccurrence(of(30 * DAY, a=range(20))).is_empty()
    assert "too short" in explain(cooccurrence(short).head(1), "ratio")


def test_a_window_of_few_days_is_shifted_by_hours():
    rng = np.random.default_rng(0)
    frame = of(5 * DAY, a=rng.integers(0, 5 * DAY, 50), b=rng.integers(0, 5 * DAY, 50))
    found = cooccurrence(frame)
    assert set(found.select("season_s", "n_shifts").rows()) == {(HOUR, 119)}
    assert set(cooccurrence(frame, season_s=DAY)["ratio_reason"]) == {"too_short"}
    assert set(cooccurrence(frame, within_s=2 * HOUR)["season_s"]) == {DAY}


def test_what_is_asked_wrongly_is_refused():
    frame = of(DAY, a=[1], b=[2])
    for asked, words in (
        ({"within_s": 0}, "within_s"),
        ({"within_s": 2 * DAY}, "as long a season_s"),
        ({"within_s": 60, "season_s": 59}, "season_s"),
        ({"same": ["symbol"]}, "same"),
        ({"by": ["symbol"]}, "by"),
    ):
        with pytest.raises(InputError, match=words):
            cooccurrence(frame, **asked)
    many = openings(range(500), 0, DAY, symbol=[f"S{k}" for k in range(500)])
    with pytest.raises(InputError, match="124,750 pairs of groups"):
        cooccurrence(many, ["symbol"])


@pytest.mark.real_data
def test_pumps_of_two_exchanges_come_together_beyond_their_hours(real_data: Path):
    """Most announcements are at 17:00 UTC, so that by chance alone many are of one minute."""
    pumps = pl.read_parquet(real_data / "pumps.parquet").filter(dataset="sapienza")
    once = pumps.sort("exchange", "symbol", "ts").filter(
        (pl.col("ts").diff().over("exchange", "symbol") > 600).fill_null(value=True)
    )

    def with_binance(other: str) -> dict:
        both = once.filter(pl.col("exchange").is_in(["BINANCE", other]))
        known = both.group_by("exchange").agg(first=pl.min("ts"), last=pl.max("ts"))
        start, end = known["first"].max() // DAY * DAY, (known["last"].min() // DAY + 1) * DAY
        lives = openings(both["ts"], start, end, exchange=both["exchange"])
        return cooccurrence(lives, ["exchange"]).row(0, named=True)

    cryptopia, yobit = with_binance("CRYPTOPIA"), with_binance("YOBIT")
    assert cryptopia["pairs"] == yobit["pairs"] == 16
    assert cryptopia["ratio"] == pytest.approx(3.0, abs=0.05)
    assert cryptopia["p_value"] < 0.01
    assert yobit["pairs"] / expected_without_hours(yobit) > 30
    assert yobit["ratio"] < yobit["null_band_upper"]
    assert yobit["p_value"] > 0.1
