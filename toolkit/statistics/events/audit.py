"""How true a log of events is, against the episodes in the trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.cards import duration
from toolkit.columns import described
from toolkit.errors import InputError
from toolkit.intervals import Ends, Interval
from toolkit.market import EventFamily, When
from toolkit.reasons import Reason
from toolkit.statistics.core.categories import in_order, in_words, with_categories
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_columns,
    checked_times,
    checked_types,
    collected,
    first_reason,
    real_number,
    whole_number,
)
from toolkit.statistics.core.definition import SPREADS, holding
from toolkit.statistics.core.observations import observed, ordered
from toolkit.statistics.core.windows import window_of
from toolkit.statistics.events.documents import trajectory_of
from toolkit.statistics.events.exposure import checked_held
from toolkit.statistics.events.groups import BY_OPENING, GROUP_COLUMNS
from toolkit.statistics.events.matching import WHY, matched_rows
from toolkit.statistics.events.paths import KnownValues
from toolkit.statistics.numeric.tails import share_columns
from toolkit.statistics.spread.episodes import episodes

MOVE = "move_bps"
"""The column of moves."""

PUMP, DUMP = ":pump", ":dump"
"""What follows on the trajectory of a price in that of its rises, and of its falls."""


@described("price_moves.price_moves")
def price_moves(prices: Frame, move_s: int) -> pl.DataFrame:
    """Compute how far each price lies above the lowest, and below the highest, of a time before.

    ``prices`` have ``trajectory`` (String), ``ts`` (Int64, s, Unix UTC) and ``price`` (Float64), in
    any order. The time is ``[ts - move_s, ts]``, both ends inside. There are two rows per row of
    prices, sorted by trajectory and time:

    {columns}

    Raises
    ------
    InputError
        A column is missing or of another type. A trajectory or ts is null, or two rows share both.
        ``move_s`` is no whole number of seconds from 1.

    Examples
    --------
    >>> prices = pl.DataFrame({"trajectory": ["A_B:X.spot"] * 3, "ts": [0, 60, 120],
    ...     "price": [100.0, 103.0, 102.0]})
    >>> price_moves(prices, 60).select("trajectory", pl.col("move_bps").round(1)).rows()[4:]
    [('A_B:X.spot:pump', 300.0), ('A_B:X.spot:pump', 0.0)]
    """
    move_s = whole_number("move_s", move_s, 1, "seconds, at least 1")
    checked_columns(prices, "price")
    price = observed("price")
    positive = pl.when(price > 0).then(price).alias("price")
    rows = collected(prices.lazy().select("trajectory", "ts", positive))
    checked_times(rows)
    extremes = [
        rolling("ts", window_size=f"{move_s}i", closed="both", min_samples=2)
        .over("trajectory")
        .alias(name)
        for name, rolling in (
            ("lowest", pl.col("price").rolling_min_by),
            ("highest", pl.col("price").rolling_max_by),
        )
    ]
    rows = ordered(rows).with_columns(extremes)
    kinds = {
        DUMP: 1e4 * (1 - pl.col("price") / pl.col("highest")),
        PUMP: 1e4 * (pl.col("price") / pl.col("lowest") - 1),
    }
    found = [
        rows.select(pl.col("trajectory") + kind, "ts", move.alias(MOVE))
        for kind, move in kinds.items()
    ]
    return pl.concat(found).sort("trajectory", "ts")


_FIRST, _LAST = -(2**62), 2**62


def judged(
    rows: pl.DataFrame,
    lives: pl.DataFrame,
    held: pl.DataFrame | None,
    window: Interval,
    slack_s: int,
) -> pl.DataFrame:
    """Tell which rows of an audit count, by what is known of the log when their episodes began.

    ``rows`` have the columns of `toolkit.statistics.events.audit.audited`, of which audit_reason,
    judged and episode_judged are completed. ``lives`` are all events of their family, with their
    trajectory, and ``held`` the stretches of that family (None: the log is held at all times).
    """
    starts, ends = pl.Series([_FIRST], dtype=pl.Int64), pl.Series([_LAST], dtype=pl.Int64)
    if held is not None:
        stretches = held.sort("start_ts")
        starts = pl.concat([starts, stretches["start_ts"]])
        ends = pl.concat([pl.Series([_FIRST]), stretches["end_ts"].cum_max()])
    place = starts.search_sorted(rows["episode_start"].fill_null(_FIRST), side="right") - 1
    late = pl.col("episode_start") >= pl.lit(lives["known_until"].max(), pl.Int64)
    unknown = {
        "log_ended": late.fill_null(value=False),
        "log_gap": pl.lit(rows["episode_start"] >= ends.gather(place)).fill_null(value=False),
        "still_open": pl.lit(_still_open(rows, _begun(lives, starts, window), slack_s)),
    }
    reason = pl.col("audit_reason")
    why = [
        pl.when((reason == "missed") & case).then(pl.lit(name, WHY))
        for name, case in unknown.items()
    ]
    return rows.with_columns(
        pl.coalesce(*why, reason).alias("audit_reason"),
        pl.col("episode_judged") & ~pl.any_horizontal(unknown.values()),
    ).with_columns(judged=reason.is_null() | reason.is_in(["below", "missed"]))


def _begun(lives: pl.DataFrame, starts: pl.Series, window: Interval) -> pl.DataFrame:
    """Return when each event came into sight, and until when it may have been open.

    One whose opening was not seen is there from where the log was held again before its close. Of
    several such, one alone can have been open then: the first to close. One that opened in the
    window and closed is open for the episodes that it matches alone.
    """
    again = starts.gather(
        starts.search_sorted(lives["t_close"].fill_null(_FIRST), side="right") - 1
    )
    opened, closed = pl.col("t_open"), pl.col("t_close")
    seen = opened >= window.start
    return lives.select(
        "trajectory",
        pl.coalesce(opened, pl.Series(again)).alias("begun"),
        pl.when(closed.is_null())
        .then(_LAST)
        .when(seen)
        .then(_FIRST)
        .otherwise(closed)
        .alias("until"),
    ).sort(["begun", "until"], descending=[False, True])


def _still_open(rows: pl.DataFrame, begun: pl.DataFrame, slack_s: int) -> pl.Series:
    """Return whether the last event that began before an episode, not of it, may be open then."""
    asked = rows.select("trajectory", at=pl.col("episode_start") - slack_s)
    still_open = (pl.col("at") <= pl.col("until")).fill_null(value=False)
    return (
        asked.with_row_index()
        .sort("at")
        .join_asof(
            begun,
            left_on="at",
            right_on="begun",
            by="trajectory",
            allow_exact_matches=False,
            check_sortedness=False,
        )
        .select("index", still_open.alias("still_open"))
        .sort("index")["still_open"]
    )


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
    dump below the highest, as in `toolkit.statistics.events.audit`. Trajectories end in :pump or
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
