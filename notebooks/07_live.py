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
# # What do I miss of a live market when connections break?
#
# Events arrive over three channels: the archive, a socket, and webhooks delivered to an address.
# Here all three fill one store. Sockets break every few seconds, some deliveries are duplicated or
# altered on the way, and for a while nothing follows. The local service runs a **SIMULATED** market
# with a clock 900 times as fast as yours, so an hour takes 4 seconds.
#
# Times are UTC, windows are `[start, end)`. A spread is 10⁴ ln(sell / buy), in bps.

# %%
import contextlib
import time

import polars as pl

import toolkit as tk
from tests.adversary import Adversary, WebhookSwitches, adverse
from toolkit.cards import readable_tables
from toolkit.client.webhook_session import WebhookSession
from toolkit.loader.webhook.webhooks import webhook_app
from toolkit.service import Config, Simulated, SpedClock, WebhookSettings, running
from toolkit.serving import ServerSettings, run_in_thread

readable_tables(decimals=3)
config = Config(
    Simulated(7),
    port=0,
    clock=SpedClock(start=tk.parse_ts("2026-11-18"), speed=900.0),
    application=adverse(
        Adversary(drop_after_s=(1.0, 2.0), webhooks=WebhookSwitches(duplicated=0.1, tampered=0.05))
    ),
    webhooks=WebhookSettings(loopback=True, retries_s=(0.2, 0.5, 1.0)),
)
services = contextlib.ExitStack()
address = services.enter_context(running(config)).base_url
rail = tk.open("live.duckdb", base_url=address, api_key="demo-pro")
pair, began = "PEPE_USDT:FORNAX.spot:DEX-LUNARIS.dex", rail.client.served_at()
streams = [pair, "events/spread"]

# %% [markdown]
# ## Receive webhooks
#
# On the command line, use `rail webhook setup` and `rail webhook`. The service returns a secret for
# the address and signs deliveries with it. Correctly signed deliveries are stored once.

# %%
rail.sync(streams, "1h")
setup = services.enter_context(WebhookSession(address))
setup.sign_in(config.sessions.issue("demo-pro"))
secret = setup.set("http://127.0.0.1:1/", ["spread"])["secret"]
receiver = webhook_app(rail.store, secrets=[secret])
listening = run_in_thread(ServerSettings(receiver, grace_s=2), "127.0.0.1", 0)
done = setup.set(services.enter_context(listening) + "/", ["spread"])

# %% [markdown]
# ## Follow, stop, resume
#
# `rail follow` runs for weeks. Here it runs for an hour and a quarter of market time, followed by
# at least half an hour with webhooks only.

# %%
first = rail.follow(streams, since=began, duration_s=5)
print(first)
time.sleep(2.5)
rail.client.discover()
back = rail.client.served_at()

# %% [markdown]
# What does the store know about the spread now? A broken socket left an outage, which the archive
# filled: `repaired`. The time without a follow is still missing.

# %%
stretches = rail.store.coverage(tk.Trajectory.parse(pair), (began, back))
tk.charts.coverage_chart(stretches, trajectory=pair, start=began, end=back, source=first.source)

# %% [markdown]
# The next follow backfills it from the archive. A load adds the last minutes, which were too young
# to be final when the follow ended.

# %%
again = rail.follow(streams, since=began, duration_s=5)
print(again)
setup.remove()
time.sleep(0.5)
window = began, again.window.end
rail.sync(streams, *window)

# %% [markdown]
# ## What did each channel deliver?
#
# Each channel counts from its first document to its last, including the time without a follow.
# `n_lost` of the archive's `n` documents did not arrive over it, with a 95 % interval for the
# share. Deliveries with a wrong signature were refused and sent again.

# %%
spread, log = rail.spread(pair, *window), rail.events("spread", *window)
channels = tk.statistics.events.channels(rail.store.arrivals("spread", log.window))
channels = channels.filter(pl.col("other") == "archive")
print("webhooks:", receiver.receipts)
channels.select(
    "channel",
    pl.col("n_other").alias("n"),
    "n_lost",
    "lost_share",
    pl.col("lost_share_lower").alias("lower"),
    pl.col("lost_share_upper").alias("upper"),
    "n_doubled",
)

# %% [markdown]
# Prices are above, the spread is below. Shading marks open events of these two legs.

# %%
spread.plot(events=log)

# %% [markdown]
# ## A finding
#
# Finally, the archive's documents of the whole window are compared with the store.

# %%
pages = rail.client.event_pages("spread", log.window)
truth = pl.concat(page.frame for page in pages)
lacking = truth.join(log.df, on=["event_id", "event_type", "ts_ms"], how="anti").height
lost = dict(channels.select("channel", pl.col("lost_share") * 100).iter_rows())
print(
    f"Of {truth.height:,} documents of spread events the socket did not bring "
    f"{lost['socket']:.0f} %,\nwebhooks {lost['webhook']:.0f} %, and the store lacks "
    f"{lacking or 'none'}.\nSpreads of {pair}:\n{spread.footnote}"
)

# %%
rail.close()
services.close()
