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
# # Quickstart
#
# Open a store, load a week of one symbol, see what is held and what is not, measure spreads,
# funding and events, ask the store in SQL. Nothing is needed beforehand: without an address the
# first load starts a local service on an endless **SIMULATED** market. No number below was ever
# traded.
#
# Conventions: times are UTC, windows are `[start, end)`, a unit stands in each column's name. A
# spread or a differential is positive where long the buy leg and short the sell leg earns it.

# %%
import polars as pl

import toolkit as tk
from toolkit.statistics.fees import FeeModel

pl.Config(
    tbl_rows=12,
    tbl_cols=-1,
    tbl_width_chars=120,
    tbl_hide_column_data_types=True,
    tbl_hide_dataframe_shape=True,
    fmt_str_lengths=60,
    float_precision=2,
    thousands_separator=True,
)

rail = tk.open("quickstart.duckdb")
rail.symbols("BTC")

# %% [markdown]
# A symbol trades on legs `EXCHANGE.market`. One leg has a price, `BTC_USDT:AURORA.spot`. Two legs
# have a spread, buy first, and two futures legs funding. That key is all it takes to ask for one.
#
# ## Load a week
#
# A `*` stands for whatever the service lists there. Running the cell again asks only for what is
# missing since, and one that was interrupted goes on where it ended.

# %%
loaded = rail.sync(
    ["BTC_USDT:AURORA.spot:*", "funding/BTC_USDT:AURORA.futures:*", "events/*"], "7d"
)
loaded

# %% [markdown]
# ## What the store holds
#
# One DuckDB file, of one source, opened only while it is read or written.

# %%
rail

# %% [markdown]
# A series knows its stream, its window and its source. `.df` is a polars frame (`.pandas()`,
# `.arrow()` and `.save("x.parquet")` are others) in which `time` is the start of a bar and
# `known_at` the first moment at which it could be known.

# %%
spreads = {key.key: rail.spread(key) for key in loaded.asked if key.kind == "spread"}
pair = spreads["BTC_USDT:AURORA.spot:CORONA.futures"]
pair

# %%
pair.df.select("time", "known_at", "buy_price", "sell_price", "spread_log_bps").tail(3)

# %% [markdown]
# What is not there, and why: `empty` (the service was asked and has nothing there), `not yet known`
# (too young to be final), `missing` (not asked for) or `unrecoverable` (the plan no longer reaches
# it).

# %%
pair.gaps()

# %% [markdown]
# ## Spreads
#
# The log spread is 10⁴ ln(sell / buy), in bps. Coverage is the share of the window's rows that are
# there. The half-life is that of the autocorrelation, beneath the noise of the quotes, with its
# 95 % interval. Where one of the three is null, the last column has the reason. The buy leg is
# `AURORA.spot` throughout.

# %%
measured = pl.concat(spread.summary() for spread in spreads.values())
print(f"{loaded.window} of {pair.source.label}")
measured.select(
    pl.col("trajectory").str.strip_prefix("BTC_USDT:AURORA.spot:").alias("sell_leg"),
    "n",
    coverage_pct=100 * pl.col("coverage"),
    mean_log_bps="spread_mean_log_bps",
    std_log_bps="spread_std_log_bps",
    half_life_min=pl.col("half_life_s") / 60,
    lower_min=pl.col("half_life_lower_s") / 60,
    upper_min=pl.col("half_life_upper_s") / 60,
    reason=pl.coalesce("^half_life(_lower|_upper)?_reason$"),
).sort("std_log_bps", descending=True)

# %% [markdown]
# The one that varies most, through time: both legs' prices above, the spread below, dashed at its
# 1 % and 99 % quantiles. Shaded: a spread event of these two legs was open, as far as its log is
# known; a diamond marks its opening.

# %%
row = measured.sort("spread_std_log_bps").row(-1, named=True)
widest = spreads[row["trajectory"]]
widest.plot(
    thresholds_bps=[round(row[f"spread_q{q}_log_bps"]) for q in ("01", "99")],
    events=rail.events("spread"),
)

# %% [markdown]
# ## Funding
#
# What a position in two futures legs receives at the settlements inside the window: `carry_bps`, of
# one leg's notional. `funding_apr_pct` is the mean difference of their rates as a simple rate per
# year, over the time that both legs' settlements pay for. So the two agree only where the window
# begins and ends at a settlement of both.

# %%
rates = {key.key: rail.funding(key) for key in loaded.asked if key.kind == "funding"}
received = pl.concat(each.summary() for each in rates.values()).sort(
    pl.col("carry_bps").abs(), descending=True, nulls_last=True
)
received.select(
    pl.col("trajectory").str.strip_prefix("funding/BTC_USDT:").alias("legs"),
    "n",
    (100 * pl.col("coverage")).alias("coverage_pct"),
    "carry_bps",
    "funding_apr_pct",
    "carry_reason",
)

# %%
rates[received["trajectory"][0]].plot()

# %% [markdown]
# ## Net of fees
#
# The table of fees is yours. This one is made up: the same example for each exchange. `net_share`
# is the part of the time in which the spread is beyond the cost of a round trip, `close` the time
# from there to within 5 bps of zero.

# %%
legs = tk.Trajectory.parse(row["trajectory"]).legs
fees = FeeModel.example([leg.exchange for leg in legs])
widest.summary(fees=fees).select("cost_bps", "gross_mean_bps", "net_share", "net_mean_bps")

# %%
widest.net_time_to_close(5, fees).select("entries", "closed", "^close_median.*$", "fee_model")

# %% [markdown]
# What a funding position kept, entered at each hour and held for so long, before fees and net of a
# round trip. `coverage` is the share of the entries that both legs cover, `breakeven_share` that of
# those that earned the round trip back.

# %%
rates["funding/BTC_USDT:AURORA.futures:CORONA.futures"].holdings(
    horizons=["8h", "1d", "3d"], fees=FeeModel.example(["AURORA", "CORONA"])
).select(
    pl.col("horizon_s") / 3600,
    "n",
    "coverage",
    "gross_median_bps",
    "gross_q05_bps",
    "gross_q95_bps",
    "drawdown_q95_bps",
    "net_median_bps",
    "breakeven_share",
    "fee_model_hash",
).rename({"horizon_s": "horizon_h"})

# %% [markdown]
# ## Events
#
# The service detects spreads, pumps and dumps (splashes) and funding dislocations. Of each family:
# how many there were of any symbol, how they ended, and the median life, in which those that are
# still open count as alive so far.

# %%
logs = {family: rail.events(family) for family in ("spread", "splash", "funding")}
pl.concat(log.summary() for log in logs.values()).select(
    "family",
    "n",
    "closed",
    "open",
    opened_before="orphans",
    median_life_min=pl.col("median_life_s") / 60,
    reason="median_life_reason",
)

# %% [markdown]
# The largest splashes, from opening to close. A hatched bar was not seen from opening to close.

# %%
logs["splash"].plot(limit=40)

# %% [markdown]
# ## A question in SQL
#
# On how many days was which spread the furthest from zero? The store is plain DuckDB, and the views
# of prices, spreads, funding rates, documents and the ledger are in it for other programs too.

# %%
rail.sql(
    """
    WITH daily AS (
        SELECT time::DATE AS day, arg_max(key, abs(spread_log_bps)) AS key
        FROM spreads GROUP BY ALL
    )
    SELECT key, count(*) AS n_days FROM daily GROUP BY key ORDER BY n_days DESC, key
    """
)

# %% [markdown]
# ## A finding
#
# Which of these spreads was at least 10 bps away from zero for the largest part of the time
# observed?

# %%
above = pl.concat(spread.time_above(10) for spread in spreads.values()).sort(
    "time_above_share", "trajectory"
)
first = above.row(-1, named=True)
buy, sell = tk.Trajectory.parse(first["trajectory"]).legs
print(
    f"Of {above.height} spreads of BTC_USDT over {buy}, the one to {sell} was at least 10 bps\n"
    f"from zero for the largest part of the time observed: {100 * first['time_above_share']:.0f} % "
    f"(n = {first['n']:,} rows, coverage {100 * first['coverage']:.2f} %).\n"
    f"{loaded.window} of {pair.source.label} (times are UTC)"
)

# %%
rail.close()

# %% [markdown]
# ## Your own service
#
# Set these before Jupyter starts, and the same cells run on it; no local service is started then.
# Take another file name: a store belongs to one source and refuses the data of a second one.
#
# ```sh
# export RAIL_BASE_URL=https://rail.example
# export RAIL_API_KEY=your-key
# ```
#
# The key is sent as a header and shown nowhere, not in a cell's output either.
