"""The tables of docs/capacity.md, carried from what was measured: `make docs` writes them."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.scheduler import busy_share
from toolkit.market import Family
from toolkit.service.accounts import TERMS
from toolkit.store.reading.scanning import GROUP_ROWS

PAGE = Path(__file__).parents[2] / "docs" / "capacity.md"
SIZES = (10**9, 10**11, 10**13)

# Measured on one core of this project's test machine, with the walks of benchmarks/_walks.py.
STORE_BYTES, PUBLISHED_BYTES = 16.0, 15.4
"""Of a row of spreads, in the store and in its published files."""
WRITTEN_PER_S = 167_000
"""Rows per second that one process commits, a page of 1,000 in each transaction."""
IMPORT_US, SCREEN_US = 0.92, 0.80
"""CPU time of a row (us): of opening a publication, and of a screen that reads its files."""
MANIFEST_BYTES, TASK_BYTES = 461, 7_300
"""Of a file in the manifest, and of a part in the scheduler."""
PART_MS = {100: 0.63, 1_000: 0.45, 10_000: 2.3}
"""CPU time of the scheduler for a part, by workers: `python -m benchmarks.scheduler` (ms)."""

# Prices to be replaced by one's own: of a core per hour, of a GB per month, of a million reads ($).
CORE_HOUR, GB_MONTH, READS = 0.04, 0.023, 0.40

MONTH_ROWS, PART_ROWS, CORES = 43_200, GROUP_ROWS[Family.SPREAD], (4, 64, 320)
_UNITS = (("years", 365 * 86_400), ("days", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def lasting(seconds: float) -> str:
    """Write a length of time in two digits.

    >>> lasting(5_400), lasting(1_000_000), lasting(20)
    ('1.5 h', '12 days', '20 s')
    """
    name, unit = next((each for each in _UNITS if seconds >= 1.5 * each[1]), _UNITS[-1])
    return f"{_short(seconds / unit)} {name}"


def _short(value: float) -> str:
    return f"{value:.1f}" if value < 10 and f"{value:.1f}"[-1] != "0" else f"{value:,.0f}"


def _bytes(count: float) -> str:
    power = next(p for p in (4, 3, 2) if count >= 1_000**p or p == 2)
    return f"{_short(count / 1_000**power)} {('MB', 'GB', 'TB')[power - 2]}"


def _dollars(value: float) -> str:
    return f"${value:.2f}" if value < 10 else f"${value:,.0f}"


def sizes_table() -> str:
    """Return what each of the three sizes takes."""
    lines = {"trajectories for a year, at a row per minute": [f"{n / 525_600:,.0f}" for n in SIZES]}
    for plan, terms in TERMS.items():
        times = [lasting(60 * n / terms.page.maximum / terms.quota) for n in SIZES]
        lines[f"to ask for it with plan {plan}"] = times
    lines |= {
        "to write it by one process": [lasting(n / WRITTEN_PER_S) for n in SIZES],
        "the store": [_bytes(n * STORE_BYTES) for n in SIZES],
        "published": [_bytes(n * PUBLISHED_BYTES) for n in SIZES],
        "published, per month": [_dollars(n * PUBLISHED_BYTES / 1e9 * GB_MONTH) for n in SIZES],
        "its files, each a month of a trajectory": [f"{n / MONTH_ROWS:,.0f}" for n in SIZES],
        "its manifest": [_bytes(n / MONTH_ROWS * MANIFEST_BYTES) for n in SIZES],
        "to open it, which copies it": [lasting(n * IMPORT_US / 1e6) for n in SIZES],
    }
    scheduled_s = [n / PART_ROWS * PART_MS[100] / 1_000 for n in SIZES]
    for cores in CORES:
        computed_s = [n * SCREEN_US / 1e6 / cores for n in SIZES]
        both = zip(computed_s, scheduled_s, strict=True)
        lines[f"a screen on {cores} cores"] = [lasting(max(each)) for each in both]
    spent = [n * SCREEN_US / 3.6e9 * CORE_HOUR + n / MONTH_ROWS / 1e6 * READS for n in SIZES]
    lines |= {
        "a screen, cores and reads": [_dollars(each) for each in spent],
        "its parts": [f"{n / PART_ROWS:,.0f}" for n in SIZES],
        "its parts in the scheduler's memory": [_bytes(n / PART_ROWS * TASK_BYTES) for n in SIZES],
        "the scheduler's own time": [lasting(each) for each in scheduled_s],
    }
    head = "| | 10^9 rows | 10^11 rows | 10^13 rows |\n|---|---|---|---|\n"
    return head + "".join(f"| {name} | {' | '.join(each)} |\n" for name, each in lines.items())


def shares_table() -> str:
    """Return how much of its time a worker is busy, by workers and by the time of a part."""
    parts_s = (0.16, 1, 10, 30)
    head = "| workers | " + " | ".join(f"parts of {each} s" for each in parts_s) + " |\n"
    rows = [head, "|---" * (1 + len(parts_s)) + "|\n"]
    for workers, part_ms in PART_MS.items():
        shares = [busy_share(part_ms, each, workers, 6 * workers) for each in parts_s]
        rows.append(f"| {workers:,} | " + " | ".join(f"{each:.0%}" for each in shares) + " |\n")
    return "".join(rows)


def page(text: str) -> str:
    """Return the page with the tables of today."""
    for table in (sizes_table(), shares_table()):
        first = table.partition("\n")[0]
        text = re.sub(re.escape(first) + r"\n(?:\|.*\n)*", lambda _, new=table: new, text)
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
