"""The tools refuse what is wrong in one line, and answer as the workspace does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolkit as tk
from tests.once import store_once
from toolkit.assistant import TOOLS, ToolAnswer, questions
from toolkit.errors import RailError
from toolkit.workspace import Workspace

from ...hostile import store_of
from .conftest import FUNDING, PRICE, SPREAD

BY_NAME = {tool.name: tool for tool in TOOLS}


def asked(rail: Workspace, name: str, **arguments: Any) -> ToolAnswer:
    return BY_NAME[name].answer(rail, arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("summary", {}, "stream: nothing is given"),
        ("summary", {"stream": 3}, "a JSON string"),
        ("summary", {"stream": "BTC_USDT:AURORRA.spot"}, "is not held"),
        ("summary", {"stream": "BTC"}, "SYMBOL:EXCHANGE.market"),
        ("summary", {"stream": PRICE, "start": "last week"}, "'last week'"),
        ("summary", {"stream": PRICE, "strat": "7d"}, "nearest: start"),
        ("summary", {"stream": PRICE, "columns": "pric_low"}, "nearest: price_low"),
        ("summary", {"stream": PRICE, "as_of": "2020-01-01"}, "held nothing as of 2020-01-01"),
        ("summary", {"stream": "snapshot/spread"}, "is not held"),
        (
            "episodes",
            {"stream": SPREAD},
            "enter_bps: nothing is given; allowed: The spread from which",
        ),
        ("episodes", {"stream": SPREAD, "enter_bps": "5"}, "a JSON number"),
        ("episodes", {"stream": SPREAD, "enter_bps": 5, "merge_gap_s": "soon"}, "merge_gap_s"),
        ("episodes", {"stream": PRICE, "enter_bps": 5}, "allowed: a spread"),
        ("summary", {"stream": PRICE, "style": "taker"}, "argument of " + PRICE),
        ("net_episodes", {"stream": SPREAD}, "a fee table"),
        ("search_streams", {"limit": 0}, "1 to 200"),
        ("search_streams", {"limit": True}, "a JSON integer"),
        ("search_streams", {"kind": "prices"}, "nearest: price"),
        ("screen", {"where": "half_lif_s > 1"}, "nearest: half_life_s"),
        ("holdings", {"stream": PRICE}, "is not held"),
        ("holdings", {"stream": FUNDING, "horizons": "long"}, "'long'"),
        ("survival", {"stream": "spread", "by": "weather"}, "'weather'"),
        ("study", {"stream": "splash"}, "events/splash"),
        ("chart", {"stream": PRICE, "figure": 1}, "a JSON boolean"),
        ("chart", {"stream": PRICE, "start": "2020-01"}, "holds nothing"),
        ("sql", {"query": "SELEC 1"}, "syntax error"),
        ("sql", {"query": "DELETE FROM prices"}, "one SELECT over the views"),
        ("sql", {"query": "SELECT 1; SELECT 2"}, "one SELECT over the views"),
        ("sql", {"query": "COPY prices TO 'x.csv'"}, "one SELECT over the views"),
        ("sql", {"query": "FROM read_csv('/etc/passwd')"}, "the views prices"),
        ("sql", {"query": "FROM price"}, "nearest: prices"),
    ],
)
def test_what_is_wrong_is_one_line(
    rail: Workspace, name: str, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(RailError) as refused:
        asked(rail, name, **arguments)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["summary", "screen", "coverage", "chart", "sql"])
def test_a_store_that_is_not_there_is_one_line(tmp_path: Path, name: str) -> None:
    given = {"stream": SPREAD, "query": "SELECT 1"}
    arguments = {each: given[each] for each in BY_NAME[name].required}
    with (
        tk.open(tmp_path / "none.duckdb") as rail,
        pytest.raises(RailError, match="there is no store at"),
    ):
        asked(rail, name, **arguments)


def test_streams_are_found_by_words_and_kind(rail: Workspace) -> None:
    assert asked(rail, "search_streams", text="btc corona", kind="spread").rows[
        "stream"
    ].to_list() == [SPREAD]
    assert asked(rail, "search_streams").n == 4
    none = asked(rail, "search_streams", text="BTC_USDT:AURORA.spto")
    assert none.n == 0
    assert f"nearest: {PRICE}" in none.notes[0]
    early = asked(rail, "search_streams", as_of="2020-01-01").document()
    assert early["notes"] == ["the store holds no such stream at all"]
    assert early["as_of"] == "2020-01-01 00:00 UTC"


def test_a_query_that_takes_too_long_is_ended(
    rail: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "SQL_S", 0.05)
    endless = "SELECT count(*) FROM range(100000000000) a, range(1000) b"
    with pytest.raises(RailError, match=r"one that takes at most 0\.05 s"):
        asked(rail, "sql", query=endless)
    assert asked(rail, "sql", query="SELECT 1 AS one").document()["rows"] == [{"one": 1}]


def test_rows_of_a_query_beyond_the_limit_are_not_read(rail: Workspace) -> None:
    found = asked(rail, "sql", query="FROM prices ORDER BY ts DESC; ", limit=2).document()
    assert found["shown"].startswith("2 rows, and there are more")
    assert [each["ts"] for each in found["rows"]] == [
        "2026-11-03 23:59 UTC",
        "2026-11-03 23:58 UTC",
    ]


@pytest.mark.parametrize("stream", [PRICE, SPREAD, FUNDING, "events/spread"])
def test_a_chart_has_the_extremes_of_the_series_and_the_figure_where_it_is_asked_for(
    rail: Workspace, stream: str
) -> None:
    found = asked(rail, "chart", stream=stream, figure=True)
    assert 0 < found.rows.height <= questions.PARTS + 1
    assert found.rows["n"].sum() == len(rail.series(stream))
    assert json.loads(found.figure or "")["data"]
    for name in found.rows.columns:
        if name.startswith("highest_"):
            assert found.rows[name].max() == rail.series(stream).df[name[8:]].max()
    assert asked(rail, "chart", stream=stream).figure is None


def test_figures_without_a_fee_table_say_how_to_set_one(rail: Workspace) -> None:
    for name, arguments in (
        ("summary", {"stream": SPREAD}),
        ("holdings", {"stream": FUNDING}),
        ("screen", {}),
    ):
        found = asked(rail, name, **arguments)
        assert found.fees is None
        assert "rail fees --example" in found.notes[-1]


def test_an_answer_has_the_series_window_coverage_and_count(rail: Workspace) -> None:
    found = asked(
        rail, "summary", stream=SPREAD, start="2026-11-03T23:00:00Z", end="2026-11-03T23:30:00Z"
    )
    made = found.document()
    assert made["window"]["start"] == "2026-11-03 23:00 UTC"
    assert (made["n"], made["coverage"], made["simulated"]) == (30, 1.0, True)
    assert asked(rail, "carry", stream=FUNDING).bounds == "(start, end]"


def test_a_pair_that_is_held_the_other_way_round_is_answered_with_a_note(rail: Workspace) -> None:
    turned = "BTC_USDT:CORONA.futures:AURORA.spot"
    found = asked(rail, "summary", stream=turned)
    assert found.stream == turned
    assert f"held as {SPREAD}: legs and signs are turned" in found.notes


def test_what_is_missing_comes_with_the_command_that_loads_it_unless_it_is_published(
    rail: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    day = {"stream": PRICE, "start": "2026-11-03", "end": "2026-11-04"}
    found = asked(rail, "coverage", **day)
    assert found.rows["state"].to_list() == ["missing", "not yet known"]
    assert found.coverage == pytest.approx(1 / 12)
    assert found.notes[0] == "missing: 1 stretch, 22 h in all"
    assert f"rail sync {PRICE}" in found.notes[2]
    rail.publish(tmp_path / "archive")
    with tk.open(tmp_path / "archive") as published:
        assert asked(published, "coverage", **day).notes == found.notes[:2]


def test_text_of_others_is_printable_and_of_one_line(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    nowhere = "http://127.0.0.1:9"
    path = store_once(tmp_path_factory, "hostile", lambda path: store_of(path, nowhere))
    with tk.open(path) as rail:
        streams = asked(rail, "search_streams")
        spread = next(row["stream"] for row in streams.rows.to_dicts() if row["kind"] == "spread")
        for found in (
            streams,
            asked(rail, "summary", stream="events/spread"),
            asked(rail, "chart", stream=spread),
            asked(rail, "survival", stream="events/spread", by="symbol"),
            asked(rail, "sql", query="FROM event_documents"),
        ):
            texts = list(strings(found.document()))
            assert max(map(len, texts)) <= 1_200
            assert [text for text in texts if not text.isprintable()] == []


def strings(value: Any) -> Iterator[str]:
    """Yield every text of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from strings(each)
