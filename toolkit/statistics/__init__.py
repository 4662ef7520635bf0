"""Statistics: frame in, frame out, many trajectories at once, no input or output of files.

`quality` measures how much of a window was observed, `prices` how a price moved, `spread` how a
spread lies and moves, `fees` what it leaves after costs, `funding` what a position in two legs
receives, `events` how long detected events lasted, `survival` their median life. `passes` applies
several of them to rows that come some trajectories at a time. `explain` says in words how a figure
came about. The conventions they share (observations, steps, gaps, weights, reasons) are in
`contract` and `kernel`.
"""

from toolkit.statistics import events, fees, funding, passes, prices, quality, spread, survival
from toolkit.statistics.contract import Reason
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


def __dir__() -> list[str]:
    return __all__
