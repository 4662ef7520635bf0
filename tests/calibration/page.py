"""docs/calibration.md: `make calibration` draws all runs and writes it."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from .dependent import PROCESSES as OF_DEPENDENT
from .form import FULL_RUNS, NOMINAL, REASONED, Calibration, Process, calibrated
from .occurrences import PROCESSES as OF_EVENTS
from .rates import PROCESSES as OF_RATES
from .spreads import PROCESSES as OF_SPREADS

PAGE = Path(__file__).parents[2] / "docs" / "calibration.md"
PROCESSES: list[Process] = [*OF_SPREADS, *OF_RATES, *OF_EVENTS, *OF_DEPENDENT]
HEAD = """\
# How often the intervals hold the truth

Each interval that the statistics give has to hold the true value in 95 of 100 cases. Here each is
measured on processes whose true values are known, over {runs:,} runs with fixed seeds. By
chance such a share is off by up to 0.01, so that one process, whose first 2,000 gave 0.927, has
10,000. `make calibration` draws them again and writes this page, in about half an hour.

No constant of an interval was tuned on these processes, but for the critical values of
`half_life`, which are of an AR(1) with normal shocks. What decides on `long_memory`, that skewness
moves the ends of means over time, into how many stretches `rates` cuts the time, and the freedom of
clusters were chosen on other runs of the same kinds of process.
Processes with bursts have shocks of Student's t with 5 degrees of freedom, and hours that are
louder than others. A share outside {least} to {most} is in bold. Given is the share of runs that
had an interval: the others had a reason in its place, and held counts none of them. The last table
has processes that fail what an interval assumes: there {reasoned:.0f} % of the runs or more have to
give the reason, but for chance.

An error is taken 1.96 times to each side. A null band has to hold what is found where there is no
relation. The share of an hour or a weekday is that over all of them and all runs. The upper bound
of a half-life where there is no reversion is one end alone, and has to be absent in 97.5 of 100.
The bounds of `spread.net_episodes` are those of `survival.life_quantiles`. Those of net figures of
`funding.holdings` and `events.payoff` are those of the gross ones less the cost. Shares of
`events.audit` have the exact interval of `went_on_lower`.
"""
_UNITS = {
    "_bps": "bps",
    "_per_day": "per day",
    "_per_h": "per h",
    "life_": "s",
    "close_": "s",
    "_apr_pct": "%",
}
_TABLE = "| interval | process | runs | given | held | median width |\n|---|---|---|---|---|---|\n"
_REASONS = "\n## Where the assumption fails\n\n| interval | process | runs | reason given |\n"
_FAILING = re.compile(
    r"\| `(?P<statistic>[\w.]+) (?P<column>\w+)` \| (?P<words>[^|]+) \| (?P<runs>[\d,]+) "
    r"\| \**(?P<reason>[\d.]+)\** \|"
)
_ROW = re.compile(
    r"\| `(?P<column>\w+)` \| (?P<words>[^|]+) \| (?P<runs>[\d,]+) \| (?P<given>[\d.]+) "
    r"\| \**(?P<held>[\d.]+)\** \| .+ \|"
)


class Row(NamedTuple):
    """What a row of the page says of an interval, ``held`` NaN where its assumption fails."""

    statistic: str
    column: str
    words: str
    runs: int
    given: float
    held: float


def page_of(found: Iterable[Calibration]) -> str:
    """Return the page: a table for each statistic."""
    tables: dict[str, list[str]] = {}
    ordered = sorted(found, key=lambda one: (one.statistic, one.column))
    for each in ordered:
        if each.process.fails:
            continue
        tables.setdefault(each.statistic, []).append(_row(each))
    parts = [_head()]
    for statistic, rows in tables.items():
        parts.append(f"\n## {statistic}\n\n{_TABLE}{''.join(rows)}")
    failing = [_reason_row(each) for each in ordered if each.process.fails]
    return "".join([*parts, *([f"{_REASONS}|---|---|---|---|\n", *failing] if failing else [])])


def _head() -> str:
    return HEAD.format(runs=FULL_RUNS, least=NOMINAL[0], most=NOMINAL[1], reasoned=100 * REASONED)


def _reason_row(each: Calibration) -> str:
    reason = f"{1 - each.given:.3f}"
    if 1 - each.given < REASONED:
        reason = f"**{reason}**"
    cells = (f"`{each.statistic} {each.column}`", each.process.words, f"{each.runs:,}", reason)
    return f"| {' | '.join(cells)} |\n"


def _row(each: Calibration) -> str:
    held = f"{each.held:.3f}"
    one_end = "upper" in each.column
    if not one_end and not NOMINAL[0] <= each.held <= NOMINAL[1]:
        held = f"**{held}**"
    unit = next((unit for part, unit in _UNITS.items() if part in each.column), "")
    width = "no upper bound" if math.isinf(each.width) else f"{each.width:.3g} {unit}".strip()
    cells = (
        f"`{each.column}`",
        each.process.words,
        f"{each.runs:,}",
        f"{each.given:.3f}",
        held,
        width,
    )
    return f"| {' | '.join(cells)} |\n"


def rows_of(page: str) -> Iterator[Row]:
    """Yield what the page says of each interval."""
    for section in page.split("\n## ")[1:]:
        statistic = section.split("\n")[0]
        for row in map(_ROW.fullmatch, section.splitlines()):
            if row:
                runs = int(row["runs"].replace(",", ""))
                shares = float(row["given"]), float(row["held"])
                yield Row(statistic, row["column"], row["words"], runs, *shares)
    for row in map(_FAILING.fullmatch, page.splitlines()):
        if row:
            runs, given = int(row["runs"].replace(",", "")), 1 - float(row["reason"])
            yield Row(row["statistic"], row["column"], row["words"], runs, given, math.nan)


def main() -> int:
    """Measure all, write the page, and return 1 where one is not between its shares."""
    found, faults = [], 0
    for process in PROCESSES:
        for each in calibrated(process, process.runs):
            faults += each.fault
            found.append(each)
            row = _reason_row(each) if each.process.fails else f"{each.statistic} {_row(each)}"
            sys.stdout.write(f"{row[:-1]}{' OUTSIDE' * each.fault}\n")
            sys.stdout.flush()
    PAGE.write_text(page_of(found), encoding="utf-8")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
