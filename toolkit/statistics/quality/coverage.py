"""Coverage: how many of the rows expected of each trajectory there are."""

from __future__ import annotations

import polars as pl

from toolkit.columns import described
from toolkit.market import Step, When
from toolkit.statistics.core.contract import Frame, Question
from toolkit.statistics.core.kernel import measure
from toolkit.statistics.core.windows import window_of


@described("quality.coverage")
def coverage(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    column: str | None = None,
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Measure how many of the rows expected of each trajectory in ``[start, end)`` are there.

    Times are as `toolkit.market.parse_ts` reads them. By default the window is the frame's own:
    from its first time to its last and one step more.

    An observation is a row of the window. With ``column`` given, a row with a value there that is
    a finite number. ``coverage`` is the share of bars that have an observation, and a bar begins at
    each step. The step is ``step_s``, which may be a mapping with that of each trajectory as it is
    known, else the commonest difference between the window's rows.
    Bars begin where most observations are. An observation in between counts for the bar it falls
    in, and several in one bar count once. Expected are all bars that begin in the window. Where
    there are more observations than that, some are doubled or the step is not theirs, and the
    coverage is null.

    Beside it is ``observed_share``, the share of the window's time for which a value is known. A
    value holds until the next one, at most ``max_stale_s``, the last until ``end``, at most
    ``max_stale_s``. So a single absent row lowers the coverage, and this share not.

    One row per trajectory of the frame, sorted by trajectory, also where nothing lies in the
    window. The rows given may be in any order. A LazyFrame is collected in chunks. The last columns
    say what was asked: ``window_start``, ``window_end`` (itself outside), ``method`` and
    ``params_hash``.

    {columns}

    Raises
    ------
    InputError
        A column is missing or of another type (expected: trajectory, String or integer, ts, Int64.
        ``column``, Float64). A key is null. Two rows of the window share trajectory and ts. The
        window is empty, or to be that of a frame without rows. ``step_s`` or ``max_stale_s`` is not
        a whole number of seconds from 1.

    Examples
    --------
    Minutes 0 to 3 and 8 to 9 of ten, and a value holds for at most 180 s.

    >>> ts = [0, 60, 120, 180, 480, 540]
    >>> frame = pl.DataFrame({"trajectory": ["BTC_USD:KRAKEN.spot"] * 6, "ts": ts})
    >>> row = coverage(frame, 0, 600).row(0, named=True)
    >>> row["coverage"], row["observed_share"], row["longest_gap_s"]
    (0.6, 0.8, 300)
    """
    question = Question(
        "quality.coverage/3", *window_of(frame, start, end), column, step_s, max_stale_s
    )
    return measure(frame, question)
