"""Preview of a load: missing data, the number of requests, data about to leave the archive.

It comes from the planner of a load (`toolkit.loader.sync.plan`).
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import polars as pl

from toolkit.cards import Card, Shown, counted, duration, some
from toolkit.client import Client
from toolkit.columns import described, schema_of
from toolkit.errors import ServiceError
from toolkit.intervals import EVER, Interval, clip, difference, total_s, union
from toolkit.loader.sync.plan import ClockReading, edge_of, plan
from toolkit.loader.sync.sync import checked_workers, prepare
from toolkit.loader.sync.tasks import LogTask, SnapshotTask, Task, TrajectoryTask, slices
from toolkit.market import Family, Source, Stream, Trajectory, format_ts
from toolkit.store import Edge, Ledger, Store
from toolkit.store.writing.writer import check_source
from toolkit.wire.profile.profile import BUILT_IN, LARGEST_PAGE, Profile
from toolkit.wire.quota import Allowance


class Bound(StrEnum):
    """How an estimate relates to what a load then makes."""

    EXACT = "exact"
    AT_MOST = "at most"
    AT_LEAST = "at least"
    ABOUT = "about"

    @classmethod
    def of_sum(cls, bounds: Iterable[Bound]) -> Bound:
        """Return the bound of a sum of estimates.

        >>> print(Bound.of_sum([Bound.EXACT, Bound.AT_MOST]))
        at most
        """
        found = set(bounds) - {cls.EXACT}
        return cls.ABOUT if len(found) > 1 else found.pop() if found else cls.EXACT


@dataclass(frozen=True, slots=True)
class Expected:
    """What a store has of a stream: its first row (s), and rows per second of what was answered.

    ``regular``: each step between the first and the last row has its row. ``step_s`` is the
    stream's own step, else (``assumed``) the commonest of its kind.
    """

    first_ts: int | None = None
    regular: bool = False
    step_s: int | None = None
    assumed: bool = False
    rows_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Rows or documents expected (None: not known) and requests, and what the latter are."""

    rows: int | None
    requests: int
    bound: Bound


def estimate(profile: Profile, task: Task, held: Expected) -> Estimate:
    """Estimate what a task will bring and make.

    A snapshot is one request, a log's window a page or more, by the density of what the store has.
    Of a trajectory it is exact where rows follow each other by the step, the stretch is over, and a
    row before it is stored. Without such a row, one more request finds the archive's first one.
    Where rows are absent it is fewer.
    """
    if isinstance(task, SnapshotTask):
        return Estimate(1, 1, Bound.EXACT)
    if isinstance(task, LogTask):
        if held.rows_per_s is None:
            return Estimate(None, 1, Bound.AT_LEAST)
        rows = round(held.rows_per_s * task.stretch.length_s)
        limit = profile.events[task.stream.family].limit
        return Estimate(rows, max(1, math.ceil(rows / limit)), Bound.ABOUT)
    if held.step_s is None:
        return Estimate(None, 1, Bound.AT_LEAST)
    visible = visible_part(task.stretch, task.edge, held.step_s, task.stream.family)
    rows = rows_expected(visible, held.step_s, task.edge.tail_ts or 0)
    reached, start = task.edge.reachable_from, task.stretch.start
    first = not _begins_before(task, held) or (reached or start) > start - held.step_s
    return Estimate(rows, pages_of_rows(rows, task.page_rows, first=first), _bound(task, held))


def _bound(task: TrajectoryTask, held: Expected) -> Bound:
    """Return what the requests of a trajectory's task are."""
    final = task.edge.clock - task.edge.delay_s - (held.step_s or 0)
    bounds = [
        Bound.ABOUT if held.assumed else Bound.EXACT,
        Bound.AT_LEAST if task.stretch.end > final else Bound.EXACT,  # more rows appear meanwhile
        Bound.EXACT if held.regular and _begins_before(task, held) else Bound.AT_MOST,
        Bound.AT_MOST if not difference([task.stretch], task.before) else Bound.EXACT,
    ]
    return Bound.of_sum(bounds)


def _begins_before(task: TrajectoryTask, held: Expected) -> bool:
    """Check whether a row before a task's stretch is stored."""
    return held.first_ts is not None and held.first_ts < task.stretch.start


def visible_part(part: Interval, edge: Edge, step_s: int, family: Family) -> Interval:
    """Return the part whose rows the service shows by now: a bar when it is over.

    >>> tuple(visible_part(Interval(0, 900), Edge(600, delay_s=60), 60, Family.PRICE))
    (0, 481)
    """
    lasts_s = 0 if family is Family.FUNDING else step_s
    until = edge.served_at - edge.delay_s - lasts_s + 1
    return Interval(part.start, max(part.start, min(part.end, until)))


def rows_expected(part: Interval, step_s: int, at: int) -> int:
    """Count the rows in a part, one per step, one of them at ``at`` (s).

    >>> rows_expected(Interval(0, 120), 60, 0), rows_expected(Interval(1, 120), 60, 0)
    (2, 1)
    """
    return max(0, (part.end - 1 - at) // step_s - (part.start - 1 - at) // step_s)


def pages_of_rows(rows: int, limit: int, *, first: bool) -> int:
    """Return the requests that the pager makes for so many rows, ``limit`` per page.

    Every page after the first repeats the oldest row before it. A page with a row from before the
    stretch is the last. With ``first`` there is none, and one more, empty page ends it.

    >>> [pages_of_rows(rows, 500, first=False) for rows in (0, 1, 499, 500, 998, 999)]
    [1, 1, 1, 2, 2, 3]
    """
    newest, *others = slices(max(0, rows - limit), limit, 1)
    parts = [min(rows, limit) + newest, *others]
    one_more = [False] * len(others) + [first]
    return sum(_pages(part, limit, first=last) for part, last in zip(parts, one_more, strict=True))


def _pages(rows: int, limit: int, *, first: bool) -> int:
    if first:
        return max(1, math.ceil((rows - 1) / (limit - 1))) + 1
    return max(1, math.ceil(rows / (limit - 1)))


def quota_wait_s(requests: int, allowance: Allowance | None) -> int | None:
    """Return how long a quota makes so many requests wait (s), None where it is not known.

    What is left of the window goes first, then a whole quota each window.

    >>> plan = Allowance("builder", quota=600, window_s=60, left=100, reset_s=20)
    >>> [quota_wait_s(requests, plan) for requests in (100, 101, 700, 701)]
    [0, 20, 20, 80]
    """
    if allowance is None or not allowance.quota or allowance.window_s is None:
        return None
    left = allowance.quota if allowance.left is None else allowance.left
    if requests <= left:
        return 0
    reset_s = allowance.window_s if allowance.reset_s is None else allowance.reset_s
    return reset_s + (math.ceil((requests - left) / allowance.quota) - 1) * allowance.window_s


_DAY_S = 86_400
_PAGES_PER_CHECK = 100
_ROW_BYTES, _MANY_ROWS = 20, 50_000

PLANNED = schema_of("planned.PlannedLoad")
"""The columns of `PlannedLoad.df`."""


@described("planned.PlannedLoad")
@dataclass(frozen=True, slots=True, repr=False)
class PlannedLoad(Shown):
    """What a load of a window would ask for, and what the archive drops without one.

    ``df`` has one row per stream, in the order asked for:

    {columns}

    ``intervals`` has a row per stretch or window, in the order of loading: stream, start_ts, end_ts
    (s, null for a snapshot), rows, requests, bound, and deadline, when its first second leaves the
    archive (Unix s, null for never).

    ``requests`` is the sum, ``bound`` what it is. ``schemas`` is the least number of requests for
    the schemas: one, and one per hundred pages. ``wait_s`` is how long the quota makes them wait,
    None without a quota. ``takes_s`` adds the least time of the requests themselves.
    """

    source: Source
    window: Interval
    served_at: int
    df: pl.DataFrame = field(repr=False, compare=False)
    intervals: pl.DataFrame = field(repr=False, compare=False)
    allowance: Allowance | None
    schemas: int
    wait_s: int | None
    takes_s: float
    refused: Mapping[Stream, ServiceError] = field(default_factory=dict)
    unrecoverable: Mapping[Stream, list[Interval]] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        """Requests of all streams, without those for the schemas."""
        return int(self.df["requests"].sum())

    @property
    def bound(self) -> Bound:
        """How `requests` relates to what the load then makes."""
        return Bound.of_sum(map(Bound, self.df["bound"].drop_nulls()))

    @property
    def rows(self) -> int | None:
        """Rows expected of the streams of which that is known, None if it is of none."""
        known = self.df["rows"].drop_nulls()
        return int(known.sum()) if known.len() else None

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"

    def __str__(self) -> str:
        word = "" if self.bound is Bound.EXACT else f"{self.bound} "
        return f"{word}{counted(self.requests, 'request')}, {self.quota_words}"

    @property
    def quota_words(self) -> str:
        """The plan's quota, what is left of it, and how long it makes this load take, in words."""
        plan = self.allowance
        takes = f"{duration(self.takes_s)} or more"
        if plan is None or plan.quota is None:
            return f"{takes}; the service names no quota"
        left = "" if plan.left is None else f", {plan.left:,} left"
        waits = f" of which the quota waits {duration(self.wait_s)}" if self.wait_s else ""
        return f"{takes}{waits}; {plan.plan}: {plan.quota:,} per {duration(plan.window_s)}{left}"

    @property
    def leaving_words(self) -> str:
        """What the archive drops in the next 24 hours if nothing is done, in words."""
        going = self.df.drop_nulls("leaves_at")
        if going.is_empty():
            return "nothing that was asked for and is not held"
        rows, unknown = going["leaves_rows"].sum(), going["leaves_rows"].null_count()
        more = f" ({counted(unknown, 'stream')} not known)" if unknown else ""
        times = [going[f"leaves_{name}"].to_numpy() for name in ("start_ts", "end_ts", "at")]
        start, end, at = int(times[0].min()), int(times[1].max()), int(times[2].min())
        first = duration(max(0, at - self.served_at))
        return (
            f"{counted(going.height, 'stream')}, up to {rows:,} rows{more}, "
            f"from {format_ts(start)} to {format_ts(end)}, the first second in {first}"
        )

    @property
    def card(self) -> Card:
        """The facts of the plan: what is missing, its requests, and what is about to be lost."""
        missing = self.df.filter(pl.col("stretches") > 0)["stream"].to_list()
        rows = "rows not known" if self.rows is None else counted(self.rows, "row")
        asked = f"{self.bound} {self.requests:,}, and {self.schemas:,} or more of schemas"
        facts = [
            ("window", str(self.window)),
            ("missing", f"{rows} of {counted(len(missing), 'stream')}: {some(missing)}"),
            ("requests", asked),
            ("takes", self.quota_words),
            ("leaves the archive in 24 h", self.leaving_words),
        ]
        if self.refused:
            facts.append(("refused", some([f"{s}: {e}" for s, e in self.refused.items()])))
        if self.unrecoverable:
            gone = [f"{asked} {duration(total_s(s))}" for asked, s in self.unrecoverable.items()]
            facts.append(("beyond the plan's depth", some(gone)))
        return Card(f"Plan of a load from {self.source.label}", facts)


def plan_load(
    client: Client,
    store: Store,
    streams: Sequence[Stream],
    window: Interval,
    *,
    again: bool = False,
    workers: int = 4,
) -> PlannedLoad:
    """Plan what `toolkit.loader.sync` would carry out with the same arguments. Loads nothing.

    Asks for the schemas, and for the symbols where trajectories are new to the store. Raises what a
    load raises before it asks for rows.
    """
    checked_workers(workers)
    window, streams = Interval.checked(*window), list(dict.fromkeys(streams))
    began = time.monotonic()
    profile = client.discover()
    request_s = time.monotonic() - began
    source = client.profile().source or Source("unknown", client.base_url)
    if store.path.exists():
        check_source(store.path, store.source, source)
    missing, clock, refused, _ = prepare(client, profile, store, streams, window, again=again)
    whole = store.ledger(streams) if store.path.exists() else {}
    held = _held(store, streams, whole)
    tasks = [(task, estimate(profile, task, held[task.stream])) for task in missing.tasks]
    rows = []
    for stream in streams:
        known = whole.get(stream, Ledger(None))
        row = _asked([each for each in tasks if each[0].stream == stream])
        if stream in refused:
            row = {"refused": str(refused[stream])}
        else:
            edge = edge_of(profile, stream, known, clock)
            counted_in = EVER if known.asked else window
            row |= _leaving(known, edge, held[stream], counted_in)
        rows.append({"stream": stream.key, "kind": stream.kind, **row})
    total = sum(each.requests for _, each in tasks)
    schemas = 1 + math.ceil(total / _PAGES_PER_CHECK)
    wait_s = quota_wait_s(total + schemas, client.allowance)
    return PlannedLoad(
        source=source,
        window=window,
        served_at=client.served_at(),
        df=pl.DataFrame(rows, schema=PLANNED),
        intervals=_intervals(tasks),
        allowance=client.allowance,
        schemas=schemas,
        wait_s=wait_s,
        takes_s=(wait_s or 0) + (total / workers + schemas) * request_s,
        refused=refused,
        unrecoverable=missing.unrecoverable,
    )


def expected_load(store: Store, parts: pl.DataFrame) -> pl.DataFrame:
    """Estimate how many requests and rows each part of a stream takes, without asking the service.

    ``parts`` has stream, start_ts and end_ts (s UTC), none after now by the service's clock. The
    profile is the built-in one, with the largest pages and the plan's depth at the last answer.
    Returns per part: requests (count, one or more) and rows (count, null where the step of the rows
    or the density of the log is unknown).

    >>> import tempfile
    >>> from toolkit.store import StoreWriter
    >>> parts = pl.DataFrame({"stream": ["events/splash"], "start_ts": [0], "end_ts": [172_800]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(f"{folder}/rail.duckdb")
    ...     _ = StoreWriter(store).bind(Source("simulated", "seed-7"))
    ...     expected_load(store, parts).rows()
    [(2, None)]
    """
    streams = {key: Stream.parse(key) for key in parts["stream"].unique()}
    ledger = store.ledger(streams.values()) if streams else {}
    held = _held(store, list(streams.values()), ledger)
    found = []
    for key, start, end in parts.select("stream", "start_ts", "end_ts").iter_rows():
        stream, known = streams[key], ledger.get(streams[key], Ledger(None))
        now = max(end, known.edge.served_at if known.edge else end)
        asked, profile = {stream: [Interval(start, end)]}, _usual(stream, known)
        tasks = plan(profile, {stream: known}, asked, ClockReading(now, now)).tasks
        sums = _asked([(task, estimate(profile, task, held[stream])) for task in tasks])
        found.append((max(1, sums["requests"]), sums["rows"]))
    return pl.DataFrame(found, schema={"requests": pl.Int64, "rows": pl.Int64}, orient="row")


def load_words(store: Store, requests: int, rows: int | None) -> str:
    """Return in words what a load takes: requests, rows, and how much the file grows.

    A row takes as many bytes as one of the store on average, 20 in a store of few rows.

    >>> load_words(Store("nowhere.duckdb"), 12, 50_000)
    'about 12 requests, 50,000 rows, 1.0 MB'
    >>> load_words(Store("nowhere.duckdb"), 1, None)
    'about 1 request'
    """
    if rows is None:
        return f"about {counted(requests, 'request')}"
    size = rows * _row_bytes(store)
    room = f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.0f} kB"
    return f"about {counted(requests, 'request')}, {counted(rows, 'row')}, {room}"


def _row_bytes(store: Store) -> float:
    if not store.path.exists():
        return _ROW_BYTES
    held = int(store.catalogue()["rows"].sum())
    return store.path.stat().st_size / held if held >= _MANY_ROWS else _ROW_BYTES


def _usual(stream: Stream, known: Ledger) -> Profile:
    """Return the built-in profile with the largest pages and the known depth of a stream."""
    if not isinstance(stream, Trajectory):
        return BUILT_IN
    depth_s = known.edge.retention_s if known.edge else None
    route = replace(BUILT_IN.histories[stream.family], limit=LARGEST_PAGE, retention_s=depth_s)
    return replace(BUILT_IN, histories={**BUILT_IN.histories, stream.family: route})


def _asked(tasks: Sequence[tuple[Task, Estimate]]) -> dict[str, Any]:
    """Return the values of a stream that are of its tasks."""
    parts = [task.stretch for task, _ in tasks if task.stretch]
    rows = [each.rows for _, each in tasks]
    return {
        "stretches": len(parts),
        "start_ts": min((part.start for part in parts), default=None),
        "end_ts": max((part.end for part in parts), default=None),
        "missing_s": total_s(parts),
        "rows": None if None in rows else sum(each for each in rows if each is not None),
        "requests": sum(each.requests for _, each in tasks),
        "bound": Bound.of_sum(each.bound for _, each in tasks).value,
    }


def _leaving(known: Ledger, edge: Edge, held: Expected, window: Interval) -> dict[str, Any]:
    """Return the values of what leaves the archive within a day and was not answered for.

    Only the window counts.
    """
    oldest = edge.reachable_from
    if oldest is None:
        return {}
    day = clip([(oldest, min(oldest + _DAY_S, edge.served_at))], window)
    parts = difference(day, known.answered)
    if not parts:
        return {}
    rows = None
    if held.rows_per_s is not None:
        rows = round(held.rows_per_s * total_s(parts))
    elif held.step_s is not None:
        at = edge.tail_ts or 0
        rows = sum(rows_expected(part, held.step_s, at) for part in parts)
    return {
        "leaves_at": edge.leaves_at(parts[0].start),
        "leaves_start_ts": parts[0].start,
        "leaves_end_ts": parts[-1].end,
        "leaves_rows": rows,
    }


def _intervals(tasks: Sequence[tuple[Task, Estimate]]) -> pl.DataFrame:
    """Return a row for each task in the order of loading."""
    names = ("stream", "start_ts", "end_ts", "rows", "requests", "bound")
    schema = {name: PLANNED[name] for name in names} | {"deadline": pl.Int64}
    rows = [
        (
            task.stream.key,
            *(task.stretch or (None, None)),
            each.rows,
            each.requests,
            each.bound.value,
            task.deadline,
        )
        for task, each in tasks
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _held(
    store: Store, streams: Sequence[Stream], ledger: Mapping[Stream, Ledger]
) -> dict[Stream, Expected]:
    """Return what the store shows of the steps and densities of some streams."""
    catalogue = store.catalogue() if store.path.exists() else pl.DataFrame()
    rows = {row["stream"]: row for row in catalogue.iter_rows(named=True)}
    steps: dict[str, Counter[int]] = {}
    for row in rows.values():
        if row["step_s"] and row["rows"]:
            steps.setdefault(_clock_of(row["kind"]), Counter())[row["step_s"]] += 1
    found = {}
    for stream in streams:
        common = steps.get(_clock_of(stream.kind))
        row, known = rows.get(stream.key, {}), ledger.get(stream)
        if known is None or not (row.get("rows") or stream.kind == "events"):
            found[stream] = Expected(
                step_s=common.most_common(1)[0][0] if common else None, assumed=True
            )
        elif stream.kind == "events":
            answered_s = total_s(known.answered)
            found[stream] = Expected(rows_per_s=row["rows"] / answered_s if answered_s else None)
        else:
            found[stream] = _series_held(row, known)
    return found


def _clock_of(kind: str) -> str:
    """Return which kinds have one step: prices and spreads are bars of the same clock."""
    return "bars" if kind in (Family.PRICE, Family.SPREAD) else kind


def _series_held(row: Mapping[str, Any], known: Ledger) -> Expected:
    """Return what is stored of a trajectory, and whether all answered parts have their rows."""
    first, last, step_s = row["first_ts"], row["last_ts"], row["step_s"]
    if not step_s:
        return Expected(first)
    final = known.edge.final_before if known.edge else last
    parts = clip(union([*known.answered, (final, last + 1)]), (first, last + 1))
    expected = sum(rows_expected(part, step_s, first) for part in parts)
    return Expected(first, bool(row["rows"] >= expected), step_s)
