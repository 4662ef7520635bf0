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
# Open a service, load a week of one symbol, see what is held and what is not, measure spreads,
# funding and events, ask the store in SQL. Nothing is needed beforehand: without an address
# `tk.open` starts a local service on an endless **SIMULATED** market. No number below was ever
# traded.
#
# Conventions: times are UTC, windows are `[start, end)`, a unit stands in each column's name. A
# spread or a differential is positive where long the buy leg and short the sell leg earns it.

# %%
import plotly.graph_objects as go
import polars as pl

import toolkit as tk
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Family, Trajectory
from toolkit.store import event_logs
from toolkit.workspace import watchlist

THEME = "light"  # of the charts: "light" or "dark"
pl.Config(
    tbl_rows=12,
    tbl_hide_column_data_types=True,
    tbl_hide_dataframe_shape=True,
    fmt_str_lengths=60,
    float_precision=2,
    thousands_separator=True,
)

rail = tk.open("quickstart.duckdb")
rail

# %% [markdown]
# ## What can be asked for
#
# A symbol trades on legs `EXCHANGE.market`. One leg has a price trajectory, two legs a spread, two
# futures legs a funding trajectory.

# %%
listing = rail.client.symbols()
listing

# %% [markdown]
# ## Load a week
#
# The watchlist takes the symbol with the most legs: the price of each leg, the spread of each over
# the first spot leg, the funding of each pair of futures legs. Without a window the last seven
# days are loaded. Running the cell again asks only for what is missing since.

# %%
wanted = [s for s in watchlist(listing, symbols=1) if isinstance(s, Trajectory)]
loaded = rail.sync(wanted)

# %% [markdown]
# The event logs of the same window, of every symbol:

# %%
start, end = loaded.window
logs = rail.sync([f"events/{family}" for family in EventFamily], start, end)

# %% [markdown]
# What a load did can be looked at later. Where a trajectory stayed silent, where the plan does not
# reach far enough or the service answered otherwise than assumed, it says so.

# %%
loaded

# %% [markdown]
# ## What the store holds, and how complete it is
#
# One DuckDB file, of one source, opened only while it is read or written.

# %%
symbol = wanted[0].symbol
source = rail.store.source
about = f"{source.label}; {loaded.window}"
rail

# %% [markdown]
# Every second of a trajectory's window has a state: `held`, `empty` (the service was asked and has
# nothing there), `not yet known` (too young to be final), `missing` (not asked for) or
# `unrecoverable` (the plan no longer reaches it). Of each family the least complete trajectory:

# %%
states = pl.concat(
    rail.store.coverage(trajectory, loaded.window).with_columns(
        family=pl.lit(trajectory.family.value), trajectory=pl.lit(trajectory.key)
    )
    for trajectory in wanted
).with_columns(length_s=pl.col("end_ts") - pl.col("start_ts"))
shares = (
    states.group_by("family", "trajectory", "state")
    .agg(share_pct=100 * pl.col("length_s").sum() / (end - start))
    .sort("state")
    .pivot("state", index=["family", "trajectory"], values="share_pct")
    .fill_null(0)
    .sort("held", "trajectory")
    .unique("family", keep="first", maintain_order=True)
)
print(f"Share of the window, %. {about}")
shares

# %% [markdown]
# The least complete spread: its longest stretches that are not held, and its last six hours.

# %%
pair = tk.Trajectory.parse(shares.filter(family="spread")["trajectory"].item())
print(f"{pair}. {about}")
(
    states.filter(pl.col("state") != "held", family="spread", trajectory=pair.key)
    .sort("length_s", descending=True, maintain_order=True)
    .select(
        from_utc=pl.from_epoch("start_ts"),
        to_utc=pl.from_epoch("end_ts"),
        length_min=pl.col("length_s") / 60,
        state="state",
    )
    .head(5)
)

# %%
recently = end - 6 * 3600
tk.charts.coverage_chart(
    rail.store.coverage(pair, Interval(recently, end)),
    trajectory=pair,
    start=recently,
    end=end,
    source=source,
    theme=THEME,
)

# %% [markdown]
# ## Spreads
#
# The log spread is 10⁴ ln(sell / buy), in bps. Coverage is the share of the window in which a row
# stands, each for three steps at most; the ledger above, which asks what is absent, allows one and
# a half. The half-life is that of the autocorrelation, beneath the noise of the quotes, with its
# 95 % interval; a null has its reason in the column to its right. Beside it is that of an AR(1),
# which noise shortens.

# %%
spreads = pl.concat(
    rail.spread(trajectory) for trajectory in wanted if trajectory.family == "spread"
)
measured = tk.statistics.spread.summary(spreads, start, end)
print(f"Legs bought and sold of {symbol}. {about}")
measured.select(
    pl.col("trajectory").str.strip_prefix(f"{symbol}:").alias("legs"),
    "n",
    (100 * pl.col("coverage")).alias("coverage_pct"),
    pl.col("spread_mean_log_bps").alias("mean_log_bps"),
    pl.col("spread_std_log_bps").alias("std_log_bps"),
    *(
        pl.col(f"half_life{bound}_s").truediv(60).alias(f"half_life{bound}_min")
        for bound in ("", "_lower", "_upper")
    ),
    "half_life_reason",
    pl.col("half_life_ar1_s").truediv(60).alias("half_life_ar1_min"),
    "half_lives_differ",
).sort("std_log_bps", descending=True)

# %% [markdown]
# The one that varies most, through time: both legs' prices above, the spread below, dashed at its
# 1 % and 99 % quantiles. Shaded: a spread event of these two legs was open, as far as its log is
# known; a diamond marks its opening.

# %%
row = measured.sort("spread_std_log_bps", "trajectory").row(-1, named=True)
with_openings = tk.statistics.events.documents_window(loaded.window)
known_logs = event_logs(rail.store.catalogue())
widest = tk.Trajectory.parse(row["trajectory"])
tk.charts.spread_chart(
    rail.spread(widest),
    trajectory=widest,
    start=start,
    end=end,
    source=source,
    thresholds_bps=[round(row[f"spread_q{q}_log_bps"]) for q in ("01", "99")],
    events=rail.events("spread", *with_openings),
    logs=known_logs,
    theme=THEME,
)

# %% [markdown]
# ## Funding
#
# What a position in two futures legs receives at the settlements inside the window, and the same
# as a simple rate of a year of one leg's notional.

# %%
pairs = [t for t in wanted if t.family is Family.FUNDING]
# Settlements about the window show what its first and last hours were paid for.
about_it = tk.statistics.funding.rows_window(Interval(start, end))
settled = pl.concat(rail.series(pair, *about_it) for pair in pairs)
received = tk.statistics.funding.summary(settled, start, end).sort(
    pl.col("carry_bps").abs(), descending=True, nulls_last=True
)
print(f"Legs bought and sold of {symbol}. {about}")
received.select(
    pl.col("trajectory").str.strip_prefix(f"funding/{symbol}:").alias("legs"),
    "n",
    (100 * pl.col("coverage")).alias("coverage_pct"),
    "carry_bps",
    "funding_apr_pct",
    "carry_reason",
).head(5)

# %%
largest = tk.Trajectory.parse(received["trajectory"][0], Family.FUNDING)
tk.charts.funding_chart(
    settled.filter(trajectory=largest.key),
    trajectory=largest,
    start=start,
    end=end,
    source=source,
    theme=THEME,
)

# %% [markdown]
# ## Events
#
# The service detects spreads, pumps and dumps (splashes) and funding dislocations. Of each family:
# how many there were of any symbol, how they ended, and the median life, in which those that are
# still open count as alive so far.

# %%
documents = pl.concat(rail.events(family, *with_openings) for family in EventFamily)
lives = tk.statistics.events.event_lifecycles(documents, start, end, logs=known_logs)
print(f"Events of every symbol. {about}")
lives.sort("family").group_by("family", maintain_order=True).agg(
    n=pl.len(),
    closed=(pl.col("kind") == "closed").sum(),
    still_open=(pl.col("kind") == "open").sum(),
    opened_before=pl.col("kind").str.starts_with("orphan").sum(),
).join(
    tk.statistics.survival.median_life(lives, ["family"]).select(
        "family", median_life_min=pl.col("median_life_s") / 60, reason="median_life_reason"
    ),
    on="family",
)

# %% [markdown]
# The largest of the symbol's, from opening to close:

# %%
tk.charts.event_timeline(
    lives.filter(symbol=str(symbol)),
    start=start,
    end=end,
    source=source,
    subject=str(symbol),
    theme=THEME,
    limit=40,
)

# %% [markdown]
# ## A question in SQL
#
# On which leg was the symbol cheapest, and in how many of the minutes? The store is plain DuckDB;
# `reading` opens it for the block, other programs may use it before and after.

# %%
with rail.store.reading() as duck:
    cheapest = duck.sql(
        """
        WITH priced AS (
            SELECT ts, key AS leg, arg_max(price, revision) AS price
            FROM price JOIN stream USING (stream_id)
            WHERE starts_with(key, $symbol) AND ts >= $start AND ts < $end
            GROUP BY ALL
        ),
        lowest AS (SELECT ts, arg_min(leg, price) AS leg FROM priced GROUP BY ts)
        SELECT leg, count(*) AS n_minutes, 100 * n_minutes / sum(n_minutes) OVER () AS share_pct
        FROM lowest GROUP BY leg ORDER BY n_minutes DESC, leg LIMIT 5
        """,
        params={"symbol": f"{symbol}:", "start": start, "end": end},
    ).pl()
print(about)
cheapest

# %% [markdown]
# ## A finding
#
# Which of these spreads was at least 10 bps away from zero for the largest part of the time
# observed?

# %%
above = tk.statistics.spread.time_above(spreads, start, end, threshold_bps=10).sort(
    "time_above_share", "trajectory"
)
go.Figure(
    go.Bar(
        x=100 * above["time_above_share"],
        y=above["trajectory"].str.strip_prefix(f"{symbol}:"),
        orientation="h",
        hovertemplate="%{y}: %{x:.1f} % of the time observed<extra></extra>",
    )
).update_layout(
    template=f"rail_{THEME}",
    title={
        "text": f"{symbol}: time with a spread of 10 bps or more, either way",
        "subtitle": {
            "text": f"n = {above['n'].min():,} to {above['n'].max():,} rows a spread<br>"
            f"{loaded.window}<br>{source.label}"
        },
        "x": 0.02,
    },
    xaxis_title="share of the time observed (%)",
    height=480,
    margin={"t": 120},
)

# %%
first = above.row(-1, named=True)
buy, sell = tk.Trajectory.parse(first["trajectory"]).legs
print(
    f"Of {above.height} spreads of {symbol} over {buy}, the one to {sell} was at least 10 bps\n"
    f"from zero for the largest part of the time observed: {100 * first['time_above_share']:.0f} % "
    f"(n = {first['n']:,} rows, coverage {100 * first['coverage']:.2f} %).\n{about}"
)

# %%
rail.close()

# %% [markdown]
# ## Your own service
#
# Set these before Jupyter starts, and the same cells run on it; `tk.open` then starts nothing. Take
# another file name: a store belongs to one source and refuses the data of a second one.
#
# ```sh
# export RAIL_BASE_URL=https://rail.example
# export RAIL_API_KEY=your-key
# ```
#
# The key is sent as a header and shown nowhere, not in a cell's output either.
