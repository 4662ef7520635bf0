"""What is not plausible about a figure stands beside it on every page that shows it."""

import polars as pl
import pytest

from tests.empty_store import empty_store
from toolkit.dashboard.parts.answers import high_rate_notes, row_notes
from toolkit.intervals import Interval
from toolkit.market import Family, Source, Trajectory
from toolkit.statistics.quality.plausibility import SERIES_FLAGS
from toolkit.store import Edge
from toolkit.workspace.snapshot_tables import funding_rates

from .conftest import add_snapshot, loading
from .funded import SERVED_AT, START, overview, settled
from .shown import rows_of, texts

HOURS = 240
SPREAD = Trajectory.parse("A_USDT:AURORA.spot:BOREAS.spot")
FUNDING = Trajectory.parse("funding/A_USDT:AURORA.futures:BOREAS.futures", Family.FUNDING)
RATE = 6.88


def priced():
    """Hours of two prices, of which one is redenominated 1 to 1,000 in the last twelfth."""
    ts = [START + 3_600 * hour for hour in range(HOURS)]
    buy = [100.0 + hour % 7 / 10 for hour in range(HOURS)]
    sell = [price / (1_000 if hour >= HOURS - 20 else 1) for hour, price in enumerate(buy)]
    extra = pl.Series([None] * HOURS, dtype=pl.String)
    pct = [100 * (b / a - 1) for a, b in zip(buy, sell, strict=True)]
    columns = {"ts": ts, "buy_price": buy, "sell_price": sell, "spread_pct": pct}
    return pl.DataFrame(columns).with_columns(extra=extra)


def rates():
    """An overview with a rate in the quote per contract."""
    return overview(("A_USDT", "AURORA", 1e-4, 8), ("A_USDT", "BOREAS", RATE, 8))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("odd") / "held.duckdb"
    per_contract = settled().with_columns(sell_rate=pl.lit(RATE))
    with loading(empty_store(path, Source("simulated", "seed-7")), SERVED_AT) as batch:
        every = ((SPREAD, priced(), 3_600), (FUNDING, per_contract, 28_800))
        for trajectory, rows, step_s in every:
            edge = Edge(served_at=SERVED_AT, delay_s=0, retention_s=None, step_s=step_s)
            batch.add(trajectory, rows, Interval(START, SERVED_AT), edge)
        add_snapshot(batch, "funding", rates(), SERVED_AT)
    return path


def warnings_of(shown):
    return [warning.value for warning in shown.warning]


@pytest.mark.slow
def test_what_is_not_plausible_is_named_on_each_page_that_shows_it(page_alone, store):
    assert "level break" in str(rows_of(page_alone("spreads", store), "spreads"))
    shown = warnings_of(page_alone("trajectory", store, trajectory=SPREAD.key, window="All"))
    assert any("from one row to the next a price changes tenfold" in each for each in shown)
    words = "a rate is above 5 % per interval, as one in the quote per contract is"
    for name, given in (
        ("funding", {"trajectory": FUNDING.key}),
        ("funding", {}),
        ("overview", {}),
    ):
        shown = page_alone(name, store, **given)
        assert any(words in each for each in warnings_of(shown)), (name, texts(shown))


def test_plausible_figures_and_rates_have_no_line_and_each_name_has_words():
    assert row_notes({"trajectory": "a", "implausible": ""}) == []
    plausible = rates().replace(str(RATE).encode(), b"0.05")
    assert high_rate_notes(funding_rates(plausible.decode())) == []
    assert len(high_rate_notes(funding_rates(rates().decode()))) == 1
    named = row_notes({"trajectory": "a", "implausible": ", ".join(SERIES_FLAGS)})
    assert len(set(named)) == len(SERIES_FLAGS)
