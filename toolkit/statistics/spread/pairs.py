"""The spread of any two prices, of other quotes, contracts, steps or markets, as known then."""

from __future__ import annotations

import math

import polars as pl

from toolkit.columns import described
from toolkit.errors import InputError
from toolkit.market import Pair
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_columns,
    checked_times,
    whole_number,
)
from toolkit.statistics.core.definition import with_spread
from toolkit.statistics.core.observations import PAIR_HASH, checked_keys


@described("spread.pair")
def pair(
    buy: Frame,
    sell: Frame,
    fx: Frame | None = None,
    *,
    multiplier: float | None = None,
    max_stale_s: int | None = None,
    steps_s: tuple[int, ...] | None = None,
) -> pl.DataFrame:
    """Join two prices to the rows of a spread, with what could be known at each row's end.

    Each frame has ``trajectory`` (String, one price key), ``ts`` (Int64, the bar's start) and
    ``price`` (Float64, its close), in any order. A bar is known at ts + step. The rows are the bars
    of the leg with the longer step, or of both legs if the steps are equal, sorted by ts. A row has
    the newest price of each leg known at its end, null if older than ``max_stale_s``. By default a
    price is valid until the leg's next bar is due, so with equal steps only the same bar is joined.

    {columns}

    ``pair_hash`` enters the ``params_hash`` of each statistic of the rows.

    An age is null if no price was known yet. A price that is not finite and above 0 is not used.
    ``fx`` has the price of one quote in the other: its symbol decides whether the buy price is
    multiplied or divided. ``multiplier`` is how many coins of the buy leg one of the sell leg has,
    by default read from names such as 1000PEPE. ``steps_s`` are the steps of buy, sell and fx, by
    default the commonest difference of their times (ties: the smallest).

    Raises `InputError`: A frame lacks a column, has rows of several trajectories, no row, or two of
    one time. The quotes differ without ``fx``, or the bases without ``multiplier``.

    >>> buy = pl.DataFrame({"trajectory": "A_USD:X.spot", "ts": [0, 60], "price": [10.0, 20.0]})
    >>> sell = pl.DataFrame({"trajectory": "A_USD:Y.spot", "ts": [0, 60], "price": [11.0, 20.0]})
    >>> pair(buy, sell).select("ts", "buy_price", "sell_price", "spread_bps").rows()
    [(0, 10.0, 11.0, 1000.0), (60, 20.0, 20.0, 0.0)]
    """
    frames = {"buy": buy, "sell": sell} | ({} if fx is None else {"fx": fx})
    if max_stale_s is not None:
        allowed = "a whole number of seconds, 0 or more"
        max_stale_s = whole_number("max_stale_s", max_stale_s, 0, allowed)
    if multiplier is not None:
        _check_multiplier(multiplier)
    if steps_s is not None and len(steps_s) != len(frames):
        raise InputError("steps_s", steps_s, f"{len(frames)} steps (s), one per frame")
    legs = {name: _leg(name, frame) for name, frame in frames.items()}
    two = Pair.of(*(rows["trajectory"][0] for rows in legs.values()))
    coins = [float(count) for count in two.coins(multiplier)]
    steps = dict(zip(legs, steps_s or [_step(*leg) for leg in legs.items()], strict=True))
    for step in steps.values():
        whole_number("steps_s", step, 1, "a whole number of seconds, 1 or more")
    rows = _clock(legs, steps)
    for name, leg in legs.items():
        longest = steps[name] - 1 if max_stale_s is None else max_stale_s
        rows = _joined(rows, name, leg, steps[name], longest)
    bought = pl.col("buy_price") / coins[0]
    if two.fx is not None:
        bought = bought / pl.col("fx_price") if two.fx_divides else bought * pl.col("fx_price")
    prices = [f"{name}_price" for name in legs]
    return with_spread(
        rows.with_columns(
            trajectory=pl.lit(two.key),
            buy_price=bought,
            sell_price=pl.col("sell_price") / coins[1],
            buy_coins=pl.lit(coins[0]),
            sell_coins=pl.lit(coins[1]),
            pair_hash=pl.lit(_asked(two, coins, max_stale_s, steps_s)),
        ).select(
            *("trajectory", "ts", *prices, *(f"{name}_age_s" for name in legs)),
            *("buy_coins", "sell_coins", PAIR_HASH),
        )
    )


def _asked(
    two: Pair, coins: list[float], max_stale_s: int | None, steps_s: tuple[int, ...] | None
) -> str:
    asked = (
        ("fx", None if two.fx is None else two.fx.key),
        ("buy_coins", coins[0]),
        ("sell_coins", coins[1]),
        ("max_stale_s", max_stale_s),
        ("steps_s", None if steps_s is None else " ".join(map(str, steps_s))),
    )
    return Question("spread.pair/1", 0, 1, options=asked).params_hash


def _check_multiplier(multiplier: float) -> None:
    number = isinstance(multiplier, int | float) and not isinstance(multiplier, bool)
    if not number or not math.isfinite(multiplier) or multiplier <= 0:
        raise InputError("multiplier", multiplier, "a number above 0")


def _leg(name: str, frame: Frame) -> pl.DataFrame:
    checked_columns(frame, "price")
    rows = frame.lazy().select("trajectory", "ts", "price").collect().sort("ts")
    found = rows["trajectory"].unique().sort()
    if rows["trajectory"].dtype != pl.String or found.len() != 1:
        shown = found.head(3).to_list()
        raise InputError(name, shown, "the rows of one price, named by its key")
    checked_keys(rows)
    checked_times(rows)
    return rows


def _step(name: str, rows: pl.DataFrame) -> int:
    differences = rows["ts"].diff().drop_nulls()
    if differences.is_empty():
        raise InputError("steps_s", None, f"the steps (s), for {name} has a single row")
    common: int = differences.mode().sort()[0]
    return common


def _clock(legs: dict[str, pl.DataFrame], steps: dict[str, int]) -> pl.DataFrame:
    longest = max(steps["buy"], steps["sell"])
    times = [legs[name].select("ts") for name in ("buy", "sell") if steps[name] == longest]
    return pl.concat(times).unique().sort("ts").with_columns(known_ts=pl.col("ts") + longest)


def _joined(
    rows: pl.DataFrame, name: str, leg: pl.DataFrame, step_s: int, longest_s: int
) -> pl.DataFrame:
    """Add the newest price of a leg that is known at the end of each row, and its age."""
    price, age = f"{name}_price", f"{name}_age_s"
    known = leg.filter(pl.col("price").is_finite() & (pl.col("price") > 0)).select(
        known_ts=pl.col("ts") + step_s, at=pl.col("ts") + step_s, price=pl.col("price")
    )
    found = rows.join_asof(known, on="known_ts", strategy="backward").with_columns(
        (pl.col("known_ts") - pl.col("at")).alias(age)
    )
    fresh = pl.when(pl.col(age) <= longest_s).then("price").alias(price)
    return found.with_columns(fresh).drop("price", "at")
