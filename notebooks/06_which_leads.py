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
# You learn to detect a lead from the correlation of returns at each lag, how an exchange that
# repeats old closes resembles one that lags, and how to measure the share of price discovery.
# Without an address the first load starts a local service with a **SIMULATED** market: no price
# below was ever paid.
#
# Times are UTC, windows are `[start, end)`. A lag is that of the sell leg: a high correlation at a
# positive lag means that the buy leg leads.

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
# ## Minute returns
#
# Compare minute returns of AURORA.spot with those of each other leg, up to ten minutes earlier and
# later. A peak beyond `null_band` is significant. `ratio` is the correlation after lag 0 over that
# before it: far above 1, AURORA.spot leads. It is noise if all correlation is at lag 0, as when a
# leg follows each move within the minute.

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
# Several legs follow: part of each move reaches them a minute later. For the first row, which has
# the highest ratio, the correlation a minute later is far outside the band, and a minute earlier
# inside.

# %%
spread = rail.spread(leads["trajectory"][0])
by_minute = spread.cross_correlation(max_lag_steps=4)
by_minute.select("lag_s", "pairs", "correlation", "null_band")

# %% [markdown]
# ## Returns between trades
#
# Does the leg lag, or are its prices stale? FORNAX.spot repeats its last close when nobody traded
# (volume 0). Such rows have no news, and the next return covers several minutes. The correlation of
# Hayashi and Yoshida needs no common clock: without those rows, each return counts with all returns
# that overlap it. Both sides of lag 0 are then high, and higher on one side for a leg that lags.
# FORNAX.spot is both stale and late: the minute after is higher than the minute before, by much
# less than minute returns suggest.

# %%
buy, sell = rail.prices("BTC_USDT:AURORA.spot"), rail.prices("BTC_USDT:FORNAX.spot")
traded = sell.df.filter(pl.col("volume") > 0)
by_trade = buy.hayashi_yoshida(traded, lags_s=[0, 60, 120, 180, 240])
by_trade.select("lag_s", "buy_n", "sell_n", "correlation")

# %% [markdown]
# ## Price discovery
#
# The share of discovery is the part of the common price that originates on a leg. It needs steps of
# two seconds or less: within a minute each leg has caught up, and the share is null
# (`step_too_coarse`). So these are simulated seconds with a known truth: SLOW repeats the news of
# FAST three seconds later, and both have their own noise.

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
# Both shares are those of the buy leg, FAST: near 1, discovery happens there alone. A delayed clock
# looks the same. `rail.screen()` flags one that is late by whole steps as `clock_shift`.
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
