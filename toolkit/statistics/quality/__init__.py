"""Quality of rows: how many there are, and signs of bad prices."""

from toolkit.statistics.quality.coverage import coverage
from toolkit.statistics.quality.flags import flags

__all__ = ["coverage", "flags"]


def __dir__() -> list[str]:
    return __all__
