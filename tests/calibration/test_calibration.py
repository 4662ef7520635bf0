"""Each interval holds what is true in 95 of 100 cases, as docs/calibration.md has measured it.

`make calibration` draws 2,000 runs of each process, or 500. Here 30 are drawn, and the shares may
differ by what chance does to so few in 99 of 100 cases.
"""

from __future__ import annotations

import re
import sys

import pytest

from tests.docs.statistics_page import functions
from toolkit.columns import own_columns_of

from .form import Calibration, Process, calibrated
from .page import PAGE, PROCESSES, page_of, rows_of

ELSEWHERE = {
    "half_life_acf_error": "a distance between two autocorrelations",
    "half_life_ar1_acf_error": "the same of the AR(1)",
    "hasbrouck_lower_share": "the least share of all orders of the legs",
    "error_mean_bps": "what a prediction was wrong by",
    "error_median_bps": "the same",
    "error_std_bps": "the same",
    "peak_error_median_pct": "a difference of two peaks",
    "net_mean_lower_bps": "gross_mean_lower_bps less the cost",
    "net_median_lower_bps": "gross_median_lower_bps less the cost",
    "rate_lower_per_h": "a 24th of rate_lower_per_day",
    "precision_lower": "the exact interval of a share, as went_on_lower",
    "recall_lower": "the same",
    "lost_share_lower": "the same",
    "life_q25_lower_s": "the interval of median_life_lower_s at another share",
    "life_q75_lower_s": "the same",
    "life_q90_lower_s": "the same",
}
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = [row for row, _ in rows_of(TEXT)]


@pytest.mark.slow
@pytest.mark.parametrize("process", PROCESSES, ids=[each.words for each in PROCESSES])
def test_an_interval_holds_the_truth_as_often_as_it_says(process: Process):
    measured = sorted((row.statistic, row.column) for row in ROWS if row.words == process.words)
    drawn = list(calibrated(process, 30))
    for found in drawn:
        sys.stdout.write(f"\n{found.name}: {found.held:.3f}, {found.width:.3g}")
        assert not found.fault, found
    names = sorted((found.statistic, found.column) for found in drawn)
    assert names == measured, "run `make calibration`"


def test_the_page_has_every_process_in_all_runs_between_its_shares():
    assert TEXT.startswith(page_of([])), "run `make calibration`"
    by_words = {each.words: each for each in PROCESSES}
    assert len(by_words) == len(PROCESSES)
    assert {row.words for row in ROWS} == set(by_words), "run `make calibration`"
    for row in ROWS:
        process = by_words[row.words]
        assert row.runs == process.runs
        width = float("nan")
        found = Calibration(row.statistic, row.column, process, *row[3:], width)
        assert not found.fault, row


def test_every_interval_that_the_statistics_document_is_calibrated_or_named():
    calibrated_columns = {row.column for row in ROWS} | set(ELSEWHERE)
    documented = {
        column.name: name for name, function in functions() for column in own_columns_of(function)
    }
    lacking = {}
    for column, name in documented.items():
        if column.endswith("_reason") or not re.search(r"lower|upper|error|null_band", column):
            continue
        # the other end and the error of an interval are those of its lower end
        lower = re.sub("upper|error", "lower", column)
        if not {column, lower} & calibrated_columns:
            lacking[column] = name
    assert not lacking
    assert set(ELSEWHERE) <= set(documented), "one of these is no column any more"
