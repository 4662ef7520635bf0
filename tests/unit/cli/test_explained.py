"""`--format explain`: what a table of statistics says of its figures in words."""

from __future__ import annotations

import pytest

from .conftest import LOADED, Rail, refused


@pytest.mark.usefixtures("held")
def test_every_figure_of_a_row_is_explained_in_words(rail: Rail) -> None:
    done = rail("stats", "spread", LOADED[1].key, "--format", "explain")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{LOADED[1].key}\n")
    assert "spread_median_log_bps = " in done.stdout
    assert "By half_life: Estimate the time" in done.stdout
    assert "for statistics, whose rows have a method" in refused(
        rail("status", "--format", "explain")
    )
