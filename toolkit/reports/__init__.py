"""Reports: series and results in one HTML file, pinned to a snapshot of the data.

The file needs no network, prints, and is light or dark as its viewer. It contains its recipe:
`verify` computes it again from the snapshot.
"""

from toolkit.reports.answering import answered
from toolkit.reports.making import Draft, Verification, report, verify
from toolkit.reports.recipe import Part, read_recipe

__all__ = ["Draft", "Part", "Verification", "answered", "read_recipe", "report", "verify"]
