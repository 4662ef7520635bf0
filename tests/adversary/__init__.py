"""A service that behaves otherwise than agreed, in every way that the interface leaves open.

`adverse` makes its application, for `toolkit.service.Config`. ``settings`` has the switches. The
other modules implement them, in wrappers around the faithful service's tools, feed, archive,
courier and application, which do not know them. ``python -m tests.adversary FILE`` serves it.
"""

from .application import adverse
from .archive import ArchiveSettings, FaultyArchive
from .rest import Accident, RestSwitches
from .settings import Adversary, WebhookSwitches, adversary_of, read_adversary

__all__ = [
    "Accident",
    "Adversary",
    "ArchiveSettings",
    "FaultyArchive",
    "RestSwitches",
    "WebhookSwitches",
    "adversary_of",
    "adverse",
    "read_adversary",
]
