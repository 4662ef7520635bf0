"""Reports: series and results in one HTML file that is pinned to the data it is of.

The file needs no network, prints, and is light or dark as its viewer. Its recipe is in it as data,
by which `verify` computes it again from the same snapshot, and a later report is compared with it.
"""

from toolkit.reports.answering import answered
from toolkit.reports.drafting import Draft
from toolkit.reports.making import report
from toolkit.reports.recipe import Part, read_recipe
from toolkit.reports.verification import Verification, verify

__all__ = ["Draft", "Part", "Verification", "answered", "read_recipe", "report", "verify"]
