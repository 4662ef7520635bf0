"""What the coverage strip draws and says."""

import random

import polars as pl
import pytest

from toolkit.charts import coverage_chart
from toolkit.charts.theme import STATE_COLOURS
from toolkit.errors import InputError
from toolkit.market import Source, Trajectory
from toolkit.tables import LedgerState

PAIR = Trajectory.parse("BTC_USD:COINBASE.spot:KRAKEN.spot")
LEDGER = pl.DataFrame(
    {
        "start_ts": [0, 600, 660, 900],
        "end_ts": [600, 660, 900, 1000],
        "state": ["held", "missing", "held", "not yet known"],
    }
)


def chart(ledger=LEDGER, **more):
    fixed = {"trajectory": PAIR, "start": 0, "end": 1000, "source": Source("simulated", "mini")}
    return coverage_chart(ledger, **{**fixed, **more})


def test_each_state_has_its_colour_its_share_and_bars_where_its_stretches_lie():
    bars = chart().data
    assert [bar.name for bar in bars] == [
        "held 84.00 %",
        "empty 0.00 %",
        "not yet known 10.00 %",
        "missing 6.00 %",
        "unrecoverable 0.00 %",
        "lost at the source 0.00 %",
    ]
    assert [bar.marker.color for bar in bars] == [STATE_COLOURS[state] for state in LedgerState]
    held = chart().data[0]
    assert list(held.base) == ["1970-01-01 00:00", "1970-01-01 00:11"]
    assert held.x.tolist() == [600_000.0, 240_000.0]
    assert held.orientation == "h"
    assert held.hovertext[1] == "held: 1970-01-01 00:11 to 1970-01-01 00:15 UTC"
    figure = chart(start=630, end=720)
    assert figure.data[0].x.tolist() == [60_000.0]
    assert list(figure.data[3].base) == ["1970-01-01 00:10:30"]
    assert figure.data[0].name == "held 66.67 %"
    ledger = pl.DataFrame({"start_ts": [0, 0], "end_ts": [500, 500], "state": ["held", "held"]})
    assert chart(ledger).data[0].name == "held 50.00 %"


def minutes(states):
    """A ledger of one-minute stretches in these states."""
    starts = [60 * minute for minute in range(len(states))]
    ends = [start + 60 for start in starts]
    return pl.DataFrame({"start_ts": starts, "end_ts": ends, "state": states})


def areas(figure, length_s):
    """The share of the strip that each colour covers, the marks below it left out."""
    return {
        bar.name.rsplit(" ", 2)[0]: sum(
            x / 1000 * height for x, y, height in zip(bar.x, bar.y, bar.width, strict=True) if y > 0
        )
        / length_s
        for bar in figure.data
    }


def test_the_area_of_a_colour_is_its_share_however_short_the_stretches_are():
    week = 7 * 1440
    chance = random.Random(7)
    states = chance.choices(["held", "empty", "missing"], weights=[870, 120, 10], k=week)
    figure = chart(minutes(states), end=60 * week)
    found = areas(figure, 60 * week)
    for state in ("held", "empty", "missing"):
        assert found[state] == pytest.approx(states.count(state) / week, abs=1e-9)
    assert sum(found.values()) == pytest.approx(1)
    assert sum(len(bar.x) for bar in figure.data) < 3 * 1000
    assert "height: share of each 15 min" in figure.layout.title.subtitle.text


def test_the_states_of_a_bucket_stand_on_one_another_and_fill_it():
    figure = chart(minutes(["empty", "held", "missing"] * 5000), end=15_000 * 60)
    held, empty, _, missing, *_ = figure.data
    for bar, foot in ((held, 0), (empty, 1 / 3), (missing, 2 / 3)):
        assert (bar.y - bar.width / 2).tolist() == pytest.approx([foot] * 1000)
        assert bar.width.tolist() == pytest.approx([1 / 3] * 1000)
    assert held.hovertext[1] == "held: 33.33 % of 1970-01-01 00:15 to 1970-01-01 00:30 UTC"


def test_a_stretch_between_buckets_of_several_states_is_one_bar_and_says_where_it_ends():
    ledger = pl.DataFrame(
        {
            "start_ts": [0, 90, 200_010],
            "end_ts": [90, 200_010, 600_000],
            "state": ["missing", "held", "missing"],
        }
    )
    held, *_, missing, _, _ = chart(ledger, end=600_000).data
    assert held.width.tolist() == pytest.approx([0.85, 1, 0.35])
    assert held.hovertext[1] == "held: 1970-01-01 00:01:30 to 1970-01-03 07:33:30 UTC"
    assert held.x.tolist() == [600_000.0, 199_200_000.0, 600_000.0]
    assert missing.width[0] == pytest.approx(0.15)


def test_a_sliver_neither_vanishes_nor_rounds_to_everything():
    ledger = pl.DataFrame(
        {
            "start_ts": [0, 10_000_000],
            "end_ts": [10_000_000, 10_000_060],
            "state": ["held", "missing"],
        }
    )
    figure = chart(ledger, end=10_000_060)
    held, *_, missing, _, _ = figure.data
    assert (held.name, missing.name) == ("held >99.99 %", "missing <0.01 %")
    assert [y < 0 for y in missing.y] == [False, True]
    assert missing.marker.line.width[1] == 1
    assert "missing: 0.93 % of" in missing.hovertext[1]
    assert figure.layout.yaxis.range[0] < missing.y[1]
    assert "marks below: shares under 5.00 %" in figure.layout.title.subtitle.text


def test_title_window_source_and_mark_are_there_and_nothing_of_heights_where_all_is_seen():
    layout = chart().layout
    assert layout.title.text == "What the store holds"
    assert layout.title.subtitle.text.split("<br>") == [
        PAIR.key,
        "1970-01-01 00:00:00 to 1970-01-01 00:16:40 UTC",
        "4 stretches",
        "SIMULATED market, mini",
    ]
    assert [note.text for note in layout.annotations] == ["SIMULATED"]
    assert "height" not in chart().layout.title.subtitle.text


def test_an_empty_ledger_says_what_to_do():
    (note,) = chart(LEDGER[:0]).layout.annotations
    assert f"rail sync {PAIR}" in note.text.replace("<br>", " ")


@pytest.mark.parametrize("state", ["unheard of", None])
def test_an_unknown_state_is_refused(state):
    ledger = pl.DataFrame(
        {"start_ts": [0], "end_ts": [5], "state": [state]}, schema_overrides={"state": pl.String}
    )
    with pytest.raises(InputError, match="unrecoverable"):
        chart(ledger)


def test_a_stretch_over_the_change_of_clocks_ends_where_the_zones_clock_does():
    autumn = 1_698_541_200  # 2023-10-29 01:00 UTC: London goes from 02:00 back to 01:00
    ledger = pl.DataFrame(
        {"start_ts": [autumn - 7200], "end_ts": [autumn + 7200], "state": ["held"]}
    )
    window = {"start": autumn - 7200, "end": autumn + 7200}
    held = chart(ledger, **window, timezone="Europe/London").data[0]
    assert list(held.base) == ["2023-10-29 00:00"]
    assert held.x.tolist() == [3 * 3_600_000]
