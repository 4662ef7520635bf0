"""Numbers, times and reasons as a reader sees them. A null is a dash with its reason beside it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from toolkit import commands
from toolkit.cards import duration
from toolkit.charts.lines import share_text
from toolkit.foreign import Markdown, markdown
from toolkit.market import Family, Source
from toolkit.reasons import Reason
from toolkit.statistics.contract import column_for

NULL = Markdown("–")

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
    "fit_p_value": "Fit of one speed beneath noise, p-value",
    "acf_half_lag_s": "Lag at which the autocorrelation halves",
    "half_life_without_spikes_s": "Half-life without spikes",
    "spike_share": "Spikes, share of the variance",
    "half_life_acf_error": "Autocorrelation missed by the half-life",
    "half_life_ar1_s": "Half-life by an AR(1)",
    "half_life_ar1_acf_error": "Autocorrelation missed by the AR(1)",
    "half_lives_differ": "AR(1) outside the 95 % bounds",
}


def newest_end(streams: pl.DataFrame) -> int | None:
    """Return the end (s UTC) of the newest row's own interval, None where no row is dated.

    Snapshots count as answers and not as data, and so does what is kept from them. A settlement of
    funding is a moment: the hours until the next one are not its own.

    >>> streams = pl.DataFrame(
    ...     {"kind": ["price", "funding"], "last_ts": [880, 600], "step_s": [60, 28800]}
    ... )
    >>> newest_end(streams), newest_end(streams.clear())
    (940, None)
    """
    lasts_s = pl.when(kind=Family.FUNDING.value).then(0).otherwise(pl.col("step_s").fill_null(0))
    ends = dated(streams).select(pl.col("last_ts") + lasts_s).to_series()
    known = ends.drop_nulls().sort()
    return int(known[-1]) if known.len() else None


def dated(streams: pl.DataFrame) -> pl.DataFrame:
    """Select the streams whose rows have times of their own: no snapshots, nor what they keep."""
    return streams.filter(~pl.col("kind").str.starts_with("snapshot"))


def plan_words(loads: pl.DataFrame, streams: pl.DataFrame) -> Markdown:
    """Format the plan, its quota and its delay, as far as the service has sent them.

    >>> loads = pl.DataFrame({"plan": ["builder"], "quota": [600], "quota_window_s": [60]})
    >>> streams = pl.DataFrame({"delay_s": [0, 30]})
    >>> plan_words(loads, streams)
    'plan `builder`, 600 requests in 1 min, rows up to 30 s late'
    >>> plan_words(loads.clear(), streams.clear())
    'plan not sent by the service'
    """
    sent = loads.filter(pl.col("plan").is_not_null()).head(1).to_dicts()
    plan = Markdown("plan {}").format(markdown(sent[0]["plan"])) if sent else None
    parts = [plan or "plan not sent by the service"]
    if sent and sent[0]["quota"] is not None:
        window_s = sent[0]["quota_window_s"]
        within = f" in {duration(window_s)}" if window_s else ""
        parts.append(f"{sent[0]['quota']:,} requests{within}")
    if streams.height:
        worst = streams["delay_s"].sort()[-1]
        parts.append(f"rows up to {duration(worst)} late" if worst else "no delay")
    return Markdown(", ").join(parts)


def command_words(*words: str, store: Path | None = None, base_url: str | None = None) -> Markdown:
    """Format a command of `rail` as Markdown, whole: a part of a command is another command.

    ``store`` and ``base_url`` are those of `toolkit.commands.rail`.

    >>> command_words("sync", "A_B:X.spot")
    '`rail sync A_B:X.spot`'
    """
    whole = commands.rail(*words, store=store, base_url=base_url)
    return markdown(whole, len(whole))


def source_words(source: Source) -> Markdown:
    """Format the source as Markdown: a highlighted word, and the name of the source.

    >>> source_words(Source("simulated", "seed-7-1a2b"))
    ':orange-badge[SIMULATED] `seed-7-1a2b`, no market ever showed these numbers'
    >>> source_words(Source("live", "rail"))
    ':green-badge[LIVE] `rail`'
    >>> source_words(Source("live", "exchanges-by-ccxt-1a2b"))
    ':green-badge[LIVE] `exchanges-by-ccxt-1a2b`, public endpoints of exchanges, by ccxt'
    >>> source_words(Source("paper", "rail"))
    ':gray-badge[UNKNOWN] `rail`, of the kind `paper`'
    """
    words = {
        "simulated": Markdown(":orange-badge[SIMULATED] {}, no market ever showed these numbers"),
        "replay": Markdown(":blue-badge[REPLAY] {}, recorded data"),
        "live": Markdown(":green-badge[LIVE] {}"),
        "unknown": Markdown(":gray-badge[UNKNOWN] {}"),
    }
    other = Markdown(":gray-badge[UNKNOWN] {}, of the kind {}")
    if source.by_ccxt:
        words["live"] = Markdown(":green-badge[LIVE] {}, public endpoints of exchanges, by ccxt")
    return words.get(source.kind, other).format(markdown(source.id), markdown(source.kind))


def statistics_rows(
    row: Mapping[str, Any], column: str, unit: str, *, half_life: bool
) -> list[dict[str, str]]:
    """Build one line per statistic of a row of `toolkit.statistics.spread.summary`.

    A line has the statistic's label, its value with unit, and the reason where the value is null.

    >>> row = {"n": 1, "coverage": 0.5, "price_mean": 2.5, "price_std": None,
    ...        "moments_reason": "too_few"}
    >>> for line in statistics_rows(row, "price", "USD", half_life=False):
    ...     print(" | ".join(line.values()))
    Mean | 2.5 USD |
    Standard deviation | – | too few observations for this statistic
    """
    named = {column_for(column, name): label for name, label in _LABELS.items()}
    if half_life:
        named |= _HALF_LIFE
    return [
        {
            "statistic": label,
            "value": _reason(row, name).in_place
            if row[name] is None
            else _value(name, row[name], unit),
            "reason": "" if row[name] is not None else reason_words(row, name),
        }
        for name, label in named.items()
        if name in row
    ]


def _value(name: str, value: float, unit: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in ("noise_share", "spike_share"):
        return share_text(value)
    if name == "fit_p_value":
        return f"{value:.3f}"
    if name.endswith("_acf_error"):
        return f"{value:.2f}"
    if name.endswith("_s"):
        return duration(value)
    return f"{level_text(value, unit)} {unit}"


def level_text(value: float | None, unit: str) -> str:
    """Format a level: bps and percentages with two decimals, prices with five digits.

    >>> level_text(-3.14159, "bps"), level_text(64123.456, "USDT"), level_text(1.23456e-6, "USDT")
    ('-3.14', '64,123', '0.0000012346')
    >>> level_text(None, "bps")
    '–'
    """
    if value is None:
        return NULL
    if unit in ("bps", "% a year"):
        return f"{value:,.2f}"
    return f"{Decimal(f'{value:.5g}'):,f}"


def reason_words(row: Mapping[str, Any], name: str) -> str:
    """Return the words of the first ``*_reason`` column to the right of a null.

    >>> reason_words({"half_life_s": None, "half_life_reason": "too_few"}, "half_life_s")
    'too few observations for this statistic'
    """
    return _reason(row, name).words


def _reason(row: Mapping[str, Any], name: str) -> Reason:
    names = list(row)
    return Reason(next(row[n] for n in names[names.index(name) :] if n.endswith("_reason")))
