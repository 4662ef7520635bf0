"""How the figures of one trajectory are printed: units, and reasons for what is missing."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from toolkit.cli.show import console
from toolkit.reasons import Reason
from toolkit.show.printed import print_sheet
from toolkit.show.sheet import Sheet

FIGURES = ("n", "coverage", "longest_gap_s", "mean_bps", "carry_pct", "ar1_phi")


def row(key: str, **given: object) -> dict[str, object]:
    values = {
        "trajectory": key,
        "n": 12_345,
        "coverage": 0.98765,
        "longest_gap_s": 16_680,
        "mean_bps": -1234.5678,
        "carry_pct": 7.0,
        "ar1_phi": 0.87654321,
        "ar1_reason": None,
    }
    return values | given


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """Print a row and give back the lines, without the blanks at their ends."""

    def show_row(row: dict[str, object]) -> list[str]:
        rows = pl.DataFrame([row], schema_overrides={"ar1_phi": pl.Float64})
        print_sheet(console, Sheet("Figures", "", rows, [], figures=FIGURES), rows, "")
        return [line.rstrip() for line in capsys.readouterr().out.splitlines()[1:]]

    return show_row


def test_each_unit_has_its_form(printed: Callable[..., list[str]]) -> None:
    lines = printed(row("BTC_USDT:ALPHA.spot:BETA.futures"))
    cells = [line.split()[-1] for line in lines[-5:] if "gap" not in line]
    assert [line.split()[0] for line in lines[:3]] == ["BTC_USDT", "buy", "sell"]
    assert cells == ["%", "-1,234.57", "7.00", "0.8765"]
    assert lines[3].split() == ["observations", "12,345"]
    assert next(line for line in lines if "gap" in line).endswith("4 h 38 min")
    assert "mean (bps)" in "\n".join(lines)


def test_a_missing_number_says_why(printed: Callable[..., list[str]]) -> None:
    reason = next(iter(Reason))
    *_, line, note = printed(row("A_B:C.spot:D.spot", ar1_phi=None, ar1_reason=reason.value))
    assert line.endswith("– (a)")
    assert note == f"(a) {reason.words}"


def test_a_missing_number_without_a_reason_is_a_dash(printed: Callable[..., list[str]]) -> None:
    assert printed(row("A_B:C.spot:D.spot", ar1_phi=None))[-1].endswith("–")
