"""The command, the pages, the chart's shading and a notebook's call count the same events."""

from __future__ import annotations

import json
import re
from collections import Counter

import polars as pl
import pytest
from typer.testing import CliRunner

from toolkit.charts import spread_chart
from toolkit.cli.analyses import stats as app
from toolkit.intervals import Interval, clip
from toolkit.market import EventFamily, Trajectory, format_ts
from toolkit.statistics.events import documents_window, event_lifecycles
from toolkit.statistics.survival import median_life
from toolkit.store import Store

from .shown import figures, rows_of
from .test_events_page import LAST, SERVED_AT, SOURCE, document, fill

WINDOW = Interval(SERVED_AT - 86_400, SERVED_AT)
MOVES = {"pump": "splash", "dump": "splash"}
SEEN = {
    "closed": "closed",
    "open": "still open",
    "reopened": "over, its close was lost",
    "orphan_close": "closed, opening not seen",
    "orphan_update": "neither end seen",
}
KINDS = Counter(
    {
        ("spread", "closed"): 3,
        ("spread", "open"): 2,
        ("spread", "reopened"): 1,
        ("spread", "orphan_close"): 1,
        ("spread", "orphan_update"): 1,
        ("splash", "closed"): 1,
        ("funding", "closed"): 1,
    }
)


def rows(*, ids):
    """Ten events of the last day, and two that were over before it began."""
    told = [
        ("before", "opened", LAST - 2, {"symbol": "A_B"}),
        ("before", "closed", LAST + 2, {"symbol": "A_B"}),
        ("inside", "opened", LAST + 3, {"symbol": "C_D"}),
        ("inside", "closed", LAST + 4, {"symbol": "C_D"}),
        ("close-lost", "opened", LAST + 5, {"symbol": "E_F"}),
        ("close-lost", "opened", LAST + 7, {"symbol": "E_F"}),
        ("close-lost", "closed", LAST + 8, {"symbol": "E_F"}),
        ("orphan", "closed", LAST + 9, {"symbol": "G_H"}),
        ("updates", "updated", LAST + 10, {"symbol": "I_J"}),
        ("open", "opened", LAST + 11, {"symbol": "K_L"}),
        ("long-open", "opened", LAST - 30, {"symbol": "M_N"}),
        ("over", "opened", LAST - 9, {"symbol": "O_P"}),
        ("over", "closed", LAST - 8, {"symbol": "O_P"}),
        ("close-lost-before", "opened", 1, {"symbol": "Q_R"}),
        ("pump", "pump", LAST - 1, {"family": "splash"}),
        ("pump", "faded", LAST + 1, {"family": "splash"}),
        ("funding", "opened", LAST - 60, {"family": "funding"}),
        ("funding", "closed", LAST + 6, {"family": "funding"}),
    ]
    return [
        document(event if ids else f"sha256:{number:064x}", kind, hour, **more)
        for number, (event, kind, hour, more) in enumerate(told)
    ]


@pytest.fixture(scope="module", params=[True, False], ids=["with event ids", "without event ids"])
def store(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairing")
    return Store(fill(folder / "held.duckdb", rows(ids=request.param)))


@pytest.fixture(scope="module")
def lifecycles(store):
    """The call of a notebook, over the documents of every family."""
    read = documents_window(WINDOW)
    events = pl.concat(store.events(family, read) for family in EventFamily)
    return event_lifecycles(events, *WINDOW)


def test_a_notebooks_call_finds_each_event_with_its_true_duration_or_none(lifecycles):
    assert Counter(lifecycles.select("family", "kind").rows()) == KINDS
    if "made_id" in lifecycles["lifecycle_reason"]:
        assert lifecycles["duration_s"].null_count() == lifecycles.height
        return
    lasted = dict(lifecycles.filter(observed=1).select("symbol", "duration_s").rows())
    by_symbol = lifecycles.filter(family="spread", observed=1)
    assert dict(by_symbol.select("symbol", "duration_s").rows()) == {
        "A_B": 4 * 3600.0,
        "C_D": 3600.0,
        "E_F": 3600.0,
    }
    assert lasted["BTC_USDT"] in {2 * 3600.0, 66 * 3600.0}


def test_the_command_counts_the_same_events(store, lifecycles):
    window = ["--start", format_ts(WINDOW.start), "--end", format_ts(WINDOW.end)]
    result = CliRunner().invoke(
        app, ["events", "--format", "json", "--store", str(store.path), *window]
    )
    assert result.exit_code == 0, result.output
    counts = {row["family"]: row for row in map(json.loads, result.output.splitlines())}
    for family, row in counts.items():
        mine = lifecycles.filter(family=family)
        kinds = Counter(mine["kind"])
        assert row["n"] == mine.height
        assert [row[kind] for kind in ("closed", "open", "reopened")] == [
            kinds[kind] for kind in ("closed", "open", "reopened")
        ]
        assert row["orphans"] == kinds["orphan_close"] + kinds["orphan_update"]
        assert row["median_life_s"] == median_life(mine)["median_life_s"].item()
    assert set(counts) == set(lifecycles["family"])


@pytest.mark.slow
def test_the_events_page_lists_and_draws_the_same_events(page_alone, store, lifecycles):
    shown = page_alone("events", store.path)
    table = rows_of(shown, "events")
    families = [MOVES.get(move, move) for move in table["kind"]]
    assert Counter(zip(families, table["seen"], strict=True)) == Counter(
        {(family, SEEN[kind]): n for (family, kind), n in KINDS.items()}
    )
    words = [text for bars in figures(shown)[0]["data"][3:] for text in bars["hovertext"]]
    several = [re.match(r"(\d+) \w+ events<br>", text) for text in words]
    drawn = lifecycles.filter(~pl.col("kind").is_in(["orphan_update", "unknown"]))
    assert sum(int(found[1]) if found else 1 for found in several) == drawn.height


def test_the_overview_counts_the_same_openings(page, store, lifecycles):
    shown = page(store.path, "overview")
    values = {metric.label: metric.value for metric in shown.metric}
    opened = lifecycles.filter(pl.col("t_open") >= WINDOW.start)
    assert values["spreads opened, 24 h"] == str(opened.filter(family="spread").height)
    assert values["pumps and dumps, 24 h"] == str(opened.filter(family="splash").height)
    assert values["funding events, 24 h"] == str(opened.filter(family="funding").height)


def test_the_chart_shades_the_same_lifecycles(store, lifecycles):
    events = store.events(EventFamily.SPREAD, documents_window(WINDOW))
    frame = pl.DataFrame(
        {"ts": list(WINDOW), "buy_price": 1.0, "sell_price": 1.0, "spread_log_bps": 0.0}
    )
    spreads = lifecycles.filter(family="spread")
    assert spreads["symbol"].n_unique() == 7
    for symbol, mine in spreads.group_by("symbol"):
        pair = Trajectory.parse(f"{symbol[0]}:AURORA.spot:BOREAS.futures")
        figure = spread_chart(
            frame, trajectory=pair, start=WINDOW.start, end=WINDOW.end, source=SOURCE, events=events
        )
        spans = [
            (
                WINDOW.start if t_open is None else t_open,
                t_close or (t_open + int(duration_s) if kind == "reopened" else WINDOW.end),
            )
            for t_open, t_close, duration_s, kind in mine.select(
                "t_open", "t_close", "duration_s", "kind"
            ).iter_rows()
            if duration_s or kind != "reopened"
        ]
        assert [(shape.x0, shape.x1) for shape in figure.layout.shapes] == [
            (format_ts(since)[:16], format_ts(until)[:16]) for since, until in clip(spans, WINDOW)
        ]
