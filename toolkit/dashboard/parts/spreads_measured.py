"""Figures of all spreads on their page, kept until a spread's own rows change."""

from __future__ import annotations

from typing import Any

import polars as pl

from toolkit.dashboard.reading import Held, StreamVersion, measure_each
from toolkit.intervals import Interval
from toolkit.statistics.fees import FeeModel, Style
from toolkit.statistics.screening import spread_figures, with_q_values
from toolkit.statistics.spread import net_summary
from toolkit.statistics.spread.net_episodes import Level

_Versions = dict[str, StreamVersion] | None


def measure_figures(
    held: Held, kind: str, window: Interval, versions: _Versions = None
) -> pl.DataFrame:
    """Measure `toolkit.statistics.screening.spread_figures` of every spread, with the q-values.

    ``kind`` is spread or snapshot-spread. Of the latter the coverage is by polls, as in `rail
    screen`. ``versions`` are as for `toolkit.dashboard.reading.measure_each`: of some alone.
    """
    question = f"figures of {sorted(versions or ())}"
    return with_q_values(
        measure_each(held, kind, window, question, spread_figures, versions=versions)
    )


def measure_level(held: Held, kind: str, window: Interval, level: Level) -> pl.DataFrame:
    """Measure `toolkit.statistics.spread.level.Level.measure` of every spread."""
    fees = level.fees and level.fees.hash
    question = f"beyond {level.bps} {level.absolute} {fees} {level.style} {level.notional}"
    return measure_each(held, kind, window, question, level.measure)


def measure_net(
    held: Held,
    kind: str,
    window: Interval,
    fees: FeeModel,
    style: Style,
    *,
    versions: _Versions = None,
) -> pl.DataFrame:
    """Measure `toolkit.statistics.spread.net_summary` of every spread, at the usual notional.

    With the q-values over all of them.
    """
    question = f"net {fees.hash} {style} of {sorted(versions or ())}"
    costs: dict[str, Any] = {"versions": versions, "fees": fees, "style": style}
    return with_q_values(measure_each(held, kind, window, question, net_summary, **costs))
