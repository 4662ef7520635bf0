"""Analyses: one declaration per question, which every face of the toolkit reads.

A statistic is declared beside its function by `analysis`: what is shown of it first, in which
order, and what its parameters mean. The commands of `rail stats` and `rail events`, the methods of
series, the tools of an assistant, the parts of reports, the tables of pages and the documentation
are made from it.
"""

from toolkit.analyses.declaration import Analysis, Family, analysis
from toolkit.analyses.parameters import Parameter
from toolkit.analyses.registry import analyses, analysis_of, declared_for, find

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
