"""The client against every way of paging, ties, refusals and broken bodies, all at once.

Each cell is one service: all rows arrive, each once, or one clear error names the cause, within a
bounded number of requests. A spanning set of cells (every two values of different axes meet) runs
here; ``RAIL_ADVERSARY=full`` runs the full matrix and holds the table of docs/adversary.md to it,
and ``RAIL_ADVERSARY=write`` writes that table.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests import miniature
from tests.adversary import adverse
from tests.counting import CountingClient
from tests.spanning import Cell, all_pairs, pairs_of, spanning
from toolkit.errors import RailError
from toolkit.intervals import Interval
from toolkit.market import Trajectory
from toolkit.service import Clock, Config, running
from toolkit.wire.exchange import RetryPolicy
from toolkit.wire.profile.user_profile import UserProfile

DOCS = Path(__file__).parents[2] / "docs" / "adversary.md"
MODE = os.environ.get("RAIL_ADVERSARY", "spanning")  # read before a test may not
KEY = Trajectory.parse("BTC_USDT:AURORA.spot:CORONA.futures")
NOW = miniature.OUTAGE[1] + 3_600
ARCHIVE = Interval(miniature.OUTAGE[0] - 3_600, NOW)
WINDOW = Interval(ARCHIVE.start - 1_800, NOW)
LIMIT, CAP = 20, 7
REQUESTS_ALLOWED = 150
ALL_ROWS = "all rows"


@dataclass(frozen=True)
class Trouble:
    """What goes wrong beside the paging, and what has to come of it."""

    rest: dict[str, object] = field(default_factory=dict)
    outcome: str = ALL_ROWS
    names: str = ""
    """What the error's one line says of the cause."""


def befalling(kind: str, outcome: str = ALL_ROWS, names: str = "", **more: object) -> Trouble:
    """Each third answer, or every one where ``more`` says so."""
    accident = {"kind": kind, "every": 3, "routes": ["history/spread"], **more}
    return Trouble({"accidents": [accident]}, outcome, names)


TROUBLES = {
    "none": Trouble(),
    "400": befalling("400", "BadRequestError", "(400)"),
    "401": befalling("401", "KeyRefusedError", "(401)"),
    "402": befalling("402", "PlanRefusedError", "(402)"),
    "403": befalling("403", "PlanRefusedError", "(403)"),
    "404": befalling("404", "NotFoundError", "(404)"),
    "429, Retry-After in seconds": befalling("429"),
    "429, Retry-After a date": befalling("429", retry_after="date"),
    "429, no Retry-After": befalling("429", retry_after="none"),
    "429 for ever": befalling("429", "QuotaError", "quota is spent (429", every=1),
    "500": befalling("500", "UnavailableError", "failed (500"),
    "502": befalling("502"),
    "503": befalling("503"),
    "503 for ever": befalling("503", "UnavailableError", "failed (503", every=1),
    "reset in mid-body": befalling("reset"),
    "reset for ever": befalling("reset", "UnreachableError", "no answer", every=1),
    "truncated JSON": befalling("truncated", "WireError", "not with the JSON of a page"),
    "HTML with status 200": befalling("html", "WireError", "text/html"),
    "slow body": befalling("slow", slow_s=0.002),
    "an unknown field": Trouble({"extra_fields": {"depth": 3}}),
    "a field left out": Trouble({"missing_fields": ["spread_pct"]}),
    "a field renamed": Trouble({"renamed_fields": {"spread_pct": "gap"}}),
    "the time renamed": Trouble(
        {"renamed_fields": {"ts": "t"}}, "WireError", "without a usable time"
    ),
    "another unit": Trouble({"units": {"spread_pct": "bps"}}),
    "times in milliseconds": Trouble({"units": {"ts": "ms"}}),
}
CROWD_S = 1_800
"""Rows of half an hour in one second: more than a page holds."""

AXES: dict[str, tuple[object, ...]] = {
    "end_time": ("exclusive", "inclusive"),
    "next_end_time": ("oldest", "oldest-1", "oldest+1"),
    "at_end": ("null", "missing", "echo", "repeat"),
    "empty_pages_s": (None, 1_800),
    "page_cap": (None, CAP),
    "tie_s": (1, 180, CROWD_S),
    "trouble": tuple(TROUBLES),
}
CELLS = (
    spanning([*AXES.values()]) if MODE == "spanning" else list(itertools.product(*AXES.values()))
)


def name_of(cell: Cell) -> str:
    return "-".join(str(value).replace(" ", "_") for value in cell)


class Counting(CountingClient):
    allowed = REQUESTS_ALLOWED


@dataclass
class Service:
    """The service of all cells, and the rows that it has."""

    base_url: str
    rows: pl.DataFrame
    profile: UserProfile
    control: httpx.Client

    def become(self, cell: Cell) -> Trouble:
        """Let it behave as the cell says."""
        switches = dict(zip(AXES, cell, strict=True))
        trouble = TROUBLES[str(switches.pop("trouble"))]
        said = json.dumps({"rest": switches | trouble.rest})
        answer = self.control.put("/control/adversary", content=said)
        assert answer.status_code == 200, answer.text
        return trouble


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    path = tmp_path_factory.mktemp("profile") / "small.toml"
    path.write_text(f"[history.spread]\nlimit = {LIMIT}\n")
    config = Config(
        miniature.source(),
        port=0,
        clock=Clock(fixed_at=NOW),
        retention_s=ARCHIVE.length_s,
        quota=10**9,
        application=adverse(control=True),
    )
    with (
        running(config) as serving,
        httpx.Client(base_url=serving.base_url, headers={"apikey": "demo-pro"}) as asking,
    ):
        names = {"symbol": str(KEY.symbol), "limit": 5_000}
        for side, leg in (("buy", KEY.buy), ("sell", KEY.sell)):
            names |= {f"{side}_exchange": leg.exchange, f"{side}_market": leg.market.value}
        page = asking.get("/api/v1/data/history/spread", params=names).json()
        assert page["next_end_time"] is None
        rows = pl.DataFrame(page["items"])
        assert rows.height == 120
        yield Service(serving.base_url, rows, UserProfile.read(path), asking)


@dataclass
class Results:
    """What came of the cells, by the rows and columns of the table."""

    outcomes: dict[tuple[str, object], set[str]] = field(default_factory=lambda: defaultdict(set))
    requests: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    cells: int = 0

    def table(self) -> str:
        """As it stands in the docs."""
        heads = ["one row per second", "3 rows per second", "30 rows per second"]
        lines = [
            f"{self.cells:,} cells; pages of {LIMIT} rows asked for; 120 rows in the archive.",
            "",
            f"| what else goes wrong | {' | '.join(heads)} | most requests |",
            f"|---|{'---|' * len(heads)}---:|",
        ]
        for name in TROUBLES:
            found = [", ".join(sorted(self.outcomes[name, tie_s])) for tie_s in AXES["tie_s"]]
            lines.append(f"| {name} | {' | '.join(found)} | {self.requests[name]} |")
        return "\n".join(lines)


BETWEEN = re.compile(r"(?<=<!-- the matrix -->\n\n).*?(?=\n\n<!-- end -->)", re.DOTALL)


def printed() -> str:
    found = BETWEEN.search(DOCS.read_text(encoding="utf-8"))
    assert found, "the page has no place for the table"
    return found[0]


def printed_rows() -> dict[str, list[str]]:
    lines = [line.strip("|").split("|") for line in printed().splitlines() if line[:1] == "|"]
    return {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines[2:]}


@pytest.fixture(scope="module")
def results() -> Iterator[Results]:
    found = Results()
    yield found
    if MODE == "write":
        text = DOCS.read_text(encoding="utf-8")
        DOCS.write_text(BETWEEN.sub(lambda _: found.table(), text), encoding="utf-8")
    elif MODE == "full":
        assert found.table() == printed(), "run `make docs-adversary`"


def expected_rows(rows: pl.DataFrame, tie_s: int, name: str) -> pl.DataFrame:
    """What has to arrive: of a field that no column takes, the value stands in ``extra``."""
    said = rows.with_columns(pl.col("ts") - pl.col("ts") % tie_s, extra=pl.lit(None, pl.String))
    if name == "an unknown field":
        said = said.with_columns(extra=pl.lit('{"depth":3}'))
    if name == "a field renamed":
        kept = [f'{{"gap":{json.dumps(value)}}}' for value in rows["spread_pct"]]
        said = said.with_columns(extra=pl.Series(kept, dtype=pl.String))
    if name in ("a field left out", "a field renamed"):
        said = said.with_columns(spread_pct=pl.lit(None, pl.Float64))
    return said


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS, ids=name_of)
def test_all_rows_arrive_or_one_clear_error_names_the_cause(
    cell: Cell, service: Service, results: Results
) -> None:
    trouble = service.become(cell)
    name, tie_s = str(cell[-1]), int(str(cell[-2]))
    retries = RetryPolicy(fraction=lambda: 1.0)
    outcome = ALL_ROWS
    with Counting(
        service.base_url, "demo-pro", profile=service.profile, retries=retries, sleep=len_of
    ) as client:
        try:
            found = client.history(KEY, *WINDOW)
        except RailError as error:
            outcome = type(error).__name__
            told = str(error)
            assert "\n" not in told
            assert trouble.names in told if outcome == trouble.outcome else tie_s == CROWD_S
        requests = client.requests
    results.cells += 1
    results.outcomes[name, tie_s].add(outcome)
    results.requests[name] = max(results.requests[name], requests)
    crowded = tie_s == CROWD_S
    if outcome == ALL_ROWS:
        want = expected_rows(service.rows, tie_s, name)
        order = ["ts", "buy_price", "sell_price"]
        assert_frame_equal(found.drop("trajectory").sort(order), want.sort(order), rel_tol=1e-12)
    assert outcome in (
        {"PagingError", trouble.outcome} - {ALL_ROWS} if crowded else {trouble.outcome}
    )
    if MODE != "write":
        column = AXES["tie_s"].index(tie_s)
        row = printed_rows()[name]
        assert outcome in row[column].split(", "), "run `make docs-adversary`"
        assert requests <= int(row[-1]), "run `make docs-adversary`"


def len_of(_: float) -> None:
    """No time passes: what would have been waited is of no account here."""


def test_any_two_values_of_different_axes_meet_in_the_spanning_cells() -> None:
    axes = [*AXES.values()]
    assert set().union(*map(pairs_of, spanning(axes))) == all_pairs(axes)


@pytest.mark.skipif(MODE == "write", reason="the table is being written")
def test_the_table_in_the_docs_has_every_row_and_counts_the_full_matrix() -> None:
    count = len(list(itertools.product(*AXES.values())))
    assert printed().startswith(f"{count:,} cells;"), "run `make docs-adversary`"
    assert list(printed_rows()) == list(TROUBLES), "run `make docs-adversary`"
