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
# You learn what a load would ask for before it does, what the service is about to drop, that a
# second load asks only for what lacks, and why a minute without a row need not be a hole. Nothing
# is needed beforehand: without an address the first load starts a local service on a **SIMULATED**
# market. No price below was ever paid.
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
# ## A part first
#
# A load can be stopped at any moment: rows and the stretch of time that they answer for are kept
# together, and the next load asks for what lacks. So a part can be loaded first.

# %%
rail.sync(streams, "3d")

# %% [markdown]
# ## What the rest would take
#
# Nothing is loaded here. The last line is what the archive drops within a day if nothing is done.
# A load begins with that.

# %%
rail.plan(streams)

# %%
rail.sync(streams)

# %% [markdown]
# The same once more brings nothing new, and asks for no history.

# %%
again = rail.sync(streams, progress=False)
again

# %% [markdown]
# ## What is held
#
# One line per stream. `answered_pct` is the part of the time between its first and its last row for
# which the service answered. `holes` are stretches in that without a row.

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
# `empty`: the service was asked and has nothing there, as when nobody traded or an exchange was
# out. `not yet known`: too young to be final. `missing`: nobody asked. `unrecoverable`: the plan no
# longer reaches it. Only `missing` can be repaired, by a load.

# %%
series = {key: rail.prices(key) for key in streams}
gaps = pl.concat(each.gaps().with_columns(trajectory=pl.lit(key)) for key, each in series.items())
gaps.group_by("trajectory", "state").agg(
    stretches=pl.len(),
    hours=pl.col("length_s").sum() / 3600,
    longest_min=pl.col("length_s").max() / 60,
).sort("trajectory", "state")

# %% [markdown]
# One leg lacks single minutes all the time, the other was out for hours, a few times. Statistics
# use no return over a gap, and count a gap in no average.

# %%
gaps.sort("length_s", descending=True).select("trajectory", "start", "end", "state").head(5)

# %% [markdown]
# ## A finding
#
# The leg that was out, second by second. `rail.as_of("2026-11-01")` reads all of this as it was
# known then, gaps and rows.

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
