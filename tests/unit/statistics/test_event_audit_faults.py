"""The audit of logs with faults, from their documents on: it finds what is true of them."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

from toolkit.statistics.events import event_lifecycles
from toolkit.statistics.events.audit import audit, audited

STEP, BARS, NAMES = 60, 12_000, [f"A{number}_B:X.spot:Y.spot" for number in range(20)]
END = STEP * BARS
FOUND, REAL, DELAY_S = 0.8, 0.9, 45.0
"""The share of episodes that the log sees, that of its events that are real, the mean delay."""


def market(rng: np.random.Generator) -> tuple[pl.DataFrame, list[tuple[str, int, int, float]]]:
    """Spreads of minutes with stretches above 50 bps, and these as known: name, ends, size."""
    rows, truth = [], []
    for name in NAMES:
        values, at = np.full(BARS, 10.0), 60
        while at < BARS - 100:
            length = int(rng.integers(5, 30))
            values[at : at + length] = rng.uniform(60, 120, length)
            truth.append(
                (name, (at + 1) * STEP, (at + length + 1) * STEP, values[at : at + length].max())
            )
            at += length + int(rng.integers(40, 120))
        rows.append(
            pl.DataFrame({"trajectory": name, "ts": STEP * np.arange(BARS), "spread_bps": values})
        )
    return pl.concat(rows), truth


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
        rows += [
            (f"s{number}", name.partition(":")[0], kind, ts, size / 100) for kind, ts in written
        ]
    frame = pl.DataFrame(
        rows, schema=["event_id", "symbol", "event_type", "ts", "magnitude_pct"], orient="row"
    )
    legs = {"buy_exchange": "X", "buy_market": "spot", "sell_exchange": "Y", "sell_market": "spot"}
    return (
        frame.filter(pl.col("ts") < known_until)
        .sort("ts", maintain_order=True)
        .with_columns(pl.lit("spread").alias("family"), pl.lit(None, pl.String).alias("lifecycle"))
        .with_columns(pl.lit(value).alias(leg) for leg, value in legs.items())
        .with_columns(ts_ms=pl.col("ts") * 1_000 + 7)
        .with_row_index("arrival")
        .with_columns(pl.col("arrival").cast(pl.Int64))
    )


@pytest.mark.parametrize("lost_closes", [0.0, 0.3])
@pytest.mark.parametrize("known_until", [END, END * 3 // 4])
def test_precision_recall_and_delay_are_the_true_ones_within_their_error(
    lost_closes: float, known_until: int
) -> None:
    rng = np.random.default_rng([round(100 * lost_closes), known_until])
    spreads, truth = market(rng)
    log = documents(rng, truth, lost_closes, known_until)
    ends = pl.DataFrame({"family": ["spread"], "known_until": [known_until]})
    gap = (END // 4, END // 3)
    log = log.filter(~pl.col("ts").is_between(*gap, closed="left"))
    held = pl.DataFrame(
        {"family": ["spread"] * 2, "start_ts": [0, gap[1]], "end_ts": [gap[0], known_until]}
    )
    lives = event_lifecycles(log, 0, END, logs=ends)
    rows = audited(lives, spreads, 0, END, held=held, enter_bps=50)
    row = audit(rows).row(0, named=True)
    assert row["precision_lower"] < REAL < row["precision_upper"]
    assert row["recall_lower"] < FOUND < row["recall_upper"]
    assert row["n_episodes_judged"] > 1_000
    error = 1.25 * DELAY_S / row["n_delays"] ** 0.5
    assert row["delay_median_s"] == pytest.approx(DELAY_S * np.log(2), abs=3 * error)
    reasons = set(rows["audit_reason"].drop_nulls())
    assert {"below", "missed", "log_gap"} <= reasons
    assert ("still_open" in reasons) == (lost_closes > 0)
    assert ("log_ended" in reasons) == (known_until < END)
