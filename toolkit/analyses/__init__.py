"""Analyses: one declaration per question, for every face of the toolkit.

A statistic is declared beside its function by `analysis`: the columns shown, their order and its
parameters. The commands of `rail stats` and `rail events`, methods of series, tools of an
assistant, parts of reports, tables of pages and the documentation are made from it.
"""

from toolkit.analyses.declaration import (
    Analysis,
    Family,
    analyses,
    analysis,
    analysis_of,
    declared_for,
    find,
)
from toolkit.analyses.parameters import Parameter

__all__ = [
    "Analysis",
    "Family",
    "Parameter",
    "analyses",
    "analysis",
    "analysis_of",
    "declared_for",
    "find",
]
