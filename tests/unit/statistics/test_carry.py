"""Holdings against a loop over the trades, the fixtures of funding, and real settlements."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import InputError
from toolkit.statistics import funding
from toolkit.statistics.fees import Fee, FeeModel
from toolkit.statistics.survival import median_life

HOUR, DAY = 3600, 86400
MIDNIGHT = 1_700_006_400
KEY = "BTC_USDT:BINANCE.futures:KRAKEN.futures"
COST = 53.0  # of a round trip by takers, by the example table
SHAPE = ("mean", "q05", "q25", "median", "q75", "q95")


def calendar(rng: np.random.Generator, hours: int) -> list[tuple[int, float, int]]:
    """Settlements over so many hours, whose interval goes 8 h, 4 h, 1 h at random times."""
    changes = sorted(8 * int(k) for k in rng.integers(1, hours // 8, 2))
    at, found = 0, []
    while at < hours:
        at += 8 if at < changes[0] else 4 if at < changes[1] else 1
        interval = at - found[-1][0] if found else 8
        found.append((at, round(float(rng.normal(0, 3e-3)), 6), interval))
    return found


def pair(buy: list, sell: list, key: str = KEY) -> pl.DataFrame:
    schema = {"ts": pl.Int64, "rate": pl.Float64, "interval_hours": pl.Int64}
    legs = [
        pl.DataFrame([(MIDNIGHT + at * HOUR, *row) for at, *row in leg], schema, orient="row")
        for leg in (buy, sell)
    ]
    return (
        legs[0]
        .join(legs[1], on="ts", how="full", coalesce=True, suffix="_sell")
        .select(
            pl.lit(key).alias("trajectory"),
            "ts",
            buy_rate="rate",
            sell_rate="rate_sell",
            buy_interval_hours="interval_hours",
            sell_interval_hours="interval_hours_sell",
        )
        .sort("ts")
    )


def minute_prices(rng: np.random.Generator, hours: int) -> pl.DataFrame:
    """Prices of both legs each half hour, known half an hour later, of which some are missing."""
    steps = np.arange(-4, 2 * hours + 2)
    buy = 100 * np.exp(np.cumsum(rng.normal(0, 0.01, steps.size)))
    sell = buy * np.exp(rng.normal(0, 0.003, steps.size))
    kept = rng.random(steps.size) > 0.02
    rows = {"trajectory": KEY, "ts": MIDNIGHT + steps * 1800, "buy_price": buy, "sell_price": sell}
    return pl.DataFrame(rows).filter(pl.Series(kept))


class ByTrade:
    """One position at a time, with its settlements in a loop."""

    def __init__(self, buy: list, sell: list, prices: pl.DataFrame | None, mode: str) -> None:
        self.mode = mode
        self.paid: dict[int, list[float]] = {}
        for leg, rows in enumerate((buy, sell)):
            for at, rate, _ in rows:
                self.paid.setdefault(MIDNIGHT + at * HOUR, [0.0, 0.0])[leg] = rate
        rows = [] if prices is None else prices.select("ts", "buy_price", "sell_price").rows()
        self.known = [(ts + 1800, *legs) for ts, *legs in rows]

    def price(self, ts: int, *, fresh: bool = True) -> tuple[float, float] | None:
        if not self.known:
            return 1.0, 1.0
        at, buy, sell = max((row for row in self.known if row[0] <= ts), default=(-math.inf, 0, 0))
        return (buy, sell) if not fresh or ts - at <= 1800 else None

    def trade(self, entry: int, horizon: int) -> dict[str, float] | None:
        first = self.price(entry)
        times = sorted(ts for ts in self.paid if entry < ts <= entry + horizon)
        last = self.price(entry + horizon)
        if first is None or last is None:
            return None
        marks = [*(self.price(ts, fresh=False) for ts in times), last]
        levels, received, wealth, even = [0.0], 0.0, 1.0, math.inf
        for ts, mark in zip((*times, entry + horizon), marks, strict=True):
            settles = ts in times and len(levels) <= len(times)
            buy, sell = self.paid[ts] if settles else (0.0, 0.0)
            fall = math.log(first[1] / first[0]) - math.log(mark[1] / mark[0])
            received += 1e4 * (sell - buy)
            wealth *= 1 + sell - buy
            level = received + 1e4 * fall
            if self.mode == "compound":
                level = 1e4 * (wealth * math.exp(fall) - 1)
            levels.append(level)
            if settles and level >= COST - 1e-9 and even == math.inf:
                even = (ts - entry) / HOUR
        falls = [max(levels[: k + 1]) - level for k, level in enumerate(levels)]
        funding = 1e4 * (wealth - 1) if self.mode == "compound" else received
        return {"gross": levels[-1], "funding": funding, "fall": max(falls), "even": even}


def check_every_trade(seed: int, mode: str) -> None:
    rng = np.random.default_rng(seed)
    hours = 8 * int(rng.integers(8, 20))
    buy, sell = calendar(rng, hours), calendar(rng, hours)
    prices = minute_prices(rng, hours) if rng.integers(3) else None
    given = prices
    if prices is not None and rng.integers(2):
        spread = 1e4 * (pl.col("sell_price") / pl.col("buy_price")).log()
        given = prices.select("trajectory", "ts", spread_log_bps=spread)
    found = funding.holdings(
        pair(buy, sell),
        MIDNIGHT,
        MIDNIGHT + hours * HOUR,
        horizons=["1h", "8h", "36h"],
        every="2h",
        prices=given,
        funding_only=prices is None,
        max_stale_s=1800,
        fees=FeeModel.example(),
        compound=mode == "compound",
    )
    loop = ByTrade(buy, sell, prices, mode)
    for row in found.iter_rows(named=True):
        due = range(MIDNIGHT, MIDNIGHT + hours * HOUR - row["horizon_s"] + 1, 2 * HOUR)
        check_row(row, [loop.trade(entry, row["horizon_s"]) for entry in due])


def check_row(row: dict, trades: list[dict[str, float] | None]) -> None:
    """Compare the figures of a horizon with those of its trades, None for one without a price."""
    some = [trade for trade in trades if trade]
    assert (row["n_due"], row["n"], row["n_uncovered"]) == (len(trades), len(trades), 0)
    assert row.get("n_unpriced", 0) == len(trades) - len(some)
    if not trades:
        assert row["funding_reason"] == "too_short"
        return
    if len(some) < 0.9 * len(trades):
        assert (row["gross_reason"], row["gross_mean_bps"]) == ("missing_price", None)
        return
    only = "" if "gross_mean_bps" in row else "funding_only_"
    if not only:
        both = sum(trade["gross"] - trade["funding"] for trade in some) / len(some)
        assert row["basis_mean_bps"] == pytest.approx(both, abs=1e-7)
    names = {name.replace("funding_only_", ""): value for name, value in row.items()}
    row = names | {name.replace("funding_", "gross_"): row[name] for name in row if only}
    row |= {name: value for name, value in names.items() if only and not name.startswith("funding")}
    gross = np.array([trade["gross"] for trade in some])
    shape = [gross.mean(), *np.quantile(gross, (0.05, 0.25, 0.5, 0.75, 0.95))]
    net = [value - COST for value in shape]
    assert [row[f"gross_{form}_bps"] for form in SHAPE] == pytest.approx(shape, abs=1e-7)
    assert [row[f"net_{form}_bps"] for form in SHAPE] == pytest.approx(net, abs=1e-7)
    falls = np.array([trade["fall"] for trade in some])
    assert row["drawdown_median_bps"] == pytest.approx(np.median(falls), abs=1e-7)
    assert row["drawdown_q95_bps"] == pytest.approx(np.quantile(falls, 0.95), abs=1e-7)
    even = np.array([trade["even"] for trade in some])
    assert row["breakeven_share"] == pytest.approx(np.isfinite(even).mean())
    assert row["net_positive_share"] == pytest.approx((gross > COST + 1e-9).mean())
    watched = np.minimum(even, row["horizon_s"] / HOUR)
    lives = pl.DataFrame({"duration_s": watched, "observed": np.isfinite(even).astype(int)})
    (life,) = median_life(lives).to_dicts()
    assert row["breakeven_median_h"] == life["median_life_s"]
    assert row["breakeven_median_reason"] == life["median_life_reason"]


@given(mode=st.sampled_from(["constant", "compound"]), seed=st.integers(0, 2**32 - 1))
def test_each_holding_is_that_of_a_loop_over_its_settlements(mode, seed):
    check_every_trade(seed, mode)


def steady(days: int = 60, rate: float = 3e-4, hours: int = 8) -> pl.DataFrame:
    rows = [(at, rate, hours) for at in range(hours, 24 * days + 1, hours)]
    return pair([(at, 0.0, hours) for at, _, _ in rows], rows)


def one(frame: pl.DataFrame, **asked: object) -> dict:
    start = asked.pop("start", MIDNIGHT)
    if "prices" not in asked:
        asked["prices"] = flat(frame)
    (row,) = funding.holdings(frame, start, **asked).to_dicts()
    return row


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """A spread that stays, known at each hour from one before the first settlement on."""
    first, last = MIDNIGHT // HOUR, int(frame["ts"].max()) // HOUR
    ts = [HOUR * at for at in range(first - 1, last + 1)]
    return pl.DataFrame({"trajectory": KEY, "ts": ts, "spread_log_bps": 7.0})


def test_breakeven_is_rounded_up_to_a_settlement():
    """53 bps at 3 bps per 8 h take 17.67 intervals: the 18th settlement, less the hours before."""
    row = one(steady(), horizons=["7d"], every="8h", fees=FeeModel.example())
    assert (row["breakeven_q25_h"], row["breakeven_q75_h"]) == (144.0, 144.0)
    assert (row["breakeven_share"], row["net_positive_share"]) == (1.0, 1.0)
    assert row["net_mean_bps"] == pytest.approx(63 - COST)
    assert row["net_apr_mean_pct"] == pytest.approx((63 - COST) / 100 * 365 / 7)
    never = one(steady(), horizons=["5d"], every="8h", fees=FeeModel.example())
    assert (never["breakeven_share"], never["breakeven_q25_reason"]) == (0.0, "censored")


def test_stale_prices_leave_entries_out_and_count_them():
    prices = pl.DataFrame({"trajectory": [KEY], "ts": [MIDNIGHT - 60], "spread_log_bps": [5.0]})
    asked = {"end": MIDNIGHT + DAY, "horizons": ["8h"], "prices": prices, "step_s": 60}
    row = one(steady(), **asked)
    assert (row["n_due"], row["n_unpriced"], row["gross_reason"]) == (17, 17, "missing_price")
    flat_row = one(steady(), **asked | {"prices": flat(steady()), "step_s": None})
    assert (row["n"], row["funding_mean_bps"]) == (17, flat_row["gross_mean_bps"])
    assert "prices=" in row["prices_lack"]
    patient = one(steady(), **asked, max_stale_s=DAY)
    assert (patient["n_unpriced"], patient["prices_lack"]) == (0, None)


def test_a_hole_in_one_leg_leaves_out_the_entries_over_it():
    frame = steady(10)
    hole = MIDNIGHT + 120 * HOUR
    row = one(frame.filter(pl.col("ts") != hole), horizons=["8h"], every="8h")
    # (112, 120] hours are covered by nothing
    assert (row["n_due"], row["n_uncovered"], row["coverage"]) == (30, 1, 29 / 30)
    assert row["gross_mean_bps"] == pytest.approx(3.0)


def test_a_single_leg_is_held_short():
    leg = pl.DataFrame(
        {
            "trajectory": "BTC_USDT:BINANCE.futures",
            "ts": [MIDNIGHT + 8 * k * HOUR for k in range(1, 91)],
            "rate": 3e-4,
            "interval_hours": 8,
        }
    )
    asked = {"horizons": ["1d"], "fees": FeeModel.example()}
    row = one(leg, **asked, prices=None, funding_only=True)
    assert row["funding_mean_bps"] == pytest.approx(9.0)
    assert row["cost_mean_bps"] == pytest.approx(11.0)
    assert row["funding_only_net_mean_bps"] == pytest.approx(-2.0)
    assert one(leg, **asked, prices=None)["gross_reason"] == "missing_price"


def test_what_cannot_be_known_is_null_with_its_reason():
    frame = steady(10)
    row = one(frame, horizons=["30d"])
    assert row["n_due"] == 0
    assert row["gross_reason"] == row["entries_reason"] == "too_short"
    row = one(frame, horizons=["3d"])
    assert (row["gross_band_reason"], row["net_reason"]) == ("too_few", "unknown_fee")
    assert row["drawdown_median_bps"] == 0.0
    no_leg = frame.with_columns(buy_rate=pl.lit(None, pl.Float64))
    assert one(no_leg, horizons=["1d"])["gross_reason"] == "missing_leg"
    since = MIDNIGHT + 5 * DAY
    known = [
        Fee(each, None, since, taker_bps=1.0, slippage_bps=0.0) for each in ("BINANCE", "KRAKEN")
    ]
    asked = {"horizons": ["1d"], "every": "8h", "fees": FeeModel("late", tuple(known))}
    row = one(frame, **asked)
    assert (row["n_due"], row["n_unknown_fee"], row["net_reason"]) == (28, 15, "unknown_fee")
    assert one(frame, start=since, **asked)["cost_mean_bps"] == 4.0


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"horizons": ["1 month"]}, "horizons"),
        ({"horizons": []}, "horizons"),
        ({"every": 0}, "every"),
        ({"style": "transfer"}, "style"),
        ({"fees": "fees.toml"}, "fees"),
        ({"prices": pl.DataFrame({"ts": [0]})}, "frame"),
        ({"prices": pl.DataFrame({"ts": [0]}), "funding_only": True}, "prices"),
        ({"funding_only": 1}, "funding_only"),
        ({"horizons": "soon"}, "^horizons: "),
    ],
)
def test_what_is_not_allowed_is_named(asked, named):
    with pytest.raises(InputError, match=named):
        funding.holdings(steady(2), **asked)


def of_legs(rows: pl.DataFrame, buy: str, sell: str) -> pl.DataFrame:
    legs = {
        name: rows.filter(exchange=name).select("ts", "rate", "interval_hours").unique("ts")
        for name in (buy, sell)
    }
    return pair(
        *([((ts - MIDNIGHT) / HOUR, rate, h) for ts, rate, h in legs[n].rows()] for n in legs),
        f"BTC_USDT:{buy}.futures:{sell}.futures",
    )


def test_three_real_venues_agree_with_the_sum_of_their_settlements(real_data: Path) -> None:
    """Of each pair of venues of 8 h and 1 h, and of one week settlement by settlement."""
    rows = pl.read_parquet(real_data / "funding.parquet").with_columns(
        pl.col("symbol", "exchange", "dataset").cast(pl.String),
        pl.col("ts").cast(pl.Int64),
        pl.col("rate", "interval_hours").cast(pl.Float64),
    )
    rows = rows.filter(dataset="supervik").with_columns(ts=(pl.col("ts") + 30) // 60 * 60)
    rows = rows.filter(pl.col("symbol").str.starts_with("BTC"))
    frames = [of_legs(rows, *legs) for legs in combinations(("BINANCE", "BYBIT", "DYDX"), 2)]
    asked = {"funding_only": True}
    found = funding.holdings(pl.concat(frames), horizons=["1d", "7d"], every="8h", **asked)
    assert found["coverage"].drop_nulls().is_between(0, 1).all()
    for frame, week in zip(frames, found.filter(horizon_s=7 * DAY).to_dicts(), strict=True):
        assert frame["trajectory"][0] == week["trajectory"]
        for entry in (week["t_first"], week["t_last"]):
            held = frame.filter(pl.col("ts").is_between(entry, entry + 7 * DAY, closed="right"))
            by_sum = 1e4 * (held["sell_rate"].sum() - held["buy_rate"].sum())
            (alone,) = funding.holdings(
                frame, entry, entry + 7 * DAY, horizons=["7d"], every=1, **asked
            ).to_dicts()
            assert (alone["n"], alone["funding_mean_bps"]) == (1, pytest.approx(by_sum, abs=1e-8))
            summed = funding.summary(frame, entry, entry + 7 * DAY)
            assert summed["coverage"].item() == 1
            assert summed["funding_bps"].item() == pytest.approx(by_sum, abs=1e-8)
    assert found["n"].min() > 700
    # over years real funding differs from itself for longer than a window can say
    assert set(found["funding_band_reason"]) == {"long_memory"}


def test_one_length_alone_is_one_horizon() -> None:
    asked = {"end": MIDNIGHT + DAY, "every": "8h"}
    alone, listed = (one(steady(), horizons=each, **asked) for each in ("8h", ["8h"]))
    assert alone == listed


def recorded(real_data: Path, buy: str, sell: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The funding and the 8 h closes of two perpetuals, of a year and a half."""
    rows = {
        name: pl.read_parquet(real_data / f"{name}.parquet").with_columns(
            pl.col("symbol", "exchange", "dataset").cast(pl.String), pl.col("ts").cast(pl.Int64)
        )
        for name in ("funding", "prices")
    }
    rows = {name: each.filter(dataset="aha_hh", symbol="BTC_USDT") for name, each in rows.items()}
    perps = rows["prices"].filter(pl.col("market").cast(pl.String) == "futures")
    bars = [perps.filter(exchange=each).select("ts", "close").unique("ts") for each in (buy, sell)]
    prices = bars[0].join(bars[1], on="ts", suffix="_sell").sort("ts")
    key = f"BTC_USDT:{buy}.futures:{sell}.futures"
    return of_legs(rows["funding"], buy, sell), prices.select(
        pl.lit(key).alias("trajectory"),
        "ts",
        buy_price=pl.col("close").cast(pl.Float64),
        sell_price=pl.col("close_sell").cast(pl.Float64),
    )


def test_prices_double_the_range_of_a_day_of_real_carry_and_turn_its_sign(real_data: Path) -> None:
    """Against sums in numpy: BYBIT and OKX perpetuals of BTC, 8 h bars known at their end."""
    frame, prices = recorded(real_data, "BYBIT", "OKX")
    asked = {"horizons": ["1d"], "every": "8h"}
    (row,) = funding.holdings(frame, prices=prices, **asked).to_dicts()
    ts = frame["ts"].to_numpy()
    received = np.cumsum(1e4 * (frame["sell_rate"] - frame["buy_rate"]).to_numpy())
    last = np.searchsorted(prices["ts"].to_numpy() + 8 * HOUR, ts, side="right") - 1
    level = 1e4 * np.log(prices["sell_price"].to_numpy() / prices["buy_price"].to_numpy())
    level = np.where(last >= 0, level[np.maximum(last, 0)], np.nan)
    paid = received[3:] - received[:-3]
    kept = paid - (level[3:] - level[:-3])
    known = ~np.isnan(kept)
    # one entry more, 8 h before the first settlement, of which no price is known
    before = np.append(received[2], paid)
    for name, values in (("funding", before), ("gross", kept[known])):
        found = [row[f"{name}_q05_bps"], row[f"{name}_q95_bps"]]
        assert found == pytest.approx(np.quantile(values, [0.05, 0.95]), abs=1e-9)
        assert row[f"{name}_mean_bps"] == pytest.approx(values.mean(), abs=1e-9)
    assert [row["funding_q05_bps"], row["funding_q95_bps"]] == pytest.approx([-3.4, 2.9], abs=0.05)
    assert [row["gross_q05_bps"], row["gross_q95_bps"]] == pytest.approx([-5.8, 5.4], abs=0.05)
    differs = np.mean(np.sign(paid[known]) != np.sign(kept[known]))
    assert 0.27 <= differs <= 0.30
