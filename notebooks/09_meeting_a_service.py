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
# # Can I trust what I load from a service that the toolkit has never met?
#
# It may use other field names, units and paging, and document none of it. The service below does:
# it is the local one with a **SIMULATED** market and switches from `docs/adversary.md`, so this
# runs in a checkout. `rail doctor` drafts a profile, and the profile loads the data. Then the rows
# are checked against each other and, since this market is simulated, against the truth.
#
# Times are UTC, windows are `[start, end)`. A spread is 10⁴ ln(sell / buy), in bps.

# %%
import contextlib
from pathlib import Path

import polars as pl

import toolkit as tk
from tests.adversary import adversary_of, adverse
from toolkit.cards import readable_tables
from toolkit.service import Clock, Config, Simulated, running
from toolkit.workspace import Settings
from toolkit.workspace.doctor import examine

readable_tables()
pl.Config(fmt_str_lengths=160)  # whole sentences
other_names = {"ts": "moment", "price": "px", "buy_price": "bid_px", "sell_price": "offered"}
switches = {
    "renamed_fields": {**other_names, "spread_pct": "gap"},
    "units": {"ts": "ms", "spread_pct": "bps"},
    "numbers": "text",  # "97.6", not 97.6
    "end_time": "inclusive",
    "page_cap": 200,
    "undeclared": True,  # its /schemas documents state none of this
}
market, clock = Simulated(7), Clock(fixed_at=tk.parse_ts("2026-11-20"))
services = contextlib.ExitStack()
otherwise = adverse(adversary_of({"rest": switches}))
odd = services.enter_context(running(Config(market, port=0, clock=clock, application=otherwise)))

# %% [markdown]
# For your own service, start here with its address and key.

# %%
address, key = odd.base_url, "demo-pro"
pair, window = "PEPE_USDT:FORNAX.spot:DEX-LUNARIS.dex", ("2026-11-18", "2026-11-19")
try:
    with tk.open("met.duckdb", base_url=address, api_key=key) as rail:
        rail.sync(pair, *window)
except tk.RailError as error:
    print(error)

# %% [markdown]
# The load is refused: no row is stored without a certain time.
#
# ## What is different?
#
# `examine` is `rail doctor` as a frame. It sends about 60 requests and stores nothing.

# %%
met = examine(Settings.read(base_url=address, api_key=key))
different = met.df.filter(pl.col("group").is_in(["routes", "fields"]), pl.col("state") != "ok")
different.select("check", "state", "says")

# %% [markdown]
# ## A profile, drafted from the answers
#
# Lines that the answers prove are active. `gap` is in bps, because it equals the spread of the two
# prices in every row. Unproven lines would be comments for you to judge.

# %%
Path("profile.toml").write_text(met.draft)
print("[history.spread]" + met.draft.partition("[history.spread]")[2])

# %%
again = examine(Settings.read(base_url=address, api_key=key, profile="profile.toml"))
print("can be loaded now:", *again.readable)
print("cannot:", *again.unreadable or ["none"])

# %% [markdown]
# ## Load with the profile
#
# On the command line, `RAIL_PROFILE` names the file.

# %%
rail = tk.open("met.duckdb", base_url=address, api_key=key, profile="profile.toml")
legs = ["PEPE_USDT:FORNAX.spot", "PEPE_USDT:DEX-LUNARIS.dex"]
rail.sync([pair, *legs, "events/spread"], *window)
spread, log = rail.spread(pair), rail.events("spread")
spread

# %% [markdown]
# ## Do the rows agree with each other?
#
# The service states a spread three times: as two prices in a row, as a number beside them, and as
# the separately paged prices of its legs. Wide spreads are in the log of events too: `n` counts the
# events and episodes that can be compared. The truth is the same history from a service without
# switches.

# %%
with (
    running(Config(market, port=0, clock=clock)) as plain,
    tk.Client(plain.base_url, key) as client,
):
    truth = client.history(pair, *window)
rows, of_legs = spread.df, rail.pair(*legs).df
stated_log_bps = 1e4 * (1 + rows["spread_pct"] / 100).log()
close = (stated_log_bps - rows["spread_log_bps"]).abs() < 1e-6
same = ["ts", "buy_price", "sell_price"]
as_legs, as_truth = (rows.join(other, on=same, how="semi").height for other in (of_legs, truth))
judged = log.audit(rows).row(0, named=True)
checks = [
    ("spread stated, prices of the row", rows.height, close.sum()),
    ("prices of the row, of its legs", max(rows.height, of_legs.height), as_legs),
    ("prices of the row, the truth", max(rows.height, truth.height), as_truth),
    ("events of the log, the rows", judged["n_events_judged"], judged["n_confirmed"]),
    ("episodes in the rows, the log", judged["n_episodes_judged"], judged["n_seen"]),
]
checked = pl.DataFrame(checks, schema=["compared", "n", "n_agree"], orient="row")
checked

# %% [markdown]
# Prices are above, the spread is below, with dashed lines at the smallest size in the log. Shading
# marks open events of these two legs.

# %%
enter_bps = round(judged["enter_bps"])
spread.plot(thresholds_bps=[-enter_bps, enter_bps], events=log)

# %% [markdown]
# ## A finding

# %%
agree = "agree" if checked["n"].equals(checked["n_agree"]) else "DO NOT AGREE"
print(
    "Loaded by a profile that was drafted from the service's answers alone, the rows of\n"
    f"{pair} {agree} with each other, with the log of\nevents and with the truth. Their mean is "
    f"{spread.summary()['spread_mean_log_bps'].item():.1f} bps.\n{spread.footnote}"
)

# %%
rail.close()
services.close()
