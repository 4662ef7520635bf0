"""Accuracy of a log of events, against the episodes in the trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.cards import duration
from toolkit.columns import described, schema_of
from toolkit.errors import InputError
from toolkit.intervals import Ends, Interval
from toolkit.market import EventFamily, When
from toolkit.reasons import Reason
from toolkit.statistics.core.categories import in_order, in_words, with_categories
from toolkit.statistics.core.conditions import Schema
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_columns,
    checked_names,
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
from toolkit.statistics.events.exposure import BY_OPENING, GROUP_COLUMNS, checked_held
from toolkit.statistics.events.paths import KnownValues
from toolkit.statistics.numeric.arrays import Flags, Integers
from toolkit.statistics.numeric.life_curve import numbered
from toolkit.statistics.numeric.tails import share_columns
from toolkit.statistics.spread.episodes import episodes

_WHY_ALONE = ("no_rows", "gap", "below")

FOUND_IN = pl.Enum(["both", "log", "rows"])
WHY = pl.Enum([*_WHY_ALONE, "missed", "began_before", "log_ended", "log_gap", "still_open"])
"""Why one side has no match."""

_WORDS = {"trajectory": pl.Categorical(), "found_in": FOUND_IN, "audit_reason": WHY}
ROWS: Schema = dict([*schema_of("events.audited").items()][:13]) | _WORDS
"""The columns of an audit's rows, with words as numbers to save memory."""


def matched_rows(
    lives: pl.DataFrame, found: pl.DataFrame, known: KnownValues, after_s: int, slack_s: int
) -> pl.DataFrame:
    """Return the events, then the episodes without an event, each by trajectory and time.

    ``lives`` are sorted by both. Episodes are known ``after_s`` later. Without a close the opening
    matches.
    """
    shared = pl.concat([lives.select("trajectory"), found.select("trajectory")])
    names, numbers = numbered(shared, ["trajectory"])
    opened = lives["t_open"].to_numpy()
    ended = lives.select(pl.coalesce("t_close", "t_open")).to_series().to_numpy()
    starts, ends = (found[name].to_numpy() + after_s for name in ("start_ts", "end_ts"))
    place, alone = np.full(lives.height, -1), np.zeros(lives.height, np.int64)
    first, used = np.zeros(lives.height, bool), np.zeros(found.height, bool)
    edges = [
        np.searchsorted(each.to_numpy(), np.arange(names.height + 1))
        for each in (numbers.head(lives.height), numbers.tail(found.height))
    ]
    for at, name in names.iter_rows():
        mine, own = (slice(each[at], each[at + 1]) for each in edges)
        spans = opened[mine] - slack_s, ended[mine] + slack_s
        nearest, first[mine], used[own] = _overlaps(*spans, starts[own], ends[own])
        place[mine] = np.where(nearest < 0, -1, nearest + own.start)
        alone[mine] = _why_alone(name, opened[mine], ended[mine], known)
    shown = np.bincount(place[place >= 0], minlength=found.height) > 0
    return _rows(
        lives.with_columns(
            first=pl.Series(first), alone=pl.Series(_WHY_ALONE, dtype=WHY).gather(alone)
        ),
        pl.Series(place),
        found.select(
            "trajectory",
            episode_judged=~pl.col("censored_left"),
            episode_start=pl.col("start_ts") + after_s,
            episode_end=pl.col("end_ts") + after_s,
            episode_peak_pct=pl.col("peak_bps") / _BPS_A_PERCENT,
            used=pl.Series(used, dtype=pl.Boolean),
            shown=pl.Series(shown, dtype=pl.Boolean),
        ),
    )


def _overlaps(
    opened: Integers, until: Integers, starts: Integers, ends: Integers
) -> tuple[Integers, Flags, Flags]:
    """Match the events of a trajectory, sorted by opening, with its episodes.

    Return each one's first episode or -1, whether no earlier event has it, and which episodes have
    one.
    """
    place, beyond = np.searchsorted(ends, opened), np.searchsorted(starts, until, side="right")
    matched = place < beyond
    furthest = np.maximum.accumulate(np.where(matched, beyond, 0))
    first = matched & (np.concatenate([[0], furthest])[:-1] <= place)
    begin, end = (np.bincount(each[matched], minlength=starts.size + 1) for each in (place, beyond))
    return np.where(matched, place, -1), first, np.cumsum(begin - end)[:-1] > 0


def _why_alone(name: str, opened: Integers, until: Integers, known: KnownValues) -> Integers:
    """Return for each event the place in `_WHY_ALONE` of why no episode matches it."""
    number = known.numbers.get(name, -1)
    if number < 0:
        return np.zeros(opened.size, np.int64)
    times = known.known_ts[known.first[number] : known.first[number + 1]]
    last = np.searchsorted(times, until + known.step_s, side="right")
    return np.where(last > np.searchsorted(times, opened), 2, 1)


def _rows(lives: pl.DataFrame, place: pl.Series, known: pl.DataFrame) -> pl.DataFrame:
    both = pl.col("episode_start").is_not_null()
    beside = pl.exclude("trajectory", "used", "shown").gather(place.set(place < 0, None))
    seen = known.select(beside)
    whole = pl.col("first") & pl.col("episode_judged")
    of_log = (
        lives.rename({"peak": "event_peak_pct"})
        .hstack(seen)
        .with_columns(
            pl.when(both)
            .then(pl.lit("both", FOUND_IN))
            .otherwise(pl.lit("log", FOUND_IN))
            .alias("found_in"),
            pl.when(whole).then(pl.col("t_open") - pl.col("episode_start")).alias("delay_s"),
            pl.when(~both).then("alone").alias("audit_reason"),
        )
    )
    why = (
        pl.when("episode_judged").then(pl.lit("missed", WHY)).otherwise(pl.lit("began_before", WHY))
    )
    rest = known.filter(~pl.col("shown")).with_columns(
        pl.when("used")
        .then(pl.lit("both", FOUND_IN))
        .otherwise(pl.lit("rows", FOUND_IN))
        .alias("found_in"),
        pl.when(~pl.col("used")).then(why).alias("audit_reason"),
    )
    parts = [each.select(set(ROWS) & set(each.columns)) for each in (of_log, rest)]
    return pl.concat([pl.DataFrame(schema=ROWS), *parts], how="diagonal")


MOVE = "move_bps"

PUMP, DUMP = ":pump", ":dump"
"""Suffixes of the trajectories of a price's rises and falls."""


@described("price_moves.price_moves")
def price_moves(prices: Frame, move_s: int) -> pl.DataFrame:
    """Compute how far each price lies above the lowest, and below the highest, of the time before.

    The time is ``[ts - move_s, ts]``. ``prices`` has ``trajectory`` (String), ``ts`` (Int64, s,
    Unix UTC) and ``price`` (Float64), in any order. Two rows per price, sorted by trajectory and
    time:

    {columns}

    Raises `InputError`: A trajectory or ts is null, or two rows share both. ``move_s`` is not a
    whole number of seconds from 1.

    >>> prices = pl.DataFrame({"trajectory": "A_B:X.spot", "ts": [0, 60, 120],
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
    price = pl.col("price")
    lowest, highest = (
        rolling("ts", f"{move_s}i", closed="both", min_samples=2).over("trajectory")
        for rolling in (price.rolling_min_by, price.rolling_max_by)
    )
    kinds = {DUMP: 1e4 * (1 - price / highest), PUMP: 1e4 * (price / lowest - 1)}
    rows = ordered(rows)
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
    """Decide which rows of an audit count, by what is known of the log when their episodes began.

    ``lives`` are all events of the family, ``held`` its covered stretches (None: always).
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
    """Return from when and until when each event may have been open.

    An unseen opening is where coverage resumed: of several such events only the first to close
    counts. One that opened in the window and closed is open only for its own episodes.
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
"""The default time over which a splash moves the price (s)."""

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
        "The spread (bps) that opens an event, for funding the differential per 8 h, for a "
        "splash the move. Default: the smallest size of an event."
    ),
    leave_bps=Parameter("The size (bps) below which it ends. Default: --enter-bps."),
    slack_s=Parameter("How far apart an event and its episode may be.", "s", advanced=True),
    move_s=Parameter("The time within which a splash moves. Default: 5m.", "s", option="--within"),
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
    """Match each event with an episode of its trajectory, and list those without a match.

    ``lives`` are rows of `event_lifecycles`, of which events of ``family`` that opened in the
    window are used. An episode lasts from a spread of at least ``enter_bps`` (None: the smallest
    size of an event) until it falls below ``leave_bps`` (None: the same), as in
    `toolkit.statistics.spread.episodes`. Only positive spreads count: the reverse trajectory has
    its own events.

    ``rows`` have ``trajectory``, ``ts`` and, by family:

    - spread: the prices of both legs, or ``spread_bps``.
    - funding: ``differential_pct_8h``. Sizes are in bps per 8 h.
    - splash: the prices of legs. ``lives`` need the column of `with_direction`. The size is that of
      `price_moves` within ``move_s`` (None: 300), and a longer step is a gap. Trajectories end in
      :pump or :dump. Documents do not name ``move_s`` and ``leave_bps``: see the service's
      description.

    ``held`` is the coverage of the log, as in `survival`. An episode does not count for recall if
    it begins unseen or in a gap of the log, or while an earlier event may still be open: one from
    before the window or a gap, or one without a close, until the next opening. If the archive is
    late, end the window before its youngest events.

    A row is known ``known_after_s`` after its ``ts``. An event and an episode match if they overlap
    or are at most ``slack_s`` apart. Both are by default one step, or 0 for funding. One row per
    event, and one per episode that no row has yet. Sorted by trajectory, events first, and time:

    {columns}

    ``enter_bps`` (Float64), ``window_start``, ``window_end``, ``method``, ``params_hash`` follow.

    Raises `InputError`: As `toolkit.statistics.spread.episodes`. ``family`` has no episodes.

    >>> spreads = pl.DataFrame({"trajectory": "A_B:X.spot:Y.spot", "ts": [0, 60, 120, 180],
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
    known = KnownValues.of(frame, column, step_s, known_after, max_stale_s)
    after = known.step_s if known_after is None else known_after
    usual = 0 if of_funding else known.step_s
    slack = usual if slack_s is None else whole_number("slack_s", slack_s, 0)
    enter_bps, leave_bps = (
        each if each is None else real_number(name, each, "basis points above 0", above=0)
        for name, each in (("enter_bps", enter_bps), ("leave_bps", leave_bps))
    )
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
    for each, column in _COLUMNS.items():
        if family == each.value:
            return each, column
    raise InputError("family", family, [each.value for each in _COLUMNS])


def _with_sizes(rows: Frame, column: str, move_s: int | None) -> Frame:
    if column == MOVE:
        return price_moves(rows, MOVE_S if move_s is None else move_s)
    if move_s is not None:
        raise InputError("move_s", move_s, "None, but for splashes")
    if column in SPREADS:
        return holding(rows, column)
    checked_columns(rows, _SENT)
    return rows.with_columns((_BPS_A_PERCENT * pl.col(_SENT)).alias(column))


def _log(lives: Frame, family: EventFamily) -> pl.LazyFrame:
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
    inside = pl.col("t_open").is_between(*window, closed="left")
    order = dict.fromkeys(("trajectory", "t_open", "event"), False)
    return in_order(logged.drop("known_until").filter(inside), order)


def smallest_size_bps(
    lives: Frame, window: Ends, family: EventFamily | str = EventFamily.SPREAD
) -> float:
    """Return the size of the smallest event that opened in a window (bps, for funding per 8 h).

    The default threshold of `audited`. Raises `InputError` if no event has a size.

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
    """
        precision precision_lower precision_upper recall recall_lower recall_upper delay_median_s
        n_events n_events_judged n_episodes n_episodes_judged delay_q25_s delay_q75_s""",
    key=GROUP_COLUMNS[:-1],
    title=_audit_title,
    about="""
        Precision is the share of events that the rows confirm. Recall is the share of
        episodes, stretches of so large a spread, differential or move, that have an event.
        The delay is the time from the beginning of an episode to its event, negative within
        a bar. Neither counts what cannot be judged: trajectories without stored rows, and
        gaps of the rows and of the log. --by size groups by the largest spread of an
        episode, or of an event without one.

        Before: rail sync events/spread""",
    example="--by symbol",
    of="events.audited",
    by=BY_OPENING,
)
def audit(rows: pl.DataFrame, *, by: Sequence[str] = ()) -> pl.DataFrame:
    """Summarise the accuracy of a log: precision, recall and delay.

    ``rows`` are those of `audited`, with any columns to group ``by``. One row per group, sorted, or
    one row:

    {columns}

    ``enter_bps``, ``window_start``, ``window_end``, ``method`` and ``params_hash`` of ``rows``
    follow.

    Source: Clopper, C. J. and Pearson, E. S. (1934), Biometrika 26.

    >>> spreads = pl.DataFrame({"trajectory": "A_B:X.spot:Y.spot", "ts": [0, 60, 120, 180],
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
    by = checked_names("by", by, rows.columns)
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
    whole = found.with_columns(pl.col("^n_.*$").cast(pl.Int64)).with_columns(
        *share_columns("n_confirmed", "n_events_judged", "precision"),
        *share_columns("n_seen", "n_episodes_judged", "recall"),
        delay_reason=first_reason({Reason.EMPTY: pl.col("n_delays") == 0}),
    )
    return whole.select(*by, *schema_of("events.audit"))
