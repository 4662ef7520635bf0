"""Lifecycles of one window, as `toolkit.statistics.events.lifecycles` gives them."""

from __future__ import annotations

import numpy as np
import polars as pl

START, END = 1_000_000, 2_000_000
KNOWN = ("known_until", "window_start", "window_end")


def lives(
    durations: np.ndarray | list[float],
    observed: np.ndarray | list[int],
    entries: np.ndarray | list[float] | float = 0.0,
    *,
    opened: np.ndarray | list[int] | int | None = None,
    **columns: object,
) -> pl.DataFrame:
    """Lifecycles of one window, as `lifecycles` gives them. An entry is before the window."""
    rows = len(durations)
    late = np.broadcast_to(np.asarray(entries, float), rows)
    return pl.DataFrame(
        {
            "family": ["spread"] * rows,
            "t_open": START - late.astype(int) if opened is None else np.broadcast_to(opened, rows),
            "duration_s": np.asarray(durations, float),
            "entry_s": late,
            "observed": observed,
            "kind": ["closed" if each else "open" for each in observed],
            "known_until": [END] * rows,
            "window_start": [START] * rows,
            "window_end": [END] * rows,
            **columns,
        },
        schema_overrides=dict.fromkeys(("family", "kind"), pl.String)
        | dict.fromkeys(("t_open", "observed", *KNOWN), pl.Int64),
    )


def openings(
    times: np.ndarray | list[int],
    start: int,
    end: int,
    *,
    known_until: int | None = None,
    **columns: object,
) -> pl.DataFrame:
    """Events of 30 s that opened at these times, in the window from start to end."""
    rows = len(times)
    frame = lives(np.full(rows, 30.0), np.ones(rows, int), opened=np.asarray(times, int), **columns)
    edges = {"known_until": known_until or end, "window_start": start, "window_end": end}
    return frame.with_columns(pl.lit(edge, pl.Int64).alias(name) for name, edge in edges.items())
