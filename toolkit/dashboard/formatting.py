"""Headings, statistics, commands and sources in the words of a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from toolkit import commands
from toolkit.cards import duration
from toolkit.columns import column
from toolkit.foreign import Markdown, markdown
from toolkit.market import Family, Source
from toolkit.show.values import heading_of, null_text, reason_words, value_text

NULL = Markdown("–")


def heading(name: str, of: str = "", *, result: str = "", long: bool = False) -> str:
    """Return the heading of a column of a ``result`` with its unit, the short one unless ``long``.

    ``of`` is what it names beside that: a zone of time, a currency, a window or a level.

    >>> heading("spread_std_log_bps"), heading("last_percentile", "7 d")
    ('std dev (bps)', 'percentile, 7 d')
    >>> heading("opened_at", "Asia/Tokyo"), heading("price_std", "USD", result="spread.summary")
    ('opened at (Asia/Tokyo)', 'std dev (USD)')
    """
    one = column(name, result)
    if not of:
        return heading_of(one, short=not long)
    if one.unit in ("UTC", "UTC ms", "quote"):
        return f"{heading_of(one, short=not long)} ({of})"
    words = f"{one.heading if long else one.short}, {of}"
    return heading_of(replace(one, heading=words))


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


def statistics_rows(row: Mapping[str, Any], quote: str, *, half_life: bool) -> list[dict[str, str]]:
    """Build one line per statistic of a row of `toolkit.statistics.spread.summary`.

    A line has the statistic's heading, its value with unit (prices in ``quote``), and the reason
    where the value is null. ``half_life`` tells whether the half-life's figures are among them.

    >>> row = {"coverage_reason": None, "price_mean": 2.5, "price_std": None,
    ...        "moments_reason": "too_few", "quantiles_reason": None}
    >>> for line in statistics_rows(row, "USD", half_life=False):
    ...     print(" | ".join(line.values()))
    mean | 2.5 USD |
    standard deviation | – | too few observations for this statistic
    """
    names = list(row)
    end = "implausible" if half_life else "quantiles_reason"
    figures = names[names.index("coverage_reason") + 1 : names.index(end)]
    lines = []
    for name in figures:
        if name.endswith("_reason"):
            continue
        one, value = column(name, "spread.summary"), row[name]
        text = value_text(value, one, unit=True)
        lines.append(
            {
                "statistic": one.heading,
                "value": null_text(row, name)
                if value is None
                else f"{text} {quote}"
                if one.unit == "quote"
                else text,
                "reason": reason_words(row, name) if value is None else "",
            }
        )
    return lines
