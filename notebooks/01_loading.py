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
# # What is missing in my data, why, and how do I get the rest?
#
# You learn what a load would request, what the service is about to drop, that a second load fetches
# only what is missing, and why a minute without a row may be complete. Without an address the first
# load starts a local service with a **SIMULATED** market: no price below was ever paid.
#
# Times are UTC, windows are `[start, end)`.

# %%
import polars as pl

import toolkit as tk
from toolkit.cards import readable_tables

readable_tables()
rail = tk.open("loading.duckdb", window="30d")
streams = ["BTC_USDT:BOREAS.spot", "BTC_USDT:CORONA.futures"]

# %% [markdown]
# ## Load a part first
#
# A load can be stopped at any moment: rows are committed together with the stretch of time they
# cover, and the next load fetches the rest.

# %%
rail.sync(streams, "3d")

# %% [markdown]
# ## Plan the rest
#
# Nothing is loaded here. The last line shows what the archive drops within a day. A load starts
# with that.

# %%
rail.plan(streams)

# %%
rail.sync(streams)

# %% [markdown]
# Repeating the load brings nothing new and requests no history.

# %%
again = rail.sync(streams, progress=False)
again

# %% [markdown]
# ## Look at the status
#
# The table has one line per stream. `answered_pct` is the share of time between its first and last
# row for which the service answered. `holes` are stretches without a row in that time.

# %%
rail.status().select(
    "stream",
    "state",
    "rows",
    first=pl.from_epoch("first_ts").dt.strftime("%d %B %H:%M"),
    last=pl.from_epoch("last_ts").dt.strftime("%d %B %H:%M"),
    answered_pct=100 * pl.col("answered_share"),
    holes="holes",
    longest_hole_min=pl.col("longest_hole_s") / 60,
)

# %% [markdown]
# ## Why a minute has no row
#
# `empty`: the service was asked and has no row there, because nobody traded or an exchange was
# down. `not yet known`: too young to be final. `missing`: never requested. `unrecoverable`: beyond
# the retention of the plan. A load repairs only `missing`.

# %%
series = {key: rail.prices(key) for key in streams}
gaps = pl.concat(each.gaps().with_columns(trajectory=pl.lit(key)) for key, each in series.items())
gaps.group_by("trajectory", "state").agg(
    stretches=pl.len(),
    hours=pl.col("length_s").sum() / 3600,
    longest_min=pl.col("length_s").max() / 60,
).sort("trajectory", "state")

# %% [markdown]
# One leg is missing single minutes all the time, the other was down for hours a few times.
# Statistics use no return across a gap and no average includes one.

# %%
gaps.sort("length_s", descending=True).select("trajectory", "start", "end", "state").head(5)

# %% [markdown]
# ## A finding
#
# This is the leg that was down, second by second. `rail.as_of("2026-11-01")` reads gaps and rows as
# they were known then.

# %%
out = series["BTC_USDT:CORONA.futures"]
out.plot_coverage()

# %%
silent = out.gaps().filter(state="empty")
left = gaps.filter(state="missing").height
print(
    f"{out.stream} has no price in {silent['length_s'].sum() / 3600:.1f} hours of 30 days, in "
    f"{silent.height} stretches of up to {silent['length_s'].max() // 60} minutes.\nThe service "
    f"has none there: {left} stretches are left to ask for, and loading again brought "
    f"{again.rows.new} rows.\n{out.footnote}"
)

# %%
rail.close()
