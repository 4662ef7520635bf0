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
# # What do prices do after a pump or a dump, and how true is the log?
#
# You learn what prices do after a pump or a dump, whether any other time would have shown the same,
# and whether a log of spread events has all that it should have and nothing else. Nothing is needed
# beforehand: without an address the first load starts a local service on a **SIMULATED** market. No
# price below was ever paid.
#
# Times are UTC, windows are `[start, end)`. Bands hold the true value in 95 of 100 cases.

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
# A detection has its leg, its time and its direction: 1 of a pump, -1 of a dump. The prices of all
# legs that had one are loaded.

# %%
detected = splash.detections()
rail.sync(detected["trajectory"].unique().sort().to_list(), "5d")
prices = rail.around(splash).collect()
detected.tail(3).select("trajectory", "direction", "size", time=pl.from_epoch("ts"))

# %% [markdown]
# The mean path, in the direction of the event, in bps of the first price known after it. A bar's
# close is known at its end, so nothing later than a moment is in the path at that moment. An event
# that follows another of its leg within two hours is left out. The band draws clusters of events
# again, since those that happen together are not apart.
#
# Here `less="controls"` also takes from each path the mean of five times without an event: of the
# same leg and time of day, and as volatile before. What is left is not the hour's.

# %%
before_s, after_s = 3_600, 7_200
left = events.study(detected, prices, before_s=before_s, after_s=after_s, less="controls")
event_study_chart(left, source=splash.source, subject="pumps and dumps, from the next price")

# %% [markdown]
# ## The trap
#
# The price known at a detection is the close of the minute before, and the move that made the event
# came after that close. A path from there begins with a jump that nobody could have had. So it has
# to be asked for, and its columns are named `return_from_detection_...`.

# %%
path = events.study(detected, prices, before_s=before_s, after_s=after_s, from_detection=True)
event_study_chart(path, source=splash.source, subject="pumps and dumps, from their detection")

# %% [markdown]
# ## Would other times have shown the same?
#
# The placebo moves all events by one random time, 999 times. `p_value` is the share of such runs
# with a mean at least as far from 0, the true one counted: 0.001 is the least there can be.

# %%
events.placebo(detected, prices).select(
    pl.col("horizon_s") // 60,
    "n",
    "return_mean_log_bps",
    "placebo_std",
    p_value=pl.col("p_value").cast(pl.String),
).rename({"horizon_s": "horizon_min"})

# %% [markdown]
# ## How much is given back?
#
# `retraced_pct` is 0 at the furthest price since, and 100 where the move began an hour before.
# `went_on_pct` is the share of events whose price was further than at the start. The last two
# columns are of the trap: from the price at the detection.

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
# ## How true is the log of spreads?
#
# Each event of one symbol is held against the spreads of its legs, and each episode in them against
# the events. An event opens at 1 % here and closes below 0.5 %: so does an episode. A spread is of
# the end of a minute and an event of any second, so that with a negative delay the event was there
# before its minute was over.

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
# Would it have found a fault? Leave one event in ten out of the log, and turn the legs of one in
# nine of the others. Then 89 % of the events are true and 80 % of the episodes are seen, and a few
# more by a neighbour within a minute.

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
