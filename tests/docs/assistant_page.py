"""The eight questions of docs/assistant.md, asked of `rail mcp` and of Python: `make docs`."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import polars as pl
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

import toolkit as tk
from toolkit.assistant import TOOLS
from toolkit.client import Client
from toolkit.service import Clock, Config, Simulated, running
from toolkit.statistics.fees.fee_table import example_text
from toolkit.store import Store
from toolkit.workspace import Workspace

PAGE = Path(__file__).parents[2] / "docs" / "assistant.md"
WIDTH = 80
HEADING = "## Eight questions\n"
NOW = 1_793_750_400  # 2026-11-04 00:00 UTC
SPREAD = "BTC_USDT:AURORA.spot:CORONA.futures"
THIN = "ETH_USDT:AURORA.spot:BOREAS.spot"
FUNDING = "BTC_USDT:AURORA.futures:CORONA.futures"
DAILY = (
    "SELECT date_trunc('day', time) AS day, count(*) AS minutes, "
    "count(*) FILTER (price > 102000) AS minutes_above FROM prices "
    "WHERE trajectory = 'BTC_USDT:AURORA.spot' GROUP BY day ORDER BY day"
)
INTRODUCTION = """
The questions were asked of a SIMULATED market (seed 7). Each has the call of a tool, its answer as
it came, numbers cut to six digits, and a sentence made of that answer alone. A test asks them
again over stdio, and holds every figure to that of the Python below it.
"""


@dataclass(frozen=True)
class Asked:
    """A question: the tool's call, the sentence that its answer gives, and Python's own way."""

    question: str
    tool: str
    arguments: dict[str, Any]
    sentence: Callable[[dict[str, Any]], str]
    python: str


def every_row(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of an answer, each with what all of them have in common."""
    return [{**each, **answer["in_every_row"]} for each in answer["rows"]]


def _held(answer: dict[str, Any]) -> str:
    parts = [
        f"{each['stream']} with {each['rows']:,} rows and {each['holes']:,} holes"
        for each in every_row(answer)
    ]
    return f"Two: {' and '.join(parts)}."


def _level(answer: dict[str, Any]) -> str:
    r = every_row(answer)[0]
    return (
        f"The median spread was {r['spread_median_log_bps']:.1f} bps, and half of a deviation was "
        f"gone after {r['half_life_s'] / 60:.0f} minutes (95 % interval "
        f"{r['half_life_lower_s'] / 60:.0f} to {r['half_life_upper_s'] / 60:.0f}), "
        f"n = {r['n']:,}, coverage {r['coverage']:.0%}."
    )


def _widest(answer: dict[str, Any]) -> str:
    r = every_row(answer)[0]
    return (
        f"{r['trajectory']}: its standard deviation was {r['spread_std_log_bps']:.1f} bps, "
        f"n = {r['n']:,}, coverage {r['coverage']:.0%}."
    )


def _kept(answer: dict[str, Any]) -> str:
    r = every_row(answer)[0]
    return (
        f"The median over {r['n']} times of entry was {r['gross_median_bps']:.1f} bps, and "
        f"{r['net_median_bps']:.1f} bps after fees ({answer['fees']}); {r['breakeven_share']:.0%} "
        f"broke even. The median has no interval: {answer['reason'][0].partition(': ')[2]}."
    )


def _lasted(answer: dict[str, Any]) -> str:
    r = every_row(answer)[0]
    return (
        f"The median life was {r['median_life_s']:.0f} s (95 % interval "
        f"{r['median_life_lower_s']:.0f} to {r['median_life_upper_s']:.0f}), of "
        f"{r['n_lives']:,} events, of which {r['n_lives'] - r['n_ended']} were still open."
    )


def _followed(answer: dict[str, Any]) -> str:
    r = every_row(answer)[-1]
    return (
        f"{r['offset_s'] // 60} minutes after the first price known after a splash, the price was "
        f"{r['return_mean_log_bps']:+.0f} bps from it on average, in the direction of the splash "
        f"(95 % interval {r['return_mean_lower_log_bps']:+.0f} to "
        f"{r['return_mean_upper_log_bps']:+.0f}), n = {r['n']}; of {r['n_events']} events "
        f"{r['n_unknown']} are unknown, since the store lacks their prices."
    )


def _missing(answer: dict[str, Any]) -> str:
    return (
        f"{answer['coverage']:.0%} is covered. {'; '.join(answer['notes'][:2])}. Empty is what the "
        "service was asked for and had nothing of, missing is what it was never asked for."
    )


def _above(answer: dict[str, Any]) -> str:
    days = [
        f"{r['minutes_above']:,} of {r['minutes']:,} on {r['day'][:10]}" for r in every_row(answer)
    ]
    return f"{', '.join(days)}."


QUESTIONS = (
    Asked(
        "Which spreads are there, and how complete are they?",
        "search_streams",
        {"kind": "spread", "columns": "stream,rows,answered_share,holes,longest_hole_s"},
        _held,
        'rail.status().filter(kind="spread")',
    ),
    Asked(
        "How wide is the spread of BTC between AURORA and CORONA, and how fast does it return?",
        "summary",
        {
            "stream": SPREAD,
            "columns": "spread_median_log_bps,half_life_s,half_life_lower_s,half_life_upper_s",
        },
        _level,
        f'rail.spread("{SPREAD}").summary()',
    ),
    Asked(
        "Which spread moves most?",
        "screen",
        {"sort": "-spread_std_log_bps", "columns": "spread_std_log_bps", "limit": 2},
        _widest,
        'rail.screen(sort="-spread_std_log_bps")',
    ),
    Asked(
        "What did a funding position in BTC keep in three days, after fees?",
        "holdings",
        {
            "stream": FUNDING,
            "horizons": "3d",
            "columns": "gross_median_bps,cost_mean_bps,net_median_bps,net_median_lower_bps,"
            "net_median_upper_bps,breakeven_share,breakeven_median_h",
        },
        _kept,
        f'rail.funding("{FUNDING}").holdings(horizons=["3d"])',
    ),
    Asked(
        "How long does a spread event last?",
        "survival",
        {
            "stream": "events/spread",
            "columns": "n_lives,n_ended,median_life_s,median_life_lower_s,median_life_upper_s",
        },
        _lasted,
        'rail.events("spread").survival()',
    ),
    Asked(
        "What did prices do after a splash?",
        "study",
        {
            "stream": "events/splash",
            "before_s": "5m",
            "after_s": "5m",
            "columns": "offset_s,n_events,n_unknown,return_mean_log_bps,"
            "return_mean_lower_log_bps,return_mean_upper_log_bps",
        },
        _followed,
        'splash = rail.events("splash")\n'
        "splash.study(rail.around(splash), before_s=300, after_s=300, every_s=60)",
    ),
    Asked(
        "What is missing of the spread of ETH in the week to 4 November, and why?",
        "coverage",
        {"stream": THIN, "start": "2026-10-28", "end": "2026-11-04", "limit": 2},
        _missing,
        f'gaps = rail.spread("{THIN}", "2026-10-28", "2026-11-04").gaps()\n'
        'gaps.sort("length_s", "start", descending=[True, False])',
    ),
    Asked(
        "For how many minutes of each day was BTC above 102,000?",
        "sql",
        {"query": DAILY},
        _above,
        f'query = "{DAILY}"\nrail.sql(query)',
    ),
)


def loaded(folder: Path) -> Workspace:
    """Load three days of a SIMULATED market into ``rail.duckdb``, with an example of fees."""
    (folder / "fees.toml").write_text(example_text(["AURORA", "CORONA"]), encoding="utf-8")
    store = Store(folder / "rail.duckdb")
    config = Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=10**6)
    day_s = 86_400
    with running(config) as service, Workspace(Client(service.base_url, "demo-pro"), store) as rail:
        streams = ["BTC_USDT:AURORA.spot", SPREAD, THIN, "events/spread", "events/splash"]
        rail.sync(streams, NOW - 3 * day_s, NOW, progress=False)
        opened = rail.events("splash").detections()["trajectory"].unique().sort()
        avax = opened.filter(opened.str.starts_with("AVAX"))
        rail.sync(list(avax), NOW - 3 * day_s, NOW, progress=False)
        symbol, *legs = FUNDING.split(":")
        keys = [f"funding/{FUNDING}", *(f"{symbol}:{leg}" for leg in legs)]
        rail.sync(keys, NOW - 14 * day_s, NOW, progress=False)
    return tk.open(store.path, fees=folder / "fees.toml")


def answers(folder: Path) -> list[dict[str, Any]]:
    """Ask the eight questions of `rail mcp` over stdio, and return what it answers."""

    async def ask() -> list[dict[str, Any]]:
        command = StdioServerParameters(
            command=str(Path(sys.executable).with_name("rail")),
            args=["mcp", "--fees", "fees.toml"],
            cwd=str(folder),
            env=dict(os.environ),
        )
        async with stdio_client(command) as streams, ClientSession(*streams) as session:
            await session.initialize()
            found = []
            for asked in QUESTIONS:
                called = await session.call_tool(asked.tool, asked.arguments)
                assert not called.is_error, called.content
                found.append(called.structured_content)
            return found

    with ThreadPoolExecutor(1) as apart:  # a browser of other tests may run this thread's loop
        return apart.submit(anyio.run, ask).result()


def python_answer(asked: Asked, rail: Workspace) -> pl.DataFrame:
    """Return what the question's lines of Python find: the value of the last one."""
    names: dict[str, Any] = {"rail": rail}
    *before, last = asked.python.splitlines()
    exec("\n".join(before), names)
    found: pl.DataFrame = eval(last, names)
    return found


def transcript(found: list[dict[str, Any]]) -> str:
    """Write the section: each question with its call, answer, sentence and line of Python."""
    parts = [HEADING, INTRODUCTION]
    for number, (asked, answer) in enumerate(zip(QUESTIONS, found, strict=True), start=1):
        called = _json({"name": asked.tool, "arguments": asked.arguments})
        parts.append(
            f"\n### {number}. {asked.question}\n\n```json\n{called}\n```\n\n"
            f"```json\n{_json(_cut(answer))}\n```\n\n{asked.sentence(answer)}\n\n"
            f"```python\n{asked.python}\n```\n"
        )
    return "".join(parts)


def _json(value: Any, indent: int = 0) -> str:
    """Write a JSON value in one line where that is short, else with one line for each part."""
    line = json.dumps(value, ensure_ascii=False)
    if indent + len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    names = (
        [f"{json.dumps(name)}: " for name in value]
        if isinstance(value, dict)
        else [""] * len(value)
    )
    values = value.values() if isinstance(value, dict) else value
    blank = " " * (indent + 2)
    parts = [
        f"{blank}{name}{_json(each, indent + 2)}" for name, each in zip(names, values, strict=True)
    ]
    left, right = "{}" if isinstance(value, dict) else "[]"
    return f"{left}\n" + ",\n".join(parts) + f"\n{' ' * indent}{right}"


def _cut(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: _cut(each) for name, each in value.items()}
    if isinstance(value, str):
        return re.sub(r" --base-url http://127\.0\.0\.1:\d+", "", value)
    return [_cut(each) for each in value] if isinstance(value, list) else value


def tools_table(page: str) -> str:
    """Return the page with the table of the tools: what each does, and what it needs."""
    before, after = page.partition("## Tools\n\n")[0], page.partition("\n\nAll take `as_of`")[2]
    lines = ["| tool | what it does | needs |", "|---|---|---|"]
    for tool in TOOLS:
        first = tool.about if tool.about.startswith("Of ") else tool.about.partition(". ")[0]
        sentence = first.rstrip(".").replace("|", "\\|")
        needs = ", ".join(f"`{name}`" for name in tool.required)
        lines.append(f"| `{tool.name}` | {sentence} | {needs} |")
    return f"{before}## Tools\n\n{chr(10).join(lines)}\n\nAll take `as_of`{after}"


def written(page: str, found: list[dict[str, Any]]) -> str:
    """Return the page with the tools as they are, and the questions as they are answered now."""
    return tools_table(page).partition(HEADING)[0] + transcript(found)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as where, loaded(Path(where)):
        page = written(PAGE.read_text(encoding="utf-8"), answers(Path(where)))
    PAGE.write_text(page, encoding="utf-8")
