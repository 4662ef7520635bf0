"""Events whose rates, lives and consequences are known, and the intervals of these."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import polars as pl
from scipy.signal import lfilter

from tests.unit.statistics.event_lives import lives, openings
from toolkit.statistics.events import (
    cooccurrence,
    follow_through,
    hazard_ratios,
    league,
    payoff,
    positions,
    rate_changes,
    rates,
    rates_by_hour,
    study,
    survival,
    survival_curve,
)

from .form import Ends, Process, Rng, ends_of, fewer
from .spreads import MONDAY, WEEK

HOUR, DAY = 3600, 86_400
SYMBOLS = 60
MEDIAN_LIFE_S = 10 * HOUR


def drawn_apart(
    rng: Rng, means: np.ndarray, start: int, length_s: int, **names: object
) -> pl.DataFrame:
    """Openings in a stretch of time, of which each group has a mean number."""
    counts = rng.poisson(means)
    times = start + rng.integers(0, length_s, counts.sum())
    columns = {name: np.repeat(values, counts) for name, values in names.items()}
    return pl.DataFrame({"t_open": times, **columns})


def opened(frame: pl.DataFrame, start: int, end: int) -> pl.DataFrame:
    """Return events of these times as lifecycles, with the other columns."""
    other = {name: frame[name] for name in frame.columns if name != "t_open"}
    return openings(frame["t_open"].to_numpy(), start, end, **other)


def of_runs(found: pl.DataFrame, runs: int) -> pl.DataFrame:
    """Return one row per run, of nulls where a run has none."""
    return pl.DataFrame({"run": range(runs)}).join(
        found, on="run", how="left", maintain_order="left"
    )


def counted(rng: Rng, runs: int) -> dict[str, Ends]:
    """20 a day on average for a day, and 20 in a week after 30 in the week before."""
    run = np.arange(runs)
    day = drawn_apart(rng, np.full(runs, 20.0), 0, DAY, run=run)
    weeks = [
        drawn_apart(rng, np.full(runs, mean), start, WEEK, run=run)
        for start, mean in ((0, 30.0), (WEEK, 20.0))
    ]
    of_day = of_runs(rates(opened(day, 0, DAY), ["run"]), runs)
    change = of_runs(rate_changes(opened(pl.concat(weeks), 0, 2 * WEEK), ["run"]), runs)
    return ends_of(of_day, "events.rates rate_lower_per_day", 20.0) | ends_of(
        change, "events.rate_changes ratio_lower", 2 / 3
    )


def ranked(rng: Rng, runs: int) -> dict[str, Ends]:
    """60 symbols with lognormal rates for a day. Each run is a family of its own."""
    means = 6 * np.exp(0.6 * rng.standard_normal((runs, SYMBOLS)))
    names = {
        "family": np.repeat([f"run-{run:03}" for run in range(runs)], SYMBOLS),
        "symbol": np.tile([f"S{symbol:03}" for symbol in range(SYMBOLS)], runs),
    }
    events = opened(drawn_apart(rng, means.ravel(), 0, DAY, **names), 0, DAY)
    found = league(events, ["symbol"], all_groups=pl.DataFrame(names)).sort("family", "symbol")
    return ends_of(found, "events.league rate_shrunk_lower_per_day", means, runs)


def by_hour(rng: Rng, runs: int) -> dict[str, Ends]:
    """Eight weeks with a season of the day, in hours that are quieter or louder by chance."""
    season = 6 + 3 * np.sin(np.arange(168) / 24 * 2 * np.pi)
    means = np.tile(season, 8) * rng.gamma(4.0, 0.25, (runs, 8 * 168))
    run = np.repeat(np.arange(runs), means.shape[1])
    hours = MONDAY + HOUR * np.tile(np.arange(means.shape[1]), runs)
    frame = drawn_apart(rng, means.ravel(), 0, HOUR, run=run, begins=hours)
    frame = frame.select(pl.col("t_open") + pl.col("begins"), "run")
    found = rates_by_hour(opened(frame, MONDAY, MONDAY + 8 * WEEK), ["run"])
    found, name = found.sort("run", "weekday", "hour"), "events.rates_by_hour events_per_h_{}_lower"
    return ends_of(found, name.format("mean"), season, runs) | ends_of(
        found, name.format("deviation"), season - season.mean(), runs
    )


def watched(rng: Rng, runs: int) -> dict[str, Ends]:
    """Lognormal lives, seen in a window of 40 h, of which some opened before it or outlive it."""
    before_s, window_s = 30 * DAY, 40 * HOUR
    at = rng.integers(-before_s, window_s, (runs, 1200))
    lasted = np.ceil(MEDIAN_LIFE_S * np.exp(0.8 * rng.standard_normal(at.shape)))
    seen = at + lasted >= 0
    run = np.broadcast_to(np.arange(runs)[:, None], at.shape)[seen]
    at, lasted = at[seen], lasted[seen]
    closed = at + lasted < window_s
    edges = {"known_until": window_s, "window_start": 0, "window_end": window_s}
    frame = lives(
        np.where(closed, lasted, window_s - at),
        closed.astype(int),
        np.maximum(-at, 0),
        opened=at,
        run=run,
    ).with_columns(pl.lit(edge, pl.Int64).alias(name) for name, edge in edges.items())
    found = of_runs(survival(frame, ["run"]), runs)
    curve = survival_curve(frame, ["run"]).filter(pl.col("life_s") <= MEDIAN_LIFE_S)
    half = of_runs(curve.group_by("run", maintain_order=True).last(), runs)
    return ends_of(found, "events.survival median_life_lower_s", float(MEDIAN_LIFE_S)) | ends_of(
        half, "events.survival_curve survival_lower", 0.5
    )


def lasting(rng: Rng, runs: int) -> dict[str, Ends]:
    """250 lives whose hazard is that of their size and venue, of which some are cut off."""
    logs = np.array([0.5, 0.7, -0.7])
    parts = []
    for _ in range(runs):
        size, venue = rng.normal(size=250), rng.choice(["X", "Y", "Z"], 250, p=[0.5, 0.3, 0.2])
        hazard = np.exp(np.column_stack([size, venue == "Y", venue == "Z"]) @ logs)
        ends, seen = rng.exponential(1_200 / hazard), rng.exponential(3_600, 250)
        frame = lives(np.minimum(ends, seen), ends <= seen, size=size, venue=venue)
        parts.append(hazard_ratios(frame, ["size", "venue"]))
    return ends_of(pl.concat(parts), "events.hazard_ratios hazard_ratio_lower", np.exp(logs), runs)


def followed(drift: float, rng: Rng, runs: int) -> dict[str, Ends]:
    """30 days of four walks that no event moves, which share a drift that is drawn for each day."""
    ts, studies, follows = 600 * np.arange(30 * 144), [], []
    for _ in range(runs):
        market = np.repeat(rng.standard_t(5, 30) * drift, 144)
        prices = np.exp(np.cumsum(market + 1e-4 * rng.standard_t(5, (4, ts.size)), axis=1))
        bars = pl.DataFrame(
            {
                "trajectory": np.repeat(list("abcd"), ts.size),
                "ts": np.tile(ts, 4),
                "price": prices.ravel(),
            }
        )
        events = pl.DataFrame(
            {
                "trajectory": rng.choice(list("abcd"), 150),
                "ts": rng.integers(DAY, 29 * DAY, 150),
                "direction": rng.choice([-1, 1], 150) if not drift else 1,
            },
            schema_overrides={"direction": pl.Int64},
        )
        asked = {"before_s": 600, "cluster": "day" if drift else "path"}
        studies.append(study(events, bars, after_s=HOUR, every_s=HOUR, **asked).tail(1))
        follows.append(follow_through(events, bars, horizons_s=[HOUR], **asked))
    of_study, of_follows = pl.concat(studies), pl.concat(follows)
    return (
        ends_of(of_study, "events.study return_mean_lower_log_bps", 0.0)
        | ends_of(of_study, "events.study return_median_lower_log_bps", 0.0)
        | ends_of(of_follows, "events.follow_through return_median_lower_log_bps", 0.0)
        | ends_of(of_follows, "events.follow_through went_on_lower", 0.5)
    )


def taken(rng: Rng, runs: int) -> dict[str, Ends]:
    """150 events with lognormal lives, on four spreads that swing and partly swing together."""
    step_s, phi = 600, 0.5 ** (1 / 12)
    ts, keys = step_s * np.arange(20 * 144), [f"A_B:X.spot:Y{each}.spot" for each in range(4)]
    shocks = rng.standard_t(5, (runs, 5, ts.size))
    swings = lfilter([1], [1, -phi], shocks, axis=2)
    spreads = swings[:, 1:] + swings[:, :1]
    parts = []
    for run in range(runs):
        rows = pl.DataFrame(
            {
                "trajectory": np.repeat(keys, ts.size),
                "ts": np.tile(ts, 4),
                "spread_log_bps": spreads[run].ravel(),
            }
        )
        opened = rng.integers(DAY, 18 * DAY, 150)
        lasted = np.ceil(HOUR * np.exp(rng.standard_normal(150))).astype(int)
        on = rng.integers(0, 4, 150)
        edges = {"known_until": 20 * DAY, "window_start": 0, "window_end": 20 * DAY}
        events = lives(
            lasted,
            np.ones(150, dtype=int),
            opened=opened,
            t_close=opened + lasted,
            event=np.arange(150).astype(str),
            symbol="A_B",
            legs=[f"X.spot → Y{each}.spot" for each in on],
        ).with_columns(pl.lit(edge, pl.Int64).alias(name) for name, edge in edges.items())
        parts.append(payoff(positions(events, rows, delays_s=[step_s])))
    found = pl.concat(parts)
    return ends_of(found, "events.payoff gross_mean_lower_bps", 0.0) | ends_of(
        found, "events.payoff gross_median_lower_bps", 0.0
    )


def apart(rng: Rng, runs: int) -> dict[str, Ends]:
    """80 days of two logs that are busy in the same hours, in bursts, with a gap in one."""
    hours = 1.2 + np.cos((np.arange(24) - 15) / 24 * 2 * np.pi)
    parts = []
    for run, family in itertools.product(range(runs), ("splash", "spread")):
        counts = rng.poisson(np.tile(hours, 80) * rng.gamma(2.0, 0.5, 24 * 80))
        times = np.repeat(np.arange(24 * 80) * HOUR, counts) + rng.integers(0, HOUR, counts.sum())
        frame = openings(times, 0, 80 * DAY, run=[run] * times.size)
        parts.append(frame.with_columns(family=pl.lit(family)))
    held = pl.DataFrame(
        {"family": ["splash", "spread", "spread"], "start_ts": [0, 0, 30 * DAY + HOUR]}
        | {"end_ts": [80 * DAY, 30 * DAY, 80 * DAY]}
    )
    found = cooccurrence(pl.concat(parts), ["run"], same=["run"], held=held)
    first = of_runs(found.filter(family="splash"), runs)
    name = "events.cooccurrence {}null_band_lower".format
    return ends_of(first, name(""), first["ratio"].to_numpy()) | ends_of(
        first, name("after_"), first["after_ratio"].to_numpy()
    )


PROCESSES = [
    Process("events apart from each other", counted, given=0.95),
    Process("60 symbols with lognormal rates", ranked),
    Process("8 weeks of events with a season and bursts", by_hour, given=0.9),
    Process("two logs apart with hours, bursts and a gap", apart),
    Process("lognormal lives seen in a window of 4 medians", watched),
    fewer("250 lives whose hazard follows size and venue", lasting),
    Process("150 events on four spreads that swing together", taken),
    fewer("150 events that move nothing", partial(followed, 0.0)),
    fewer("150 events that move nothing, days that move all", partial(followed, 5e-5)),
]
