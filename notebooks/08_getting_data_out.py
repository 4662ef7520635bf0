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
# # How do I get my data out?
#
# Use SQL, a lazy polars frame, pandas, a file of one series, or Parquet that other programs read
# without the toolkit. Five ways give one sum. Without an address the first load starts a local
# service with a **SIMULATED** market: no price below was ever paid.
#
# Times are UTC, windows are `[start, end)`. A spread is 10⁴ ln(sell / buy), in bps.

# %%
import json

import duckdb
import numpy as np
import pandas as pd
import polars as pl

import toolkit as tk
from toolkit.cards import readable_tables

readable_tables()
rail = tk.open("out.duckdb")
rail.sync("LTC_USDT:AURORA.spot:*", "7d")

# %% [markdown]
# ## SQL
#
# Run one SELECT over the views `prices`, `spreads`, `funding_rates`, `event_documents` and others.
# It cannot write. `docs/store.md` lists their columns.

# %%
rail.sql(
    """
    SELECT split_part(trajectory, ':', 3) AS sell_leg, count(*) AS n,
        quantile_cont(spread_log_bps, 0.95) AS q95_log_bps
    FROM spreads WHERE time::TIME >= $since AND time::TIME < $until
    GROUP BY trajectory ORDER BY sell_leg
    """,
    {"since": "14:00", "until": "16:00"},
)

# %% [markdown]
# ## polars
#
# `scan` reads nothing until it is collected, and then only the columns in use.

# %%
rows = rail.store.scan("spread")
log_bps = 1e4 * (pl.col("sell_price") / pl.col("buy_price")).log()
sell_leg = pl.col("trajectory").str.split(":").list.last().alias("sell_leg")
hour = pl.from_epoch("ts").dt.hour().alias("hour_utc")
hourly = rows.group_by(sell_leg, hour).agg(n=pl.len(), mean_log_bps=log_bps.mean())
hourly.sort(pl.col("mean_log_bps").abs(), descending=True).head(5).collect()

# %% [markdown]
# ## pandas
#
# One series has `time` as its index, in any zone. `known_at` is the first moment at which a row was
# known: join other data by it.

# %%
one = rail.spread("LTC_USDT:AURORA.spot:BOREAS.spot")
daily = one.pandas(timezone="Europe/Berlin")["spread_log_bps"].resample("1D")
daily.agg(n="count", mean_log_bps="mean", min_log_bps="min", max_log_bps="max").round(2)

# %% [markdown]
# ## A file of one series
#
# The file's metadata describe the series.

# %%
json.loads(pl.read_parquet_metadata(one.save("ltc.parquet"))["machine_rail"])

# %% [markdown]
# ## Everything, for other programs
#
# A publication has one Parquet file per stream and month. Publishing again writes only changes.
# Each publication has its own address, so the same rows can be read later.

# %%
published = rail.publish("archive")
print(f"{published.rows:,} rows in {published.files} files")

# %% [markdown]
# How many spreads are there, and what is their sum? A stream's file has every revision of a row.
# Nothing was revised here, so each row counts once.

# %%
asked = "SELECT count(*) AS n, sum(1e4 * ln(sell_price / buy_price)) AS sum_log_bps FROM"
files = pd.read_parquet("archive/spread")
of_polars = [pl.len().alias("n"), log_bps.sum().alias("sum_log_bps")]
in_pandas = {
    "n": [len(files)],
    "sum_log_bps": [1e4 * np.log(files.sell_price / files.buy_price).sum()],
}
ways = {
    "store, SQL": rail.sql(f"{asked} spreads"),
    "store, polars": rows.select(of_polars).collect(),
    "Parquet, polars": pl.scan_parquet("archive/spread/*.parquet").select(of_polars).collect(),
    "Parquet, DuckDB": duckdb.sql(f"{asked} 'archive/spread/*.parquet'").pl(),
    "Parquet, pandas": pl.DataFrame(in_pandas),
}
numbers = pl.concat(found.cast({"n": pl.Int64}) for found in ways.values())
sums = numbers.select(pl.Series("read_from", list(ways)), "n", "sum_log_bps")
sums

# %% [markdown]
# ## And back
#
# A colleague with the toolkit opens the folder, or its address in a bucket, like a store.

# %%
theirs = tk.open("archive").spread(one.stream.key)
theirs.plot()

# %% [markdown]
# ## A finding

# %%
read = theirs.summary().row(0, named=True)
low, high = read["spread_q05_log_bps"], read["spread_q95_log_bps"]
same = np.ptp(sums["sum_log_bps"].to_numpy()) < 1e-6
print(
    f"Store and Parquet gave the same {sums['n'][0]:,} spreads in {len(ways)} ways, with "
    f"{'equal' if same else 'DIFFERENT'} sums.\nRead back, 90 % of those of {one.stream} are "
    f"from {low:.1f} to {high:.1f} bps.\n{theirs.footnote}"
)

# %%
rail.close()
