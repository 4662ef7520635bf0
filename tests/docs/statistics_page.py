"""docs/statistics.md, made from the docstrings of the statistics: `make docs` writes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from toolkit import statistics
from toolkit.analyses import Analysis, analyses
from toolkit.columns import own_columns_of
from toolkit.reasons import Reason
from toolkit.series.bound import bound_to, signature_of
from toolkit.statistics.explanation import Documented

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"

HEAD = """\
# The statistics

Frames in, frames out. This page is made from the docstrings by `make docs`, and a test keeps the
two equal. `tk.statistics.explain(result)` says the same of a result at hand, with its values.

Each result has the rows it rests on, their coverage, the window, and `method` with `params_hash`,
which two rows share where they were computed in the same way. A figure that cannot be had is null.
The first column to its right that ends in `_reason` says why:

"""

_ANALYSES = """
## The analyses

Each is also a tool of [an assistant](assistant.md), named as its method.

| what it does | command | Python |
|---|---|---|
"""
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


def statistics_page() -> str:
    """Return the page: reasons and analyses, then each function with columns, errors, sources."""
    reasons = "".join(f"- `{reason}`: {reason.words}\n" for reason in Reason)
    names = {function: name for name, function in functions()}
    table = "".join(_line(each, names[each.function]) for each in analyses())
    return HEAD + reasons + _ANALYSES + table + "".join(map(_section, names.values(), names))


def _line(analysis: Analysis, name: str) -> str:
    """Return the line of an analysis: what it does, and how a command and a series are asked."""
    group = "events" if analysis.family == "events" else "stats"
    command = f"`rail {group} {analysis.command}`" if analysis.command else ""
    method = ""
    if analysis in bound_to(analysis.family):
        _, *taken = signature_of(analysis).parameters.values()
        more = "..." if any(each.default is each.empty for each in taken) else ""
        method = f"`{_SERIES[analysis.family]}.{analysis.name}({more})`"
    sentence = _one_line(analysis.sentence)
    return f"| [{sentence}](#{name.replace('.', '').lower()}) | {command} | {method} |\n"


def _section(name: str, function: Callable[..., Any]) -> str:
    page = Documented.of(function)
    lines = [f"\n## {name}\n", *(_paragraph(part) for part in page.prose)]
    parameters = ", ".join(
        _parameter(each) for each in inspect.signature(function).parameters.values()
    )
    lines.insert(1, f"```text\n{name}({parameters})\n```\n")
    if columns := own_columns_of(function):
        lines.append("| column | type | unit | meaning |\n|---|---|---|---|")
        for each in columns:
            text = each.meaning.replace("|", "\\|")
            text += f" ({each.when})" if each.when else ""
            lines.append(f"| `{each.name}` | {each.type} | {each.unit} | {text} |")
        lines.append("")
    for title in ("Raises", "References"):
        if title in page.sections:
            text = _one_line(page.sections[title]).removeprefix("InputError ")
            lines.append(f"{'Raises `InputError`' if title == 'Raises' else 'Source'}: {text}\n")
    if example := page.sections.get("Examples"):
        lines.append("```python\n" + example[example.index(">>>") :].rstrip() + "\n```\n")
    return "\n".join(lines).rstrip() + "\n"


def _paragraph(text: str) -> str:
    if text.startswith("==="):
        return f"```text\n{text}\n```\n"
    return text.replace("``", "`") + "\n"


def _parameter(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return str(parameter.name)
    return f"{parameter.name}={parameter.default!r}"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("``", "`")


if __name__ == "__main__":
    PAGE.write_text(statistics_page(), encoding="utf-8")
