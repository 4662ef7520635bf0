# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What would holding a funding pair have earned, after fees?
#
# You learn which pairs paid most, how steady that was, what each entry time would have earned, and
# whether the best pair of two weeks was still good in the next two. Without an address the first
# load starts a local service with a **SIMULATED** market: no rate below was ever paid.
#
# A position is long the buy leg and short the sell leg of two futures. It receives the sell leg's
# rate and pays the buy leg's. Times are UTC, settlements are those in `(start, end]`, and bps are
# of one leg's notional.

# %%
import polars as pl

import toolkit as tk
from toolkit.cards import readable_tables
from toolkit.statistics.fees import FeeModel

readable_tables()
exchanges = ["AURORA", "BOREAS", "CORONA", "DRACO", "EQUINOX", "GALENE"]
rail = tk.open("funding.duckdb", window="28d", fees=FeeModel.example(exchanges))
rail.sync("funding/BTC_USDT:*")
rail.sync([f"BTC_USDT:{exchange}.futures" for exchange in exchanges])  # the prices of the legs
legs = pl.col("trajectory").str.strip_prefix("funding/BTC_USDT:").alias("legs")

# %% [markdown]
# ## The pairs that paid most
#
# Carry is funding received plus basis, the gain from the prices of both legs. Cost is one round
# trip (opening and closing both legs) by the fee table, which is invented here and the same for
# each exchange. `rail fees --example > fees.toml` prints one to edit. The APR is simple, of one
# leg's notional. A pair with a loss would have earned as much in the opposite orientation, before
# costs.

# %%
pairs = rail.screen(family="funding", sort="-net_carry_bps")
pairs.head(6).select(
    legs,
    "n",
    "funding_bps",
    "basis_bps",
    "carry_bps",
    "cost_bps",
    "net_carry_bps",
    "net_apr_pct",
    coverage_pct=100 * pl.col("coverage"),
)

# %% [markdown]
# ## Persistence
#
# `positive_pct` is the share of time in which the position received funding, `flips` how often the
# sign changed. The last two columns are the autocorrelation of the differential: near 0 after three
# days, the level three days ago says nothing about today.

# %%
pairs.head(6).select(
    legs,
    "flips",
    positive_pct=100 * pl.col("positive_share"),
    longest_run_h=pl.col("longest_run_s") / 3600,
    acf_8h="acf_8h",
    acf_72h="acf_72h",
)

# %% [markdown]
# ## Dispersion between exchanges
#
# For each eight hours, this is the highest annual rate minus the lowest, with their exchanges. A
# wide range for a few hours does not make a carry.

# %%
settled = rail.store.scan("funding").collect()
apart = tk.statistics.funding.dispersion(settled, *rail.funding(pairs["trajectory"][0]).window)
known = apart.drop_nulls("range_apr_pct")
known.group_by("highest", "lowest").agg(
    hours=8 * pl.len(),
    median_range_apr_pct=pl.col("range_apr_pct").median(),
    largest_range_apr_pct=pl.col("range_apr_pct").max(),
).sort("hours", "largest_range_apr_pct", descending=True).head(6)

# %% [markdown]
# ## The best of many looks better than it is
#
# Choose the best pair of the first two weeks and hold it for the next two. A middling rank there
# means that the first one was luck.

# %%
start, end = rail.funding(pairs["trajectory"][0]).window
middle = (start + end) // 2
chosen, then = (
    rail.screen(*half, family="funding", sort="-carry_bps")
    for half in ((start, middle), (middle, end))
)
best = chosen.row(0, named=True)["trajectory"]
pl.concat(
    half.with_row_index("rank", 1)
    .filter(trajectory=best)
    .select(
        legs,
        pl.lit(weeks).alias("weeks"),
        "rank",
        pl.lit(half.height).alias("of"),
        "carry_bps",
        "net_carry_bps",
        "positive_share",
    )
    for weeks, half in (("first two", chosen), ("next two", then))
)

# %% [markdown]
# ## All entry times
#
# Enter that pair at each full hour, hold it for the given time, and subtract one round trip.
# `coverage` is the share of entries with all settlements known. `breakeven_pct` is the share that
# earned back the round trip in that time, `half_h` the time after which half of them had. Prices
# matter too: `basis_mean_bps` is the average gain from the change of the spread between entry and
# exit, and is included in gross and net.

# %%
pair = rail.funding(best)
held = pair.holdings(horizons=["1d", "3d", "7d", "14d"])
kept = [
    (pl.col("horizon_s") // 86400).alias("days"),
    "n",
    "coverage",
    "funding_median_bps",
    "basis_mean_bps",
    "gross_median_bps",
    "net_q05_bps",
    "net_median_bps",
    "net_q95_bps",
]
held.select(*kept, breakeven_pct=100 * pl.col("breakeven_share"), half_h="breakeven_median_h")

# %% [markdown]
# Without prices the range is narrower than a real position's. `funding_only=True` leaves them out,
# and the columns are named so.

# %%
only = pair.holdings(horizons=["1d", "3d"], funding_only=True)
only.select(kept[0], "n", "funding_q05_bps", "funding_q95_bps", "funding_only_net_median_bps")

# %% [markdown]
# ## A finding
#
# The chart shows that pair's differential, and below it the funding received since the start and
# the carry with prices, before and after one round trip.

# %%
cost_bps = held["cost_mean_bps"][0]
pair.plot(cost_bps=cost_bps)

# %%
week = held.filter(horizon_s=7 * 86400).row(0, named=True)
rank = 1 + then["trajectory"].to_list().index(best)
print(
    f"The best pair of two weeks, {pair.stream}, was number {rank} of {then.height} in the next "
    f"two.\nHeld for a week, over {week['n']} times of entry, it kept a median of "
    f"{week['net_median_bps']:+.0f} bps\nafter {cost_bps:.0f} bps of fees "
    f"({week['net_q05_bps']:+.0f} to {week['net_q95_bps']:+.0f} for 90 of 100 entries), and "
    f"{week['breakeven_share']:.0%} earned them back.\n{pair.footnote}"
)

# %%
rail.close()
