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
# # Which exchange moves first?
#
# You learn how to find a lead by the correlation of returns at each lag, how an exchange that
# repeats old closes looks like one that lags, and what share of the price each of two exchanges
# finds. Nothing is needed beforehand: without an address the first load starts a local service on a
# **SIMULATED** market. No price below was ever paid.
#
# Times are UTC, windows are `[start, end)`. A lag is that of the sell leg: where the correlation is
# high at a positive one, the buy leg leads.

# %%
import numpy as np
import polars as pl

import toolkit as tk
from toolkit.cards import readable_tables
from toolkit.charts import lags_chart

readable_tables()
rail = tk.open("leads.duckdb", window="3d")
rail.sync(["BTC_USDT:AURORA.spot:*", "BTC_USDT:AURORA.spot", "BTC_USDT:FORNAX.spot"])

# %% [markdown]
# ## On the clock of minutes
#
# Returns of minutes of AURORA.spot against those of each other leg, up to ten minutes earlier and
# later. A peak beyond `null_band` is no chance. `ratio` is how much correlation there is after 0
# over that before 0: far above 1 AURORA.spot leads. It is noise where all correlation is at 0, as
# where a leg takes over each move within the minute.

# %%
leads = rail.measure(tk.statistics.spread.lead_lag).sort("lead_lag_ratio", descending=True)
leads.select(
    pl.col("trajectory").str.strip_prefix("BTC_USDT:AURORA.spot:").alias("sell_leg"),
    "returns_n",
    "peak_lag_s",
    "peak_correlation",
    "null_band",
    ratio="lead_lag_ratio",
)

# %% [markdown]
# Several legs follow: part of each move reaches them a minute later. The first row has the highest
# ratio. At each lag, a minute later is far beyond chance, and a minute earlier is nothing.

# %%
spread = rail.spread(leads["trajectory"][0])
by_minute = spread.cross_correlation(max_lag_steps=4)
by_minute.select("lag_s", "pairs", "correlation", "null_band")

# %% [markdown]
# ## On the clock of trades
#
# Does it lag, or is it seen late? FORNAX.spot repeats its last close where nobody traded: volume 0.
# Such a row has no news, and the return that follows it has that of several minutes. Hayashi and
# Yoshida's correlation needs no common clock: without those rows each return counts with all that
# overlap it. Returns of several minutes overlap their neighbours, so that both sides of 0 are high.
# A leg that lags is still higher on one of them. FORNAX.spot does both: the minute after is higher
# than the minute before, by much less than it seemed on the clock of minutes.

# %%
buy, sell = rail.prices("BTC_USDT:AURORA.spot"), rail.prices("BTC_USDT:FORNAX.spot")
traded = sell.df.filter(pl.col("volume") > 0)
by_trade = tk.statistics.spread.hayashi_yoshida(
    buy.df, traded, *spread.window, lags_s=by_minute["lag_s"].to_list()
)
by_trade.select("lag_s", "buy_n", "sell_n", "correlation")

# %% [markdown]
# ## Who finds the price
#
# The share of discovery says whose news the common price is made of. It needs steps of two seconds
# or less: at minutes each leg knows all by the end of the step, and the share is null for
# `step_too_coarse`. So here are made up seconds in which the truth is known. SLOW takes over the
# news of FAST three seconds later, and both have noise of their own.

# %%
random, seconds, late_s = np.random.default_rng(7), 20_000, 3
news = random.normal(0, 1e-4, seconds).cumsum()
heard = {"FAST": news, "SLOW": np.concatenate([np.zeros(late_s), news[:-late_s]])}
made_up = {
    name: tk.series.own_series(
        pl.DataFrame(
            {
                "ts": 1_704_067_200 + np.arange(seconds),
                "price": 100 * np.exp(known + random.normal(0, 5e-5, seconds)),
            }
        ),
        f"BTC_USD:{name}.spot",
        name="made up",
    )
    for name, known in heard.items()
}
tk.series.pair_series(made_up["FAST"], made_up["SLOW"]).lead_lag().select(
    "n",
    "peak_lag_s",
    "gonzalo_granger_share",
    "hasbrouck_lower_share",
    "hasbrouck_upper_share",
)

# %% [markdown]
# Both shares are those of the buy leg, FAST: near 1, it finds the price alone. A clock that is late
# looks just the same. `rail.screen()` flags one that is late by whole steps as `clock_shift`.
#
# ## A finding

# %%
lags_chart(
    {"minutes, repeats and all": by_minute, "trades alone": by_trade},
    source=spread.source,
    subject=str(spread.stream),
)

# %%
sides = [
    [found.filter(lag_s=lag_s)["correlation"].item() for lag_s in (60, -60)]
    for found in (by_minute, by_trade)
]
first, second = spread.stream.legs
print(
    f"On minutes the correlation of {second} with {first} is {sides[0][0]:.2f} a minute later and "
    f"{sides[0][1]:.2f} a minute earlier,\nas if {first} led. On trades alone it is "
    f"{sides[1][0]:.2f} and {sides[1][1]:.2f} (n = {len(buy):,} and {traded.height:,} prices): "
    f"{'still so' if sides[1][0] > 1.5 * sides[1][1] else 'it does not'}.\n{spread.footnote}"
)

# %%
rail.close()
