"""The command, Python, the page and the assistant start what follows an event at one price.

Each pump is seen within a minute in which the price jumps by 4 %, and after it goes back by 1 % in
ten minutes. The first price known after it is that of this minute's end.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import toolkit as tk
from toolkit.assistant.tools import TOOLS
from toolkit.cli import main
from toolkit.columns import column
from toolkit.intervals import Interval
from toolkit.market import Trajectory
from toolkit.show.values import figures_text, value_text
from toolkit.statistics import events as event_statistics
from toolkit.store import Store

from .conftest import EDGE, bring
from .shown import figures, texts
from .test_events_page import HOUR, LAST, SERVED_AT, START, document, fill

LEG = Trajectory.parse("BTC_USDT:AURORA.spot")
HOURS = [LAST - 5 * 24 + 4 * k for k in range(30)]
PUMPED = [START + HOUR * hour + 30 for hour in HOURS]
WINDOW = Interval(START + HOUR * (LAST - 6 * 24), SERVED_AT)
SPAN = Interval(PUMPED[0] - 5 * HOUR, PUMPED[-1] + 4 * HOUR)


def priced() -> pl.DataFrame:
    rng = np.random.default_rng(61)
    ts = np.arange(SPAN.start // 60 * 60, SPAN.end, 60)
    level = np.cumsum(rng.normal(0, 2e-4, ts.size))
    for at in PUMPED:
        bar = at // 60 * 60
        level += np.where(ts >= bar, 0.04, 0.0)
        level -= np.clip((ts - bar) / 600, 0, 1) * 0.01 + np.where(ts >= bar + 3 * HOUR, 0.03, 0.0)
    rows = {"ts": ts, "price": 100 * np.exp(level), "mark_price": None, "volume": None}
    kinds = {"mark_price": pl.Float64, "volume": pl.Float64, "extra": pl.String}
    return pl.DataFrame(rows | {"extra": None}, schema_overrides=kinds)


@pytest.fixture
def store(tmp_path):
    told = []
    for number, hour in enumerate(HOURS):
        for kind, at in (("pump", hour + 30 / HOUR), ("faded", hour + 1)):
            told.append(document(f"p{number}", kind, at, family="splash", pct=4.0))
    held = Store(fill(tmp_path / "held.duckdb", told))
    edge = replace(EDGE, served_at=SERVED_AT)
    bring(held, LEG, priced(), Interval(SPAN.start // 60 * 60, SPAN.end), edge)
    return held


def returns(offset_s: int, *, from_detection: bool = False) -> list[float]:
    """From the bar that ends after each pump, or from the one that ended before it, by a loop."""
    price = dict(priced().select("ts", "price").iter_rows())
    found = []
    for at in PUMPED:
        bar = at // 60 * 60 - 60 * from_detection
        then = bar + offset_s // 60 * 60 if not from_detection else (at + offset_s) // 60 * 60 - 60
        found.append(1e4 * math.log(price[then] / price[bar]))
    return found


def asked(monkeypatch, capsys, *words: str) -> str:
    """What `rail` prints."""
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.setattr(sys, "argv", ["rail", *words])
    with pytest.raises(SystemExit) as done:
        main()
    assert not done.value.code
    return capsys.readouterr().out


STUDY = ("events", "study", "splash", "--before", "1h", "--after", "2h")


@pytest.fixture
def command(store, monkeypatch, capsys):
    """`rail events study splash` with options, as it prints."""
    times = ("--start", str(WINDOW.start), "--end", str(WINDOW.end), "--store", str(store.path))
    return lambda *options: asked(monkeypatch, capsys, *STUDY, *times, *options)


def rows_printed(lines: str) -> list[dict]:
    """The rows of JSON, without the source that each of them names."""
    return [
        {k: v for k, v in json.loads(each).items() if k != "source"} for each in lines.splitlines()
    ]


@pytest.mark.slow
def test_every_face_gives_the_same_figures_of_what_followed(store, command, page_alone):
    printed = {row["offset_s"]: row for row in rows_printed(command("--format", "json"))}
    with tk.open(store.path) as rail:
        pumps = rail.events("splash", *WINDOW)
        rows = rail.around(pumps)
        by_default = pumps.study(rows, after_s=7_200)
        through = event_statistics.follow_through(pumps.detections(), rows)
        tool = next(tool for tool in TOOLS if tool.name == "study")
        times = {"start": str(WINDOW.start), "end": str(WINDOW.end)}
        answer = tool.answer(rail, {"stream": "splash", "after_s": "2h", **times})
    shown = page_alone("events", store.path, window="7 days")
    (drawn,) = [each for each in figures(shown) if "first value known" in str(each["layout"])]
    line = next(each for each in drawn["data"] if each["name"] == "mean")
    minutes, means = (np.frombuffer(base64.b64decode(line[axis]["bdata"])) for axis in "xy")
    page = dict(zip(minutes.tolist(), means.tolist(), strict=True))
    for row in by_default.iter_rows(named=True):
        offset, mean = row["offset_s"], row["return_mean_log_bps"]
        expected = returns(offset)
        assert row["n"] == len(expected) == 30
        assert mean == pytest.approx(np.mean(expected), abs=1e-6)
        assert printed[offset] == row
        assert page[offset / 60] == mean
        told = answer.rows.filter(offset_s=offset)
        if told.height:
            assert told["return_mean_log_bps"].item() == mean
    assert by_default.filter(offset_s=1_200)["return_mean_upper_log_bps"].item() < -90
    metrics = {metric.label: metric.value for metric in shown.metric}
    for horizon, label in ((300, "5 min"), (1_800, "30 min"), (7_200, "2 h")):
        row = through.filter(horizon_s=horizon).row(0, named=True)
        expected = returns(horizon)
        assert row["return_median_log_bps"] == pytest.approx(np.median(expected), abs=1e-6)
        assert row["went_on_share"] == np.mean(np.array(expected) > 0)
        median = column("return_median_log_bps")
        assert metrics[f"{label} later: median return (bps)"] == value_text(
            row[median.name], median
        )
        words = figures_text(row, ["went_on_share"], "events.follow_through")
        assert any(each.startswith(words) for each in texts(shown.caption))


@pytest.mark.slow
def test_from_the_detection_all_faces_say_so(store, command):
    found = rows_printed(command("--from-detection", "--format", "json"))
    shown = command("--from-detection")
    assert "from the price known at each" in " ".join(shown.split())
    assert "the move that made it counts as what followed" in shown
    with tk.open(store.path) as rail:
        pumps = rail.events("splash", *WINDOW)
        rows = rail.around(pumps)
        tool = next(tool for tool in TOOLS if tool.name == "study")
        times = {"start": str(WINDOW.start), "end": str(WINDOW.end)}
        asked = {"stream": "splash", "after_s": "2h", "from_detection": True}
        answer = tool.answer(rail, asked | times)
        path = pumps.study(rows, after_s=7_200, from_detection=True)
    name = "return_from_detection_mean_log_bps"
    for row in path.iter_rows(named=True):
        expected = returns(row["offset_s"], from_detection=True)
        assert row[name] == pytest.approx(np.mean(expected), abs=1e-6)
    assert found == path.to_dicts()
    assert path.filter(offset_s=1_200)[name].item() > 250
    at = answer.rows.filter(offset_s=3_600)
    assert at[name].item() == path.filter(offset_s=3_600)[name].item()
    assert any("the move that made it counts" in note for note in answer.notes)
    shown = command()
    assert "from the first price known after each" in " ".join(shown.split())
    assert "30 s later in the median" in shown
