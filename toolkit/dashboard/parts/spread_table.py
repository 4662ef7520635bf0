"""The rows of the page Spreads: one per trajectory, their filters and order."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import polars as pl

from toolkit.charts.view import subject_of
from toolkit.dashboard.export import literal
from toolkit.dashboard.fee_choice import python_costs
from toolkit.dashboard.parts.age import stream_ages
from toolkit.dashboard.reading import SPREADS, StoreState, StreamVersion, measure_each
from toolkit.intervals import Interval
from toolkit.show.values import half_life_note
from toolkit.statistics.fees import FeeModel, Style
from toolkit.statistics.screening import SPREAD_ORDER, Ranking, spread_figures, with_q_values
from toolkit.statistics.spread import net_summary
from toolkit.statistics.spread.net_episodes import Level
from toolkit.workspace.screening import Screening, markets_of

FIGURES = (
    "spread_last_log_bps",
    "spread_last_size_log_bps",
    "last_percentile",
    "last_z",
    "spread_mean_log_bps",
    "spread_std_log_bps",
    "half_life_s",
    "half_life_reason",
    "half_life_upper_s",
    "half_life_upper_reason",
    "acf_half_lag_s",
    "half_life_without_spikes_s",
    "reversion_q_value",
    "reversion_tests",
    "flags",
    "n",
    "coverage",
    "t_last",
    "spread_basis",
)
"""The columns of `toolkit.statistics.screening.spread_figures` that the rows have."""

NET = ("net_share", "net_mean_bps", "edge_q_value", "edge_tests", "cost_bps")


class SpreadFilters(NamedTuple):
    """The filters and order of spreads, as arguments of `toolkit.workspace.Workspace.screen`."""

    kind: str = "spread"
    arguments: Mapping[str, Any] = {}
    sort: str = SPREAD_ORDER

    def applied(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Filter and sort the rows."""
        given = dict(self.arguments)
        where = given.pop("where", None)
        meant = Screening(self.kind, **given).among(map(subject_of, lines["trajectory"]))
        chosen = lines.filter(pl.col("trajectory").is_in([each.key for each in meant]))
        return Ranking.of(lines.schema, where, self.sort, None, False).applied(chosen)

    def python(
        self,
        store: str,
        window: tuple[str, str],
        symbols: Collection[str],
        costs: tuple[FeeModel, Style] | None,
    ) -> str:
        """Build the Python that gives the same rows."""
        named = {
            "family": None if self.kind == "spread" else self.kind,
            "symbols": sorted(symbols),
            **self.arguments,
            "sort": None if self.sort == SPREAD_ORDER else self.sort,
        }
        given = [literal(each) for each in window]
        given += [f"{name}={literal(value)}" for name, value in named.items() if value]
        if costs is not None:
            given += python_costs(*costs)
        arguments = "".join(f"    {each},\n" for each in given)
        return (
            f"import toolkit as tk\n\nrail = tk.open({literal(store)})\nrail.screen(\n{arguments})"
        )


_NAMES = ("trajectory", "symbol", "buy", "sell", "type")


def spread_names(keys: pl.Series) -> pl.DataFrame:
    """Parse the keys of spreads: trajectory, symbol, buy, sell, type and exchanges (list)."""
    known = [subject_of(key) for key in keys]
    return pl.DataFrame(
        {
            "trajectory": [t.key for t in known],
            "symbol": [str(t.symbol) for t in known],
            "buy": [str(t.buy) for t in known],
            "sell": [str(t.sell) for t in known],
            "type": [markets_of(t) for t in known],
            "exchanges": [[leg.exchange for leg in t.legs] for t in known],
        },
        schema={**dict.fromkeys(_NAMES, pl.String), "exchanges": pl.List(pl.String)},
    )


def spread_lines(
    catalogue: pl.DataFrame,
    figures: pl.DataFrame,
    beyond: pl.DataFrame,
    recent: pl.DataFrame,
    *,
    asked: Collection[str],
    now: int,
    stands: bool = False,
    net: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Build one row per spread of the catalogue, in the order of the keys.

    ``catalogue`` is `Store.catalogue`. ``figures``, ``beyond`` and ``net`` (None for gross figures
    alone) are of `measure_figures`, `measure_level` and `measure_net` over one window, ``recent``
    of `toolkit.dashboard.parts.lately`. Each may lack trajectories. ``asked`` are those requested
    in the window. ``now`` is the service's clock (s).

    Columns: those of `spread_names`, `FIGURES`, level_share, level_per_day, recent (list),
    those of `toolkit.dashboard.parts.age.stream_ages` and notes (what is unusual, and why a figure
    is null, "" for nothing). With ``net`` also `NET` and cost_lacks.
    """
    spreads = catalogue.filter(pl.col("kind").is_in(SPREADS)).rename({"stream": "trajectory"})
    parts = [
        figures.select("trajectory", *FIGURES),
        beyond.select("trajectory", "level_share", "level_per_day"),
        recent,
        stream_ages(catalogue, now, stands=stands).rename({"stream": "trajectory"}),
    ]
    if net is not None:
        parts.append(net.select("trajectory", *NET, "cost_lacks"))
    found = spread_names(spreads["trajectory"])
    for part in parts:
        found = found.join(part, on="trajectory", how="left", maintain_order="left")
    found = found.with_columns(
        pl.col("n").fill_null(0), asked=pl.col("trajectory").is_in(list(asked))
    )
    notes = [_notes(line) for line in found.iter_rows(named=True)]
    return found.with_columns(pl.Series("notes", notes, pl.String)).drop("asked").sort("trajectory")


def _notes(line: dict[str, Any]) -> str:
    if not line["n"]:
        return (
            "loaded, but no observation in the window"
            if line["asked"]
            else "not loaded for the window"
        )
    return "; ".join(spread_notes(line))


_Versions = dict[str, StreamVersion] | None


def measure_figures(
    held: StoreState, kind: str, window: Interval, versions: _Versions = None
) -> pl.DataFrame:
    """Measure `toolkit.statistics.screening.spread_figures` of every spread, with the q-values.

    ``kind`` is spread or snapshot-spread (with coverage by polls). ``versions`` are as for
    `measure_each`.
    """
    question = f"figures of {sorted(versions or ())}"
    return with_q_values(
        measure_each(held, kind, window, question, spread_figures, versions=versions)
    )


def measure_level(held: StoreState, kind: str, window: Interval, level: Level) -> pl.DataFrame:
    """Measure `toolkit.statistics.spread.level.Level.measure` of every spread."""
    fees = level.fees and level.fees.hash
    question = f"beyond {level.bps} {level.absolute} {fees} {level.style} {level.notional}"
    return measure_each(held, kind, window, question, level.measure)


def measure_net(
    held: StoreState,
    kind: str,
    window: Interval,
    fees: FeeModel,
    style: Style,
    *,
    versions: _Versions = None,
) -> pl.DataFrame:
    """Measure `toolkit.statistics.spread.net_summary` of every spread, with the q-values."""
    question = f"net {fees.hash} {style} of {sorted(versions or ())}"
    costs: dict[str, Any] = {"versions": versions, "fees": fees, "style": style}
    return with_q_values(measure_each(held, kind, window, question, net_summary, **costs))


_WHOLE = 0.9995


def spread_notes(row: Mapping[str, Any]) -> list[str]:
    """Return the notes of a row of `toolkit.statistics.screening.spread_figures`.

    They name flags, coverage below 100 %, what the fee table lacks (``cost_lacks``), why the
    half-life is null or unreliable, and spreads that are the service's own.
    """
    found = row["flags"].replace("_", " ").split(", ") if row["flags"] else []
    if row["coverage"] is not None and row["coverage"] < _WHOLE:
        found.append(f"{math.floor(100 * row['coverage'])} % covered")
    if row.get("cost_lacks"):
        found.append(f"the fee table lacks {row['cost_lacks']}")
    if note := half_life_note(row):
        found.append(note)
    if "service" in (row["spread_basis"] or ""):
        found.append("the service's own figure")
    return found
