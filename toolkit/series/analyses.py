"""Methods of series, one per analysis, made from its declaration.

Editors and type checkers read ``analyses.pyi``, which `make docs` writes.
"""

from abc import ABCMeta

from toolkit.series.base import Series, bind


class SpreadAnalyses(Series, metaclass=ABCMeta):
    """The analyses of a spread."""


class FundingAnalyses(Series, metaclass=ABCMeta):
    """The analyses of funding."""


class EventAnalyses(Series, metaclass=ABCMeta):
    """The analyses of an event log."""


class RateAnalyses(Series, metaclass=ABCMeta):
    """The analyses of rates in force."""


class PriceAnalyses(Series, metaclass=ABCMeta):
    """The analyses of prices."""


bind(SpreadAnalyses, "spread")
bind(FundingAnalyses, "funding")
bind(EventAnalyses, "events")
bind(RateAnalyses, "rates")
bind(PriceAnalyses, "price")
