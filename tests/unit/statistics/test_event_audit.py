"""The audit of a log: it finds the faults that were planted in it, and says why."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.events import event_lifecycles
from toolkit.statistics.events.audit import audit, audited, price_moves

STEP, BARS = 60, 20_000
END = STEP * BARS
NAMES = [f"A{number}_B:X.spot:Y.spot" for number in range(4)]


def market(rng, names=NAMES, bars=BARS, *, first=50, least=2, apart=200):
    """Spreads of minutes with stretches above 50 bps, and these as known: name, ends, size."""
    rows, truth = [], []
    for name in names:
        values, at = np.full(bars, 10.0), first
        while at < bars - 100:
            length = int(rng.integers(least, 30))
            values[at : at + length] = rng.uniform(60, 120, length)
            truth.append(
                (name, (at + 1) * STEP, (at + length + 1) * STEP, values[at : at + length].max())
            )
            at += length + int(rng.integers(40, apart))
        rows.append(
            pl.DataFrame({"trajectory": name, "ts": STEP * np.arange(bars), "spread_bps": values})
        )
    return pl.concat(rows), truth


def minutes(values: list[float]) -> pl.DataFrame:
    """Spreads of minutes of one trajectory."""
    ts = STEP * np.arange(len(values))
    return pl.DataFrame({"trajectory": NAMES[0], "ts": ts, "spread_bps": values})


def log(truth, known_until=END):
    """Lives of events as `event_lifecycles` gives them."""
    rows = [
        (f"event {number}", name.partition(":")[0], opened, closed, peak / 100)
        for number, (name, opened, closed, peak) in enumerate(truth)
    ]
    frame = pl.DataFrame(rows, ["event", "symbol", "t_open", "t_close", "peak"], orient="row")
    return frame.with_columns(
        family=pl.lit("spread"),
        legs=pl.lit("X.spot → Y.spot"),
        known_until=pl.lit(known_until, pl.Int64),
    )


def test_a_log_that_is_true_is_found_to_be_with_an_error_of_0_without_a_sign():
    spreads, truth = market(np.random.default_rng(41))
    rows = audited(log(truth), spreads, 0, END, enter_bps=50)
    row = audit(rows).row(0, named=True)
    assert (row["precision"], row["recall"]) == (1.0, 1.0)
    assert row["n_events"] == row["n_episodes"] == row["n_delays"] == len(truth)
    assert (row["delay_median_s"], row["peak_error_median_pct"]) == (0, pytest.approx(0))
    just_below = rows.with_columns(event_peak_pct=pl.col("episode_peak_pct") - 1e-12)
    assert str(audit(just_below)["peak_error_median_pct"].item()) == "0.0"


def test_planted_faults_are_found_as_many_as_they_are():
    rng = np.random.default_rng(42)
    spreads, truth = market(rng)
    lost = rng.random(len(truth)) < 0.2
    late = rng.integers(0, 60, len(truth))
    kept = [
        (name, opened + int(wait), max(closed, opened + int(wait)), peak)
        for (name, opened, closed, peak), wait, gone in zip(truth, late, lost, strict=True)
        if not gone
    ]
    quiet = [(name, 600, 900, 70.0) for name in NAMES]  # before the first stretch
    elsewhere = [("A9_B:X.spot:Y.spot", 600, 900, 70.0)] * 3
    rows = audited(log(kept + quiet + elsewhere), spreads, 0, END, enter_bps=50)
    row = audit(rows).row(0, named=True)
    assert row["n_events_judged"] == len(kept) + 4
    assert row["precision"] == len(kept) / (len(kept) + 4)
    assert row["recall"] == len(kept) / len(truth)
    assert row["recall_lower"] < 0.8 < row["recall_upper"]
    assert row["delay_median_s"] == np.median(late[~lost])
    counts = dict(rows["audit_reason"].value_counts().drop_nulls().iter_rows())
    assert counts == {"below": 4, "no_rows": 3, "missed": int(lost.sum())}
    assert rows.filter(found_in="rows").height == int(lost.sum())


def test_events_where_no_spread_is_known_are_not_held_against_the_log():
    spreads, truth = market(np.random.default_rng(43))
    hole = pl.col("ts").is_between(300_000, 600_000)
    rows = audited(log(truth), spreads.filter(~hole), 0, END, enter_bps=50)
    gaps = rows.filter(audit_reason="gap")
    assert gaps.height > 100
    assert gaps["t_open"].is_between(299_000, 600_060).all()
    row = audit(rows).row(0, named=True)
    assert row["precision"] == pytest.approx(1, abs=0.01)
    assert row["n_events"] - row["n_events_judged"] == gaps.height


def test_episodes_after_the_log_ended_are_not_held_against_it():
    spreads, truth = market(np.random.default_rng(44))
    half = END // 2
    lives = log([each for each in truth if each[1] < half], known_until=half)
    later = lives.head(1).with_columns(family=pl.lit("splash"), known_until=pl.lit(END))
    lives = pl.concat([lives, later], how="vertical_relaxed")  # the log of another family
    rows = audited(lives, spreads, 0, END, enter_bps=50)
    assert rows.filter(audit_reason="log_ended").height == len(truth) - (lives.height - 1)
    assert audit(rows)["recall"].item() == 1.0


def test_episodes_in_a_gap_of_the_log_count_neither_for_nor_against_it():
    spreads, truth = market(np.random.default_rng(47))
    gap = (END // 4, END // 2)
    kept = [each for each in truth if not gap[0] <= each[1] < gap[1]]
    by_luck = [each for each in truth if gap[0] <= each[1] < gap[1]][:5]
    held = pl.DataFrame(
        {"family": ["spread"] * 3 + ["splash"], "start_ts": [0, 600, gap[1], 0]}
        | {"end_ts": [gap[0], 900, END, END]}
    )
    rows = audited(log(kept + by_luck), spreads, 0, END, held=held, enter_bps=50)
    row = audit(rows).row(0, named=True)
    assert (row["precision"], row["recall"]) == (1.0, 1.0)
    assert (row["n_episodes"], row["n_seen"]) == (len(truth), len(kept))
    assert rows.filter(audit_reason="log_gap").height == len(truth) - len(kept) - len(by_luck)
    assert audit(audited(log(kept), spreads, 0, END, enter_bps=50))["recall"].item() < 0.9
    nothing = audited(log(kept), spreads, 0, END, held=held.clear(), enter_bps=50)
    assert audit(nothing).select("recall", "recall_reason").row(0) == (None, "empty")
    with pytest.raises(InputError, match="end_ts"):
        audited(log(kept), spreads, 0, END, held=held.drop("end_ts"))


def test_an_episode_whose_beginning_was_not_seen_counts_for_no_recall_with_its_event_either():
    spreads = minutes([80.0] * 3 + [1.0] * 3)
    row = audit(audited(log([(NAMES[0], 70, 200, 80.0)]), spreads, 0, 360, enter_bps=50))
    assert row.select("precision", "n_episodes", "n_episodes_judged").row(0) == (1.0, 1, 0)


@pytest.mark.parametrize("leave_bps", [None, 20])
def test_an_episode_ends_where_the_spread_turns_to_the_other_side(leave_bps):
    spreads = minutes([10.0, 80.0, -120.0, -110.0, 70.0, 10.0])
    lives = log([(NAMES[0], 120, 180, 80.0), (NAMES[0], 300, 360, 70.0)])
    rows = audited(lives, spreads, 0, 360, enter_bps=50, leave_bps=leave_bps, slack_s=0)
    assert rows.select("found_in", "episode_start", "episode_end", "delay_s").rows() == [
        ("both", 120, 180, 0),
        ("both", 300, 360, 0),
    ]


def test_an_event_from_before_the_window_or_of_a_gap_may_be_open_until_it_closes():
    high = [5, 8, 11, 16, 19, 30, 40]  # bars of 80 bps
    spreads = minutes([80.0 if bar in high else 10.0 for bar in range(60)])
    before = [(NAMES[0], -100, 400, 80.0)]  # until after the first episode
    alone = audited(log(before), spreads, 0, 3_600, enter_bps=50, slack_s=0)
    assert alone["audit_reason"].to_list() == ["still_open"] + ["missed"] * 6
    orphans = log([(NAMES[0], None, 600, 80.0), (NAMES[0], None, 1_300, 80.0)])
    lives = pl.concat([log([(NAMES[0], 960, 1_030, 80.0)]), orphans], how="vertical_relaxed")
    held = {"family": ["spread"] * 2, "start_ts": [0, 1_150], "end_ts": [900, 3_600]}
    found = audited(lives, spreads, 0, 3_600, held=pl.DataFrame(held), enter_bps=50, slack_s=0)
    by_start = dict(found.select("episode_start", "audit_reason").iter_rows())
    assert [by_start[60 * (bar + 1)] for bar in high] == [
        *("still_open", "still_open", "missed", None),
        *("still_open", "missed", "missed"),
    ]
    assert audit(found).select("n_episodes", "n_episodes_judged", "n_seen").row(0) == (7, 3, 0)


def test_one_event_of_several_episodes_counts_each_of_them_once():
    spreads = minutes([10.0, 80.0, 10.0, 80.0, 10.0, 80.0, 10.0, 10.0])
    lives = log([(NAMES[0], 130, 300, 80.0), (NAMES[0], 390, 400, 80.0)])
    row = audit(audited(lives, spreads, 0, 480, enter_bps=50, slack_s=0)).row(0, named=True)
    assert (row["n_events"], row["n_episodes"], row["n_seen"]) == (2, 3, 3)
    assert (row["precision"], row["recall"], row["n_delays"]) == (1.0, 1.0, 2)


def test_without_a_threshold_it_is_the_smallest_event_and_groups_are_those_of_a_column():
    spreads, truth = market(np.random.default_rng(45))
    rows = audited(log(truth), spreads, 0, END)
    found = audit(rows, by="trajectory")
    assert (found["trajectory"].to_list(), found["n_events"].sum()) == (NAMES, len(truth))
    with pytest.raises(InputError, match="by"):
        audit(rows, by="plan")
    assert rows["enter_bps"][0] == pytest.approx(min(each[3] for each in truth))
    with pytest.raises(InputError, match="no event has a size"):
        audited(log(truth).clear(), spreads, 0, END)
    nothing = audited(log(truth).clear(), spreads, 0, END, enter_bps=50)
    row = audit(nothing).row(0, named=True)
    assert (row["precision"], row["precision_reason"]) == (None, "empty")
    assert (row["recall"], row["n_episodes"]) == (0.0, len(truth))


def funded(values: list[float], every_h: int) -> pl.DataFrame:
    """Settlements of a pair of futures, with the differential then."""
    ts = 3_600 * every_h * np.arange(len(values))
    name = "funding/A0_B:X.futures:Y.futures"
    return pl.DataFrame({"trajectory": name, "ts": ts, "differential_pct_8h": values})


def funding_log(*opened: tuple[int, int, float]) -> pl.DataFrame:
    events = log([("A0_B", *each) for each in opened])
    return events.with_columns(family=pl.lit("funding"), legs=pl.lit("X.futures → Y.futures"))


@pytest.mark.parametrize("every_h", [1, 8])
def test_a_funding_event_is_known_when_its_rate_settles(every_h):
    step = 3_600 * every_h
    rows = funded([0.0, 0.12, 0.2, 0.04, 0.0, 0.15, 0.0, -0.3, 0.0, 0.0], every_h)
    lives = funding_log((step + 5, 3 * step, 20.0), (8 * step, 9 * step, 30.0))
    options = {"family": "funding", "enter_bps": 10}
    found = audited(lives, rows, 0, 10 * step, **options)
    assert found.select("found_in", "episode_start", "delay_s", "audit_reason").rows() == [
        ("both", step, 5, None),
        ("log", None, None, "below"),
        ("rows", 5 * step, None, "missed"),
    ]
    assert found["episode_peak_pct"].to_list() == pytest.approx([0.2, None, 0.15])
    row = audit(found).row(0, named=True)
    assert (row["precision"], row["recall"], row["delay_median_s"]) == (0.5, 0.5, 5)
    both_logs = pl.concat([lives, log([(NAMES[0], 60, 120, 80.0)])])
    assert audited(both_logs, rows, 0, 10 * step, **options).equals(found)


def splash_log(*events):
    """Lives of splashes: name, opening, close, size in percent with its sign."""
    rows = log([(f"{name}:Y.spot", *rest) for name, *rest in events]).with_columns(
        family=pl.lit("splash"), legs=pl.lit("X.spot"), peak=100 * pl.col("peak")
    )
    return rows.with_columns(direction=pl.col("peak").sign())


def test_a_log_of_splashes_is_held_to_moves_of_prices_each_way():
    jumps = {20: 1.03, 40: 0.97, 60: 1.03, 80: 0.96}
    steps = np.ones(100)
    steps[list(jumps)] = list(jumps.values())
    name = "A0_B:X.spot"
    prices = pl.DataFrame({"trajectory": name, "ts": STEP * np.arange(100)})
    prices = prices.with_columns(price=pl.Series(100 * steps.cumprod()))
    seen = [(name, 21 * STEP + 5, 26 * STEP, 2.5), (name, 41 * STEP + 9, 46 * STEP, -2.5)]
    wrong_way, quiet = (name, 61 * STEP, 66 * STEP, -3.0), (name, 90 * STEP, 91 * STEP, 2.5)
    lives = splash_log(*seen, wrong_way, quiet)
    options = {"family": "splash", "enter_bps": 200}
    found = audited(lives, prices, 0, 100 * STEP, **options)
    row = audit(found).row(0, named=True)
    assert (row["n_confirmed"], row["n_events_judged"]) == (2, 4)
    assert (row["n_seen"], row["n_episodes_judged"], row["delay_median_s"]) == (2, 4, 7)
    both = found.filter(found_in="both")
    assert both.select("trajectory", "event_peak_pct", "episode_start", "episode_end").rows() == [
        (f"{name}:dump", 2.5, 41 * STEP, 46 * STEP),  # five minutes after the fall it is over
        (f"{name}:pump", 2.5, 21 * STEP, 26 * STEP),
    ]
    assert both["episode_peak_pct"].to_list() == pytest.approx([3.0, 3.0])
    missed = found.filter(audit_reason="missed")
    assert missed["trajectory"].to_list() == [f"{name}:dump", f"{name}:pump"]
    short = audited(lives, prices, 0, 100 * STEP, move_s=60, **options)
    assert short["episode_end"].drop_nulls().to_list() == [at * STEP for at in (42, 82, 22, 62)]


def test_of_prices_that_are_too_far_apart_a_splash_is_not_judged():
    name = "A0_B:X.spot"
    hourly = pl.DataFrame(
        {"trajectory": name, "ts": 3_600 * np.arange(5), "price": [1.0, 2, 1, 2, 1]}
    )
    lives = splash_log((name, 4_000, 4_300, 2.5))
    found = audited(lives, hourly, 0, 18_000, family="splash")
    assert found["audit_reason"].to_list() == ["no_rows"]
    fine = pl.DataFrame({"trajectory": name, "ts": [18_000, 18_060], "price": [1.0, 1.0]})
    options = {"family": "splash", "enter_bps": 200, "step_s": 60}
    found = audited(lives, pl.concat([hourly, fine]), 0, 36_000, **options)
    assert found["audit_reason"].to_list() == ["gap"]
    assert audit(found)["n_events_judged"].item() == 0


def test_what_a_log_cannot_be_held_to_is_refused():
    lives, rows = funding_log((60, 120, 20.0)), funded([0.0, 0.2], 8)
    with pytest.raises(InputError, match=r"family: 'trade'.*spread, funding, splash"):
        audited(lives, rows, 0, 60, family="trade")
    with pytest.raises(InputError, match="move_s: 60 is not allowed"):
        audited(lives, rows, 0, 60, family="funding", enter_bps=1, move_s=60)
    with pytest.raises(InputError, match="direction"):
        audited(lives, rows, 0, 60, family="splash")


@pytest.mark.parametrize(("max_stale_s", "end"), [(None, 300), (90, 210)])
def test_an_episode_that_runs_into_a_gap_ends_where_its_last_spread_ceases_to_hold(
    max_stale_s, end
):
    ts, values = [0, 60, 600], [10.0, 80.0, 10.0]
    spreads = pl.DataFrame({"trajectory": NAMES[0], "ts": ts, "spread_bps": values})
    lives = log([(NAMES[0], 120, 240, 80.0)])
    options = {"enter_bps": 50, "step_s": 60, "max_stale_s": max_stale_s}
    assert audited(lives, spreads, 0, 900, **options)["episode_end"].item() == end


def test_a_move_is_from_the_lowest_or_the_highest_price_of_the_time_before() -> None:
    rng = np.random.default_rng(5)
    names = ["A_B:X.spot", "A_B:Y.spot"]
    ts = {name: np.sort(rng.choice(400, 60, replace=False)) for name in names}
    price = {name: 100 * np.exp(0.01 * rng.standard_normal(60).cumsum()) for name in names}
    price[names[0]][[7, 8, 30]] = [-1, 0, np.nan]
    frame = pl.concat(
        pl.DataFrame({"trajectory": name, "ts": ts[name], "price": price[name]}) for name in names
    )
    found = price_moves(frame.sample(fraction=1.0, shuffle=True, seed=2).lazy(), 20)
    assert found["trajectory"].unique(maintain_order=True).to_list() == [
        f"{name}:{kind}" for name in names for kind in ("dump", "pump")
    ]
    for name in names:
        known = price[name] > 0
        for kind, sign in (("pump", 1), ("dump", -1)):
            rows = found.filter(trajectory=f"{name}:{kind}")
            assert rows["ts"].to_list() == ts[name].tolist()
            for at, move in zip(ts[name], rows["move_bps"], strict=True):
                near = price[name][known & (ts[name] >= at - 20) & (ts[name] <= at)]
                own = price[name][ts[name] == at][0]
                if not own > 0 or near.size < 2:
                    assert move is None
                else:
                    start = near.min() if sign > 0 else near.max()
                    assert move == pytest.approx(1e4 * sign * (own / start - 1), abs=1e-9)


def test_prices_further_apart_than_the_time_have_no_move() -> None:
    frame = pl.DataFrame({"trajectory": "a", "ts": [0, 301, 602], "price": [1.0, 2.0, 3.0]})
    assert price_moves(frame, 300)["move_bps"].null_count() == 6
    assert price_moves(frame, 301)["move_bps"].null_count() == 2
    assert price_moves(frame.clear(), 300).is_empty()
    with pytest.raises(InputError, match="move_s: 0 is not allowed"):
        price_moves(frame, 0)


LONG_BARS, MANY = 12_000, [f"A{number}_B:X.spot:Y.spot" for number in range(20)]
LONG_END = STEP * LONG_BARS
FOUND, REAL, DELAY_S = 0.8, 0.9, 45.0
"""The share of episodes that the log sees, that of its events that are real, the mean delay."""


def documents(
    rng: np.random.Generator,
    truth: list[tuple[str, int, int, float]],
    lost_closes: float,
    known_until: int,
) -> pl.DataFrame:
    """A log that sees FOUND of the stretches late, at any second, loses closes and invents some."""
    seen = [each for each in truth if rng.random() < FOUND]
    late = np.minimum(rng.exponential(DELAY_S, len(seen)).astype(int), 200)
    events = [(n, a + int(wait), b, size) for (n, a, b, size), wait in zip(seen, late, strict=True)]
    quiet = [
        (before[0], (before[2] + after[1]) // 2)
        for before, after in itertools.pairwise(truth)
        if before[0] == after[0]
    ]
    for place in rng.integers(0, len(quiet), round(len(seen) * (1 - REAL) / REAL)):
        name, opened = quiet[place]
        events.append((name, opened, opened + 30, 70.0))
    rows = []
    for number, (name, opened, closed, size) in enumerate(events):
        written = [("spread.opened", opened)]
        written += [] if rng.random() < lost_closes else [("spread.closed", max(closed, opened))]
        symbol = name.partition(":")[0]
        rows += [(f"s{number}", symbol, kind, ts, size / 100) for kind, ts in written]
    columns = ["event_id", "symbol", "event_type", "ts", "magnitude_pct"]
    frame = pl.DataFrame(rows, columns, orient="row")
    legs = {"buy_exchange": "X", "buy_market": "spot", "sell_exchange": "Y", "sell_market": "spot"}
    return (
        frame.filter(pl.col("ts") < known_until)
        .sort("ts", maintain_order=True)
        .with_columns(
            *(pl.lit(value).alias(leg) for leg, value in legs.items()),
            family=pl.lit("spread"),
            lifecycle=pl.lit(None, pl.String),
            ts_ms=pl.col("ts") * 1_000 + 7,
            arrival=pl.int_range(pl.len()),
        )
    )


@pytest.mark.parametrize("lost_closes", [0.0, 0.3])
@pytest.mark.parametrize("known_until", [LONG_END, LONG_END * 3 // 4])
def test_precision_recall_and_delay_are_the_true_ones_within_their_error(
    lost_closes: float, known_until: int
) -> None:
    rng = np.random.default_rng([round(100 * lost_closes), known_until])
    spreads, truth = market(rng, MANY, LONG_BARS, first=60, least=5, apart=120)
    documented = documents(rng, truth, lost_closes, known_until)
    ends = pl.DataFrame({"family": ["spread"], "known_until": [known_until]})
    gap = (LONG_END // 4, LONG_END // 3)
    documented = documented.filter(~pl.col("ts").is_between(*gap, closed="left"))
    held = pl.DataFrame(
        {"family": ["spread"] * 2, "start_ts": [0, gap[1]], "end_ts": [gap[0], known_until]}
    )
    lives = event_lifecycles(documented, 0, LONG_END, logs=ends)
    rows = audited(lives, spreads, 0, LONG_END, held=held, enter_bps=50)
    row = audit(rows).row(0, named=True)
    assert row["precision_lower"] < REAL < row["precision_upper"]
    assert row["recall_lower"] < FOUND < row["recall_upper"]
    assert row["n_episodes_judged"] > 1_000
    error = 1.25 * DELAY_S / row["n_delays"] ** 0.5
    assert row["delay_median_s"] == pytest.approx(DELAY_S * np.log(2), abs=3 * error)
    reasons = set(rows["audit_reason"].drop_nulls())
    assert {"below", "missed", "log_gap"} <= reasons
    assert ("still_open" in reasons) == (lost_closes > 0)
    assert ("log_ended" in reasons) == (known_until < LONG_END)
