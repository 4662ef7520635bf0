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
# # What do prices do after a pump or a dump, and how accurate is the log?
#
# You learn what prices do after a pump or a dump, whether other times would have shown the same,
# and whether a log of spread events is complete and correct. Without an address the first load
# starts a local service with a **SIMULATED** market: no price below was ever paid.
#
# Times are UTC, windows are `[start, end)`. Bands are 95 % confidence bands.

# %%
import polars as pl

import toolkit as tk
from toolkit.cards import readable_tables
from toolkit.charts import event_study_chart

readable_tables()
events = tk.statistics.events

rail = tk.open("follows.duckdb")
rail.sync(["events/splash", "events/spread"], "5d")
splash, spread = rail.events("splash"), rail.events("spread")
splash

# %% [markdown]
# ## Prices around pumps and dumps
#
# A detection has a leg, a time and a direction: 1 for a pump, -1 for a dump. Load the prices of all
# legs with a detection.

# %%
detected = splash.detections()
rail.sync(detected["trajectory"].unique().sort().to_list(), "5d")
prices = rail.around(splash).collect()
detected.tail(3).select("trajectory", "direction", "size", time=pl.from_epoch("ts"))

# %% [markdown]
# This is the mean path in the direction of the event, in bps of the first price known after it.
# There is no lookahead: a bar's close counts as known at its end. Events that follow another on the
# same leg within two hours are left out. The band is a bootstrap over clusters of events, since
# events that happen together are not independent.
#
# `less="controls"` also subtracts the mean of five control times without an event, on the same leg,
# at the same time of day and after similar volatility. So the remainder is not an effect of the
# hour.

# %%
before_s, after_s = 3_600, 7_200
left = events.study(detected, prices, before_s=before_s, after_s=after_s, less="controls")
event_study_chart(left, source=splash.source, subject="pumps and dumps, from the next price")

# %% [markdown]
# ## The trap
#
# The price known at a detection is the close of the minute before, and the move that triggered the
# event came after that close. A path from there begins with a jump that nobody could have earned.
# It is available on request only, in columns named `return_from_detection_...`.

# %%
path = events.study(detected, prices, before_s=before_s, after_s=after_s, from_detection=True)
event_study_chart(path, source=splash.source, subject="pumps and dumps, from their detection")

# %% [markdown]
# ## Would other times have shown the same?
#
# The placebo shifts all events by one random time, 999 times. `p_value` is the share of runs, the
# actual one included, with a mean at least as far from 0, so 0.001 is the minimum.

# %%
events.placebo(detected, prices).select(
    pl.col("horizon_s") // 60,
    "n",
    "return_mean_log_bps",
    "placebo_std",
    p_value=pl.col("p_value").cast(pl.String),
).rename({"horizon_s": "horizon_min"})

# %% [markdown]
# ## How much is retraced?
#
# `retraced_pct` is 0 at the most extreme price since the event, and 100 at the price an hour before
# it. `went_on_pct` is the share of events whose price continued in the same direction. The last two
# columns show the trap: they start at the price at the detection.

# %%
through = events.follow_through(detected, prices)
trap = events.follow_through(detected, prices, from_detection=True)
through.hstack(trap.select(pl.col("^.*_from_detection_.*$"))).select(
    pl.col("horizon_s") // 60,
    "n",
    median_bps="return_median_log_bps",
    lower_bps="return_median_lower_log_bps",
    upper_bps="return_median_upper_log_bps",
    went_on_pct=100 * pl.col("went_on_share"),
    retraced_pct=100 * pl.col("retraced_median"),
    trap_bps="return_from_detection_median_log_bps",
    trap_went_on_pct=100 * pl.col("went_on_from_detection_share"),
).rename({"horizon_s": "horizon_min"})

# %% [markdown]
# ## How accurate is the log of spreads?
#
# Each event of one symbol is compared with the spreads of its legs, and each episode of the spreads
# with the events. Events open at 1 % here and close below 0.5 %, and episodes likewise. A spread is
# known at the end of a minute and an event at any second, so a negative delay means that the event
# came before its minute was over.

# %%
of_symbol = spread.detections().filter(symbol="PEPE_USDT")
rail.sync(of_symbol["trajectory"].unique().sort().to_list(), "5d")
rows = rail.around(spread, margin_s=0)
listed = spread.audited(rows, enter_bps=100, leave_bps=50)
audit = events.audit(listed)
audit.select(
    "n_events_judged",
    precision_pct=100 * pl.col("precision"),
    precision_from=100 * pl.col("precision_lower"),
    n_episodes="n_episodes_judged",
    recall_pct=100 * pl.col("recall"),
    recall_from=100 * pl.col("recall_lower"),
    delay_s="delay_median_s",
)

# %% [markdown]
# Would the audit detect faults? Drop one event in ten from the log and swap the legs of one in nine
# of the others. Then 89 % of the events are correct, and the log covers 80 % of the episodes, plus
# a few through a neighbour within a minute.

# %%
number = pl.int_range(pl.len())
sell_buy = pl.col("legs").str.split(" → ").list.reverse().list.join(" → ")
lives = spread.lifecycles().filter(symbol="PEPE_USDT").sort("t_open", "event")
faulty = lives.filter(number % 10 != 0).with_columns(
    legs=pl.when(number % 9 == 0).then(sell_buy).otherwise("legs")
)
wrong = events.audited(faulty, rows, *spread.window, held=spread.held, enter_bps=100, leave_bps=50)
events.audit(wrong).select(
    "n_events_judged",
    precision_pct=100 * pl.col("precision"),
    n_episodes="n_episodes_judged",
    recall_pct=100 * pl.col("recall"),
)

# %%
wrong.filter("judged").group_by("found_in", "audit_reason").len("n").sort("n", descending=True)

# %% [markdown]
# ## A finding
#
# Did prices go on after a pump or a dump?

# %%
then, at_detection = (each.filter(horizon_s=1_800).row(0, named=True) for each in (through, trap))
known = left.filter(offset_s=1_800)["coverage"].item()
print(
    f"Half an hour later the median price was {then['return_median_log_bps']:+.0f} bps from the "
    "first price known after the event\n"
    f"({then['return_median_lower_log_bps']:+.0f} to {then['return_median_upper_log_bps']:+.0f}, "
    f"n = {then['n']:,}, coverage {100 * known:.1f} %), and "
    f"{at_detection['return_from_detection_median_log_bps']:+.0f} bps from the one known at the "
    "detection.\n"
    f"{splash.window} of {splash.source.label} (times are UTC)"
)

# %%
rail.close()
