"""Numbers, times and reasons as a reader sees them; a null is a dash with its reason beside it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from toolkit.charts.lines import share_text
from toolkit.market import Source
from toolkit.statistics.contract import Reason, column_for

__all__ = ["NULL", "age_text", "code", "duration_text", "source_text", "statistics_rows"]

NULL = "–"

_QUANTILES = {f"q{share:02d}": f"{share} % quantile" for share in (1, 5, 25, 75, 95, 99)}
_LABELS = {
    "mean": "Mean",
    "time_weighted_mean": "Mean over time",
    "std": "Standard deviation",
    "median": "Median",
    "mad": "Median absolute deviation × 1.4826",
    **_QUANTILES,
    "expected_shortfall_95": "Mean above the 95 % quantile",
}
_HALF_LIFE = {
    "ar1_phi": "AR(1) slope",
    "half_life_s": "Half-life",
    "half_life_lower_s": "Half-life, lower bound (95 %)",
    "half_life_upper_s": "Half-life, upper bound (95 %)",
    "half_life_corrected_s": "Half-life, corrected for bias",
}


def duration_text(seconds: float) -> str:
    """A length of time in its two largest units.

    Examples
    --------
    >>> [duration_text(s) for s in (0, 45, 61.5, 7380, 90000, 86400)]
    ['0 s', '45 s', '1 min 2 s', '2 h 3 min', '1 d 1 h', '1 d']
    """
    left = round(seconds)
    parts = []
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        parts.append((count, unit))
    first = next((i for i, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return " ".join(f"{n} {unit}" for n, unit in parts[first : first + 2] if n) or "0 s"


def age_text(last_ts: int | None, served_at: int, asked_at: int, delay_s: int, now: int) -> str:
    """How old the newest row was when the service was last asked, and how long ago that was.

    Examples
    --------
    >>> age_text(880, served_at=1000, asked_at=1003, delay_s=0, now=1303)
    "Newest row 2 min before the service's clock at the last sync; synced 5 min ago."
    >>> age_text(None, served_at=1000, asked_at=1003, delay_s=30, now=1003)
    'No row yet; synced 0 s ago. The plan delays rows by 30 s.'
    """
    behind = (
        "No row yet"
        if last_ts is None
        else f"Newest row {duration_text(served_at - last_ts)} before the service's clock "
        "at the last sync"
    )
    delayed = f" The plan delays rows by {duration_text(delay_s)}." if delay_s else ""
    return f"{behind}; synced {duration_text(max(0, now - asked_at))} ago.{delayed}"


def code(text: str) -> str:
    r"""Somebody else's text in Markdown, as code: no markup, no image, no link comes out of it.

    Examples
    --------
    >>> code("![x](https://example.org)")
    '`![x](https://example.org)`'
    >>> code("a`b\n\nc")
    "`a'b c`"
    """
    words = " ".join(text.replace("`", "'").split())
    return f"`{words[:80] or ' '}`"


def source_text(source: Source) -> str:
    """The source in a sentence of Markdown.

    Examples
    --------
    >>> source_text(Source("simulated", "miniature"))
    'SIMULATED market, `miniature`: no market ever showed these numbers.'
    >>> source_text(Source("live", "rail"))
    'Live service, `rail`.'
    """
    said = ": no market ever showed these numbers" if source.is_simulated else ""
    return f"{source.label.removesuffix(source.id)}{code(source.id)}{said}."


def statistics_rows(
    row: Mapping[str, Any], column: str, unit: str, *, half_life: bool
) -> list[dict[str, str]]:
    """One line a statistic of a row of `toolkit.statistics.spread.summary`.

    A line has the statistic's label, its value with unit, the n it rests on (for the AR(1) and the
    half-life: pairs), the coverage, and the reason where the value is null.

    Examples
    --------
    >>> row = {"n": 1, "coverage": 0.5, "price_mean": 2.5, "price_std": None,
    ...        "moments_reason": "too_few"}
    >>> for line in statistics_rows(row, "price", "USD", half_life=False):
    ...     print(" | ".join(line.values()))
    Mean | 2.5 USD | 1 | 50 % |
    Standard deviation | – | 1 | 50 % | too few observations for this statistic
    """
    named = {column_for(column, name): label for name, label in _LABELS.items()}
    if half_life:
        named |= _HALF_LIFE
    coverage = NULL if row["coverage"] is None else share_text(row["coverage"])
    return [
        {
            "statistic": label,
            "value": _value(name, row[name], unit),
            "n": f"{row['ar1_pairs']:,} pairs" if name in _HALF_LIFE else f"{row['n']:,}",
            "coverage": coverage,
            "reason": "" if row[name] is not None else _reason(row, name),
        }
        for name, label in named.items()
        if name in row
    ]


def _value(name: str, value: float | None, unit: str) -> str:
    if value is None:
        return NULL
    if name.endswith("_s"):
        return duration_text(value)
    if name == "ar1_phi":
        return f"{value:.4f}"
    if unit.endswith("bps"):
        return f"{value:,.2f} {unit}"
    return f"{Decimal(f'{value:.8g}'):,f} {unit}"


def _reason(row: Mapping[str, Any], name: str) -> str:
    """The words of the first ``*_reason`` column to the right of the null."""
    names = list(row)
    code = next(row[n] for n in names[names.index(name) :] if n.endswith("_reason"))
    return Reason(code).words
