"""What the coverage strip draws and says."""

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


def test_every_state_has_its_colour_and_its_share_of_the_window():
    bars = chart().data
    assert [bar.name for bar in bars] == [
        "held 84 %",
        "empty 0 %",
        "not yet known 10 %",
        "missing 6 %",
        "unrecoverable 0 %",
    ]
    assert [bar.marker.color for bar in bars] == [STATE_COLOURS[state] for state in LedgerState]


def test_bars_lie_where_the_stretches_do():
    held = chart().data[0]
    assert list(held.base) == ["1970-01-01 00:00", "1970-01-01 00:11"]
    assert held.x.tolist() == [600_000.0, 240_000.0]
    assert held.orientation == "h"
    assert held.hovertext[1] == "held: 1970-01-01 00:11 to 1970-01-01 00:15 UTC"


def test_stretches_are_clipped_to_the_window():
    figure = chart(start=630, end=720)
    assert figure.data[0].x.tolist() == [60_000.0]
    assert list(figure.data[3].base) == ["1970-01-01 00:10:30"]
    assert figure.data[0].name == "held 66.67 %"


def test_a_sliver_neither_vanishes_nor_rounds_to_everything():
    ledger = pl.DataFrame(
        {
            "start_ts": [0, 10_000_000],
            "end_ts": [10_000_000, 10_000_060],
            "state": ["held", "missing"],
        }
    )
    held, *_, missing, _ = chart(ledger, end=10_000_060).data
    assert (held.name, missing.name) == ("held >99.99 %", "missing <0.01 %")
    assert missing.marker.line.width == 1


def test_overlapping_stretches_of_one_state_count_once():
    ledger = pl.DataFrame({"start_ts": [0, 0], "end_ts": [500, 500], "state": ["held", "held"]})
    assert chart(ledger).data[0].name == "held 50 %"


def test_title_window_source_and_mark_are_there():
    layout = chart().layout
    assert layout.title.text == "What the store holds"
    assert layout.title.subtitle.text.split("<br>") == [
        PAIR.key,
        "1970-01-01 00:00 to 1970-01-01 00:16:40 UTC",
        "4 stretches",
        "SIMULATED market, mini",
    ]
    assert [note.text for note in layout.annotations] == ["SIMULATED"]


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
