"""Statistics: frame in, frame out, many trajectories at once, no files read or written.

`quality` measures how much of a window was observed, `prices` how a price moved, `spread` the level
and movement of a spread, `fees` what costs leave of it, `funding` what a position in two legs
receives, `events` what detected events did, `survival` their median life. `passes` applies several
of them to rows that come some trajectories at a time, `explain` says how a figure came about.

Each raises `InputError` for a frame that lacks a column or has it in another type, and for an empty
window. `core.contract` and `core.kernel` have their conventions.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.reasons import Reason
    from toolkit.statistics import events, fees, funding, passes, prices, quality, spread, survival
    from toolkit.statistics.explanation import explain

__all__ = [
    "Reason",
    "events",
    "explain",
    "fees",
    "funding",
    "passes",
    "prices",
    "quality",
    "spread",
    "survival",
]

_NAMES = {"Reason": "core.contract", "explain": "explanation"}


if not TYPE_CHECKING:  # as in the toolkit's own: a misspelt name is to be an error of types

    def __getattr__(name: str) -> object:
        """Import a module on first use: a capture needs few statistics, and little memory."""
        if name not in __all__:
            raise AttributeError(f"module 'toolkit.statistics' has no attribute {name!r}")
        module = importlib.import_module(f"toolkit.statistics.{_NAMES.get(name, name)}")
        return getattr(module, name) if name in _NAMES else module


def __dir__() -> list[str]:
    return __all__
