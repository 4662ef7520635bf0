"""The same question about a spread has one answer on every page."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from tests.empty_store import empty_store
from toolkit.assistant import TOOLS
from toolkit.cards import duration
from toolkit.cli.root import app
from toolkit.cli.show import console
from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory, swapped
from toolkit.reports.answering import answered
from toolkit.reports.comparison import result_of
from toolkit.reports.recipe import Part
from toolkit.workspace import open_workspace

from .conftest import EDGE, keep_snapshot, spread_rows
from .shown import cells_of, drawn, figures, metrics, rows_of, values_of
from .test_spreads_page import bring

OTHER = "ETH_USD:KRAKEN.spot:GEMINI.spot"
START, DAYS = 1_678_406_400, 12
END = START + 86_400 * DAYS
WEEK = Interval(END - 7 * 86_400, END)
HELD, BOTH = "ETH_USD:GEMINI.spot:KRAKEN.spot", "BTC_USD:COINBASE.spot:KRAKEN.spot"
"""A pair that is held this way round alone, and one that is held both ways round."""


def test_a_level_counts_with_the_sign_of_the_spread_unless_its_size_is_meant(page, held):
    """Of a pair whose sell leg is never dearer, the two pages say the same of both."""
    bring(held, OTHER, turned(spread_rows()))
    for side, words, share in (("above", "≥ 2.5 bps", 0), ("either", "|spread| ≥ 2.5 bps", 40)):
        asked = {"trajectory": OTHER, "threshold": "2.5", "side": side}
        opened = page(held.path, **asked)
        shown = metrics(opened)
        assert float(shown[f"time, {words}"].removesuffix(" %")) == pytest.approx(share, abs=0.5)
        shapes = figures(opened)[0]["layout"]["shapes"]
        drawn = {each["y0"] for each in shapes if each.get("name") == "threshold"}
        assert drawn == ({2.5, -2.5} if share else {2.5})
        table = page(held.path, "spreads", above="2.5", side=side, symbols="ETH_USD")
        (row,) = values_of(table, "spreads")
        assert row[f"time, {words}"] == pytest.approx(share / 100, abs=0.005)
        daily = shown[f"episodes/day, {words}"].replace(",", "")
        assert row[f"episodes/day, {words}"] == pytest.approx(float(daily), abs=0.01)


def wandering(seed, left):
    """Minutes of a spread of which so much is left after one, and that lies elsewhere before."""
    drawn_bps = np.random.default_rng(seed).normal(size=1440 * DAYS) / 4
    for at in range(1, len(drawn_bps)):
        drawn_bps[at] += left * drawn_bps[at - 1]
    drawn_bps[: 1440 * (DAYS - 7)] += 500  # a month's percentile is another than a week's
    ts = START + 60 * np.arange(1440 * DAYS)
    rows = pl.DataFrame({"ts": ts, "buy_price": 100.0, "log_bps": drawn_bps})
    return rows.select(
        "ts",
        "buy_price",
        sell_price=100 * (pl.col("log_bps") / 1e4).exp(),
        spread_pct=pl.lit(None, pl.Float64),
        extra=pl.lit(None, pl.String),
    )


def turned(rows):
    return rows.rename({"buy_price": "sell_price", "sell_price": "buy_price"})


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory):
    """A store with a pair held the other way round than the service lists it, and one both ways."""
    store = empty_store(tmp_path_factory.mktemp("both") / "held.duckdb", Source("replay", "x"))
    items, edge = [], replace(EDGE, served_at=END)
    eth, btc = wandering(3, 0.999), wandering(12, 0.97)
    for key, rows in ((HELD, eth), (BOTH, btc), (swapped(BOTH), turned(btc))):
        bring(store, key, rows.select(spread_rows().columns), Interval(START, END), edge)
    for key, rows in ((swapped(HELD), turned(eth)), (swapped(BOTH), turned(btc))):
        pair = Trajectory.parse(key)
        buy, sell = (rows[f"{side}_price"][-1] for side in ("buy", "sell"))
        item = {"symbol": str(pair.symbol), "spread_pct": 100 * (sell / buy - 1)}
        item |= {"buy_exchange": pair.buy.exchange, "buy_market": "spot"}
        item |= {"sell_exchange": pair.sell.exchange, "sell_market": "spot"}
        items.append(item | {"opened_at": END - 600})
    tied = (("K", -1e-4), ("M", -1e-4), ("X", 1e-4), ("Z", 1e-4))
    rates = [
        {"symbol": "BTC_USD", "exchange": name, "market": "futures", "rate": rate}
        | {"interval_hours": 8, "next_funding_time": END}
        for name, rate in tied
    ]
    for kind, of in (("spread", items), ("funding", rates)):
        keep_snapshot(store, kind, json.dumps({"items": of}).encode(), END)
    return store


def command(store, *words):
    done = CliRunner().invoke(app, [*words, "--store", str(store.path), "--format", "json"])
    assert not done.exception, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def screened(both_ways):
    """The rows of `rail screen` by key, of which all other faces must be."""
    return {row["trajectory"]: row for row in command(both_ways, "screen")}


def test_a_screen_is_of_the_last_seven_days_and_says_so(both_ways, screened, monkeypatch):
    monkeypatch.setattr(console, "_width", 250)
    assert {(row["window_start"], row["window_end"]) for row in screened.values()} == {(*WEEK,)}
    shown = CliRunner().invoke(app, ["screen", "--store", str(both_ways.path)])
    assert "UTC), 7 d" in shown.output
    assert "unreliable (a)" in shown.output
    held = screened[HELD]
    assert held["half_life_s"] is not None
    assert held["half_life_upper_s"] is None, "the pair is one whose half-life is unreliable"
    assert screened[BOTH]["half_life_upper_s"] is not None


@pytest.mark.slow
def test_the_commands_python_the_report_and_the_assistant_have_one_answer(both_ways, screened):
    times = ("--start", str(WEEK.start), "--end", str(WEEK.end))
    with open_workspace(both_ways.path) as rail:
        for key, held in screened.items():
            names = ("half_life_s", "half_life_upper_reason", "spread_mean_log_bps", "n")
            expected = {name: held[name] for name in names}
            (of_stats,) = command(both_ways, "stats", "spread", key, *times)
            of_python = rail.spread(key, *WEEK).summary().row(0, named=True)
            assert [{name: row[name] for name in names} for row in (of_stats, of_python)] == [
                expected,
                expected,
            ]
        assert rail.screen().to_dicts() == sorted(
            ({k: v for k, v in row.items() if k != "source"} for row in screened.values()),
            key=lambda row: (-row["spread_last_size_log_bps"], row["trajectory"]),
        )
        part = Part("screen_spreads", *WEEK, streams=tuple(screened))
        report = answered(rail, part)
        for row in report.answer.shown:
            assert row["last_percentile"] == screened[str(row["trajectory"])]["last_percentile"]
        assert "unreliable" in str(result_of(part, report.answer).rows)
        (tool,) = [tool for tool in TOOLS if tool.name == "screen"]
        columns = "half_life_s, last_percentile, spread_last_log_bps"
        answer = tool.answer(rail, {"columns": columns}).document()
    assert any("half-life unreliable" in note and HELD in note for note in answer["notes"])
    told = {row["trajectory"]: answer["in_every_row"] | row for row in answer["rows"]}
    for key, held in screened.items():
        for name in ("half_life_s", "last_percentile", "spread_last_log_bps"):
            assert told[key].get(name) == held[name]


@pytest.mark.slow
def test_the_pages_have_the_answer_of_the_command(both_ways, screened, page):
    """The pair is listed by the service the other way round than it is held, another both ways."""
    path = both_ways.path
    overview = page(path, "overview")
    table = rows_of(overview, "open")
    shown = dict(zip(table["buy → sell"], zip(*table.values(), strict=True), strict=True))
    rows = {legs: dict(zip(table, row, strict=True)) for legs, row in shown.items()}
    assert set(rows) == {"GEMINI.spot → KRAKEN.spot", "KRAKEN.spot → COINBASE.spot"}
    spreads = cells_of(page(path, "spreads"), "spreads")
    for key, legs in (
        (HELD, "GEMINI.spot → KRAKEN.spot"),
        (swapped(BOTH), "KRAKEN.spot → COINBASE.spot"),
    ):
        held, of_overview, of_spreads = screened[key], rows[legs], spreads[key]
        last, share = held["spread_last_log_bps"], held["last_percentile"]
        assert of_overview["now (bps)"] == f"{last:,.1f}"
        assert of_spreads["last spread (bps)"] == f"{last:,.2f}"
        percentile = "percentile, 7 d"
        assert of_overview[percentile] == of_spreads[percentile] == f"{share:.0f}"
        assert of_spreads["buy → sell"] == legs
        doubted = held["half_life_upper_s"] is None
        long = duration(held["half_life_s"])
        assert of_spreads["half-life"] == (f"{long} (?)" if doubted else long)
        assert ("half-life unreliable" in of_spreads["notes"]) is doubted
        of_pair = page(path, trajectory=key, window="7 days")
        metric = {each.label: each for each in of_pair.metric}
        assert metric["last spread (bps)"].value == f"{last:,.2f}"
        assert metric["last spread (bps)"].delta == f"percentile {share:.0f} of 7 d"
        assert metric["half-life"].value == duration(held["half_life_s"])
        assert (metric["half-life"].delta == "unreliable") is doubted
        assert any(of_spreads["notes"] in caption.value for caption in of_pair.caption)
    asked_turned = page(path, trajectory=swapped(HELD), window="7 days")
    assert asked_turned.selectbox(key="trajectory").value == HELD
    assert "stored as" in asked_turned.warning[0].value
    symbol = page(path, "symbol", symbol="ETH_USD", window="7 days")
    (line,) = values_of(symbol, "symbol_spreads")
    assert (line["buy"], line["sell"]) == ("GEMINI.spot", "KRAKEN.spot")
    assert line["last spread (bps)"] == pytest.approx(
        screened[HELD]["spread_last_log_bps"], abs=1e-3
    )


@pytest.mark.slow
def test_the_legs_of_equal_rates_are_the_same_on_each_page(both_ways, page):
    assert rows_of(page(both_ways.path, "overview"), "apart")["short → long"] == [
        "X.futures → K.futures"
    ]
    (row,) = drawn(page(both_ways.path, "funding"), "rates")["rows"]
    titles = {cell["title"].split(":")[0].split()[1]: cell["badge"] for cell in row["cells"]}
    assert row["key"] == "funding/BTC_USD:K.futures:X.futures"
    badges = {leg: badge for leg, badge in titles.items() if badge}
    assert badges == {"K.futures": "L", "X.futures": "S"}
