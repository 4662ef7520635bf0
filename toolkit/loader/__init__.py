"""Loading of the service's rows into the store, completely and once."""

from toolkit.loader.follow.follow import follow
from toolkit.loader.follow.follow_progress import FollowProgress, FollowResult
from toolkit.loader.follow.sweep import Pace, Since
from toolkit.loader.sync.planned import PlannedLoad, plan_load
from toolkit.loader.sync.progress import LoadResult, Progress
from toolkit.loader.sync.sync import sync

__all__ = [
    "FollowProgress",
    "FollowResult",
    "LoadResult",
    "Pace",
    "PlannedLoad",
    "Progress",
    "Since",
    "follow",
    "plan_load",
    "sync",
]
