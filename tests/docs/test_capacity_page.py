"""docs/capacity.md has the tables that its measured figures give."""

from __future__ import annotations

import pytest

from benchmarks.scheduler import busy_share

from .capacity_page import PAGE, PART_MS, page, shares_table, sizes_table


def test_the_page_has_the_tables_of_its_figures() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert sizes_table() in text
    assert shares_table() in text
    assert page(text) == text, "run `make docs`"


@pytest.mark.parametrize(("workers", "part_s"), [(100, 0.01), (100, 10.0), (1_000, 0.4)])
def test_a_scheduler_is_the_limit_where_parts_are_shorter_than_it_takes_for_a_round(
    workers: int, part_s: float
) -> None:
    round_s = workers * PART_MS[workers] / 1_000
    found = busy_share(PART_MS[workers], part_s, workers, 20 * workers)
    assert found == pytest.approx(min(1.0, part_s / round_s), rel=0.1)
