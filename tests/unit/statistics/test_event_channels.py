"""Channels beside each other: counted again by loops, and with losses and delays that are known."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from toolkit.errors import InputError
from toolkit.statistics.events.documents import channels

NAMES = ("rest", "socket", "webhook")
DOCUMENT = {"family": "spread", "event_id": "a", "event_type": "x"}
DOCUMENT |= {"ts_ms": 9_500, "arrived_ms": 9_900}


def arrivals(rows: list[dict]) -> pl.DataFrame:
    names = {"family": pl.String, "event_id": pl.String, "event_type": pl.String}
    return pl.DataFrame(rows, schema=names | dict.fromkeys(("ts_ms", "arrived_ms"), pl.Int64))


def drawn(rng: np.random.Generator) -> dict[str, pl.DataFrame]:
    """Deliveries of 200 documents of two families by three channels, with losses and repeats."""
    found: dict[str, list[dict]] = {name: [] for name in NAMES}
    for number in range(200):
        document = {
            "family": str(rng.choice(["spread", "splash"])),
            "event_id": f"e{number // 2}",
            "event_type": rng.choice([None, "spread.opened", "spread.closed"]),
            "ts_ms": int(rng.integers(0, 1_000_000)),
        }
        for name in NAMES:
            for _ in range(int(rng.integers(0, 3))):
                late = None if rng.random() < 0.1 else int(rng.integers(-500, 9_000))
                arrived = None if late is None else document["ts_ms"] + late
                found[name].append(document | {"arrived_ms": arrived})
    return {name: arrivals(rows) for name, rows in found.items()}


def looped(
    came: dict[str, pl.DataFrame], pair: tuple[str, str, str], held: list[tuple], window: tuple
) -> dict[str, object]:
    """Compare two channels by loops over their deliveries."""
    family, own, other = pair
    listed = {name: came[name].filter(family=family).to_dicts() for name in (own, other)}
    opened = {}
    for name, rows in listed.items():
        times = [row["ts_ms"] // 1_000 for row in rows]
        stated = [each[2:] for each in held if each[:2] == (name, family)]
        opened[name] = stated or [(min(times), max(times) + 1)]

    def both_open(ts: int) -> bool:
        return all(any(low <= ts < high for low, high in each) for each in opened.values())

    def documents(name: str) -> dict[tuple, list[int]]:
        found: dict[tuple, list[int]] = {}
        for row in listed[name]:
            ts = row["ts_ms"] // 1_000
            if window[0] <= ts < window[1] and both_open(ts):
                key = (row["event_id"], row["event_type"], row["ts_ms"])
                found.setdefault(key, []).append(row["arrived_ms"])
        return found

    def firsts(found: dict[tuple, list[int]]) -> dict[tuple, int]:
        known = {key: [at for at in times if at is not None] for key, times in found.items()}
        return {key: min(times) for key, times in known.items() if times}

    mine, theirs = documents(own), documents(other)
    first, second = firsts(mine), firsts(theirs)
    latency = [(at - key[2]) / 1_000 for key, at in first.items()]
    lead = [(second[key] - at) / 1_000 for key, at in first.items() if key in second]
    return {
        "n": len(mine),
        "n_other": len(theirs),
        "n_both": len(set(mine) & set(theirs)),
        "n_lost": len(set(theirs) - set(mine)),
        "n_doubled": sum(len(times) - 1 for times in mine.values()),
        "n_timed": len(latency),
        "n_early": sum(each < 0 for each in latency),
        "n_compared": len(lead),
        "n_first": sum(each > 0 for each in lead),
        "latency_q95_s": pytest.approx(np.quantile(latency, 0.95)),
        "latency_median_s": pytest.approx(np.median(latency)),
        "lead_q05_s": pytest.approx(np.quantile(lead, 0.05)),
        "lead_median_s": pytest.approx(np.median(lead)),
        "held_s": sum(both_open(at) for at in range(*window)),
    }


@pytest.mark.parametrize("seed", range(4))
def test_every_figure_is_what_loops_count(seed: int) -> None:
    rng = np.random.default_rng(seed)
    came, window = drawn(rng), (100, 950)
    held = [("rest", "spread", *ends) for ends in ((0, 400), (600, 2_000), (380, 450))]
    held += [("socket", "splash", 300, 700)]
    frame = pl.DataFrame(held, schema=["channel", "family", "start_ts", "end_ts"], orient="row")
    found = channels(came, *window, held=frame)
    assert found.height == 2 * 3 * 2
    for row in found.iter_rows(named=True):
        expected = looped(came, (row["family"], row["channel"], row["other"]), held, window)
        assert {name: row[name] for name in expected} == expected
        assert row["lost_share"] == row["n_lost"] / row["n_other"]
        assert row["coverage"] == pytest.approx(row["held_s"] / 850)


def test_known_losses_and_delays_are_found_within_their_error() -> None:
    rng = np.random.default_rng(5)
    ts = np.sort(rng.integers(0, 30 * 86_400_000, 20_000))
    ids = {"family": "spread", "event_id": np.arange(ts.size).astype(str), "event_type": "opened"}
    every = pl.DataFrame(ids | {"ts_ms": ts})
    polled = every.with_columns(arrived_ms=(pl.col("ts_ms") // 60_000 + 1) * 60_000)
    delay_ms = rng.exponential(400, ts.size).astype(int)
    kept, again = rng.random(ts.size) >= 0.03, rng.random(ts.size) < 0.1
    pushed = every.with_columns(arrived_ms=pl.col("ts_ms") + delay_ms)
    pushed = pl.concat([pushed.filter(kept), pushed.filter(kept & again)])
    rest, hook = channels({"rest": polled, "webhook": pushed}).rows(named=True)
    assert hook["n_lost"] == (~kept).sum()
    assert hook["lost_share_lower"] < 0.03 < hook["lost_share_upper"]
    exact = stats.binomtest(hook["n_lost"], hook["n_other"]).proportion_ci(method="exact")
    assert (hook["lost_share_lower"], hook["lost_share_upper"]) == pytest.approx(exact)
    assert (hook["n_doubled"], rest["n_doubled"]) == ((kept & again).sum(), 0)
    assert hook["latency_median_s"] == pytest.approx(0.4 * np.log(2), rel=0.05)
    assert rest["latency_median_s"] == pytest.approx(30, rel=0.05)
    assert (rest["n_lost"], rest["n_early"], hook["n_early"]) == (0, 0, 0)
    assert hook["lead_median_s"] == -rest["lead_median_s"] == pytest.approx(29.6, rel=0.05)
    assert hook["n_first"] > 0.98 * hook["n_compared"]


def test_what_nobody_counted_is_null_and_says_so() -> None:
    frame = arrivals([DOCUMENT | {"event_id": each, "arrived_ms": None} for each in "ab"])
    counted = frame.with_columns(n_deliveries=pl.Series([3, 1]))
    uncounted = frame.with_columns(n_deliveries=pl.lit(None, pl.Int64))
    first, second = channels({"a": counted, "b": uncounted}).rows(named=True)
    assert (first["n_doubled"], first["doubled_reason"]) == (2, None)
    assert (second["n_doubled"], second["doubled_reason"]) == (None, "not_noted")
    for names in (
        ("n_timed", "latency_median_s", "latency_reason"),
        ("n_compared", "lead_median_s", "lead_reason"),
    ):
        assert [first[name] for name in names] == [0, None, "empty"]
    assert (first["n_both"], first["lost_share"]) == (2, 0.0)


def test_a_channel_without_a_document_was_open_at_no_time_that_is_known() -> None:
    frame = arrivals([DOCUMENT])
    row = channels({"rest": frame, "webhook": frame.clear()}).row(1, named=True)
    assert (row["n"], row["n_other"], row["lost_share"], row["held_s"]) == (0, 0, None, 0)
    assert row["lost_share_reason"] == "empty"
    held = {"channel": ["webhook"], "family": ["spread"], "start_ts": [0], "end_ts": [20]}
    found = channels({"rest": frame, "webhook": frame.clear()}, held=pl.DataFrame(held))
    row = found.row(1, named=True)
    assert (row["n_lost"], row["n_other"], row["lost_share"]) == (1, 1, 1.0)
    assert channels({"a": frame.clear(), "b": frame.clear()}, 0, 10).is_empty()


def test_what_is_no_comparison_is_refused() -> None:
    frame = arrivals([DOCUMENT])
    with pytest.raises(InputError, match="two channels or more"):
        channels({"rest": frame})
    with pytest.raises(InputError, match="arrived_ms"):
        channels({"rest": frame, "webhook": frame.drop("arrived_ms")})
    with pytest.raises(InputError, match="a null event_id"):
        channels({"rest": frame, "webhook": frame.with_columns(event_id=pl.lit(None, pl.String))})
    with pytest.raises(InputError, match="channel"):
        channels({"a": frame, "b": frame}, held=pl.DataFrame({"family": ["spread"]}))


def test_one_frame_with_a_column_of_channels_is_the_same_as_a_frame_for_each() -> None:
    apart = drawn(np.random.default_rng(5))
    together = pl.concat(
        frame.with_columns(channel=pl.lit(name)) for name, frame in apart.items()
    ).sample(fraction=1.0, shuffle=True, seed=1)
    assert channels(together, 0, 1_000).equals(channels(apart, 0, 1_000))
    with pytest.raises(InputError, match="two channels"):
        channels(together.filter(channel="rest"), 0, 1_000)
    with pytest.raises(InputError, match="channel"):
        channels(apart["rest"], 0, 1_000)
