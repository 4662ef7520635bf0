"""A simulated market: prices, spreads and funding as a pure function of (seed, time).

`processes` (random numbers by name and index, paths over days and minutes) -> the `schedule` of
what is planted over the `catalogue` -> `simulator`.

The generator is numpy's Philox. A test pins its bytes, and the source's identity names seed,
catalogue and generator version.
"""

from toolkit.service.market.simulator.catalogue import MARKETS
from toolkit.service.market.simulator.simulator import Simulator

__all__ = ["MARKETS", "Simulator"]
