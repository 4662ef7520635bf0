"""The pages below docs/statistics, printed from the analyses and their docstrings."""

from __future__ import annotations

import inspect
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

from toolkit import statistics
from toolkit.analyses import Analysis, analyses
from toolkit.columns import Column, own_columns_of
from toolkit.reasons import Reason
from toolkit.series.base import bound_to, signature_of
from toolkit.statistics.explanation import Documented

FOLDER = Path(__file__).parents[2] / "docs" / "statistics"

_INDEX = """\
# The statistics

Every statistic takes a frame and returns a frame. Each page has one family: what it computes, its
columns with type and unit, its errors, the source of its formulas, and an example. The pages are
printed from the code by `make docs`. `tk.statistics.explain(result)` prints the same for a result
at hand, with its values.

{pages}
```{{toctree}}
:hidden:

price
spread
funding
rates
events
```

An analysis is called in four ways and returns the same rows each time: by its command, as a method
of a series, through `rail.measure(FUNCTION)` over many trajectories, and as a tool of
[an assistant](../assistant.md) that has the method's name.

## Nulls

A figure that cannot be computed is null. The first column to its right that ends in `_reason` has
the reason:

{reasons}
## Errors

Each function raises `InputError` if its frame is not a polars frame, lacks a column or has one of
another type, or if the window ends before it starts. Further errors are listed with the function.
"""
_PAGES = {
    "price": ("Prices", "level, change, volatility", ("prices",)),
    "spread": (
        "Spreads",
        "level, half-life, stationarity, episodes, net edge, lead and lag, tails, flags",
        ("spread", "fees", "quality"),
    ),
    "funding": ("Funding", "carry, holdings, persistence, dispersion, calendar", ("funding",)),
    "rates": ("Rates in force", "the funding rate of one leg, between settlements", ("rates",)),
    "events": (
        "Events",
        "lifecycles, survival, rates, studies, payoff, audit, channels",
        ("events", "survival"),
    ),
}
"""Each page: its title, what it has, and the modules of `tk.statistics` on it."""
_SHARED = "Results list them by name below their own columns.\n"
_ANY_MISSING = "A column is missing or of another type."

_SERIES = {
    "spread": "rail.spread(KEY)",
    "funding": "rail.funding(KEY)",
    "price": "rail.prices(KEY)",
    "rates": "rail.series(KEY)",
    "events": "rail.events(FAMILY)",
}


def modules() -> Iterator[ModuleType]:
    """Yield the modules of statistics that users reach, in the order of their names."""
    for name in sorted(statistics.__all__):
        if inspect.ismodule(found := getattr(statistics, name)):
            yield found


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions that users reach and the analyses, each once, by its first name."""
    listed = (
        (f"{module.__name__.rpartition('.')[2]}.{name}", getattr(module, name))
        for module in modules()
        for name in sorted(module.__all__)
    )
    seen = set[Callable[..., Any]]()
    for name, found in (*listed, *((each.result, each.function) for each in analyses())):
        if inspect.isfunction(found) and found not in seen:
            seen.add(found)
            yield name, found


def statistics_pages() -> dict[str, str]:
    """Return the pages by name: the index, then one per family."""
    named = {function: name for name, function in functions()}
    pages = {
        page: _family(page, {f: n for f, n in named.items() if n.partition(".")[0] in modules})
        for page, (*_, modules) in _PAGES.items()
    }
    rest = {f: n for f, n in named.items() if not any(f"\n## {n}\n" in p for p in pages.values())}
    index = _INDEX.format(
        pages="".join(
            f"- [{title}]({page}.md): {has}\n" for page, (title, has, _) in _PAGES.items()
        ),
        reasons="".join(f"- `{reason}`: {reason.words}\n" for reason in Reason),
    )
    sections = "".join(_section(name, function) for function, name in rest.items())
    return {"index": index + sections} | pages


def _family(page: str, named: Mapping[Callable[..., Any], str]) -> str:
    """Return a family's page: its analyses, the columns that results share, and each function."""
    title, *_ = _PAGES[page]
    text = f"# {title}\n\n| analysis | command | Python |\n|---|---|---|\n"
    text += "".join(_line(a, named[a.function]) for a in analyses() if a.function in named)
    times = Counter(each for function in named for each in own_columns_of(function))
    commonest = {
        column.name: column for column, count in reversed(times.most_common()) if count > 1
    }
    shared = [column for column in times if commonest.get(column.name) == column]
    if shared:
        text += f"\n## Columns of several results\n\n{_SHARED}\n{_table(shared)}"
    return text + "".join(_section(name, each, shared) for each, name in named.items())


def _line(analysis: Analysis, name: str) -> str:
    """Return the line of an analysis: its sentence, its command and its method."""
    group = "events" if analysis.family == "events" else "stats"
    command = f"`rail {group} {analysis.command}`" if analysis.command else ""
    method = ""
    if analysis in bound_to(analysis.family):
        _, *taken = signature_of(analysis).parameters.values()
        more = "..." if any(each.default is each.empty for each in taken) else ""
        method = f"`{_SERIES[analysis.family]}.{analysis.name}({more})`"
    sentence = _one_line(analysis.sentence)
    return f"| [{sentence}](#{name.replace('.', '').lower()}) | {command} | {method} |\n"


def _section(name: str, function: Callable[..., Any], shared: Collection[Column] = ()) -> str:
    page = Documented.of(function)
    lines = [f"\n## {name}\n", *(_paragraph(part) for part in page.prose)]
    parameters = [_parameter(each) for each in inspect.signature(function).parameters.values()]
    call = textwrap.fill(f"{name}({', '.join(parameters)})", 100, subsequent_indent="    ")
    lines.insert(1, f"```text\n{call}\n```\n")
    if columns := own_columns_of(function):
        if own := [each for each in columns if each not in shared]:
            lines.append(_table(own))
        if also := [f"`{each.name}`" for each in columns if each in shared]:
            lines.append(f"Also {', '.join(also)}.\n")
    raises = _one_line(page.sections.get("Raises", "")).removeprefix("InputError ")
    if raises := raises.replace(_ANY_MISSING, "").strip():
        lines.append(f"Raises `InputError`: {_one_line(raises)}\n")
    if "References" in page.sections:
        lines.append(f"Source: {_one_line(page.sections['References'])}\n")
    if example := page.sections.get("Examples"):
        lines.append("```python\n" + example[example.index(">>>") :].rstrip() + "\n```\n")
    return "\n".join(lines).rstrip() + "\n"


def _table(columns: Iterable[Column]) -> str:
    rows = ["| column | type | meaning |", "|---|---|---|"]
    for each in columns:
        text = each.meaning.replace("|", "\\|") + (f" ({each.when})" if each.when else "")
        rows.append(f"| `{each.name}` | {each.type} {each.unit}".rstrip() + f" | {text} |")
    return "\n".join([*rows, ""])


def _paragraph(text: str) -> str:
    if text.startswith("==="):
        return f"```text\n{text}\n```\n"
    return text.replace("``", "`") + "\n"


def _parameter(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return str(parameter.name)
    default = parameter.default
    return f"{parameter.name}={(default.value if isinstance(default, Enum) else default)!r}"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("``", "`")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in statistics_pages().items():
        (FOLDER / f"{name}.md").write_text(text, encoding="utf-8")
