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
# # What do I miss of a live market when connections break and I go away?
#
# Events come by three channels: the archive, which is asked, a socket, which sends at once, and
# webhooks, which the service delivers to an address. Below all three fill one store. The sockets
# break every few seconds, some deliveries come twice or changed on the way, and for a while nobody
# follows. The service is the local one, on a **SIMULATED** market whose clock runs 900 times as
# fast as yours, so that an hour takes 4 seconds.
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
from toolkit.loader.webhooks import webhook_app
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
# On the command line `rail webhook setup` and `rail webhook` do this. The service answers the first
# address with the secret that it signs by. What is signed right is stored, once.

# %%
rail.sync(streams, "1h")
setup = services.enter_context(WebhookSession(address))
setup.sign_in(config.sessions.issue("demo-pro"))
secret = setup.set("http://127.0.0.1:1/", ["spread"])["secret"]
receiver = webhook_app(rail.store, secrets=[secret])
listening = run_in_thread(ServerSettings(receiver, grace_s=2), "127.0.0.1", 0)
done = setup.set(services.enter_context(listening) + "/", ["spread"])

# %% [markdown]
# ## Follow, go away, come back
#
# `rail follow` does it for weeks. Here it is an hour of the market and a quarter, then half an hour
# and more in which only webhooks come.

# %%
first = rail.follow(streams, since=began, duration_s=5)
print(first)
time.sleep(2.5)
rail.client.discover()
back = rail.client.served_at()

# %% [markdown]
# What does the store know of the spread now? A socket that broke left a gap, which the archive
# filled: `repaired`. The time of the absence is not known yet.

# %%
stretches = rail.store.coverage(tk.Trajectory.parse(pair), (began, back))
tk.charts.coverage_chart(stretches, trajectory=pair, start=began, end=back, source=first.source)

# %% [markdown]
# Whoever follows again asks the archive for it. A load brings the last minutes, which were too
# young to be final when the follow ended.

# %%
again = rail.follow(streams, since=began, duration_s=5)
print(again)
setup.remove()
time.sleep(0.5)
window = began, again.window.end
rail.sync(streams, *window)

# %% [markdown]
# ## What did each channel bring?
#
# Each counts from its first document to its last, and so with the absence. `n_lost` of the `n` that
# the archive has did not come by it, with a 95 % interval of the share. Deliveries that were signed
# wrong were refused, and came again.

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
# Prices above, the spread below. Shaded: an event of these two legs was open.

# %%
spread.plot(events=log)

# %% [markdown]
# ## A finding
#
# In the end the archive is asked once more for every document of the window, beside the store.

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
