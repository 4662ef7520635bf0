"""Rows of one's own: read as they are meant, or refused in one line that counts them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest

import toolkit as tk
from tests.unit.store.conftest import faults_of
from toolkit.errors import InputError, UnknownTrajectoryError
from toolkit.market import Family, Trajectory
from toolkit.series import FundingSeries, PriceSeries, own_series, pair_series
from toolkit.statistics.fees import FeeModel
from toolkit.store import Store
from toolkit.wire.listing import Listing
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.workspace.loading import keep_own

KEY = "BTC_USD:VENDOR.spot"
START = 1_678_406_400  # 2023-03-10
SECONDS = list(range(START, START + 600, 60))
PRICES = [100.0 + (7 * k) % 5 for k in range(10)]


def rows(ts: object = SECONDS, **values: object) -> pl.DataFrame:
    return pl.DataFrame({"ts": ts, **(values or {"price": PRICES})})


def times(zone: str | None = None) -> list[dt.datetime]:
    found = [dt.datetime.fromtimestamp(ts, ZoneInfo(zone or "UTC")) for ts in SECONDS]
    return found if zone else [each.replace(tzinfo=None) for each in found]


@pytest.mark.parametrize(
    ("ts", "options"),
    [
        (SECONDS, {}),
        ([1_000 * ts + 7 for ts in SECONDS], {"unit": "ms"}),
        ([10**9 * ts for ts in SECONDS], {"unit": "ns"}),
        (times(), {"timezone": "UTC"}),
        (times("America/New_York"), {}),
        ([str(each) for each in times("Asia/Tokyo")], {}),
        ([str(each) for each in times()], {"timezone": "UTC"}),
        ([str(each + dt.timedelta(hours=1)) for each in times()], {"timezone": "Europe/Berlin"}),
        ([ts + 60 for ts in SECONDS], {"stamped": "end"}),
        ([ts + 300 for ts in SECONDS], {"stamped": "end", "step_s": 300}),
    ],
)
def test_times_of_any_form_are_seconds_of_utc_at_the_start_of_a_bar(
    ts: object, options: dict[str, object]
) -> None:
    mine = own_series(rows(ts), KEY, **options)  # type: ignore[arg-type]  # as parametrised
    assert mine.rows["ts"].to_list() == SECONDS
    assert mine.rows["price"].to_list() == PRICES
    assert mine.source.label == "Own data, a frame"


def test_an_index_of_times_is_taken_by_its_name_and_after_a_column_of_times() -> None:
    named = rows(times("UTC")).to_pandas().set_index("ts").rename_axis(index="Date")
    assert own_series(named, KEY, columns={"ts": "Date"}).rows["ts"].to_list() == SECONDS
    frame = rows(times("UTC")).to_pandas()
    frame.index = frame["ts"].rename(None) + dt.timedelta(days=1)
    assert own_series(frame, KEY).df.equals(own_series(rows(times("UTC")), KEY).df)


def test_rows_may_come_in_any_order_and_under_other_names(tmp_path: Path) -> None:
    shuffled = rows().sample(fraction=1.0, shuffle=True, seed=1)
    path = tmp_path / "vendor.csv"
    shuffled.rename({"ts": "time", "price": "close"}).write_csv(path)
    mine = own_series(path, KEY, columns={"ts": "time", "price": "close"})
    assert isinstance(mine, PriceSeries)
    assert mine.rows["price"].to_list() == PRICES
    assert mine.window == (START, START + 600)
    assert mine.source.id.startswith("vendor.csv ")
    assert mine.summary()["n"][0] == 10


def test_what_is_no_number_is_null_and_counts_as_no_observation() -> None:
    values = [float("nan"), None, float("inf"), *PRICES[3:]]
    mine = own_series(rows(price=values), KEY, name="March")
    assert mine.source.label == "Own data, March"
    assert mine.rows["price"].null_count() == 3
    assert mine.summary()["n"][0] == 7


def test_funding_of_ones_own_has_the_statistics_of_the_service_s() -> None:
    settled = pl.DataFrame(
        {
            "ts": [START + 28_800 * k for k in range(10)],
            "buy_rate": [0.0] * 10,
            "sell_rate": [1e-4] * 10,
            "sell_interval_hours": [8] * 10,
        }
    )
    funding = own_series(settled, "funding/BTC_USD:VENDOR.spot:OTHER.futures")
    assert isinstance(funding, FundingSeries)
    assert funding.summary()["funding_bps"][0] == pytest.approx(10 * 1.0)


@pytest.mark.parametrize(
    ("data", "options", "says"),
    [
        (rows(times()), {}, 'timezone="UTC" where they are UTC'),
        (rows(times()), {"timezone": "Mars"}, "a name such as UTC"),
        (rows([None, *SECONDS[1:]]), {}, "1 null.*a time in each row"),
        (rows([0.5] * 10), {}, "10 numbers, the first 0.5.*2009 to 2099"),
        (rows(price=[0.0, -1.0, *PRICES[2:]]), {}, "2 values of price, the first at 2023-03-10"),
        (rows(close=PRICES), {}, "one for price.*names it"),
        (
            rows([f"2023-10-29 02:{minute:02}:00" for minute in range(10)]),
            {"timezone": "Europe/Berlin"},
            "10 times, the first 2023-10-29 02:00:00.*that Europe/Berlin has once",
        ),
        (
            rows([f"2023-03-26 02:{minute:02}:00" for minute in range(10)]),
            {"timezone": "Europe/Berlin"},
            "10 times.*that Europe/Berlin has once",
        ),
        (rows(), {"columns": {"price": "clse"}}, "'clse'.*price"),
        (rows(), {"columns": {"prise": "price"}}, "'prise'.*allowed: ts, price"),
        (rows()[:0], {}, "no row"),
        (rows()[:1], {"stamped": "end"}, "one row alone"),
        (rows(), {"stamped": "middle"}, "allowed: start, end"),
        (rows(), {"unit": "minutes"}, "allowed: s, ms, us, ns"),
        ("absent.csv", {}, "a file that can be read"),
        ([1.0], {}, "a polars frame"),
        (rows().drop("ts").to_pandas(), {}, "one for ts"),
    ],
)
def test_what_cannot_be_taken_is_refused_in_one_line(
    data: object, options: dict[str, object], says: str
) -> None:
    with pytest.raises(InputError, match=says) as refused:
        own_series(data, KEY, **options)  # type: ignore[arg-type]  # as parametrised
    assert "\n" not in str(refused.value)


def test_a_pair_is_drawn_and_net_of_fees_like_any_spread() -> None:
    fees = FeeModel.parse(
        'name = "mine"\n'
        '[[fee]]\nexchange = "VENDOR"\nvalid_from = 2017-01-01\ntaker_bps = 5\nslippage_bps = 1\n'
    )
    ts = list(range(START, START + 6_000, 60))
    buy, sell = (
        own_series(pl.DataFrame({"ts": ts, "price": [price] * 100}), key)
        for price, key in ((100.0, KEY), (101.0, "BTC_USD:VENDOR.futures"))
    )
    figure = pair_series(buy, sell).plot()
    assert "BTC_USD:VENDOR.spot / BTC_USD:VENDOR.futures" in figure.layout.title.subtitle.text
    row = pair_series(buy, sell).net_summary(fees=fees).row(0, named=True)
    assert row["cost_bps"] == 4 * 5 + 2 * 1
    assert row["net_mean_bps"] == pytest.approx(100 - 22)


def test_a_settlement_has_no_end_to_be_stamped_at() -> None:
    settled = rows(buy_rate=[0.0] * 10, sell_rate=[1e-4] * 10)
    with pytest.raises(InputError, match="a settlement is a moment"):
        own_series(settled, "funding/BTC_USD:VENDOR.spot:OTHER.futures", stamped="end")


@pytest.mark.parametrize(
    ("rate", "options", "taken"),
    [(1e-4, {}, 1e-4), (0.01, {"rates": "percent"}, 1e-4), (0.06, {"rates": "fraction"}, 0.06)],
)
def test_rates_are_fractions_or_what_one_says(
    rate: float, options: dict[str, object], taken: float
) -> None:
    settled = rows(buy_rate=[0.0] * 10, sell_rate=[rate] * 10)
    mine = own_series(settled, "funding/BTC_USD:VENDOR.spot:OTHER.futures", **options)  # type: ignore[arg-type]  # as parametrised
    assert mine.rows["sell_rate"].to_list() == pytest.approx([taken] * 10)
    assert ("10 rates beyond 5 % per interval" in mine.origin.notes) == (taken > 0.05)


@pytest.mark.parametrize("rates", [[0.01] * 10, [1e-4] * 9 + [-0.06]])
def test_rates_too_large_for_fractions_are_asked_for(rates: list[float]) -> None:
    settled = rows(buy_rate=[0.0] * 10, sell_rate=rates)
    with pytest.raises(InputError, match=r'median .*%.*rates="percent" or "fraction".*--rates'):
        own_series(settled, "funding/BTC_USD:VENDOR.spot:OTHER.futures")


def one_leg(leg: str, every_s: int, rate: float) -> FundingSeries:
    count = 10 * 86_400 // every_s
    jitter = [1_000 * (START + every_s * k) + 7 * (k % 3) for k in range(count)]
    rows = {"calc_time": jitter, "rate": [rate] * count}
    frame = pl.DataFrame(rows | {"interval_hours": [every_s // 3_600] * count})
    key = f"funding/BTC_USDT:{leg}.futures"
    mine = own_series(frame, key, columns={"ts": "calc_time"}, unit="ms")
    assert isinstance(mine, FundingSeries)
    return mine


def test_funding_of_one_exchange_is_kept_as_one_leg_and_measured(tmp_path: Path) -> None:
    mine = one_leg("BINANCE", 28_800, 1e-4)
    row = mine.summary().row(0, named=True)
    assert (row["n"], row["n_sell"], row["n_buy"], row["coverage"]) == (30, 30, 0, 1.0)
    assert row["funding_apr_pct"] == pytest.approx(1e-2 * 3 * 365)
    assert "carry_bps" not in row
    assert mine.persistence()["positive_share"].item() == 1.0
    assert mine.by_hour()["funding_apr_pct"].drop_nulls().round(6).unique().to_list() == [10.95]
    path = tmp_path / "own.duckdb"
    keep_own(mine, path)
    assert faults_of(Store(path)) == []
    with tk.open(store=path) as rail:
        held = rail.funding(mine.stream.key)
        assert held.summary().equals(mine.summary())
        assert held.holdings(horizons=["1d"])["n"].item() > 0


def test_the_funding_of_two_exchanges_is_joined_to_that_of_their_pair(tmp_path: Path) -> None:
    long, short = one_leg("BINANCE", 28_800, 1e-4), one_leg("DYDX", 3_600, 2e-5)
    pair = pair_series(long, short)
    row = pair.summary(funding_only=True).row(0, named=True)
    assert pair.stream.key == "funding/BTC_USDT:BINANCE.futures:DYDX.futures"
    assert row["coverage"] == 1.0
    assert row["funding_apr_pct"] == pytest.approx(100 * (2e-5 * 8_760 - 1e-4 * 1_095))
    keep_own(long, tmp_path / "own.duckdb")
    keep_own(short, tmp_path / "own.duckdb")
    with tk.open(store=tmp_path / "own.duckdb") as rail:
        held = rail.pair(long.stream.key, short.stream.key)
        assert held.rows.equals(pair.rows)
        with pytest.raises(UnknownTrajectoryError, match=r"both its legs are: rail\.pair"):
            rail.funding(pair.stream.key)
    with pytest.raises(InputError, match="the funding of one leg"):
        pair_series(pair, long)


def test_no_service_is_asked_for_the_funding_of_one_leg() -> None:
    leg = Trajectory.parse("funding/BTC_USD:X.futures")
    assert not Listing({leg.symbol: leg.legs}, truncated=False).lists(leg)
    with pytest.raises(InputError, match="of rows of your own"):
        BUILT_IN.histories[Family.FUNDING].query(leg, 60)
