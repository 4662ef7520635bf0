"""A simulated market: prices, spreads and funding as a pure function of (seed, time).

`processes` (random numbers by name and index, paths over days and minutes) and `pulses` (what is
planted), both placed by the `schedule` over the `catalogue` -> `simulator`. `timeline` has the
bounds of time, 2026 to 2099.

The generator is numpy's Philox. A test pins its bytes, and the source's identity names seed,
catalogue and generator version.
"""

from toolkit.service.market.simulator.catalogue import MARKETS
from toolkit.service.market.simulator.simulator import Simulator

__all__ = ["MARKETS", "Simulator"]
