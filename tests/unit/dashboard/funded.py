"""A store with funding, and what the page of it shows, in plain values."""

import json
import math

import polars as pl

from tests.empty_store import empty_store
from toolkit.intervals import Interval
from toolkit.market import Family, Source, Trajectory
from toolkit.store import Edge

from .conftest import add_snapshot, loading
from .shown import drawn

START = 1_678_406_400  # 2023-03-10 00:00 UTC
EIGHT = 8 * 3600
SERVED_AT = START + 30 * EIGHT  # ten days
PAIR = Trajectory.parse("BTC_USDT:AURORA.futures:BOREAS.futures", Family.FUNDING)
OTHER = Trajectory.parse("ETH_USDT:BOREAS.futures:CORONA.futures", Family.FUNDING)
SOURCE = Source("simulated", "seed-7")


def settled(missing=()):
    """Ten days of settlements every 8 h; the sell leg pays 2 bps more each time."""
    kept = [k for k in range(30) if k not in missing]
    return pl.DataFrame(
        {
            "ts": [START + EIGHT * k for k in kept],
            "buy_rate": 1e-4,
            "sell_rate": 3e-4,
            "buy_interval_hours": 8.0,
            "sell_interval_hours": 8.0,
            "differential_pct_8h": 0.02,
            "extra": pl.Series([None] * len(kept), dtype=pl.String),
        }
    )


def spread_held(widens_bps=0.0):
    """Ten days and a half of hours of a spread of 5 bps, that widens to the end."""
    hours = range(-12, 240)
    bps = [5.0 + widens_bps * max(hour, 0) / 239 for hour in hours]
    return pl.DataFrame(
        {
            "ts": [START + 3600 * hour for hour in hours],
            "buy_price": 20_000.0,
            "sell_price": [20_000.0 * math.exp(each / 1e4) for each in bps],
            "spread_pct": None,
            "extra": None,
        },
        schema_overrides={"spread_pct": pl.Float64, "extra": pl.String},
    )


RATES = (
    ("BTC_USDT", "AURORA", 1e-4, 8),
    ("BTC_USDT", "BOREAS", 3e-4, 8),
    ("ETH_USDT", "BOREAS", 5e-4, 1),
    ("ETH_USDT", "CORONA", -1e-4, 4),
)


def overview(*legs):
    items = [
        {
            "symbol": symbol,
            "exchange": exchange,
            "market": "futures",
            "rate": rate,
            "interval_hours": hours,
            "next_funding_time": SERVED_AT + 3600 * hours,
        }
        for symbol, exchange, rate, hours in legs or RATES
    ]
    return json.dumps({"type": "funding_overview", "ts": SERVED_AT, "items": items}).encode()


def fill(
    path, *, pairs=True, rates=True, missing=(), source=SOURCE, widens_bps=0.0, priced=(PAIR, OTHER)
):
    """Both pairs' funding, and the spreads of those that are priced."""
    with loading(empty_store(path, source), SERVED_AT) as batch:
        edge = Edge(served_at=SERVED_AT, delay_s=0, retention_s=None, step_s=EIGHT)
        for trajectory in (PAIR, OTHER) if pairs else ():
            batch.add(trajectory, settled(missing), Interval(START, SERVED_AT), edge)
        hourly = Edge(served_at=SERVED_AT, delay_s=0, retention_s=None, step_s=3600)
        for pair in priced if pairs else ():
            spread = Trajectory.spread(str(pair.symbol), *pair.legs)
            window = Interval(START - 43_200, SERVED_AT)
            batch.add(spread, spread_held(widens_bps), window, hourly)
        if rates:
            add_snapshot(batch, "funding", overview(), SERVED_AT)
    return path


def kept(shown):
    """The line that says what a position of the size would have kept."""
    return next(each for each in shown.markdown if "would have" in each.value)


def read_out(shown):
    """What is read to who does not see the first chart."""
    return shown.get("plotly_chart")[0].proto.alt


def beside(shown):
    """What stands beside the figures: what they rest on, or why there is none."""
    return [metric.delta for metric in shown.metric]


def cells(shown):
    """What the matrix shows, by symbol and leg."""
    data = drawn(shown, "rates")
    return {
        (row["symbol"], venue): cell
        for row in data["rows"]
        for venue, cell in zip(data["venues"], row["cells"], strict=True)
        if cell
    }


def opened(shown, table, key):
    """The page after a row or a cell of a table was opened."""
    shown.session_state[f"{table}_opened"] = key
    return shown.run()
