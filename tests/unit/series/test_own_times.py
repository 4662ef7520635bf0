"""Times of one's own rows: what they are is certain, or said to be not in one line."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.series import own_series, pair_series
from toolkit.series.own_files import bar_starts, moments

KEY = "BTC_USD:VENDOR.spot"
START = 1_704_067_200  # 2024-01-01
MINUTES = list(range(START, START + 1_800, 60))
PRICES = [42_000.0 + (7 * k) % 11 for k in range(30)]


def bars(ts: list[object]) -> pl.DataFrame:
    return pl.DataFrame({"ts": ts, "price": PRICES[: len(ts)]})


@pytest.mark.parametrize(
    ("ts", "options", "says"),
    [
        (MINUTES, {"unit": "ms"}, 'these are seconds; unit="s", --unit s'),
        ([10**9 * ts for ts in MINUTES], {"unit": "us"}, "these are nanoseconds"),
        (
            [1_000 * ts for ts in MINUTES[:20]] + [10**6 * ts for ts in MINUTES[20:]],
            {"unit": "ms"},
            "20 in milliseconds and 10 in microseconds.*one unit; row 21 is the first",
        ),
        ([20_230_310, 20_230_311], {}, "2 numbers, the first 20230310.*2009 to 2099"),
        ([dt.datetime(1970, 1, 2, tzinfo=dt.UTC)], {}, "1 time, the first 1970-01-02 00:00:00 UTC"),
        (
            pl.Series(MINUTES).cast(pl.Datetime("ns", "UTC")),
            {},
            "they were made of seconds taken for ",
        ),
        (
            [f"{month:02}/01/2023 00:00" for month in range(1, 13)],
            {"timezone": "UTC"},
            'one way; format="%m/%d/%Y %H:%M" reads the month first.*--format',
        ),
        (
            [f"01.{month}.2023 9:05:00 PM" for month in (1, 2)],
            {"timezone": "UTC"},
            r'"%d\.%m\.%Y %I:%M:%S %p" the day',
        ),
        (["Mar 10, 2023"], {"timezone": "UTC"}, "1 text, the first Mar 10, 2023.*--format"),
        (["-"], {"timezone": "UTC"}, "1 null"),
        (["10/03/2023"], {"timezone": "UTC", "format": "%Y-%m-%d"}, "1 text, the first 10/03"),
        ([ts + 59 for ts in MINUTES], {}, '30 of 30 times.*stamped="end"'),
    ],
)
def test_times_that_may_be_others_are_refused_with_what_would_do(
    ts: list[object], options: dict[str, object], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        own_series(bars(ts), KEY, **options)  # type: ignore[arg-type]  # as parametrised


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        (["13/03/2023 00:00", "02/03/2023 00:00"], None),
        (["03.13.2023 00:00", "03.02.2023 00:00"], None),
        (["03/13/2023", "03/02/2023"], "%m/%d/%Y"),
        (["2023.03.13 00:00", "2023.03.02 00:00"], None),
        (["2023-03-13", "2023-03-02"], None),
        (["2023-03-13 00:00:00 UTC", "2023-03-02 00:00:00 UTC"], None),
        (["20230313", "20230302"], "%Y%m%d"),
        (["1678665600.0", "1677715200.0"], None),
    ],
)
def test_texts_that_can_be_read_in_one_way_are(texts: list[str], form: str | None) -> None:
    found = moments(pl.Series("ts", texts), ["s"], "UTC", form)
    assert (found // 10**6).to_list() == [1_678_665_600, 1_677_715_200]


@pytest.mark.parametrize(("last", "unit"), [(59, "s"), (59_999, "ms"), (59_999_999, "us")])
def test_bars_stamped_by_their_last_moment_pair_with_the_same_bars_without_a_difference(
    last: int, unit: str
) -> None:
    per_s = {"s": 1, "ms": 1_000, "us": 10**6}[unit]
    closes = bars([ts * per_s + last for ts in MINUTES])
    mine = own_series(closes, KEY, unit=unit, stamped="end")  # type: ignore[arg-type]  # a unit
    assert mine.rows["ts"].to_list() == MINUTES
    assert "30 times moved from a bar's last moment to its end" in mine.origin.notes
    pair = pair_series(mine, own_series(bars(MINUTES), "BTC_USD:OTHER.spot"))  # type: ignore[arg-type]  # prices
    row = pair.summary().row(0, named=True)
    assert (row["n"], row["coverage"], row["spread_std_log_bps"]) == (30, 1.0, 0.0)


def test_rows_off_the_grid_are_kept_and_counted() -> None:
    mine = own_series(bars([*MINUTES[:28], MINUTES[28] + 7, MINUTES[29] + 20]), KEY)
    assert len(mine) == 30
    off = "2 of 30 rows are off the grid of 1 min, the first at 2024-01-01 00:28:07 UTC"
    assert off in mine.origin.notes


def test_more_rows_than_the_step_has_room_for_are_no_whole_coverage() -> None:
    mine = own_series(bars(MINUTES), KEY, step_s=120)
    assert mine.coverage()["coverage"][0] is None
    assert "coverage" not in mine.footnote


def test_the_first_and_the_last_time_are_always_told() -> None:
    told = "first row 2024-01-01 00:00 UTC, last 2024-01-01 00:29 UTC"
    assert told in repr(own_series(bars(MINUTES), KEY))


def test_bars_of_a_second_stamped_by_their_last_millisecond_start_with_their_second() -> None:
    ends = pl.Series([10**6 * ts + 999_000 for ts in (START, START + 1)])
    assert bar_starts(ends, 1, "end")[0].to_list() == [START, START + 1]
