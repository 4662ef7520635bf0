"""`rail stats`: the tables, the same numbers as JSON, and what is refused."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import FrameType

import polars as pl
import pytest

from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Source, Trajectory, format_ts
from toolkit.statistics import spread
from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter
from toolkit.wire.event_log import document_frame

from .conftest import BRIEF, LOADED, RATE, SETTLED, STEADY, WINDOW, Rail, as_json, printed, refused

_, PAIR, FUNDING = LOADED
FUNDING_KEY = FUNDING.key.removeprefix("funding/")


@pytest.mark.usefixtures("held")
def test_spreads_are_printed_with_window_source_and_units(rail: Rail) -> None:
    shown = printed(rail("stats", "spread"))
    assert "SIMULATED" in shown.splitlines()[0]
    assert "[2026-11-03 12:00 UTC, 2026-11-04 00:00 UTC)" in shown.splitlines()[0]
    assert re.search(r"buy AURORA.spot\s+sell CORONA.futures", shown)
    assert re.search(r"observations\s+\d+", shown)
    assert re.search(r"coverage\s+\d+\.\d\d %", shown)
    assert re.search(r"observed share of time\s+\d+\.\d\d %", shown)
    assert re.search(r"mean \(bps\)\s+-?\d+\.\d\d", shown)


@pytest.mark.usefixtures("held")
def test_every_figure_of_a_row_is_explained_in_words(rail: Rail) -> None:
    shown = printed(rail("stats", "spread", PAIR.key, "--format", "explain"))
    assert shown.startswith(f"{PAIR.key}\n")
    assert "spread_median_log_bps = " in shown
    assert "By half_life: Estimate the time" in shown


@pytest.mark.usefixtures("held")
def test_a_narrower_window_measures_less(rail: Rail) -> None:
    times = ("--start", "2026-11-03T13:00:00Z", "--end", "2026-11-03T14:00:00Z")
    (whole,) = as_json(rail("stats", "spread", PAIR.key, "--format", "json"))
    (hour,) = as_json(rail("stats", "spread", PAIR.key, "--format", "json", *times))
    assert 0 < hour["n"] <= 60 < whole["n"]


@pytest.mark.usefixtures("held")
def test_funding_is_printed_and_names_the_prices_that_its_carry_lacks(rail: Rail) -> None:
    window = ("--start", str(SETTLED.start), "--end", str(SETTLED.end), "--min-coverage", "0.8")
    shown = printed(rail("stats", "funding", *window))
    (row,) = as_json(rail("stats", "funding", FUNDING_KEY, *window, "--format", "json"))
    assert shown.startswith("Funding received, and carry with prices, over ")
    assert re.search(r"\nfunding \(bps\)\s+-?\d+\.\d\d", shown)
    assert "carry is not known of 1 of 1, whose prices are not held" in " ".join(shown.split())
    assert f"rail sync {FUNDING.legs_key} --start" in " ".join(shown.split())
    assert row["carry_reason"] == "missing_price"
    assert row["prices_lack"].startswith(f'rail.sync(["{FUNDING.legs_key}"], ')
    assert row["differential_reason"] == "leg_rates"


def test_without_a_window_every_settlement_counts_and_nothing_after_the_last(
    rail: Rail, held: Store
) -> None:
    (row,) = as_json(rail("stats", "funding", "--format", "json"))
    shown = printed(rail("stats", "funding")).splitlines()[0]
    rows = held.series(FUNDING)
    assert row["n"] == rows.height
    assert (row["t_first"], row["t_last"]) == (rows["ts"].min(), rows["ts"].max())
    assert row["window_end"] == rows["ts"].max()
    assert row["window_start"] == rows["ts"].min() - rows["ts"].diff().min()
    assert f"({format_ts(row['window_start'])}, {format_ts(row['window_end'])}]" in shown


@pytest.mark.usefixtures("held")
def test_a_funding_window_ends_where_the_last_sync_did(rail: Rail) -> None:
    asked = ("--start", str(SETTLED.start), "--end", str(SETTLED.end + 7 * 86_400))
    (row,) = as_json(rail("stats", "funding", *asked, "--format", "json"))
    line = refused(rail("stats", "funding", "--start", str(SETTLED.end), *asked[2:]))
    assert row["window_end"] == SETTLED.end
    assert f"knows nothing of funding after {format_ts(SETTLED.end)}" in line


def commit(path: Path, edge: Edge, **series: pl.DataFrame) -> None:
    """Add rows of trajectories, by their keys, to a store of a SIMULATED market."""
    writer, batch = StoreWriter(Store(path)), Batch()
    writer.bind(Source("simulated", "seed-7"))
    for key, given in series.items():
        rows = given.with_columns(extra=pl.lit(None, pl.String))
        batch.add(Trajectory.parse(key), rows, Interval(rows["ts"][0], rows["ts"][-1] + 1), edge)
    writer.commit(writer.start_load(LoadOrigin("http://x", edge.served_at, None, "0")), batch)


def rates(times: list[int], buy: list[float | None], sell: list[float]) -> pl.DataFrame:
    return pl.DataFrame({"ts": times, "buy_rate": buy, "sell_rate": sell}).with_columns(
        buy_interval_hours=8.0, sell_interval_hours=8.0, differential_pct_8h=0.0
    )


@pytest.fixture
def uneven(workdir: Path) -> Path:
    """One leg settles for twenty days, the other for ten, at last each 4 h but declared 8 h."""
    eight, start = 28_800, SETTLED.start
    times = [start + eight * k for k in range(31)] + [
        start + 30 * eight + 14_400 * k for k in range(1, 61)
    ]
    rows = rates(times, [1e-4] * 31 + [None] * 60, [(-1) ** k * 1e-4 for k in range(91)])
    commit(workdir / "uneven.duckdb", Edge(times[-1] + 60, step_s=14_400), **{FUNDING.key: rows})
    return workdir / "uneven.duckdb"


def test_figures_of_uneven_legs_need_a_lower_coverage_and_odd_settlements_are_counted(
    rail: Rail, uneven: Path
) -> None:
    asked, store = ("stats", "funding", "--min-coverage"), str(uneven)
    shown = printed(rail(*asked[:2], store=store))
    (row,) = as_json(rail(*asked, "0.4", "--format", "json", store=store))
    wrong = refused(rail(*asked, "1.5", store=store))
    assert re.search(r"coverage\s+50.41 %", shown)
    assert re.search(r"coverage of the sell leg\s+100.00 %", shown)
    assert "too little of the window is covered" in " ".join(shown.split())
    assert "or a least coverage of 0.5, gives the funding of 1 more" in " ".join(shown.split())
    assert row["funding_bps"] == pytest.approx(1 - 31)
    assert "min_coverage: 1.5 is not allowed; allowed: a part of the window, 0 to 1" in wrong
    odd, ten_days = "settlements off the declared interval", str(SETTLED.start + 10 * 86_400)
    assert re.search(rf"{odd}\s+60", shown)
    before = printed(rail("stats", "funding", "--end", ten_days, store=str(uneven)))
    assert odd not in before


@pytest.mark.usefixtures("held")
def test_events_are_counted_by_family_and_their_parts_add_up(rail: Rail) -> None:
    shown = printed(rail("stats", "events"))
    rows = as_json(rail("stats", "events", "--format", "json"))
    assert {row["family"] for row in rows} == {"spread", "splash", "funding"}
    for row in rows:
        assert f"{row['n']:,}" in shown
        assert row["n"] == row["closed"] + row["open"] + row["reopened"] + row["orphans"]


def test_documents_of_unknown_types_are_counted_and_named(rail: Rail, held_copy: Store) -> None:
    window = Interval(*WINDOW)
    before = printed(rail("stats", "events"))
    document = {
        "family": "spread",
        "event_id": "e",
        "event_type": "spread.paused",
        "ts": window.start,
        "ts_ms": 1000 * window.start,
        "document": "{}",
    }
    batch = Batch(documents=[document_frame([document])])
    batch.edges[EventLog(EventFamily.SPREAD)] = Edge(window.end, step_s=0)
    writer = StoreWriter(held_copy)
    writer.commit(writer.start_load(LoadOrigin("http://x", window.end, None, "0")), batch)
    after = printed(rail("stats", "events"))
    assert "spread: 1 document of unknown type (spread.paused), kept and not counted" in after
    assert "unknown type" not in before


def test_a_pair_that_an_answer_lacks_is_not_tracked_and_a_missed_poll_is_missing_for_each(
    rail: Rail, kept: Store
) -> None:
    assert kept.polls("spread").height == 6
    steady, brief = as_json(
        rail("stats", "spread", STEADY, BRIEF, "--format", "json", "--sort", "n")
    )[::-1]
    assert (steady["n"], steady["not_tracked"], steady["coverage"]) == (6, 0, 6 / 7)
    assert (brief["n"], brief["not_tracked"], brief["coverage"]) == (3, 3, 6 / 7)
    assert {steady["longest_gap_s"], brief["longest_gap_s"]} == {120}
    assert steady["method"] == "spread.summary/5, polls/2"


def test_series_kept_from_snapshots_are_marked_for_a_reader(rail: Rail, kept: Store) -> None:
    assert kept.source
    for command, key, figure in (
        ("funding", RATE, r"mean funding APR \(%\)"),
        ("spread", BRIEF, r"mean \(bps\)"),
    ):
        shown = printed(rail("stats", command, key))
        assert "kept from snapshots: 6 polls answered, 1 missed" in shown.splitlines()[0]
        assert re.search(rf"{figure}\s+\d+\.\d\d", shown)
    assert re.search(r"answers without the pair\s+3", shown)


@pytest.mark.usefixtures("held")
def test_a_pattern_stands_for_what_is_held(rail: Rail) -> None:
    (row,) = as_json(rail("stats", "spread", "BTC_USDT:*", "--format", "json"))
    (carry,) = as_json(rail("stats", "funding", "BTC_*", "--format", "json"))
    assert (row["trajectory"], carry["trajectory"]) == (PAIR.key, FUNDING.key)
    assert "not_tracked" not in row


def reversed_legs(key: str) -> str:
    symbol, buy, sell = key.split(":")
    return f"{symbol}:{sell}:{buy}"


@pytest.mark.usefixtures("held")
def test_legs_the_other_way_round_are_turned_with_a_word(rail: Rail) -> None:
    asked = ("--format", "json", "--sort", "trajectory")
    done = rail("stats", "spread", PAIR.key, reversed_legs(PAIR.key), *asked)
    as_held, other = map(json.loads, done.stdout.splitlines())
    assert (as_held["trajectory"], other["trajectory"]) == (PAIR.key, reversed_legs(PAIR.key))
    assert other["spread_mean_log_bps"] == pytest.approx(-as_held["spread_mean_log_bps"])
    assert other["spread_std_log_bps"] == pytest.approx(as_held["spread_std_log_bps"])
    assert done.stderr == (
        f"{reversed_legs(PAIR.key)} is held as {PAIR.key}: legs and signs are turned\n"
    )
    (carry,) = as_json(rail("stats", "funding", FUNDING_KEY, *asked))
    turned = rail("stats", "funding", reversed_legs(FUNDING_KEY), *asked)
    assert json.loads(turned.stdout)["funding_bps"] == pytest.approx(-carry["funding_bps"])
    assert "legs and signs are turned" in turned.stderr


def test_a_key_that_is_named_twice_is_one_row(rail: Rail, held: Store) -> None:
    assert len(as_json(rail("stats", "spread", PAIR.key, PAIR.key, "--format", "json"))) == 1
    assert held.source


def test_a_trajectory_without_a_row_in_the_window_is_named(rail: Rail, uneven: Path) -> None:
    key, late = "funding/ETH_USDT:AURORA.futures:CORONA.futures", SETTLED.start + 25 * 86_400
    edge = Edge(late + 60, step_s=28_800)
    commit(uneven, edge, **{key: rates([late], [1e-4], [2e-4])})
    end = ("--end", str(SETTLED.start + 10 * 86_400))
    done = rail("stats", "funding", *end, "--format", "json", store=str(uneven))
    (row,) = map(json.loads, done.stdout.splitlines())
    assert row["trajectory"] == FUNDING.key
    assert done.stderr.startswith("nothing in (")
    assert done.stderr.endswith(f"] of {key}\n")


def test_a_rate_in_the_quote_per_contract_and_a_redenominated_leg_are_said_beside_the_figures(
    rail: Rail, workdir: Path
) -> None:
    times = [SETTLED.start + 28_800 * k for k in range(60)]
    odd = [1.0] * 57 + [1e-3] * 3
    prices = {"ts": times, "buy_price": [1.0] * 60, "sell_price": odd}
    spreads = pl.DataFrame(prices | {"spread_pct": [100 * (each - 1) for each in odd]})
    paid = rates(times, [1e-4] * 60, [6.88] * 60)
    edge = Edge(times[-1] + 60, step_s=28_800)
    commit(workdir / "odd.duckdb", edge, **{FUNDING.key: paid, PAIR.key: spreads})
    named = ("--store", "odd.duckdb")
    carry = " ".join(printed(rail("stats", "funding", *named)).split())
    level = " ".join(printed(rail("stats", "spread", PAIR.key, *named)).split())
    (row,) = as_json(rail("stats", "funding", *named, "--format", "json"))
    (screened,) = as_json(rail("screen", *named, "--format", "json"))
    assert "implausible data rate_above_5_pct" in carry
    assert "a rate is above 5 % per interval, as one in the quote per contract is" in carry
    assert (row["implausible"], row["implausible_n"]) == ("rate_above_5_pct", 60)
    assert "implausible data level_break" in level
    assert "from one row to the next a price changes tenfold" in level
    assert "level_break" in str(screened["flags"]).split(", ")


MOST = 12
"""Modules between a command and the statistic that answers it."""


@pytest.mark.slow
def test_a_command_reaches_its_statistic_through_few_modules(held: Store, rail: Rail) -> None:
    """Count those on the call stack, from the entry of `rail`, where the statistic is entered."""
    ways: list[list[str]] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is spread.summary.__code__:
            ways.append(_modules(frame))

    sys.setprofile(watch)
    try:
        done = rail("stats", "spread", LOADED[1].key, "--store", str(held.path))
    finally:
        sys.setprofile(None)
    assert done.returncode == 0, done.stderr
    longest = max(ways, key=len)
    assert "toolkit.workspace.selection" in longest
    assert len(longest) <= MOST, longest


def _modules(frame: FrameType | None) -> list[str]:
    found = dict[str, None]()
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("toolkit"):
            found[name] = None
        frame = frame.f_back
    return list(found)
