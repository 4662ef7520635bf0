"""How many events opened and closed: counted by hand, and those of no known role apart."""

from __future__ import annotations

import polars as pl

from toolkit.statistics.events import event_lifecycles, survival
from toolkit.statistics.events.rates import summary


def documents(*rows: tuple[str, str, int]) -> pl.DataFrame:
    """Documents of the spread log: event id, type, time (s)."""
    return pl.DataFrame(
        {
            "family": ["spread"] * len(rows),
            "event_id": [row[0] for row in rows],
            "event_type": [row[1] for row in rows],
            "lifecycle": [None] * len(rows),
            "ts": [row[2] for row in rows],
            "ts_ms": [1000 * row[2] for row in rows],
            "arrival": list(range(len(rows))),
            "symbol": ["A_B"] * len(rows),
            **dict.fromkeys(
                ("buy_exchange", "buy_market", "sell_exchange", "sell_market"), ["X"] * len(rows)
            ),
        },
        schema_overrides={"lifecycle": pl.String}
        | dict.fromkeys(("ts", "ts_ms", "arrival"), pl.Int64),
    )


def test_events_are_counted_by_what_became_of_them() -> None:
    log = documents(
        ("a", "spread.opened", 10),
        ("a", "spread.closed", 40),
        ("b", "spread.opened", 20),
        ("c", "spread.closed", 30),
        ("d", "spread.winked", 35),
        ("e", "spread.winked", 500),
    )
    row = summary(log, 0, 100).row(0, named=True)
    assert {name: row[name] for name in ("n", "closed", "open", "reopened", "orphans")} == {
        "n": 3,
        "closed": 1,
        "open": 1,
        "reopened": 0,
        "orphans": 1,
    }
    assert (row["n_unknown"], row["unknown_types"]) == (1, "spread.winked")
    assert row["median_life_s"] == 30.0


def test_no_document_is_no_row() -> None:
    assert summary(documents(), 0, 100).is_empty()


def test_a_gap_of_the_log_ends_lives_as_it_does_in_survival() -> None:
    log = documents(
        ("a", "spread.opened", 10),
        ("a", "spread.closed", 40),
        ("b", "spread.opened", 20),
        ("b", "spread.closed", 90),
        ("c", "spread.opened", 70),
    )
    held = pl.DataFrame({"family": ["spread"] * 2, "start_ts": [0, 80], "end_ts": [60, 100]})
    row = summary(log, 0, 100, held=held).row(0, named=True)
    # a is seen to close, b up to the gap alone, c opens inside it
    assert (row["n"], row["closed"], row["open"]) == (3, 2, 1)
    assert (row["cut"], row["n_lives"], row["n_ended"], row["coverage"]) == (2, 2, 1, 0.8)
    assert row["median_life_s"] == 30.0
    lives = event_lifecycles(log, 0, 100)
    expected = survival(lives, held=held).row(0, named=True)
    assert row.items() - {"n_unknown": 0, "unknown_types": None}.items() <= expected.items()
