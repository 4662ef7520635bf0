"""docs/calibration.md: `make calibration` draws all runs and writes it."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from .dependent import PROCESSES as OF_DEPENDENT
from .form import FEWER_RUNS, FULL_RUNS, NOMINAL, REASONED, Calibration, Process, calibrated
from .occurrences import PROCESSES as OF_EVENTS
from .rates import PROCESSES as OF_RATES
from .spreads import PROCESSES as OF_SPREADS

PAGE = Path(__file__).parents[2] / "docs" / "calibration.md"
PROCESSES: list[Process] = [*OF_SPREADS, *OF_RATES, *OF_EVENTS, *OF_DEPENDENT]
HEAD = """\
# Calibration of the intervals

A 95 % interval should cover the true value in 95 of 100 samples. Here each interval is measured on
processes with known true values, over {runs:,} runs with fixed seeds, or {fewer} if one takes more
than 5 ms. By chance a share is off by up to 0.01, or 0.025. `make calibration` draws all runs and
writes this page in less than an hour; `python -m tests.calibration.page WORDS` draws the processes
whose description contains the words.

No constant of an interval was tuned on these processes, except the critical values of `half_life`,
which come from an AR(1) with normal shocks. The threshold of `long_memory`, the correction for
skewness, the stretches of `rates`, the degrees of freedom of clusters, and the level and windows
of the test behind the interval of `half_life` were chosen on other runs of the same kinds of
process.

*given* is the share of runs with an interval; the others had a reason. *held* is the share of
given intervals that cover the true value, in bold outside {least} to {most}. The last table has
processes that violate an interval's assumption: at least {reasoned:.0f} % of the runs have to give
the reason. Processes with bursts have shocks of Student's t with 5 degrees of freedom, and louder
hours.

Standard errors are taken 1.96 times to each side. A null band has to cover the result where there
is no relation. Hours and weekdays are counted over all of them. The upper bound of a half-life
without reversion has to be absent in 97.5 of 100. `spread.net_episodes` has the bounds of
`survival.life_quantiles`, net figures of `funding.holdings` and `events.payoff` those of the gross
ones less the cost, and `events.audit` the exact interval of `went_on_lower`.
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


class Line(NamedTuple):
    """A row of the page as it is written, of an interval on a process."""

    statistic: str
    column: str
    words: str
    fails: bool
    text: str


def page_of(lines: Iterable[Line]) -> str:
    """Return the page: a table for each statistic, and one of what must have a reason."""
    place = {each.words: number for number, each in enumerate(PROCESSES)}
    tables: dict[str, list[str]] = {}
    failing = []
    for each in sorted(lines, key=lambda one: (*one[:2], place[one.words])):
        rows = failing if each.fails else tables.setdefault(each.statistic, [])
        rows.append(each.text)
    parts = [_head()]
    for statistic, rows in tables.items():
        parts.append(f"\n## {statistic}\n\n{_TABLE}{''.join(rows)}")
    return "".join([*parts, *([f"{_REASONS}|---|---|---|---|\n", *failing] if failing else [])])


def _head() -> str:
    least, most = NOMINAL
    return HEAD.format(
        runs=FULL_RUNS, fewer=FEWER_RUNS, least=least, most=most, reasoned=100 * REASONED
    )


def line_of(each: Calibration) -> Line:
    """Write what was measured as a row."""
    fails = each.process.fails
    text = _reason_row(each) if fails else _row(each)
    return Line(each.statistic, each.column, each.process.words, fails, text)


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


def rows_of(page: str) -> Iterator[tuple[Row, str]]:
    """Yield what the page says of each interval, and the row's text."""
    for section in page.split("\n## ")[1:]:
        statistic = section.split("\n")[0]
        for text in section.splitlines():
            if row := _FAILING.fullmatch(text):
                names = row["statistic"], row["column"]
                given, held = 1 - float(row["reason"]), math.nan
            elif row := _ROW.fullmatch(text):
                names = statistic, row["column"]
                given, held = float(row["given"]), float(row["held"])
            else:
                continue
            runs = int(row["runs"].replace(",", ""))
            yield Row(*names, row["words"], runs, given, held), f"{text}\n"


def kept_lines(words: set[str]) -> list[Line]:
    """Return the rows of the page whose processes are not among these, but still known."""
    known = {each.words: each for each in PROCESSES}
    return [
        Line(*row[:3], known[row.words].fails, text)
        for row, text in rows_of(PAGE.read_text(encoding="utf-8"))
        if row.words in known and row.words not in words
    ]


def main(named: Sequence[str]) -> int:
    """Measure all, write the page, and return 1 where one is not between its shares.

    ``named`` has parts of the words of processes: then these alone, and the other rows stay.
    """
    chosen = [each for each in PROCESSES if not named or any(part in each.words for part in named)]
    lines, faults = kept_lines({each.words for each in chosen}) if named else [], 0
    for process in chosen:
        for each in calibrated(process, process.runs):
            faults += each.fault
            lines.append(line_of(each))
            row = _reason_row(each) if process.fails else f"{each.statistic} {_row(each)}"
            sys.stdout.write(f"{row[:-1]}{' OUTSIDE' * each.fault}\n")
            sys.stdout.flush()
    PAGE.write_text(page_of(lines), encoding="utf-8")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
