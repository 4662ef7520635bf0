"""The tools: what an assistant can ask of a store."""

from __future__ import annotations

from toolkit.assistant import questions
from toolkit.assistant.declared import declared_tools
from toolkit.assistant.tool import COLUMNS, LIMIT, STREAM, STYLE, WINDOW, StoreTool, text

_FUNDING_ONLY = {
    "type": "boolean",
    "description": "leave prices out of what a funding position kept: columns are named so",
}

_OWN = (
    StoreTool(
        "search_streams",
        "Find the streams that the store holds, with rows, coverage and age. Begin here. Keys are "
        "SYMBOL:EXCHANGE.market (price), SYMBOL:BUY.market:SELL.market (spread), "
        "funding/SYMBOL:BUY.market:SELL.market, events/spread, events/splash and events/funding.",
        {
            "text": text("words that the key contains, such as BTC AURORA; all without it"),
            "kind": text("one kind of stream", "price", "spread", "funding", "events", "snapshot"),
            **COLUMNS,
        },
        questions.search_streams,
    ),
    StoreTool(
        "screen",
        "Rank all spreads or funding pairs of the store. Without a sort the widest spread now, or "
        "the largest APR, is first. Without a start it is of the last 7 days, of funding all that "
        "is held. Rows are long: name columns.",
        {
            "family": text("what is ranked; spread without it", "spread", "funding"),
            "where": text("a condition on columns: coverage > 0.95 and half_life_s < 3600"),
            "sort": text("a column, the largest first with a leading dash: -spread_std_log_bps"),
            "symbol": text("one symbol alone, such as BTC_USDT"),
            "style": STYLE,
            "funding_only": _FUNDING_ONLY,
            **WINDOW,
            **COLUMNS,
        },
        questions.screen,
        rows=10,
    ),
    StoreTool(
        "coverage",
        "List what is missing of a stream: each stretch that is not held, the longest first, and "
        "why. Notes have the sums, and the command that loads what is missing.",
        {"stream": STREAM, **WINDOW},
        questions.coverage,
        ("stream",),
    ),
    StoreTool(
        "chart",
        "Return a stream as a short series to draw: of each part of the window the first, lowest, "
        "highest and last value, of an event log a count. With figure also the chart itself.",
        {
            "stream": STREAM,
            "figure": {
                "type": "boolean",
                "description": "add the chart as plotly's JSON, about 20 kB for a program to draw",
            },
            **WINDOW,
        },
        questions.chart,
        ("stream",),
        rows=questions.PARTS + 1,
    ),
    StoreTool(
        "sql",
        f"Run one SELECT of at most {questions.SQL_S:g} s over the views of the store: prices, "
        "spreads, funding_rates, event_documents and others (a wrong name is answered with the "
        "list). It writes nothing and reads no file.",
        {
            "query": text(
                "one SELECT, such as: SELECT trajectory, count(*) FROM spreads GROUP BY 1"
            ),
            "limit": LIMIT,
        },
        questions.sql,
        ("query",),
    ),
)

_NAMES = {tool.name for tool in _OWN}

TOOLS = (*_OWN, *(tool for tool in declared_tools() if tool.name not in _NAMES))
"""The tools in the order in which an assistant reads them."""
