"""Numbers, times and reasons as a reader sees them. A null is a dash with its reason beside it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import polars as pl

from toolkit import commands
from toolkit.cards import duration
from toolkit.charts.lines import share_text
from toolkit.foreign import markdown
from toolkit.market import Source
from toolkit.statistics.contract import Reason, column_for
from toolkit.store import clock_offset_s

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
    "half_life_s": "Half-life",
    "half_life_lower_s": "Half-life, lower bound (95 %)",
    "half_life_upper_s": "Half-life, upper bound (95 %)",
    "noise_share": "Noise, share of the variance",
    "half_life_acf_error": "Autocorrelation missed by the half-life",
    "half_life_ar1_s": "Half-life by an AR(1)",
    "half_life_ar1_acf_error": "Autocorrelation missed by the AR(1)",
    "half_lives_differ": "AR(1) outside the 95 % bounds",
}


def age_words(streams: pl.DataFrame, loads: pl.DataFrame, now: int) -> str:
    """Format the age of the newest row or document now, and the time since the last answer.

    An age counts from the end of a row's own interval to the service's clock now. ``now`` is the
    local clock (s). Snapshots count as answers and not as data.

    >>> streams = pl.DataFrame({"kind": ["price"], "last_ts": [880], "step_s": [60],
    ...                         "served_at": [1000], "asked_at": [2000]})
    >>> loads = pl.DataFrame({"started_at": [1990], "served_at": [990]})
    >>> age_words(streams, loads, now=2300)
    'newest data 6 min old, last answer 5 min ago'
    >>> age_words(streams.clear(), loads, now=2300), age_words(streams, loads.clear(), now=2300)
    ('no answer yet', 'never synced')
    """
    if loads.is_empty():
        return "never synced"
    answered = streams["asked_at"].drop_nulls()
    asked_at = answered.cast(pl.Int64).sort()[-1] if answered.len() else None
    last = (
        "no answer yet"
        if asked_at is None
        else f"last answer {duration(max(0, now - asked_at))} ago"
    )
    dated = streams.filter(pl.col("kind") != "snapshot")
    ends = dated.select(pl.col("last_ts") + pl.col("step_s").fill_null(0)).to_series().drop_nulls()
    if ends.is_empty():
        return last if asked_at is None else f"no rows yet, {last}"
    age_s = now + clock_offset_s(streams, loads) - int(ends.sort()[-1])
    return f"newest data {duration(max(0, age_s))} old, {last}"


def plan_words(loads: pl.DataFrame, streams: pl.DataFrame) -> str:
    """Format the plan, its quota and its delay, as far as the service has sent them.

    >>> loads = pl.DataFrame({"plan": ["builder"], "quota": [600], "quota_window_s": [60]})
    >>> streams = pl.DataFrame({"delay_s": [0, 30]})
    >>> plan_words(loads, streams)
    'plan `builder`, 600 requests in 1 min, rows up to 30 s late'
    >>> plan_words(loads.clear(), streams.clear())
    'plan not sent by the service'
    """
    sent = loads.filter(pl.col("plan").is_not_null()).head(1).to_dicts()
    parts = [f"plan {markdown(sent[0]['plan'])}" if sent else "plan not sent by the service"]
    if sent and sent[0]["quota"] is not None:
        window_s = sent[0]["quota_window_s"]
        within = f" in {duration(window_s)}" if window_s else ""
        parts.append(f"{sent[0]['quota']:,} requests{within}")
    if streams.height:
        worst = streams["delay_s"].sort()[-1]
        parts.append(f"rows up to {duration(worst)} late" if worst else "no delay")
    return ", ".join(parts)


def command_words(*words: str) -> str:
    """Format a command of `rail` as Markdown, whole: a part of a command is another command.

    >>> command_words("sync", "A_B:X.spot")
    '`rail sync A_B:X.spot`'
    """
    whole = commands.rail(*words)
    return markdown(whole, len(whole))


def source_words(source: Source) -> str:
    """Format the source as Markdown: a highlighted word, and the name of the source.

    >>> source_words(Source("simulated", "seed-7-1a2b"))
    ':orange-badge[SIMULATED] `seed-7-1a2b`, no market ever showed these numbers'
    >>> source_words(Source("live", "rail"))
    ':green-badge[LIVE] `rail`'
    >>> source_words(Source("paper", "rail"))
    ':gray-badge[UNKNOWN] `rail`, of the kind `paper`'
    """
    words = {
        "simulated": (":orange-badge[SIMULATED]", ", no market ever showed these numbers"),
        "replay": (":blue-badge[REPLAY]", ", recorded data"),
        "live": (":green-badge[LIVE]", ""),
    }
    other = "" if source.kind == "unknown" else f", of the kind {markdown(source.kind)}"
    badge, note = words.get(source.kind, (":gray-badge[UNKNOWN]", other))
    return f"{badge} {markdown(source.id)}{note}"


def statistics_rows(
    row: Mapping[str, Any], column: str, unit: str, *, half_life: bool
) -> list[dict[str, str]]:
    """Build one line per statistic of a row of `toolkit.statistics.spread.summary`.

    A line has the statistic's label, its value with unit, the n it rests on (for the half-life and
    the AR(1): pairs), the coverage, and the reason where the value is null.

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
            "value": _reason(row, name).in_place
            if row[name] is None
            else _value(name, row[name], unit),
            "n": f"{row['ar1_pairs']:,} pairs" if name in _HALF_LIFE else f"{row['n']:,}",
            "coverage": coverage,
            "reason": "" if row[name] is not None else reason_words(row, name),
        }
        for name, label in named.items()
        if name in row
    ]


def _value(name: str, value: float, unit: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "noise_share":
        return share_text(value)
    if name.endswith("_acf_error"):
        return f"{value:.2f}"
    if name.endswith("_s"):
        return duration(value)
    if unit.endswith("bps"):
        return f"{value:,.2f} {unit}"
    return f"{Decimal(f'{value:.8g}'):,f} {unit}"


def reason_words(row: Mapping[str, Any], name: str) -> str:
    """Return the words of the first ``*_reason`` column to the right of a null.

    >>> reason_words({"half_life_s": None, "half_life_reason": "too_few"}, "half_life_s")
    'too few observations for this statistic'
    """
    return _reason(row, name).words


def _reason(row: Mapping[str, Any], name: str) -> Reason:
    names = list(row)
    return Reason(next(row[n] for n in names[names.index(name) :] if n.endswith("_reason")))
