"""A user's script that touches what users touch, for `test_typing`: type-checked, never run.

A line that ends in ``# untyped: NAME`` has the type of a package that ships none.
"""

import datetime as dt
from pathlib import Path

import polars as pl

import toolkit as tk

SPREAD = "BTC_USDT:AURORA.spot:BOREAS.spot"
PRICE = "BTC_USDT:AURORA.spot"


def loads(rail: tk.Workspace) -> None:
    done = rail.sync(
        [SPREAD, "events/spread", "snapshot/funding"], "2023-03-01", dt.date(2023, 3, 8)
    )
    print(done.rows.new, done.window.start, done.source.label, done.silent, done.refused)
    print(done.pages, done.elapsed_s, done.findings, done.unrecoverable, done.asked, done.card)
    print(rail.symbols("BTC").legs, rail.card.heading, rail.client.base_url, rail.store.path)
    earlier = rail.as_of("2023-03-02T12:00")
    rail.sync("BTC_USDT:*", "7d", progress=False)
    print(earlier.series(PRICE).stream.key)
    rail.close()


def every_series(one: tk.series.Series, path: Path) -> None:
    print(one.df, one.lazy(), one.arrow().num_rows, one.gaps(), one.save(path), one.data_hash)
    print(one.facts["rows"], one.source.id, one.window.end, one.origin.step_s, one.card, len(one))
    print([row["ts"] for row in one], one.rows.height, one.stream.kind)
    print(one.pandas("Europe/London"))  # untyped: pandas


def trajectories(rail: tk.Workspace) -> None:
    price, spread = rail.prices(PRICE, "7d"), rail.spread(tk.Trajectory.parse(SPREAD))
    paid = rail.funding("BTC_USDT:AURORA.futures:BOREAS.futures", "2023-03")
    print(price.summary(), price.coverage(), price.resample("5m").summary(), price.trajectory.key)
    print(spread.summary(), spread.half_life(), spread.quantiles(), spread.coverage())
    print(spread.episodes(10, leave_bps=5.0), spread.time_above(10.0), spread.resample(300).df)
    fees = tk.statistics.fees.FeeModel.example()
    print(spread.net_edge(fees, notional=1e4, style="maker", exit_bps=1.0))
    print(spread.net_summary(fees, style="maker_buy"), spread.summary(fees=fees), rail.fees)
    print(
        paid.summary(min_coverage=0.5, fees=fees), paid.carry(), paid.intervals(), paid.coverage()
    )
    print(paid.service_differential())
    print(price.plot(theme="dark"))
    print(spread.plot(points=500, events=rail.events("spread")))
    print(paid.plot(timezone="Europe/London"))


def logs(rail: tk.Workspace) -> None:
    events, newest = rail.events("splash", "yesterday"), rail.snapshots("activity")
    print(events.lifecycles(), events.summary(), events.coverage(), events.logs, newest.items())
    print(events.survival(["symbol"]), events.rates("exchange"), events.league(), events.held)
    around = rail.around(events)
    print(events.study(around, less="controls"), events.audited(around), events.audit(around))
    print(events.plot(limit=10))
    print(events.plot_activity(subject="BTC"))


def statistics(frame: pl.DataFrame) -> None:
    ends = "2023-03-01", dt.datetime(2023, 3, 2, tzinfo=dt.UTC)
    measured = tk.statistics
    print(measured.spread.summary(frame, *ends), measured.spread.with_spread(frame))
    print(measured.spread.half_life(frame), measured.spread.rolling_z(frame, window_s=3600))
    print(measured.spread.episodes(frame, enter_bps=1), measured.spread.turned(frame))
    print(measured.spread.time_above(frame, threshold_bps=1.0), measured.spread.coverage(frame))
    print(measured.prices.summary(frame), measured.quality.coverage(frame, *ends))
    print(measured.funding.summary(frame), measured.funding.carry(frame, *ends))
    print(measured.funding.intervals(frame), measured.funding.differential(frame))
    lived = measured.events.lifecycles(frame, 0, 60, now=60)
    print(measured.survival.median_life(lived, ["family"]), measured.Reason.TOO_FEW.value)
    fees = measured.fees.FeeModel.example()
    print(measured.fees.net_edge(frame, fees, notional=1.0), fees.name, fees.fees[0].taker_bps)


def charts(frame: pl.DataFrame, source: tk.Source) -> None:
    print(tk.charts.downsample(frame, "price"), tk.charts.in_unit(frame, "apr_pct"))
    print(list(tk.charts.FUNDING_UNITS))
    print(tk.charts.price_chart(frame, source=source))
    print(tk.charts.spread_chart(frame, source=source, trajectory=SPREAD))
    print(tk.charts.funding_chart(frame, source=source, start="2023-03-01"))


def held(store: tk.Store) -> None:
    print(store.catalogue(), store.continuity(), store.loads(), store.gaps(), store.rows_by_load())
    print(store.series(PRICE, as_of=3), store.snapshots("funding"), store.source.kind)
    print(store.ledger(), store.wait_s, store.card.facts, store.path.name)
    with store.reading() as connection:
        connection.execute("FROM price")


def asked(client: tk.Client) -> pl.DataFrame:
    print(client.symbols().legs, client.served_at(), client.profile().source, client.allowance)
    print([page.answered.start for page in client.pages(SPREAD, "7d")], client.snapshot("funding"))
    print([page.frame.height for page in client.event_pages("spread", ("2023-03-01", None))])
    return client.history(PRICE, "2023-03-01", tk.format_ts(1_678_000_000))


async def awaited(client: tk.AsyncClient) -> pl.DataFrame:
    print((await client.symbols()).legs, await client.served_at(), await client.profile())
    print([page.answered async for page in client.pages(SPREAD, "7d")])
    print([page.last async for page in client.event_pages("spread", "7d")])
    print(await client.snapshot("funding"))
    return await client.history(PRICE, "7d")


def main() -> None:
    leg, symbol = tk.Leg.parse("AURORA.spot"), tk.Symbol("BTC", "USDT")
    print(leg.exchange, leg.market, symbol.base)
    print(tk.Trajectory.price("BTC_USDT", "AURORA", "spot").key)
    try:
        with tk.open("rail.duckdb", window="7d") as rail:
            loads(rail)
    except tk.RailError as error:
        print(str(error))
