"""How true a log of events is, against the episodes in the trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.cards import duration
from toolkit.errors import InputError
from toolkit.intervals import Ends, Interval
from toolkit.market import EventFamily, When
from toolkit.reasons import Reason
from toolkit.statistics.categories import in_order, in_words, with_categories
from toolkit.statistics.contract import (
    Frame,
    Question,
    checked_columns,
    checked_types,
    first_reason,
    real_number,
    whole_number,
)
from toolkit.statistics.definition import SPREADS, holding
from toolkit.statistics.episodes import episodes
from toolkit.statistics.event_detections import trajectory_of
from toolkit.statistics.event_exposure import checked_held
from toolkit.statistics.event_groups import BY_OPENING, GROUP_COLUMNS
from toolkit.statistics.event_judging import judged
from toolkit.statistics.event_matching import matched_rows
from toolkit.statistics.event_paths import KnownValues
from toolkit.statistics.price_moves import DUMP, MOVE, PUMP, price_moves
from toolkit.statistics.tails import share_columns
from toolkit.statistics.windows import window_of

MOVE_S = 300
"""The longest time over which a splash moves the price, where nothing else is asked for (s)."""

_COLUMNS = {
    EventFamily.SPREAD: "spread_bps",
    EventFamily.FUNDING: "differential_bps",
    EventFamily.SPLASH: MOVE,
}
_SENT = "differential_pct_8h"
_BPS_A_PERCENT = 100
_CONTRACT = ("window_start", "window_end", "method", "params_hash")
_LIVES = {
    **dict.fromkeys(("family", "event", "symbol", "legs"), "String"),
    **dict.fromkeys(("t_open", "t_close", "known_until"), "Int64"),
    "peak": "Float64",
}
_SPLASHES = _LIVES | {"direction": "Float64"}

_SIZES = {
    EventFamily.SPREAD: "spreads of {:,.1f} bps",
    EventFamily.FUNDING: "differentials of {:,.1f} bps per 8 h",
    EventFamily.SPLASH: "moves of {:,.1f} bps within {}",
}


def _audit_title(
    family: str, enter_bps: float | None, move_s: int | None, **_others: object
) -> str:
    """Say which log is held to what."""
    within = duration(MOVE_S if move_s is None else move_s)
    sizes = _SIZES[EventFamily(family)].format(enter_bps, within)
    return f"{family.capitalize()} events against {sizes}"


@analysis(
    "events.audited",
    ("t_open", "event_peak_pct", "audit_reason"),
    key=("trajectory",),
    title=_audit_title,
    command="",
    enter_bps=Parameter(
        "The spread (bps) that opens an event, of funding the differential per 8 h, of a splash "
        "the move. Default: the smallest size of one."
    ),
    leave_bps=Parameter("Below which size (bps) it is over. Default: as --enter-bps."),
    slack_s=Parameter("How far apart an event and its episode may be.", "s", advanced=True),
    move_s=Parameter("The time over which a splash moves. Default: 5m.", "s", option="--within"),
)
def audited(
    lives: Frame,
    rows: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    family: EventFamily | str = EventFamily.SPREAD,
    held: pl.DataFrame | None = None,
    enter_bps: float | None = None,
    leave_bps: float | None = None,
    slack_s: int | None = None,
    step_s: int | None = None,
    known_after_s: int | None = None,
    max_stale_s: int | None = None,
    move_s: int | None = None,
) -> pl.DataFrame:
    """Match each event with an episode of its trajectory, and list what one side alone has.

    ``lives`` are rows of `event_lifecycles`, of which those of ``family`` with an opening in the
    window are used. ``rows`` has ``trajectory``, ``ts`` and of spreads the prices
    of both legs, or ``spread_bps``. Of funding it has ``differential_pct_8h``: of funding events
    read differential for spread below, with basis points per 8 h and percent per 8 h. An episode is
    a stretch in which the spread is ``enter_bps`` or more, until it is below ``leave_bps`` (None:
    the same), as in `toolkit.statistics.spread.episodes`, with its ``step_s`` and ``max_stale_s``.
    Only the positive side counts: a trajectory the other way round has events of its own.
    ``enter_bps`` None is the smallest size of an event, as the log is then taken to have no smaller
    threshold.

    Of splashes ``lives`` have the column of `with_direction` too, and ``rows`` the prices of legs.
    For spread read how far the price is above the lowest of the last ``move_s`` (None: 300), of a
    dump below the highest, as in `toolkit.statistics.price_moves`. Trajectories end in :pump or
    :dump. Sizes have no sign. Prices further apart than ``move_s`` show no such move: there is a
    gap. Documents of splashes name the time and the price that a move began at, and not what the
    service asks for: take ``move_s`` and ``leave_bps`` from its description.

    ``held`` has the stretches of time in which the log is held, as in `survival`. An episode that
    begins in a gap of the log, or whose beginning was not seen, does not count for recall, whether
    it has an event or not. Nor does one while an event from before may be open: one that opened
    before the window or in a gap of the log, or one without a close, until the next opening. An
    event without a close is itself held against what was there when it opened. Of an archive that
    is late the youngest events are not there yet: end the window before them.

    A row's spread is known ``known_after_s`` after its ``ts``, by default a step: at a bar's end.
    An event and an episode match where they overlap or are at most ``slack_s`` apart, by default a
    step. Of funding both are 0 by default, as a rate is known when it settles. There is one row per
    event, and one per episode that is not in an event's row, as an event may be of several
    episodes. Sorted by trajectory, events first, and time:

    {columns}

    ``enter_bps`` (Float64), ``window_start``, ``window_end``, ``method``, ``params_hash`` follow.

    Raises
    ------
    InputError
        As `toolkit.statistics.spread.episodes`. A column is missing or of another type. ``family``
        has no episodes.

    Examples
    --------
    >>> spreads = pl.DataFrame({"trajectory": ["A_B:X.spot:Y.spot"] * 4, "ts": [0, 60, 120, 180],
    ...     "spread_bps": [10.0, 80.0, 70.0, 10.0]})
    >>> lives = pl.DataFrame({"family": ["spread"], "event": ["s1"], "symbol": ["A_B"],
    ...     "legs": ["X.spot → Y.spot"], "t_open": [125], "t_close": [250], "peak": [0.8],
    ...     "known_until": [300]})
    >>> audited(lives, spreads, 0, 300, enter_bps=50).select("found_in", "delay_s").row(0)
    ('both', 5)
    """
    family, column = _measured(family)
    window = window_of(rows, start, end)
    log = _log(lives, family)
    frame = _with_sizes(rows, column, move_s)
    of_funding = family is EventFamily.FUNDING
    known_after = 0 if of_funding and known_after_s is None else known_after_s
    known = KnownValues.of(
        frame, column, step_s=step_s, known_after_s=known_after, max_stale_s=max_stale_s
    )
    after = known.step_s if known_after is None else known_after
    usual = 0 if of_funding else known.step_s
    slack = usual if slack_s is None else whole_number("slack_s", slack_s, 0)
    if enter_bps is not None:
        enter_bps = real_number("enter_bps", enter_bps, "basis points above 0", above=0)
    if leave_bps is not None:
        leave_bps = real_number("leave_bps", leave_bps, "basis points above 0", above=0)
    enter = smallest_size_bps(lives, window, family) if enter_bps is None else enter_bps
    of_rows: dict[str, Any] = {"column": column, "step_s": step_s, "max_stale_s": max_stale_s}
    found = episodes(frame, *window, enter_bps=enter, leave_bps=leave_bps, **of_rows)
    asked = (("slack_s", slack_s), ("leave_bps", leave_bps), ("known_after_s", known_after_s))
    options = (*asked, ("enter_bps", enter_bps), *([] if move_s is None else [("move_s", move_s)]))
    question = Question("events.audit/3", *window, **of_rows, options=options)
    found = found.with_columns(pl.col("trajectory").cast(pl.Categorical))
    logged = with_categories(log, but=["event"])
    opened, logged = _opened(logged, window), logged.drop("event", "peak")
    matched = matched_rows(opened, found, known, after, slack)
    del known, found, opened  # of a million events each takes as much memory as what is judged
    matched = in_order(matched, {"trajectory": False})
    of_family = None if held is None else checked_held(held).filter(family=family.value)
    listed = judged(matched, logged, of_family, window, slack)
    del logged
    words = in_words(listed["trajectory"]), pl.col("found_in", "audit_reason").cast(pl.String)
    return listed.with_columns(*words, pl.lit(enter).alias("enter_bps"), *question.columns)


def _measured(family: EventFamily | str) -> tuple[EventFamily, str]:
    """Return a family of events, and the column of the rows that it is measured by, in bps."""
    for each, column in _COLUMNS.items():
        if family == each.value:
            return each, column
    raise InputError("family", family, [each.value for each in _COLUMNS])


def _with_sizes(rows: Frame, column: str, move_s: int | None) -> Frame:
    """Add what events are measured by, where the rows lack it."""
    if column == MOVE:
        return price_moves(rows, MOVE_S if move_s is None else move_s)
    if move_s is not None:
        raise InputError("move_s", move_s, "None, but for splashes")
    if column in SPREADS:
        return holding(rows, column)
    checked_columns(rows, _SENT)
    return rows.with_columns((_BPS_A_PERCENT * pl.col(_SENT)).alias(column))


def _log(lives: Frame, family: EventFamily) -> pl.LazyFrame:
    """Return the events of a family with their trajectory, not yet read."""
    of_splash = family is EventFamily.SPLASH
    checked_types(lives, _SPLASHES if of_splash else _LIVES, parameter="lives")
    rows = lives.lazy().filter(family=family.value)
    of, size = trajectory_of(), pl.col("peak")
    if of_splash:
        kind = pl.when(pl.col("direction") < 0).then(pl.lit(DUMP)).otherwise(pl.lit(PUMP))
        of, size = of + kind, size.abs()
    needed = rows.select(of, "event", "t_open", "t_close", size, "known_until")
    return needed.drop_nulls("trajectory")


def _opened(logged: pl.DataFrame, window: Interval) -> pl.DataFrame:
    """Return the events that opened in a window, by trajectory and time."""
    inside = pl.col("t_open").is_between(*window, closed="left")
    order = dict.fromkeys(("trajectory", "t_open", "event"), False)
    return in_order(logged.drop("known_until").filter(inside), order)


def smallest_size_bps(
    lives: Frame, window: Ends, family: EventFamily | str = EventFamily.SPREAD
) -> float:
    """Return the smallest size of an event of a family that opened in a window (bps).

    Of funding it is in bps per 8 h. It is the threshold of `audited` where none is given. Raises
    `InputError` where no event has a size.

    >>> lives = pl.DataFrame({"family": ["spread"], "event": ["s1"], "symbol": ["A_B"],
    ...     "legs": ["X.spot → Y.spot"], "t_open": [125], "t_close": [250], "peak": [0.75],
    ...     "known_until": [300]})
    >>> smallest_size_bps(lives, (0, 300))
    75.0
    """
    logged = with_categories(_log(lives, _measured(family)[0]), but=["event"])
    opened = _opened(logged, Interval.of(window))
    least = opened.filter(pl.col("peak") > 0)["peak"].min()
    if not isinstance(least, float):
        allowed = "basis points above 0, as no event has a size to take them from"
        raise InputError("enter_bps", None, allowed)
    return _BPS_A_PERCENT * least


@analysis(
    "events.audit",
    (
        *("precision", "precision_lower", "precision_upper", "recall", "recall_lower"),
        *("recall_upper", "delay_median_s", "n_events", "n_events_judged", "n_episodes"),
        *("n_episodes_judged", "delay_q25_s", "delay_q75_s"),
    ),
    key=GROUP_COLUMNS[:-1],
    title=_audit_title,
    about="""
        Precision is the share of events that the rows show too. Recall is the share of episodes,
        stretches of so large a spread, differential or move, that have an event. The delay is from
        the beginning of an episode to its event, below 0 within a bar. What cannot be judged counts
        on neither side: trajectories that are not held, and gaps of the rows and of the log. --by
        size takes the largest spread of an episode, and of an event without one its own.

        Before: rail sync events/spread""",
    example="--by symbol",
    of="events.audited",
    by=BY_OPENING,
)
def audit(rows: pl.DataFrame, *, by: Sequence[str] = ()) -> pl.DataFrame:
    """Sum up how true a log is: how many events are real, how many episodes it saw, how late.

    ``rows`` are those of `audited`, with columns of one's own for groups: the size, the plan that
    the log was asked with. One row per group of the columns ``by``, sorted, or one row:

    {columns}

    ``enter_bps``, ``window_start``, ``window_end``, ``method`` and ``params_hash`` follow, those of
    ``rows``. A recall below 1 may be of the rows: an episode within one bar is none of the log's
    where the service asks for more than one.

    Raises
    ------
    InputError
        A column is missing or of another type.

    References
    ----------
    Clopper, C. J. and Pearson, E. S. (1934), The use of confidence or fiducial limits, Biometrika
    26.

    Examples
    --------
    >>> spreads = pl.DataFrame({"trajectory": ["A_B:X.spot:Y.spot"] * 4, "ts": [0, 60, 120, 180],
    ...     "spread_bps": [10.0, 80.0, 10.0, 90.0]})
    >>> lives = pl.DataFrame({"family": ["spread"], "event": ["s1"], "symbol": ["A_B"],
    ...     "legs": ["X.spot → Y.spot"], "t_open": [125], "t_close": [150], "peak": [0.8],
    ...     "known_until": [300]})
    >>> found = audited(lives, spreads, 0, 300, enter_bps=50, slack_s=0)
    >>> audit(found).select("precision", "recall", "delay_median_s").row(0)
    (1.0, 0.5, 5.0)
    """
    flags = dict.fromkeys(("judged", "episode_judged"), "Boolean")
    checked_types(rows, {"found_in": "String", **flags}, parameter="rows")
    by = [by] if isinstance(by, str) else list(by)
    for name in by:
        if name not in rows.columns:
            raise InputError("by", name, rows.columns)
    event, both = pl.col("event").is_not_null(), pl.col("found_in") == "both"
    # an episode of several events is one
    episode = pl.struct(pl.col("trajectory").cast(pl.Categorical), "episode_start")
    counts = pl.col("episode_judged")
    seen = episode.filter(both & counts).n_unique()
    alone = pl.col("found_in") == "rows"
    delay = pl.col("delay_s")
    sums = [
        event.sum().alias("n_events"),
        (event & pl.col("judged")).sum().alias("n_events_judged"),
        (event & both).sum().alias("n_confirmed"),
        (episode.filter(both).n_unique() + alone.sum()).alias("n_episodes"),
        (seen + (alone & counts).sum()).alias("n_episodes_judged"),
        seen.alias("n_seen"),
        delay.count().alias("n_delays"),
        delay.median().alias("delay_median_s"),
        delay.quantile(0.25, "linear").alias("delay_q25_s"),
        delay.quantile(0.75, "linear").alias("delay_q75_s"),
        # 0 is added since -0 is what rounds from just below it
        ((pl.col("event_peak_pct") - pl.col("episode_peak_pct")).median().round(9) + 0.0).alias(
            "peak_error_median_pct"
        ),
        *(pl.col(name).first() for name in ("enter_bps", *_CONTRACT)),
    ]
    found = rows.group_by(by).agg(sums).sort(by) if by else rows.select(sums)
    return found.with_columns(pl.col("^n_.*$").cast(pl.Int64)).select(
        *by,
        "n_events",
        "n_events_judged",
        *share_columns("n_confirmed", "n_events_judged", "precision"),
        "n_episodes",
        "n_episodes_judged",
        *share_columns("n_seen", "n_episodes_judged", "recall"),
        "n_delays",
        "delay_median_s",
        "delay_q25_s",
        "delay_q75_s",
        "peak_error_median_pct",
        first_reason({Reason.EMPTY: pl.col("n_delays") == 0}).alias("delay_reason"),
        "enter_bps",
        *_CONTRACT,
    )
