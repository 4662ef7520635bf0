"""Statistics: frame in, frame out, many trajectories at once, no input or output of files.

`quality` says how much of a window was observed, `spread` how a spread lies and moves. The
conventions they share (observations, steps, gaps, weights, reasons) stand in `contract` and
`kernel`.
"""

from toolkit.statistics import quality, spread
from toolkit.statistics.contract import Reason

__all__ = ["Reason", "quality", "spread"]
