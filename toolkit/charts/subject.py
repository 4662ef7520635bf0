"""The subject of a chart's rows: named by the frame itself, by the caller, or by both alike."""

from __future__ import annotations

import polars as pl

from toolkit.errors import InputError
from toolkit.market import Family, Pair, SnapshotTrajectory, Trajectory
from toolkit.statistics.core.contract import Frame, checked_frame

Subject = Trajectory | SnapshotTrajectory | Pair
"""What a chart of rows is of."""


def subject_of(trajectory: Subject | str) -> Subject:
    """Read the key of a trajectory, of a series kept from snapshots, or of a pair of two prices.

    >>> subject_of("snapshot-funding/BTC_USD:X.futures").family.value
    'funding'
    """
    key = str(trajectory)
    if key.startswith("pair/"):
        return Pair.parse(key)
    kept = key.startswith(("snapshot-spread/", "snapshot-funding/"))
    return SnapshotTrajectory.parse(key) if kept else Trajectory.parse(key)


def with_subject(
    frame: Frame, trajectory: Subject | str | None, family: Family
) -> tuple[pl.DataFrame, Subject]:
    """Return the frame with its trajectory's key in each row, and the trajectory.

    ``trajectory`` may be left out where the frame has a column of that name. Raises `InputError`
    for rows of several trajectories or of another than the one named, for another family, and where
    neither names one.

    >>> rows = pl.DataFrame({"trajectory": ["BTC_USD:KRAKEN.spot"], "ts": [0]})
    >>> with_subject(rows, None, Family.PRICE)[1].key
    'BTC_USD:KRAKEN.spot'
    >>> with_subject(rows, "ETH_USD:KRAKEN.spot", Family.PRICE)
    Traceback (most recent call last):
    toolkit.errors.InputError: trajectory: 'ETH_USD:KRAKEN.spot' is not allowed; allowed:
    BTC_USD:KRAKEN.spot, whose rows the frame has
    """
    checked_frame(frame)
    frame = frame.lazy().collect()
    named_by_frame = frame["trajectory"] if "trajectory" in frame else pl.Series(dtype=pl.String)
    held = named_by_frame.drop_nulls().unique().sort()
    if len(held) > 1:
        some = ", ".join(map(str, held[:3]))
        raise InputError(
            "frame", f"rows of {len(held)} trajectories", f"rows of one; it has those of {some}"
        )
    if trajectory is None and not len(held):
        raise InputError(
            "trajectory", None, f"the key of a {family} trajectory, where the frame names none"
        )
    named = subject_of(str(held[0] if trajectory is None else trajectory))
    if named.family is not family:
        raise InputError("trajectory", named.key, f"a {family} trajectory")
    if len(held) and held.dtype == pl.String and held[0] != named.key:
        raise InputError("trajectory", named.key, f"{held[0]}, whose rows the frame has")
    return frame.with_columns(trajectory=pl.lit(named.key)), named
