"""`rail events audit` and `study`: their JSON is the statistics', over the rows of the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.once import store_once
from toolkit.client import Client
from toolkit.market import swapped
from toolkit.series import EventSeries
from toolkit.statistics import events as event_statistics
from toolkit.statistics.core.definition import turned, with_spread
from toolkit.store import Store
from toolkit.workspace import Workspace, open_workspace

from .conftest import WINDOW, Rail, as_rows, to_read

TIMES = ("--start", str(WINDOW.start), "--end", str(WINDOW.end))
JSON = ("--format", "json")
PRICE, PAIR = "LTC_USDT:AURORA.spot", "PEPE_USDT:FORNAX.spot:DEX-LUNARIS.dex"
OTHER = "PEPE_USDT:DEX-LUNARIS.dex:DEX-SOLARIS.dex"


def hourly(events: EventSeries) -> str:
    """The first pair with an event that settles every hour."""
    found = events.detections()["trajectory"]
    return str(found.filter(found.str.contains("EQUINOX"))[0])


@pytest.fixture(scope="module")
def audited(service: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of half a day of events, two spreads, a price and a pair of funding."""

    def load(path: Path) -> None:
        with Workspace(Client(service, "demo-pro"), Store(path)) as workspace:
            workspace.sync(["events/*", PAIR, OTHER, PRICE], *WINDOW, progress=False)
            paid = hourly(workspace.events("funding", *WINDOW))
            workspace.sync(paid, WINDOW.start - 86_400, WINDOW.end, progress=False)

    return store_once(tmp_path_factory, "audited", load)


@pytest.fixture
def opened(audited: Path, workdir: Path) -> Iterator[Workspace]:
    """The store as ``rail.duckdb`` in the working directory, to read."""
    for store in to_read(audited, workdir):
        yield open_workspace(store.path)


@pytest.fixture
def spreads(opened: Workspace) -> EventSeries:
    return opened.events("spread", *WINDOW)


def both_ways(opened: Workspace) -> pl.DataFrame:
    rows = [opened.spread(key, *WINDOW).rows for key in (PAIR, OTHER)]
    others = [with_spread(turned(each, swapped(each["trajectory"][0]))) for each in rows]
    return pl.concat([*rows, *others]).sort("trajectory", maintain_order=True)


@pytest.mark.slow
def test_an_audit_is_that_of_the_statistic_over_pairs_both_ways_round(
    rail: Rail, opened: Workspace, spreads: EventSeries
) -> None:
    listed = spreads.audited(both_ways(opened), enter_bps=20)
    mine = listed.filter(pl.col("audit_reason").ne_missing("no_rows"))
    expected = event_statistics.audit(mine)
    assert expected["n_episodes"].item() > 20
    done = rail("events", "audit", "--enter-bps", "20", *TIMES, *JSON)
    assert as_rows(done) == expected.to_dicts()
    shown = rail("events", "audit", "--enter-bps", "20", *TIMES, columns=240).stdout
    counts = dict(listed["audit_reason"].value_counts().iter_rows())
    assert f"{counts['no_rows']:,} events of trajectories that are not held" in shown
    assert f"{counts['missed']:,} episodes missed by the log" in shown
    assert "against spreads of 20.0 bps" in shown
    lacking = listed.filter(audit_reason="no_rows").group_by("trajectory").len()
    first = lacking.sort("len", "trajectory", descending=[True, False])["trajectory"][0]
    assert f"`rail sync {first}" in shown
    assert f"loads the first of {lacking.height:,} trajectories that are not held" in shown
    share = spreads.coverage()["coverage"].item()
    assert f"the log is held in {100 * share:.2f} % of the window" in shown


def test_what_one_side_alone_has_is_listed_with_why(
    rail: Rail, opened: Workspace, spreads: EventSeries
) -> None:
    listed = spreads.audited(both_ways(opened), enter_bps=20)
    alone = listed.filter(pl.col("found_in") != "both", pl.col("audit_reason") != "no_rows")
    asked = ("events", "audit", "--list", "--enter-bps", "20", *TIMES)
    found = as_rows(rail(*asked, *JSON))
    keys = ("trajectory", "found_in", "t_open", "episode_start", "audit_reason")
    assert [{key: row[key] for key in keys} for row in found] == alone.select(keys).to_dicts()
    assert {row["symbol"] for row in found} == {"PEPE_USDT"}
    assert "episode missed by the log" in rail(*asked, columns=200).stdout


@pytest.mark.usefixtures("opened")
def test_groups_of_an_audit_add_up_to_all_of_it(rail: Rail) -> None:
    asked = ("events", "audit", "--enter-bps", "20", *TIMES, *JSON)
    (whole,) = as_rows(rail(*asked))
    for by in ("size", "exchange", "legs"):
        parts = as_rows(rail(*asked, "--by", by))
        assert len(parts) > 1
        for name in ("n_events", "n_episodes", "n_episodes_judged", "n_seen"):
            assert sum(row[name] for row in parts) == whole[name]


@pytest.mark.slow
def test_a_log_of_funding_events_is_held_to_differentials(rail: Rail, opened: Workspace) -> None:
    log = opened.events("funding", *WINDOW)
    known = log.audited(opened.around(log, margin_s=0), enter_bps=10)
    rows = known.filter(pl.col("audit_reason").ne_missing("no_rows"))
    expected = event_statistics.audit(rows)
    assert expected["n_confirmed"].item() > 0
    asked = ("events", "audit", "funding", "--enter-bps", "10", *TIMES)
    assert as_rows(rail(*asked, *JSON)) == expected.to_dicts()
    (row,) = as_rows(rail(*asked, "--by", "symbol", *JSON))
    assert row["symbol"] == rows["trajectory"][0].removeprefix("funding/").partition(":")[0]
    assert "Funding events against differentials of 10.0 bps per 8 h" in rail(*asked).stdout


@pytest.mark.slow
def test_a_log_of_splashes_is_held_to_prices(rail: Rail, opened: Workspace) -> None:
    log = opened.events("splash", *WINDOW)
    rows = opened.prices(PRICE, *WINDOW).rows
    known = log.audited(rows, enter_bps=200, leave_bps=100, move_s=240)
    expected = event_statistics.audit(known.filter(pl.col("audit_reason").ne_missing("no_rows")))
    assert expected["n_episodes"].item() > 0
    options = ("--enter-bps", "200", "--leave-bps", "100", "--within", "4m", *TIMES)
    asked = ("events", "audit", "splash", *options)
    assert as_rows(rail(*asked, *JSON)) == expected.to_dicts()
    (row,) = as_rows(rail(*asked, "--by", "legs", *JSON))
    assert row["legs"] == PRICE.partition(":")[2]
    assert "Splash events against moves of 200.0 bps within 4 min" in rail(*asked).stdout


def test_without_a_threshold_it_is_the_smallest_event(rail: Rail, spreads: EventSeries) -> None:
    least = event_statistics.smallest_size_bps(spreads.lifecycles(), spreads.window)
    (row,) = as_rows(rail("events", "audit", *TIMES, *JSON))
    assert row["enter_bps"] == least


@pytest.mark.parametrize("family", ["spread", "splash"])
def test_a_study_says_what_its_values_are_and_from_where(
    rail: Rail, opened: Workspace, family: str
) -> None:
    key, name, before = PAIR, "spread", "median before"
    if family == "splash":
        key, name, before = PRICE, "price", "price known at"
    options = (family, "--on", key, "--before", "30m", "--after", "1h", *TIMES)
    shown = rail("events", "study", *options, columns=200).stdout
    assert f"What {key} did around {family} events over" in shown
    assert f"from the first {name} known after each event" in shown
    assert "later in the median" in shown
    assert "events; left out" in shown
    assert "30 min" in shown
    share = opened.events(family, *WINDOW).coverage()["coverage"].item()
    assert f"the log is held in {100 * share:.2f} % of the window" in shown
    shown = rail("events", "study", "--from-detection", *options, columns=200).stdout
    assert f"from the {before} each event: the move that made it counts" in shown


def test_a_study_of_funding_is_of_days_and_of_settlements_known_at_their_time(
    rail: Rail, opened: Workspace
) -> None:
    events = opened.events("funding", *WINDOW)
    key = hourly(events)
    expected = events.study(opened.around(events, on=key, margin_s=172_800), on=key)
    found = as_rows(rail("events", "study", "funding", "--on", key, *TIMES, *JSON))
    assert found == expected.to_dicts()
    assert (found[0]["offset_s"], found[-1]["offset_s"]) == (-86_400, 86_400)
